"""A training run of a network of layers: every device takes samples through all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

from mlsim.equations.training import training_micro_batches
from mlsim.errors import InvalidValueError, nearest, unknown_name
from mlsim.precision import PRECISIONS
from mlsim.software import Software, software as find_software
from mlsim.solvers.answer import Form, Pairs, Row, banded, noted, seconds
from mlsim.solvers.calibrated import in_program
from mlsim.solvers.formats import kept_bytes
from mlsim.solvers.question import Known, Question, recorded
from mlsim.solvers.training.checks import (
    USUAL_ARGUMENTS,
    Asked,
    check_devices,
    check_multiple,
    data_copies,
    given_of,
    settled_of_any,
)
from mlsim.solvers.training.equations import (
    NAMES,
    NETWORK_TRAINING,
    OF_LANGUAGE,
    SIZES,
    givable,
    network_equations_for,
)
from mlsim.solvers.training.scenario import (
    Scenario,
    add_device,
    add_group,
    add_rates,
    add_run,
    layout,
    with_given,
)
from mlsim.solvers.training.training import (
    BATCHES,
    BEFORE,
    LIMITS,
    Training,
    hidden,
    memory_rows,
    spent,
    title,
    where,
    whole_words,
)
from mlsim.values.attributes import count
from mlsim.workloads.adapters import check_adapters, check_language
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.networks import graph_of
from mlsim.workloads.graph.training import (
    held as held_in_step,
    read_parameters,
    statistics_bytes,
    step_table,
)
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Network, Operator, OperatorTable
from mlsim.workloads.steps import Parallelism

# Numbers that each optimizer keeps of a parameter beside its weight.
OPTIMIZERS: Mapping[str, int] = {"sgd": 0, "momentum": 1, "adam": 2}

_graph = lru_cache(maxsize=64)(graph_of)


@dataclass(frozen=True, eq=False)
class NetworkScenario(Scenario):
    """A training run of a network of layers as it was asked for."""

    model: Network  # type: ignore[assignment]
    optimizer: str

    @cached_property
    def table(self) -> OperatorTable[Operator]:
        """Its kernels; with what attention reaches, where that was measured apart."""
        table, found = step_table(self.graph), self.achieved
        if found is None or "compute_fraction" in self.given:
            return table
        precision = self.precision.computes_as
        fractions = {"attention": found.attention_fraction}
        reached = tuple(
            in_program(
                fractions.get(row.kind, found.compute_fraction),
                self.made_by,
                row.kind,
                self.device,
                precision,
            )
            for row in table
        )
        extra = {**table.extra, "compute_fraction": reached}
        return OperatorTable(table.operators, table.counted, extra)

    @property
    def graph(self) -> Graph:
        """Its layers."""
        return _graph(self.model)

    @property
    def made_by(self) -> Software:
        """The class of software; of other estimates than the calibrated one, none adds."""
        return self.software or find_software("kernels")

    @cached_property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        flags = {
            "calibrated": self.calibrated,
            "copied": self.precision.bits < 32,
            "bound": self.bound,
        }
        return frozenset(name for name, holds in flags.items() if holds)

    @cached_property
    def question(self) -> Question:
        """What is asked of this run: all that is known, its kernels, and the equations."""
        return Question(
            _known_of(self),
            network_equations_for(self.variant, self.algorithm),
            lambda: self.labels,
            table=self.table,
        )


# What is given stands in place of what it would be computed from.
_LEADS_TO = {
    "state_bytes": ("optimizer_moments", "moment_bytes", "master_bytes"),
    "hop_latency": ("link_latency", "measured_devices"),
}
_GIVEN = "given"
_WHOLE = "one stage and one device a sample: nothing is sent within the network"
_NOT_SENT = (
    *("output_time", "exchange_time", "exchange_overlap"),
    *("pipeline_time", "pipeline_overlap"),
)


def _known_of(job: NetworkScenario) -> Known:
    """Return everything known of a run but its kernels' columns, in base units."""
    known = Known()
    known.add(
        _GIVEN,
        global_batch=job.global_batch,
        micro_batch=job.micro_batch,
        reserve_share=job.reserve_share,
    )
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    _add_network(known, job)
    _add_whole(known, job)
    add_device(known, job)
    peak = job.device.compute.figure(job.precision)
    known.add(recorded(job.device, peak), peak_flops=peak.si)
    add_group(known, job)
    add_rates(known, job)
    if job.achieved is not None:
        known.update(kernel_overhead=job.achieved.kernel_overhead)
    _add_state(known, job)
    add_run(known, job)
    return with_given(known, job, _LEADS_TO)


def _add_network(known: Known, job: NetworkScenario) -> None:
    graph = job.graph
    words = f"{job.model.name}, from its layers ({job.model.source})"
    count = float(graph.parameters)
    known.add(
        words,
        device_parameters=count,
        all_parameters=count,
        exchanged_parameters=count,
        # Of tables a step may read and change a few rows only.
        model_parameters=read_parameters(job.model),
    )
    known.add(f"{words}: running statistics in 32 bits", running_statistics=statistics_bytes(graph))
    share = job.overlap["gradient"]
    known.add(_GIVEN if share else "stated: nothing hides behind computing", gradient_overlap=share)


