"""A question about a service, checked: the request against the model, the layout against both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED, check, one_number, validate, validate_given
from mlsim.solvers.formats import Formats, formats
from mlsim.solvers.question import Question, check_consistent, check_shares
from mlsim.solvers.serving.operators_table import UNIFORM
from mlsim.solvers.serving.service import ASKED, Service
from mlsim.solvers.serving.steps import equations_for, givable, step_question
from mlsim.solvers.serving.switches import HOST_LINK, OFF, Switches
from mlsim.systems import Cluster, System
from mlsim.systems.system import check_exchange, spread
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Offload, Parallelism, Speculation

if TYPE_CHECKING:
    from mlsim.software import Software
    from mlsim.workloads.adapters import LoRA

_ALONE = Parallelism()
# What is asked for by number, beside the quantities that are given.
_FIXED = (*ASKED, "data_parallel", "pipeline_parallel", "tokens_per_step")
_SHARES = ("memory_bound_share", "compute_bound_share", "network_share")

_LARGER: dict[type, str] = {
    System: "a larger system or a cluster: one of the zoo, a .toml file, or "
    "Cluster('mine', node, nodes=..., link_bandwidth='400 Gb/s')",
    Cluster: "a larger cluster",
}
# New tokens of a decoder where nobody says how many.
OUTPUT_TOKENS = 128
# Below this a size needs no second look.
_LARGE = 2_000_000_000


def service(
    *,
    model: Transformer,
    hardware: Device | System | Cluster,
    formats: Formats,
    parallelism: Parallelism = _ALONE,
    estimate: str = "roofline",
    software: Software | str | None = None,
    expert_imbalance: Any = 1.0,
    **request: Any,
) -> Service:
    """Check a question about a service; see `Engine.serve` for its parts, `requested` for the rest.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    of = configured(
        model=model,
        hardware=hardware,
        formats=formats,
        parallelism=parallelism,
        estimate=estimate,
        software=software,
        expert_imbalance=expert_imbalance,
    )
    return requested(of, **request)


