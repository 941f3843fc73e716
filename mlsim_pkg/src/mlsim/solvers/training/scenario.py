"""What is trained, on what, and how it is divided: a training run with its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import links
from mlsim.equations.registry import EQUATIONS
from mlsim.errors import NotMeasuredError
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.precision import PRECISIONS, Precision, by_default
from mlsim.solvers.formats import WIDE, kept_bytes
from mlsim.solvers.question import Known, Origin, Question, of_device, of_hardware, recorded
from mlsim.solvers.training.equations import equations_for
from mlsim.systems import Cluster, Placement, System, placement
from mlsim.workloads.adapters import NF4, widest
from mlsim.workloads.kernels import KERNEL_COLUMNS, Kernel, Recipe
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, TRAINING_MULTIPLY_ADDS, OperatorTable
from mlsim.workloads.steps import STEP_COLUMNS, Parallelism
from mlsim.workloads.training_lowering import (
    adapter_parameters_on_device,
    kernels,
    multiply_adds,
    output_multiply_adds,
    padded_model,
    parameters_on_device,
    quantized_on_device,
    score_multiply_adds,
    spared_multiply_adds,
    stage_layers,
)

if TYPE_CHECKING:
    from mlsim.hardware.device_calibration import Calibration
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.software import Software
    from mlsim.systems.link_calibration import LinkCalibration
    from mlsim.workloads.adapters import LoRA


@dataclass(frozen=True, eq=False)
class Scenario:
    """A training run as it was asked for; sizes are floats in base units.

    Attributes
    ----------
    overlap
        Parts of sending that computing hides: within a stage, between stages, of gradients.
    whole
        What is asked of the whole run, by quantity: how much it reads, what a device costs, how
        often one fails. Empty where only a step is asked for.
    given
        Quantities that override what the data or the equations say.
    assumed
        Whether nobody asked for the precision.
    software
        What runs it; of the calibrated estimate only.
    """

    model: Transformer
    hardware: Device | System | Cluster
    parallelism: Parallelism
    recipe: Recipe
    precision: Precision
    gradients: Precision
    estimate: str
    global_batch: float
    micro_batch: float
    sequence_tokens: float
    overlap: Mapping[str, float]
    whole: Mapping[str, float]
    collective: str
    reserve_share: float
    given: Mapping[str, float]
    assumed: bool
    software: Software | None

    @property
    def why(self) -> str:
        """Why it is in this precision; "" where it was asked for."""
        return by_default(self.precision.name, self.model.stated_format) if self.assumed else ""

    @property
    def device(self) -> Device:
        """Each of the devices."""
        return self.hardware if isinstance(self.hardware, Device) else self.hardware.device

    @property
    def node(self) -> System | None:
        """The system that each node is; None of a device alone."""
        if isinstance(self.hardware, Cluster):
            return self.hardware.node
        return self.hardware if isinstance(self.hardware, System) else None

    @property
    def node_devices(self) -> int:
        """Devices that share the fast links of one node."""
        return self.node.devices if self.node else 1

    @property
    def group(self) -> Placement:
        """Where the devices lie that hold the same weights."""
        return placement(self.parallelism.copies, self.parallelism.tensor, self.node_devices)

    @property
    def algorithm(self) -> str:
        """How gradients are brought together."""
        if self.collective != "auto":
            return self.collective
        return "ring" if self.group.groups == 1 else "hierarchical"

    @cached_property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        flags = {
            "causal": self.model.decoder and not self.masked_worked,
            "calibrated": self.calibrated,
            "recomputed": self.recipe.recompute == "full",
            "bound": self.bound,
            "uneven": self.model.layers % self.parallelism.pipeline > 0,
            "adapters": self.recipe.adapters is not None,
            "quantized": self.recipe.quantized,
        }
        return frozenset(name for name, holds in flags.items() if holds)

    def bandwidth(self, span: int, stride: int) -> float:
        """Rate at which a device sends to a group of `span`, `stride` apart, one way."""
        return _bandwidth(self.hardware, span, stride)

    @property
    def calibrated(self) -> bool:
        """Whether the rates are those that were measured."""
        return self.estimate == CALIBRATED

    @property
    def bound(self) -> bool:
        """Whether the least time is asked for that a step can take."""
        return self.estimate == "bound"

    @property
    def masked_worked(self) -> bool:
        """Whether pairs of tokens are worked on that a mask hides; the bound leaves them out."""
        return self.recipe.standard and not self.bound

    @property
    def achieved(self) -> Calibration | None:
        """What the device was measured to reach; None of a roofline, or where all is given."""
        if not self.calibrated:
            return None
        from mlsim.hardware.device_calibration import calibration
        from mlsim.solvers.calibrated import OF_DEVICE

        if set(OF_DEVICE) <= set(self.given):
            return None
        return calibration(self.device, self.precision.computes_as)

    @property
    def attention_achieved(self) -> Calibration | None:
        """What attention reaches, which computes in 16 bits where matrices take 8."""
        if self.achieved is None:
            return None
        from mlsim.hardware.device_calibration import calibration

        return calibration(self.device, self.computes_in("attention", ""))

    @property
    def linked(self) -> LinkCalibration | None:
        """What its links were measured to reach; None of a roofline, or where nothing is sent.

        Nor is it looked up where all of it is given. Of links that nobody measured it is None,
        and they count as in a roofline.
        """
        if not self._sends or self.node is None:
            return None
        group = min(self.parallelism.tensor, self.node.devices)
        return _linked(self.node, group if group > 1 else None)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Which constants were measured on other devices; of links also whether on none."""
        if not self.calibrated:
            return ()
        from mlsim.hardware.kernel_constants import NOBODY, Relatives, loans
        from mlsim.solvers.calibrated import farthest, without_given

        found = [each for each in (self.achieved, self.attention_achieved) if each]
        lent = without_given((loan for each in found for loan in each.loans), self.given)
        node = self.node
        if self._sends and node:
            linked = self.linked
            lent.extend(loans({"exchange": linked.kin if linked else Relatives(NOBODY, ())}))
        return farthest(lent)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer."""
        cluster = self.hardware if self.parallelism.devices > self.node_devices else None
        return (*of_device(self.device), *of_hardware(cluster))

    @property
    def _sends(self) -> bool:
        """Whether rates of links are asked of what was measured."""
        asked = not {"link_fraction", "hop_latency"} <= set(self.given)
        return self.calibrated and self.parallelism.devices > 1 and asked

    def computes_in(self, kind: str, name: str) -> str:
        """Name the format in which a kernel computes; 8 bits are for matrices of layers only."""
        narrow = kind == "product" and not name.startswith(("output", "router", "adapter"))
        if self.precision.bits >= WIDE or narrow:
            return self.precision.computes_as
        return "bf16" if "bf16" in self.device.compute.figures else "fp16"

    @cached_property
    def table(self) -> OperatorTable[Any]:
        """Its kernels, of a micro-batch."""
        return _kernel_table(self)

    @cached_property
    def question(self) -> Question:
        """What is asked of it: all that is known, its kernels, and the equations."""
        return Question(
            _known_of(self),
            equations_for(self.variant, self.algorithm),
            lambda: self.labels,
            table=self.table,
        )

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": self.model.name,
            "model_source": self.model.source,
            "hardware": self.hardware_name,
            "precision": self.precision.name,
            "estimate": self.estimate,
            **({"adapters": str(self.recipe.adapters)} if self.recipe.adapters else {}),
        }

    @property
    def hardware_name(self) -> str:
        """The devices that are used, and where they are."""
        where = "" if isinstance(self.hardware, Device) else f" of {self.hardware.name}"
        return f"{self.parallelism.devices:,} x {self.device.name}{where} ({self.parallelism})"


@lru_cache(maxsize=256)
def _linked(node: System, group: int | None) -> LinkCalibration | None:
    from mlsim.systems.link_calibration import link_calibration

    try:
        return link_calibration(node, group)
    except NotMeasuredError:
        return None


@lru_cache(maxsize=1024)
def _bandwidth(hardware: Device | System | Cluster, span: int, stride: int) -> float:
    if isinstance(hardware, Device):
        return 0.0  # nobody to send to, so nothing is divided by it
    if isinstance(hardware, Cluster):
        inside = placement(span, stride, hardware.node.devices).groups == 1
        return hardware.node.link_bandwidth(span) if inside else hardware.fabric_bandwidth
    return hardware.link_bandwidth(span)


# Columns that a given quantity takes the place of.
_REPLACEABLE = ("peak_flops", "link_bandwidth", "kernel_overhead", "compute_fraction")
_TABLES: dict[Any, OperatorTable[Kernel]] = {}


def _kernel_table(job: Scenario) -> OperatorTable[Kernel]:
    """Return the kernels of a micro-batch with peaks, rates and links of their own.

    Made once for all batches and sequences, and for all ways to hold the state and to order
    the stages: a search tries many with the same kernels.
    """
    replaced = tuple(name for name in _REPLACEABLE if name in job.given)
    spread = _spread(job.parallelism)
    same = (job.model, job.hardware, job.recipe, job.precision, job.estimate, job.software)
    key = (*same, spread, replaced)
    found = _TABLES.get(key)
    if found is None:
        if len(_TABLES) >= 4096:
            _TABLES.clear()
        found = _TABLES[key] = _new_table(job, spread)
    return found


@lru_cache(maxsize=4096)
def _spread(parallelism: Parallelism) -> Parallelism:
    """Return a layout without what no kernel hangs on."""
    return replace(parallelism, shard="none", interleaved=1)


def _new_table(job: Scenario, spread: Parallelism) -> OperatorTable[Kernel]:
    rows = tuple(_placed(job, row) for row in kernels(job.model, spread, job.recipe))
    extra: dict[str, tuple[float, ...]] = {}
    if "peak_flops" not in job.given:
        extra["peak_flops"] = tuple(
            job.device.compute.figure(job.computes_in(row.kind, row.name)).si for row in rows
        )
    if job.calibrated:
        extra |= _calibrated_columns(job, rows)
    sending = next((row for row in rows if row.link_span), None)
    if sending and "link_bandwidth" not in job.given:
        extra["link_bandwidth"] = tuple(
            _exchange_bandwidth(job, row if row.link_span else sending) for row in rows
        )
    return OperatorTable(rows, KERNEL_COLUMNS, extra)


def _placed(job: Scenario, row: Kernel) -> Kernel:
    """Return a kernel with the messages of two levels, if its group is in several nodes."""
    lies = placement(row.link_span or 1, row.link_stride, job.node_devices)
    if not row.collective or lies.groups == 1:
        return row
    hops = links.two_level_hops(row.link_hops, row.link_span, lies.members, lies.groups)
    return replace(row, link_hops=int(hops))


def _exchange_bandwidth(job: Scenario, row: Kernel) -> float:
    """Rate at which a device of a stage sends; of two levels, that of one ring as fast."""
    one = job.bandwidth(row.link_span, row.link_stride)
    lies = placement(row.link_span, row.link_stride, job.node_devices)
    if not row.collective or lies.groups == 1 or job.node is None:
        return one
    inside = job.node.link_bandwidth(max(2, lies.members))
    return float(links.two_level_bandwidth(lies.members, lies.groups, inside, one))


def _calibrated_columns(job: Scenario, rows: tuple[Kernel, ...]) -> dict[str, tuple[float, ...]]:
    """Return columns of what was measured, where it is not the same for all kernels."""
    from mlsim.solvers.calibrated import in_program, start_of

    found, wide = job.achieved, job.attention_achieved
    made_by = job.software
    if found is None or wide is None or made_by is None:
        return {}
    starts = tuple(
        0.0
        if row.kind in ("network", "kept")
        else start_of(found.kernel_overhead, made_by, row.kind)
        for row in rows
    )
    # Standard attention is two products; flash attention is a kernel of its own.
    own = not job.recipe.standard
    reached = tuple(
        in_program(
            wide.attention_fraction if own and row.kind == "attention" else found.compute_fraction,
            made_by,
            row.kind,
            job.device,
            job.computes_in(row.kind, row.name),
        )
        for row in rows
    )
    columns = {"kernel_overhead": starts, "compute_fraction": reached}
    return {name: values for name, values in columns.items() if name not in job.given}


_NF4 = "NF4 with double quantization [Dettmers et al., 2023]"
# Of a frozen weight: one forward, and one for the gradient of its input.
_FROZEN_MULTIPLY_ADDS = 2.0


def _add_adapters(known: Known, job: Scenario, adapters: LoRA) -> None:
    """Add what is trained and what is frozen, in which formats, and how it is divided."""
    model, parallelism, tokens = job.model, job.parallelism, int(job.sequence_tokens)
    architecture = f"from the architecture of {model.name}"
    words = f"{adapters}, {architecture} ({model.source})"
    padded = padded_model(model, parallelism.pipeline)
    dense, expert = adapter_parameters_on_device(padded, adapters, parallelism)
    frozen, own = multiply_adds(model, adapters, tokens)
    spared = spared_multiply_adds(model, adapters, tokens, causal="causal" in job.variant)
    known.add(
        words,
        adapter_dense_parameters=dense,
        adapter_expert_parameters=expert,
        trained_parameters=float(adapters.parameters(model)),
        frozen_multiply_adds=frozen,
        adapter_multiply_adds=own,
        spared_multiply_adds=spared,
    )
    once = "definition: one forward, and one backward, since frozen weights have no gradients"
    known.add(once, training_multiply_adds=_FROZEN_MULTIPLY_ADDS)
    if job.recipe.quantized:
        known.add(_NF4, **NF4)
        known.add(
            f"{_NF4}: the matrices of the layers, {architecture}",
            quantized_parameters=quantized_on_device(padded, parallelism),
            dequantized_at_once=widest(model, parallelism),
        )
    else:
        same = "frozen weights are kept as they compute"
        known.add(same, frozen_bytes=known["bytes_per_parameter"], dequantized_at_once=0.0)
    if parallelism.copies == 1 or parallelism.shard != "zero3":
        held = f"layout: {parallelism}; each copy has all frozen weights"
        known.add(held, frozen_gathers=0.0, exchanged_frozen_parameters=0.0)


# What is given stands in place of what it would be computed from.
_LEADS_TO = {
    "state_bytes": ("moment_bytes", "master_bytes"),
    "hop_latency": ("link_latency", "measured_devices"),
    "flops_per_parameter_token": ("training_multiply_adds",),
    "bytes_per_quantized": (
        *("value_bytes", "constant_bytes", "block_parameters"),
        *("second_constant_bytes", "block_constants"),
    ),
}
_GIVEN = "given"


def _known_of(job: Scenario) -> Known:
    """Return everything known of a run but its kernels' columns, in base units."""
    known = Known()
    _add_sizes(known, job)
    _add_model(known, job)
    _add_layout(known, job)
    add_device(known, job)
    _add_links(known, job)
    add_rates(known, job)
    _add_state(known, job)
    add_run(known, job)
    if job.recipe.adapters:
        _add_adapters(known, job, job.recipe.adapters)
    return with_given(known, job, _LEADS_TO)