def _add_whole(known: Known, job: NetworkScenario) -> None:
    """Add what a network does not share among devices, and does not compute again."""
    known.add(
        partial(layout, job),
        data_parallel=float(job.parallelism.data),
        devices=float(job.parallelism.devices),
        shard_group=float(job.parallelism.copies),
        node_members=float(job.group.members),
        node_groups=float(job.group.groups),
    )
    alone, nothing = ("tensor_parallel", "pipeline_parallel", "interleaved"), _NOT_SENT
    known.add(_WHOLE, **dict.fromkeys(alone, 1.0), **dict.fromkeys(nothing, 0.0))
    known.add("nothing is computed again", recompute_time=0.0, recomputed_flops=0.0)


def _add_state(known: Known, job: NetworkScenario) -> None:
    """Add what is held of weights, gradients, the optimizer and activations."""
    chosen, full = job.precision, PRECISIONS["fp32"].bytes
    wide = kept_bytes(chosen)
    words = f"{job.why or chosen.name}: {wide:g} bytes"
    gradients = f"gradients in {job.gradients.name}: {job.gradients.bits:g} bits"
    known.add(words, bytes_per_element=wide, bytes_per_parameter=wide)
    known.add(gradients, bytes_per_gradient=job.gradients.bytes)
    known.add(f"optimizer: {job.optimizer}", optimizer_moments=float(OPTIMIZERS[job.optimizer]))
    known.add("each moment in 32 bits", moment_bytes=full)
    copied, plain = "copied" in job.variant, job.parallelism.shard == "none"
    of_copy = f"{'a copy of the weights' if copied else 'weights are'} in 32 bits"
    known.add(of_copy, master_bytes=full if copied else 0.0)
    copies, spread = job.parallelism.copies, partial(layout, job)
    sends = 0.0 if copies == 1 else 1.0
    known.add(spread, gradient_scatters=sends, weight_gathers=sends)
    # Plain copies gather gradients, of which all then update all weights.
    known.add(gradients if plain else words, gathered_bytes=job.gradients.bytes if plain else wide)
    known.add(spread, state_shards=1.0 if plain else float(copies))
    if job.graph.notes:
        return  # what it keeps for the way back is not known
    batches = training_micro_batches(job.global_batch, job.parallelism.data, job.micro_batch)
    found = held_in_step(
        job.graph,
        int(job.micro_batch),
        wide,
        job.gradients.bytes,
        whole=copies > 1 or batches > 1,
    )
    walk = "the peak of a walk through the step, layer by layer, forward and back"
    known.add(walk, gradient_memory=found.gradients, activation_memory=found.activations)


NETWORK_GIVABLE = givable(NAMES["network_givable"], NETWORK_TRAINING)
_OF_MEMORY = (
    *("activation_memory", "gradient_memory", "state_memory", "memory_required", "memory_free"),
)


NETWORK_NAMES = tuple(
    dict.fromkeys(name for each in NETWORK_TRAINING for name in (each.yields, *each.inputs))
)
_STEP = ("step_time", "throughput", "model_flops_utilization", "model_flops")
_MEMORY = (
    *("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory"),
    *("memory_required", "memory_free"),
)


def _step(training: NetworkTraining) -> str:
    """Say what a step works on."""
    run, count = training.run, training._value("micro_batches")
    batches = "one batch" if count == 1 else f"{count:,.0f} micro-batches"
    return f"{run.global_batch:,.0f} samples: {batches} of {run.micro_batch:,.0f} on each device"


def _optimizer(training: NetworkTraining) -> str:
    """Say what updates the weights, and whether its state is shared."""
    shared = "" if training.run.parallelism.shard == "none" else ", state shared by all devices"
    return f"{training.run.optimizer}{shared}"


def _time(training: NetworkTraining) -> str:
    step, rate = seconds(training.value("step_time")), training.value("throughput")
    return f"{step} a step, {rate:,.0f} sample/s"


def _run(training: NetworkTraining) -> str:
    samples = training.run.whole.get("training_samples")
    return "" if samples is None else f"{samples:,.0f} samples: {whole_words(training)}"


def _memory(training: NetworkTraining) -> Pairs:
    """Return rows of what a run holds, or say why that is not known."""
    notes = training.run.graph.notes
    return [("memory", "not known: " + " ".join(notes))] if notes else memory_rows(training)


def _layout(training: NetworkTraining) -> dict[str, Any]:
    spread = training.run.parallelism
    return {"devices": spread.devices, "data_parallel": spread.data, "shard": spread.shard}


