"""What is known of a service, whatever is asked of it: model, device, formats, layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.equations import serving
from mlsim.solvers import calibrated
from mlsim.solvers.formats import kept_bytes
from mlsim.solvers.question import Known
from mlsim.solvers.serving import levels
from mlsim.solvers.serving.routed import add_experts
from mlsim.solvers.serving.scanned import add_states
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD

if TYPE_CHECKING:
    from mlsim.precision import Precision
    from mlsim.solvers.serving.service import Service


def known_of(service: Service) -> Known:
    """Return all that no request changes, in base units, and the origins of the columns."""
    known = Known().add("definition", tokens_per_step=1.0)
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    _add_formats(known, service)
    _add_model(known, service)
    _add_device(known, service)
    _add_layout(known, service)
    if service.calibrated:
        _add_measured(known, service)
        _add_program(known, service)
        if service.model.experts:
            add_experts(known, service, service.model.experts)
        add_states(known, service)
    # Columns that are the same for all operators.
    known.update(service.table.cache["uniform"])
    return known


def _add_formats(known: Known, service: Service) -> None:
    def words(kind: str, chosen: Precision) -> str:
        return f"{kind} in {chosen.name}: {chosen.bits:g} bits"

    formats = service.formats
    cache = words("KV cache", formats.kv_cache)
    known.columns(words("weights", formats.weights), "bytes_per_parameter")
    known.add(
        words("activations", formats.activations), bytes_per_element=formats.activations.bytes
    )
    known.add(cache, bytes_per_cached_element=formats.kv_cache.bytes)


def _add_model(known: Known, service: Service) -> None:
    model, parallelism = service.model, service.parallelism
    words = f"{model.name}, from its architecture ({model.source})"
    operators = model.operators(parallelism)
    live = "token_live_elements" if service.spread else "live_elements"
    logits = serving.sharded_logits(float(model.vocabulary), parallelism.tensor)
    known.add(
        words,
        model_cached_elements=float(model.model_cached_elements if model.decoder else 0),
        **{live: float(max(operator.live_elements for operator in operators))},
        logits=logits if model.output_layer else 0.0,
    )
    if model.experts:
        experts = model.experts
        known.add(words, experts=float(experts.count), experts_per_token=float(experts.per_token))
    else:
        known.add(words, expert_share=1.0)


def _add_device(known: Known, service: Service) -> None:
    device, system = service.device, service.system
    known.add_memory(device)

    def peak() -> str:
        used = dict.fromkeys(service.formats.all_computing(device))
        found = [device.compute.figure(each) for each in used]
        if service.estimate == "bound":
            found = [max(found, key=lambda figure: figure.si)]
        return f"{device.name}: {'; or '.join(each.origin() for each in found)}"

    known.columns(peak, "peak_flops")
    if system:
        known.columns(levels.link_origin(system, service.table.operators), "link_bandwidth")
        known.columns("sums in 16 bits or more; tokens as experts read them", _SENT)


def _add_layout(known: Known, service: Service) -> None:
    parallelism = service.parallelism
    words = f"layout: {parallelism}"
    known.add(
        words,
        data_parallel=float(parallelism.data),
        pipeline_parallel=float(parallelism.pipeline),
    )
    if service.model.experts:
        known.add(words, expert_replicas=float(parallelism.expert_replicas))
    if service.spread:
        _add_spread(known, service)
    if not service.table.cache["sends"]:
        known.add("definition", total_network_time=0.0)
        kept = kept_bytes(service.formats.activations)
        known.add("sums in 16 bits or more", bytes_per_sent_element=kept)


def _add_spread(known: Known, service: Service) -> None:
    """Add who shares a sequence, and how much more the busiest device has to do."""
    parallelism, imbalance = service.parallelism, service.expert_imbalance
    words = f"layout: {parallelism}"
    known.add(words, context_parallel=float(parallelism.context))
    known.columns(f"{service.model.name}, from its attention", "ring_cached_elements")
    known.columns(f"{service.model.name}, from its attention", "ring_query_elements")
    known.columns("definition: 1 for experts, and for sending to them", "routed_share")
    if service.estimate == "bound":
        known.add("the bound: all devices have as much to do", expert_imbalance=1.0)
    elif imbalance == levels.UNIFORM:
        known.add(words, expert_parallel=float(parallelism.expert))
    else:
        known.add("given", expert_imbalance=float(imbalance))


_SENT = "bytes_per_sent_element"
_OF_STEPS = ("host_launch_time", "captured_tokens", "step_host_time", "sequence_host_time")


def _add_program(known: Known, service: Service) -> None:
    """Add what the program adds to its kernels."""
    made_by = service.software
    if made_by is None:
        return
    if made_by.unfused:
        calibrated.add_software(known, made_by, "activation_passes", "score_passes")
    if made_by.hosted:
        calibrated.add_software(known, made_by, *_OF_STEPS)
        if not made_by.value("host_launch_time"):
            known.add("starts of kernels hide behind the device", launch_count=0.0)


def _add_measured(known: Known, service: Service) -> None:
    """Add the tiles of the device, and the origins of the columns that were measured."""
    calibrated.add_tiling(known, service.device)
    calibrated.add_origins(known, service.device, service.calibrations, service.software)
    system = service.system
    sending = [each for each in service.table if each.link_group]
    if system and sending and not set(calibrated.MAIN_OF_LINK) <= set(service.given):
        found = [levels.constants(system, each, graph=service.in_graph) for each in sending]
        words = "; or ".join(dict.fromkeys(each.origin for each in found))
        for name in calibrated.OF_LINK:
            known.columns(f"{system.name}, {words}", name)
        known.columns("layout: devices that exchange", "group_size")