def with_given(known: Known, job: Scenario, leads_to: Mapping[str, Sequence[str]]) -> Known:
    """Return what is known with what is given, in place of what that would be computed from."""
    for name in job.given:
        for each in leads_to.get(name, ()):
            known.pop(each, None)
    return known.add(_GIVEN, **job.given)


def _add_sizes(known: Known, job: Scenario) -> None:
    known.add(
        _GIVEN,
        global_batch=job.global_batch,
        micro_batch=job.micro_batch,
        sequence_tokens=job.sequence_tokens,
        new_tokens=job.sequence_tokens,
        reserve_share=job.reserve_share,
    )
    known.add("definition: training has no cache", cached_tokens=0.0)
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    for name, share in job.overlap.items():
        words = _GIVEN if share else "stated: nothing hides behind computing"
        known.add(words, **{f"{name}_overlap": share})


def _add_model(known: Known, job: Scenario) -> None:
    model, tokens = job.model, int(job.sequence_tokens)
    words = f"{model.name}, from its architecture ({model.source})"
    dense, expert = parameters_on_device(model, job.parallelism)
    known.add(
        words,
        dense_parameters=dense,
        expert_parameters=expert,
        model_parameters=float(model.active_parameter_count),
        all_parameters=float(model.parameter_count),
        trained_parameters=float(model.parameter_count),
        layers=float(model.layers),
        hidden_size=float(model.hidden),
    )
    model = _as_worked(job)
    causal = "causal" in job.variant
    known.add(words, sequence_flops=float(model.flop_count(tokens, causal=causal, all_logits=True)))
    if job.bound:
        known.add("the bound computes nothing again", recomputed_flops=0.0)
    elif job.recipe.recompute == "full":
        known.add(words, output_multiply_adds=output_multiply_adds(model, tokens))
    elif job.recipe.recompute == "selective" and job.recipe.standard:
        known.add(words, score_multiply_adds=score_multiply_adds(model, tokens))
    else:
        nothing = "nothing is computed again that the sequence's work counts"
        known.add(nothing, recomputed_flops=0.0)