_FORM = Form(
    title=title,
    rows=(
        Row("devices", where),
        Row("step", _step),
        Row("optimizer", _optimizer),
        Row("formats", lambda training: training.run.why),
        Row("", noted),
        Row("time", _time, timed=True),
        banded("step_time"),
        Row("use", lambda run: f"MFU {run.value('model_flops_utilization'):.1%}", timed=True),
        Row("spent on", spent, timed=True),
        Row("overlap", hidden, timed=True),
        Row("run", _run, timed=True),
        Row("", _memory),
    ),
    inputs={
        **BEFORE,
        "optimizer": lambda training: training.run.optimizer,
        "estimate": lambda training: training.run.estimate,
        "layout": _layout,
        "overlap": lambda training: {"gradient": training.run.overlap["gradient"]},
        **BATCHES,
        "feasible": lambda run: None if run.run.graph.notes else run.feasible,
        **LIMITS,
    },
)


class NetworkTraining(Training):
    """The answer to a question about training of a network of layers.

    As `Training`, with samples in place of tokens.
    """

    names = NETWORK_NAMES
    needs_memory = frozenset(NETWORK_NAMES).difference(SIZES)
    form = _FORM
    _door = "train_network"
    run: NetworkScenario

    @property
    def network(self) -> Network:
        """The network that is trained."""
        return self.run.model

    throughput = count("Samples of training data learned from per second by all devices.")

    def value(self, name: str) -> Any:
        """Return a result in its base unit, as `Training.value`.

        Raises
        ------
        InvalidValueError
            If tokens are asked for: a network of layers learns from samples.
        MlsimError
            As `Training.value`.
        """
        if name in ("token_rate", "run_tokens_per_parameter"):
            raise InvalidValueError(
                f"{self.network.name} learns from samples, not tokens: ask for throughput."
            )
        return super().value(name)

    @property
    def feasible(self) -> Any:
        """Whether it fits in memory.

        Raises
        ------
        InvalidValueError
            If the network is not described closely enough to know.
        """
        return bool(self._value("memory_free") >= 0)

    def _missing(self, name: str, words: str) -> str:
        notes = self.run.graph.notes
        if notes and name in _OF_MEMORY:
            return (
                f"{name} of training {self.network.name} is not known: {' '.join(notes)} "
                "check_memory=False gives the time of a step."
            )
        if "training_samples" in words:
            return f"{name} needs the samples of the whole run: such as samples=90 * 1281167."
        return super()._missing(name, words)

    def _together(self) -> str:
        return f"{self.run.micro_batch:,.0f} samples at a time"

    def _advice(self) -> str:
        return "Try a smaller micro_batch, or more devices."

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        run = self.run
        return (
            f"training {run.model.name} on {run.hardware_name}, {run.global_batch:,.0f} samples "
            f"a step, {run.precision.name}, {run.estimate}"
        )

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """Results that JSON has."""
        memory = () if self.run.graph.notes else _MEMORY
        return (*_STEP, *self._of_whole_run(), *memory)


# The optimizer of a network that asks for none.
USUAL_OPTIMIZER = "momentum"
SHARDS = ("none", "zero1")
_SHARES = ("model_flops_utilization", "hardware_flops_utilization", "goodput")


def network_scenario(asked: Asked) -> NetworkScenario:
    """Check a question about training of a network; see `Engine.train` for its parts.

    Raises
    ------
    MlsimError
        As `Engine.train`.
    """
    _check_asked(asked)
    optimizer = USUAL_OPTIMIZER if asked.optimizer is None else asked.optimizer
    if not isinstance(optimizer, str) or optimizer not in OPTIMIZERS:
        raise unknown_name("optimizer", optimizer, OPTIMIZERS)
    found = settled_of_any(asked, "train_network")
    copies, micro, batch = data_copies(asked, 1), found["micro_batch"], found["global_batch"]
    check_devices(asked, copies, lambda: f"data_parallel = {copies:,}")
    # By default a device takes all of its share at a time.
    words = "" if micro is None else f" x micro_batch = {copies} x {micro:,.0f}"
    check_multiple(batch, copies * (micro or 1.0), words)
    made = NetworkScenario(
        **{**found, "micro_batch": micro or batch / copies},
        parallelism=Parallelism(data=copies, shard=asked.shard),
        recipe=Recipe(recompute="none", attention="flash", dropout=False),
        sequence_tokens=1.0,
        optimizer=optimizer,
        given=given_of(asked, NETWORK_GIVABLE),
    )
    made.question.check_given(made.given, NAMES["fixed"], _SHARES)
    return made


def _check_asked(asked: Asked) -> None:
    """Refuse what is asked of language models only."""
    if adapters := check_adapters(asked.adapters):
        check_language(asked.model, adapters)
    for name, why in OF_LANGUAGE.items():
        given = getattr(asked, name)
        if given != USUAL_ARGUMENTS.get(name):
            raise InvalidValueError(
                f"{name} = {given!r} is for language models; {asked.model.name} is a network of "
                f"layers: {why}. Leave {name} out."
            )
    if asked.recompute == "full":
        raise InvalidValueError(
            "recompute = 'full': which layers of a network are computed again is not counted "
            "here. Leave it out, or use a smaller micro_batch."
        )
    if asked.shard in ("zero2", "zero3"):
        raise InvalidValueError(
            f"shard must be one of {', '.join(SHARDS)}, not {asked.shard!r}."
            f"{nearest(asked.shard, SHARDS)}"
        )