def configured(
    *,
    model: Transformer,
    hardware: Device | System | Cluster,
    formats: Formats,
    parallelism: Parallelism,
    estimate: str,
    software: Software | str | None,
    expert_imbalance: Any,
) -> Service:
    """Return the smallest request of a model on its devices: what any request shares, checked.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    check("estimate", estimate)
    _check_layout(parallelism, model, hardware)
    if estimate == CALIBRATED or software is not None:
        from mlsim.solvers.calibrated import software_of

        software = software_of(software, estimate, "serve")
    return Service(
        model=model,
        device=hardware if isinstance(hardware, Device) else hardware.device,
        system=None if isinstance(hardware, Device) else hardware,
        parallelism=parallelism,
        formats=formats,
        estimate=estimate,
        software=software,
        expert_imbalance=check_imbalance(expert_imbalance, parallelism, model),
    )


def requested(
    of: Service,
    *,
    batch_size: Any,
    prompt_tokens: Any,
    output_tokens: Any = None,
    block_tokens: Any = 16,
    chunk_tokens: Any = 8192,
    reserve: Any = 0.1,
    given: Mapping[str, Any] | None = None,
    **switches: Any,
) -> Service:
    """Return a configuration as it is asked for a request, checked.

    `switches` are `prefix_share`, `prefix_count`, `speculation` (with the draft's record),
    `offload`, `adapters` and `adapter_count`.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    if not given:
        _ = of.base  # once for all requests
    made = of.requested(
        batch_size=_size("batch_size", batch_size),
        prompt_tokens=_size("prompt_tokens", prompt_tokens),
        output_tokens=_output(of.model, output_tokens),
        block_tokens=_one("block_tokens", block_tokens),
        chunk_tokens=_one("chunk_tokens", chunk_tokens),
        reserve_share=reserve if _plain(reserve) else check("reserve", reserve),
    )
    if given:
        made = replace(made, given=validate_given(given, givable(of.estimate)))
    _check_context(made)
    _ = made.base  # refuses formats, links and estimates that the device does not have
    if switches or given:
        on = _switched(made, **switches)
        made = made if on is OFF else replace(made, switches=on)
        _check_given(made)
    return made


def _size(name: str, value: Any) -> Any:
    # The usual case, first.
    plain = type(value) is int and 0 < value < _LARGE
    return float(value) if plain else validate(name, value, whole=True)


def _plain(share: Any) -> bool:
    return type(share) is float and 0 <= share < 1


def _one(name: str, value: Any) -> float:
    plain = type(value) is int and 0 < value < _LARGE
    return float(value) if plain else one_number(name, value, whole=True)


def _output(model: Transformer, value: Any) -> Any:
    if model.decoder:
        return float(OUTPUT_TOKENS) if value is None else _size("output_tokens", value)
    if value is None or (isinstance(value, (int, float)) and value == 0):
        return 0.0
    raise WrongKindError(
        f"{model.name} is an encoder: it reads a text at once and generates nothing. "
        "Leave output_tokens out."
    )


def _check_layout(
    parallelism: Parallelism, model: Transformer, hardware: Device | System | Cluster
) -> None:
    """Refuse sizes that are none, or don't divide the model, or need more devices."""
    sizes = parallelism.sizes
    for name, size in sizes.items():
        check(name, size)
    if parallelism == _ALONE:
        return
    model.operators(parallelism)  # refuses what does not divide the model
    check_context_parallel(parallelism, model)
    there = 1 if isinstance(hardware, Device) else hardware.devices
    if parallelism.devices > there:
        del sizes["expert_parallel"]  # within the others
        product = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        have = (
            f"{hardware.name} has {there:,}. Use fewer, or {_LARGER[type(hardware)]}."
            if not isinstance(hardware, Device)
            else f"{hardware.name} is one device. Give a system of them: one of the zoo, a "
            f".toml file, or System('my node', device, devices={parallelism.devices}, "
            "link_bandwidth='450 GB/s')."
        )
        raise InvalidValueError(f"{product} needs {parallelism.devices} devices; {have}")
    if isinstance(hardware, Cluster):
        check_nodes(hardware, parallelism)
    check_exchange(hardware, parallelism.expert, parallelism.tensor)


def _check_given(service: Service) -> None:
    """Refuse given quantities that contradict each other, the request, or what can be."""
    if not service.given:
        return
    _ = service.shape_with({})  # refuses arrays that don't broadcast
    fixed = {name: value for name, value in service.known.items() if name in _FIXED}
    check_consistent(equations_for(service.variant), service.given, fixed)
    for step in _steps(service):
        check_shares(step.evaluate(*_SHARES), service.given)


def _steps(service: Service) -> tuple[Question, ...]:
    """Return the steps that are checked: the prompt, and of a decoder the first new token."""
    prompt = service.prompt_tokens
    prefill = step_question(service, "prefill", *service.prefill)
    if not service.model.decoder:
        return (prefill,)
    return (prefill, step_question(service, "decode", 1.0, prompt))


def _check_context(service: Service) -> None:
    """Refuse a sequence that is longer than the model can read."""
    model = service.model
    total = service.prompt_tokens + service.output_tokens
    longest = float(total.max() if getattr(total, "ndim", 0) else total)
    if longest > model.context:
        raise InvalidValueError(too_long(model, longest))


def too_long(model: Transformer, tokens: float) -> str:
    """Say that a sequence of so many tokens is longer than a model can read."""
    return (
        f"a sequence of {tokens:,.0f} tokens (prompt and output) is longer than the context "
        f"of {model.name}, {model.context:,}. Shorten it; if you know that the model was "
        "extended, give a config.json that says so, or dataclasses.replace(model, context=...)."
    )


# Rows of a vocabulary's table are padded; more than this part of them is another vocabulary.
_PADDING = 0.01


def _switched(
    made: Service,
    *,
    prefix_share: Any = 0.0,
    prefix_count: Any = None,
    speculation: Any = None,
    offload: Any = None,
    adapters: Any = None,
    adapter_count: Any = None,
) -> Switches:
    """Return what is switched on in a service.

    Raises
    ------
    InvalidValueError, WrongKindError
        If a number can't be, or a switch does not go with the model, the device or the layout.
    """
    if offload is None and HOST_LINK in made.given:
        raise InvalidValueError(
            f"{HOST_LINK} counts only with offload=Offload(...), which is not given."
        )
    others = (prefix_count, speculation, offload, adapters, adapter_count)
    plain = type(prefix_share) in (int, float) and prefix_share == 0
    if plain and all(each is None for each in others):
        return OFF
    if not made.model.decoder:
        raise WrongKindError(
            f"{made.model.name} is an encoder: it has no cache and generates nothing, so there "
            "are no prefixes to cache, nothing to speculate on and no cache to offload."
        )
    share = _prefix_share(prefix_share)
    found = Switches(
        prefix_share=share,
        prefix_count=_prefix_count(prefix_count, share),
        speculation=speculation,
        offload=offload,
        host_link=_host_link(offload, made),
        adapters=_adapters(adapters, made),
        adapter_count=_adapter_count(adapter_count, adapters),
    )
    if speculation is not None:
        found = replace(found, draft=_draft(speculation, made))
    return found if found.on else OFF


def _adapters(asked: Any, made: Service) -> LoRA | None:
    if asked is None:
        return None
    from mlsim.workloads.adapters import adapted, check_adapters

    adapters = check_adapters(asked)
    if adapters is None:
        return None
    if adapters.quantized:
        raise WrongKindError(
            "QLoRA is a way to train. An adapter that it trained is served as LoRA(rank=..., "
            "targets=...), beside weights in any format, such as weights='int4'."
        )
    served = adapted(made.model, adapters, made.parallelism.of_weights)
    if any(each.operator.startswith("experts") for each in served):
        raise InvalidValueError(
            f"adapters of the experts of {made.model.name}: which of them a step reads depends on "
            "both choices of a token, and isn't known here. Use targets='attention'."
        )
    return adapters


def _adapter_count(count: Any, adapters: Any) -> int:
    if count is None:
        return 1
    if adapters is None:
        raise InvalidValueError("adapter_count needs adapters=LoRA(rank=...): of which kind?")
    return int(check("adapter_count", count))


def _prefix_share(value: Any) -> Any:
    if isinstance(value, str):
        raise InvalidValueError(
            f"prefix_share is a number from 0 to 1, not the text {value!r}; only Engine.load with "
            "a trace takes prefix_share='trace'."
        )
    found = validate("prefix_share", value, zero=True)
    most = found.max() if getattr(found, "ndim", 0) else found
    if most > 1:
        raise InvalidValueError(
            f"prefix_share is a share of each prompt: it must be at most 1, not {most:g}. Of 500 "
            "tokens of 2,000 it is 0.25."
        )
    return found


def _prefix_count(value: Any, share: Any) -> float | None:
    if value is None:
        return None
    if not getattr(share, "ndim", 0) and not share:
        raise InvalidValueError("prefix_count needs a prefix_share above 0: what is cached?")
    return float(check("prefix_count", value))


def _host_link(offload: Any, made: Service) -> Any:
    """Return the figure of the link to the host, where it is needed and not given."""
    if offload is None:
        return None
    if not isinstance(offload, Offload):
        raise WrongKindError(
            "offload is an Offload of mlsim.workloads, such as Offload(cache=0.3), not "
            f"{offload!r}."
        )
    if made.table.cache["worked"]:
        raise InvalidValueError(
            f"offload with the calibrated estimate of {made.device.name}: its cores limit how "
            "fast weights are read, and the two were not measured together. Use "
            "estimate='roofline'."
        )
    if HOST_LINK in made.given:
        return None
    figure = made.device.figures.get("links.pcie")
    if figure is None:
        raise InvalidValueError(
            f"no link of {made.device.name} to its host is on record. Give its rate in one "
            f"direction, such as {HOST_LINK}='64 GB/s'."
        )
    return figure


def _draft(speculation: Any, made: Service) -> Service | None:
    """Return the draft as a service of the same request, if it is a model."""
    if not isinstance(speculation, Speculation):
        raise WrongKindError(
            "speculation is a Speculation of mlsim.workloads, such as Speculation("
            f"draft='Llama3_8B', tokens=4, acceptance=0.7), not {speculation!r}."
        )
    layout = made.parallelism
    if layout.pipeline > 1:
        raise InvalidValueError(
            "speculation with pipeline_parallel: while a draft is checked by one stage, the others "
            "would wait. Use tensor_parallel or data_parallel."
        )
    model = speculation.draft
    if model is None:
        return None
    assert isinstance(model, Transformer)
    _check_pair(model, made)
    layout = layout if model.experts else replace(layout, expert=1)
    # Rates that are given of a device hold for the draft, too, which runs on it.
    names = {"peak_flops", "memory_bandwidth", "memory_capacity", "link_bandwidth"}
    if made.calibrated:
        from mlsim.solvers.calibrated import OF_DEVICE, OF_LINK

        names.update(OF_DEVICE, OF_LINK)
    try:
        _check_layout(layout, model, made.system or made.device)
        found = replace(
            made,
            model=model,
            formats=formats(speculation.precision, device=made.device, released=model.released),
            parallelism=layout,
            expert_imbalance=1.0,
            given={name: value for name, value in made.given.items() if name in names},
        )
        _check_context(found)
    except InvalidValueError as error:
        raise InvalidValueError(f"the draft {model.name}: {error}") from None
    return found


def _check_pair(draft: Transformer, made: Service) -> None:
    """Refuse a draft that can't guess what the model says."""
    model = made.model
    if not draft.decoder:
        raise WrongKindError(f"{draft.name} is an encoder: it can't draft. Use a decoder.")
    if abs(draft.vocabulary - model.vocabulary) > _PADDING * model.vocabulary:
        raise InvalidValueError(
            f"{draft.name} knows {draft.vocabulary:,} tokens, {model.name} {model.vocabulary:,}: "
            "a draft must have the vocabulary of its model. Use a smaller model of one family."
        )
    if draft.parameter_count >= model.parameter_count:
        raise InvalidValueError(
            f"the draft {draft.name} is not smaller than {model.name}: it can't save time."
        )


def check_nodes(cluster: Cluster, parallelism: Parallelism) -> None:
    """Refuse a layout whose groups would have to be torn to find room.

    Raises
    ------
    InvalidValueError
        If it takes more nodes than there are.
    """
    each = cluster.node.devices
    lies = spread(parallelism, each)
    if lies.nodes > cluster.nodes:
        raise InvalidValueError(
            f"{parallelism} on nodes of {each} takes {lies.nodes:,} nodes, since what fits in a "
            f"node is not torn; {cluster.name} has {cluster.nodes:,}. Choose sizes that divide "
            f"{each}, such as tensor_parallel={math.gcd(parallelism.tensor, each)}, or use fewer "
            "devices."
        )


def check_context_parallel(parallelism: Parallelism, model: Transformer) -> None:
    """Refuse to share the sequences of a model where that is not modeled.

    Raises
    ------
    WrongKindError
        If the model is an encoder, keeps states, or has layers that share a cache.
    """
    if parallelism.context == 1:
        return
    why = ""
    if not model.decoder:
        why = "is an encoder, which keeps no cache"
    elif model.state_bytes_per_sequence:
        why = "has layers with a state, which goes through a sequence in order"
    elif model.shares_cache:
        why = "has layers that read the cache of an earlier layer"
    if why:
        raise WrongKindError(
            f"context_parallel = {parallelism.context}: {model.name} {why}. How devices would "
            "share its sequences is not modeled: use tensor_parallel or data_parallel."
        )


def check_imbalance(value: Any, parallelism: Parallelism, model: Transformer) -> float | str:
    """Return the tokens of the busiest device over the mean: a number, or the rule for it.

    Raises
    ------
    InvalidValueError
        If it is no number that can be, or no experts are spread.
    """
    found: float | str = check("expert_imbalance", value)
    if found == 1.0:
        return found
    spread_over = parallelism.expert
    if not model.experts or spread_over == 1:
        raise InvalidValueError(
            f"expert_imbalance = {value!r}, but {model.name} has its experts on one group of "
            "devices, which all have as much to do. Set expert_parallel, or leave it out."
        )
    if found != UNIFORM and float(found) > spread_over:
        raise InvalidValueError(
            f"expert_imbalance = {value!r} is more than expert_parallel = {spread_over}: one "
            f"device can't have more than all tokens. It is from 1 to {spread_over}."
        )
    return found