def _as_worked(job: Scenario) -> Transformer:
    """Return the model whose attention is what its program computes.

    A program that skips what is masked is not asked for it; standard attention works on the
    whole square, window or not.
    """
    if job.masked_worked and job.model.attention.window:
        return replace(job.model, attention=replace(job.model.attention, window=0))
    return job.model


def sequence_question(job: Scenario) -> Question:
    """Return what asks for `sequence_flops` by equations of its tokens: its `total_flops`."""
    model = _as_worked(job)
    known = Known().add(_GIVEN, new_tokens=job.sequence_tokens)
    known.add("definition: one sequence, of which nothing is cached", cached_tokens=0.0)
    known.add("definition", device_batch=1.0, flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    # In training each token has scores.
    rows = (
        replace(each, token_limit=model.context) if each.kind == "output" else each
        for each in model.operators()
    )
    names = (
        *("tokens_worked", "unclipped_tokens", "step_flops", "total_flops"),
        "attention_pairs" if "causal" in job.variant else "bidirectional_pairs",
        "latent_multiply_adds" if model.latent else "token_and_pair_multiply_adds",
    )
    table = OperatorTable(tuple(rows), STEP_COLUMNS)
    return Question(known, [EQUATIONS[name] for name in names], job.labels, table=table)


def layout(job: Scenario) -> str:
    """Say how a run is spread, as an origin."""
    return f"layout: {job.parallelism}"


def _add_layout(known: Known, job: Scenario) -> None:
    parallelism, group = job.parallelism, job.group
    names = ("data", "tensor", "context", "pipeline")
    known.add(
        partial(layout, job),
        **{f"{name}_parallel": float(getattr(parallelism, name)) for name in names},
        interleaved=float(parallelism.interleaved),
        devices=float(parallelism.devices),
        expert_replicas=float(parallelism.expert_replicas),
        stage_layers=float(stage_layers(job.model, parallelism.pipeline)),
        spared_layers=float("uneven" in job.variant),
        shard_group=float(parallelism.copies),
        node_members=float(group.members),
        node_groups=float(group.groups),
    )


def add_device(known: Known, job: Scenario) -> None:
    """Add the rates and the memory of each device."""
    device = job.device
    known.add_memory(device)
    peak = device.compute.figure(job.precision)
    known.columns(recorded(device, peak), "peak_flops")
    if "peak_flops" in job.given:
        known.add("given, as peak_flops", peak_rate=job.given["peak_flops"])
    else:
        known.add(recorded(device, peak), peak_rate=peak.si)


def add_group(known: Known, job: Scenario) -> None:
    """Add the rates at which copies of the weights send to one another."""
    parallelism, group = job.parallelism, job.group
    fabric = job.bandwidth(parallelism.copies, parallelism.tensor)
    within = job.node.link_bandwidth(max(2, group.members)) if job.node else 0.0
    if group.groups > 1 and job.algorithm != "hierarchical":
        # One ring, or tree, through all nodes is as fast as its slowest link.
        within = min(within, fabric)
    inside, outside = _links(job)
    known.add(inside, node_bandwidth=within)
    known.add(outside, fabric_bandwidth=fabric)
    if parallelism.copies == 1:
        alone = "one copy of the weights: nothing to agree on"
        known.add(alone, gradient_time=0.0, pass_rate=0.0, exchanged_parameters=0.0)


def _add_links(known: Known, job: Scenario) -> None:
    """Add the rates at which devices send to one another, and where they send nothing."""
    add_group(known, job)
    parallelism = job.parallelism
    # A pipeline through several nodes goes at the rate of its slowest link.
    stage = min(
        job.bandwidth(size, parallelism.stage_devices) for size in {2, max(2, parallelism.pipeline)}
    )
    inside, outside = _links(job)
    between = isinstance(job.hardware, Cluster) and stage == job.hardware.fabric_bandwidth
    known.add(outside if between else inside, stage_bandwidth=stage)
    known.columns(partial(_either, inside, outside), "link_bandwidth")
    if parallelism.pipeline == 1:
        known.add("one stage: nothing is sent between stages", pipeline_time=0.0)
    if not any(row.link_span for row in job.table.operators):
        known.add("one device a stage: nothing is sent within it", exchange_time=0.0)


def _links(job: Scenario) -> tuple[Origin, Origin]:
    """Return the origins of the links within a node, and between nodes."""
    hardware = job.hardware
    if isinstance(hardware, Cluster):
        return recorded(hardware.node, hardware.node.figure), recorded(hardware, hardware.figure)
    if isinstance(hardware, System):
        return (recorded(hardware, hardware.figure),) * 2
    return ("one device: nothing is sent",) * 2


def _either(inside: Origin, outside: Origin) -> str:
    """Say where the rate of a kernel's link comes from, which may leave its node."""
    within, between = (each if isinstance(each, str) else each() for each in (inside, outside))
    return within if within == between else f"{within}; or between nodes {between}"


def add_rates(known: Known, job: Scenario) -> None:
    """Add the parts of the data sheet's rates that are reached, and the time to start."""
    device, links = job.achieved, job.linked
    if device is None:
        known.add("roofline: the full rate of the memory", memory_fraction=1.0)
        if job.calibrated:
            from mlsim.solvers.calibrated import add_tiling

            add_tiling(known, job.device)
    else:
        origins, fraction = device.origins, device.origins["compute_fraction"]
        own = "" if job.recipe.standard else f"; for attention {origins['attention_fraction']}"
        known.add(origins["memory_fraction"], memory_fraction=device.memory_fraction)
        known.columns(f"{fraction}{own}", "compute_fraction")
        known.columns(origins["kernel_overhead"], "kernel_overhead")
        known.add(origins.get("tile_size", ""), tile_size=float(device.tile))
        if device.cores is None:
            known.add(origins["cores"], filled_share=1.0)
        else:
            known.add(origins["cores"], cores=float(device.cores))
    if links is None:
        known.add("roofline: the full rate of the link", link_fraction=1.0)
        known.add("roofline: starting to send takes no time", hop_latency=0.0)
        return
    across = "; between nodes the same is assumed" if isinstance(job.hardware, Cluster) else ""
    known.add(f"{links.origins['link_fraction']}{across}", link_fraction=links.link_fraction)
    known.add(
        f"of an all-reduce: {links.origins['link_latency']}",
        link_latency=links.link_latency,
        measured_devices=float(links.devices),
    )


def _add_state(known: Known, job: Scenario) -> None:
    """Add what is held of weights, gradients and optimizer, and how often it is sent.

    What is not sharded has one shard and is sent once a step; equations give the rest.
    """
    parallelism, shard = job.parallelism, job.parallelism.shard
    chosen, wide, full = job.precision, kept_bytes(job.precision), PRECISIONS["fp32"].bytes
    kept = "" if chosen.bits >= WIDE else f", kept in {WIDE:g} bits"
    words = f"{job.why or chosen.name}{kept}: {max(chosen.bits, WIDE):g} bits"
    gradients = f"gradients in {job.gradients.name}: {job.gradients.bits:g} bits"
    known.add(words, bytes_per_element=wide, bytes_per_parameter=wide)
    known.add(gradients, bytes_per_gradient=job.gradients.bytes)
    known.add("Adam: each moment in 32 bits", moment_bytes=full)
    copied = wide < full
    words_of_copy = "a copy of the weights in" if copied else "weights are in"
    known.add(f"Adam: {words_of_copy} 32 bits", master_bytes=full if copied else 0.0)
    # Plain copies gather gradients, of which all then update all weights.
    plain = shard == "none"
    known.add(gradients if plain else words, gathered_bytes=job.gradients.bytes if plain else wide)
    alone = parallelism.copies == 1
    once = 0.0 if alone else 1.0
    held = {}
    if shard == "none":
        held["state_shards"] = 1.0
    if shard not in ("zero2", "zero3"):
        held["gradient_shards"] = 1.0
    if shard != "zero3":
        held["weight_shards"] = 1.0
    # Who keeps only a part of the gradients must add up after each micro-batch.
    if alone or shard not in ("zero2", "zero3"):
        held["gradient_scatters"] = once
    if alone or shard != "zero3":
        held |= {"weight_gathers": once, "gathered_parameters": 0.0}
    known.add(partial(layout, job), **held)


def add_run(known: Known, job: Scenario) -> None:
    """Add what is asked of the whole run."""
    backward = "definition: one forward, and two backward"
    known.add(backward, training_multiply_adds=TRAINING_MULTIPLY_ADDS)
    known.add(_GIVEN, **job.whole)
    if "mean_time_to_failure" not in job.whole:
        known.add("no failures are counted: give mean_time_to_failure", goodput=1.0)
