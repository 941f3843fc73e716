"""What training takes: time, memory, what the time is spent on, and how that is written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.errors import InvalidValueError, UnreachableError
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.solvers.answer import (
    Form,
    Pairs,
    Row,
    banded,
    doubts,
    noted,
    plain,
    seconds,
    short,
    with_unit,
)
from mlsim.solvers.causes import (
    TRAINING_SHARES,
    TimedAnswer,
    label_of,
    training_shares_of,
    with_training_causes,
)
from mlsim.solvers.question import Question
from mlsim.solvers.training.equations import (
    EXAMPLES,
    NAMES,
    OF_ADAPTERS,
    PARTS,
    SIZES,
    TRAINING_GIVABLE,
    TRAINING_NAMES,
)
from mlsim.solvers.training.scenario import Scenario
from mlsim.units import held, text
from mlsim.values import as_share
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.solvers.load import Load
    from mlsim.values.kinds import Plain, Quantity
    from mlsim.workloads.language import Transformer

_STEP = (
    *("step_time", "token_rate", "model_flops_utilization", "hardware_flops_utilization"),
    "model_flops",
)
_MEMORY = (
    *("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory"),
    *("memory_required", "memory_free"),
)
_WORDS = {
    "exchange": "sending within a stage",
    "bubble": "pipeline bubble",
    "pipeline": "sending between stages",
    "gradients": "gradients and weights",
}


def _limits(write: Callable[[Training], Any]) -> Callable[[Training], Any]:
    """Return what writes where the time of a step goes; null of a bound, and of no time."""
    return lambda training: write(training) if training.shows_times and training.has_parts else None


def _breakdown(training: Training) -> dict[str, Any]:
    return {name: with_unit(value, "s") for name, value in training._parts().items()}


def _adapters(training: Training) -> Any:
    """Return what is trained beside a frozen model, for JSON."""
    adapters = training.run.recipe.adapters
    if adapters is None:
        return ""
    trained = ("trained_parameters", "trained_share")
    return {
        "kind": type(adapters).__name__,
        "rank": adapters.rank,
        "targets": list(adapters.targets),
        **{name: plain(training._value(name)) for name in trained},
    }


def _layout(training: Training) -> dict[str, Any]:
    """Return how a run is spread, for JSON."""
    parallelism, recipe = training.run.parallelism, training.run.recipe
    sizes = ("tensor", "pipeline", "data", "context", "expert")
    return {
        "devices": parallelism.devices,
        **{f"{name}_parallel": getattr(parallelism, name) for name in sizes},
        "interleaved": parallelism.interleaved,
        "sequence_parallel": parallelism.sequence,
        "shard": parallelism.shard,
        "recompute": recipe.recompute,
        "attention": recipe.attention,
    }


def software_key(training: Training) -> str:
    """Return the class of software of a calibrated run."""
    return training.run.software.key if training.run.software else ""


def where(training: Training) -> str:
    """Say on how many of which devices a run is."""
    run = training.run
    of = "" if isinstance(run.hardware, Device) else f" of {run.hardware.name}"
    return f"{run.parallelism.devices:,} x {run.device.name}{of}"


def _spread(training: Training) -> str:
    """Say how a run is spread, and what it keeps."""
    recipe = training.run.recipe
    kept = "recomputes scores" if recipe.standard else "keeps all but scores"
    again = {"none": "keeps all", "selective": kept, "full": "recomputes layers"}
    return f"{training.run.parallelism}; {again[recipe.recompute]}"


def _step(training: Training) -> str:
    """Say what a step works on."""
    run, count = training.run, training._value("micro_batches")
    batches = f"{count:,.0f} micro-batches of {run.micro_batch:,.0f}" if count > 1 else ""
    return (
        f"{run.global_batch:,.0f} x {run.sequence_tokens:,.0f} tokens in "
        f"{batches or 'one micro-batch'}"
    )


def _trained(training: Training) -> str:
    """Say what adapters train of a model."""
    adapters = training.run.recipe.adapters
    if not adapters:
        return ""
    count, share = training._value("trained_parameters"), training._value("trained_share")
    return f"{adapters}: {count:,.0f} parameters, {share:.2%} of the model"


def _time(training: Training) -> str:
    step, rate = seconds(training.value("step_time")), training.value("token_rate")
    return f"{step} a step, {rate:,.0f} token/s"


def _use(training: Training) -> str:
    used, done = (training.value(f"{n}_flops_utilization") for n in ("model", "hardware"))
    return f"MFU {used:.1%}, HFU {done:.1%}"


def spent(training: Training) -> str:
    """Say what the time of a step is spent on, the longest part first; nothing of a bound."""
    if not training.has_parts:
        return ""
    parts = sorted(training._parts().items(), key=lambda item: -item[1])
    whole = training.value("step_time")
    shares = ((_WORDS.get(name, name), time / whole) for name, time in parts)
    return ", ".join(f"{words} {share:.1%}" for words, share in shares if share >= 0.0005)


def hidden(training: Training) -> str:
    """Say how much of each kind of sending computing hides; nothing of a bound."""
    if not training.has_parts:
        return ""
    shares = training.form.inputs["overlap"](training).items()
    words = ", ".join(f"{name} {share:.0%}" for name, share in shares if share)
    return words or "none: sending waits for computing"


def _run(training: Training) -> str:
    """Say how long a whole run takes; nothing where a step alone was asked about."""
    count = training.run.whole.get("training_tokens")
    if count is None:
        return ""
    sizes = ((1e12, "trillion "), (1e9, "billion "), (1e6, "million "))
    named = (f"{count / size:,.4g} {name}tokens" for size, name in sizes if count >= size)
    return f"{next(named, f'{count:,.0f} tokens')}: {whole_words(training)}"


def whole_words(training: Training) -> str:
    """Say how long a whole run takes, and what it costs."""
    days = training.value("training_time") / 86400
    words = f"{days:,.1f} days, {training.value('device_time') / 3600:,.0f} device-hours"
    goodput = training.value("goodput")
    if goodput < 1:
        words += f", goodput {goodput:.1%}"
    if "device_price" in training.run.whole:
        words += f", {training.value('training_cost'):,.0f} USD"
    return words


def memory_rows(training: Training) -> Pairs:
    """Return rows of what a run holds, and whether it fits."""
    run = training.run
    required, usable, whole, *parts = (
        held(training.value(name))
        for name in ("memory_required", "usable_memory", "memory_capacity", *_MEMORY[:4])
    )
    weights, summed, optimizer, activations = parts
    gradients = f"gradients in {run.gradients.name} {summed}"
    return [
        ("memory", f"{required} of {usable} ({run.reserve_share:.0%} of {whole} reserved)"),
        ("", f"weights {weights}, {gradients}, optimizer {optimizer}, activations {activations}"),
        *doubts(training),
        *Row("feasible", short).written(training),
    ]


def title(training: Training) -> str:
    """Return the title of a report."""
    run = training.run
    return f"Training {run.model.name}, {run.precision.name}, {run.estimate}"


# What JSON has of any training run, before what it is spread over and after it.
BEFORE: dict[str, Callable[[Any], Any]] = {
    "model": lambda training: training.run.model.name,
    "hardware": lambda training: training.run.hardware_name,
    "precision": lambda training: training.run.precision.name,
    "formats_assumed": lambda training: training.run.why,
    "gradients": lambda training: training.run.gradients.name,
}
BATCHES: dict[str, Callable[[Any], Any]] = {
    "global_batch": lambda training: with_unit(training.run.global_batch, "sample"),
    "micro_batch": lambda training: with_unit(training.run.micro_batch, "sample"),
}
LIMITS = {
    "breakdown": _limits(_breakdown),
    "bottleneck": _limits(lambda training: training.bottleneck),
    "causes": _limits(lambda training: plain(training.causes)),
}
_FORM = Form(
    title=title,
    rows=(
        Row("devices", where),
        Row("layout", _spread),
        Row("step", _step),
        Row("formats", lambda training: training.run.why),
        Row(
            "software",
            lambda training: training.run.software.name if software_key(training) else "",
        ),
        Row("adapters", _trained),
        Row("", noted),
        Row("time", _time, timed=True),
        banded("step_time"),
        Row("use", _use, timed=True),
        Row("spent on", spent, timed=True),
        Row("overlap", hidden, timed=True),
        Row("run", _run, timed=True),
        Row("", memory_rows),
    ),
    inputs={
        **BEFORE,
        "estimate": lambda training: training.run.estimate,
        "software": software_key,
        "adapters": _adapters,
        "layout": _layout,
        "overlap": lambda training: dict(training.run.overlap),
        **BATCHES,
        "sequence_tokens": lambda training: with_unit(training.run.sequence_tokens, "token/sample"),
        "feasible": lambda training: training.feasible,
        **LIMITS,
    },
)


class Training(TimedAnswer):
    """The answer to a question about a training run.

    Any quantity of it is to be had by name: `training["bubble_time"]`. Times of
    a run that does not fit are refused, unless `check_memory` is False.
    """

    noun, variable, first = "training run", "training", "step_time"
    names = TRAINING_NAMES
    needs_memory = frozenset(TRAINING_NAMES).difference(SIZES)
    form = _FORM
    main: ClassVar[Mapping[str, str]] = {"step_time": "{} a step"}
    _door = "train"
    cause_names = TRAINING_SHARES.values()

    def __init__(self, run: Scenario, *, check_memory: bool = True) -> None:
        super().__init__(run, check_memory=check_memory)
        self.run = run

    def value(self, name: str) -> Any:
        """Return a result in its base unit; of the kernels, one value for each.

        Raises
        ------
        UnknownNameError
            If there is no such result.
        DoesNotFitError
            If it is a time of a run that does not fit.
        InvalidValueError
            If it needs something that was not given, such as the tokens of the run; or if
            the run loses more to failures than it gains.
        """
        found = super().value(name)
        lost = name in NAMES["with_failures"] and name not in self.question.known
        if lost and self._value("goodput") <= 0:
            fails, saves, restarts = (
                text(self._value(each), "s")
                for each in ("failure_interval", "checkpoint_time", "restart_time")
            )
            raise InvalidValueError(
                f"such a run never ends: {self.devices:,} devices fail every {fails} on average, "
                f"a checkpoint takes {saves} and a restart {restarts}. Give a longer "
                "mean_time_to_failure (of one device), a faster checkpoint_bandwidth, or a "
                "shorter restart_time."
            )
        return found

    def _value(self, name: str) -> Any:
        try:
            return super()._value(name)
        except UnreachableError as error:
            raise InvalidValueError(self._missing(name, str(error))) from None

    def _missing(self, name: str, words: str) -> str:
        """Say why there is no such result, and what would have to be given for it."""
        if not self.has_parts and name not in self.question.known:
            return (
                f"{name} is no result of the bound, which is the least time of a whole step: "
                'ask estimate="roofline".'
            )
        if name in OF_ADAPTERS:
            return f"{name} is of adapters: give adapters=LoRA(rank=16), or QLoRA(rank=16)."
        for needed, example in EXAMPLES.items():
            if needed == name:
                return f"{name} was not given: give it as {example}."
            if needed in words:
                return f"{name} needs {needed}, which was not given: such as {example}."
        return words

    @property
    def model(self) -> Transformer:
        """The model that is trained."""
        return self.run.model

    @property
    def device(self) -> Device:
        """Each of the devices."""
        return self.run.device

    @property
    def devices(self) -> int:
        """How many devices train together."""
        return self.run.parallelism.devices

    micro_batches = count("Micro-batches that each copy takes through its stages in a step.")
    step_tokens = count("Tokens of a step.")
    step_time = result("Time from one update of the weights to the next.")
    token_rate = count("Tokens of training data read per second by all devices.")
    model_flops_utilization = count(
        "Work that the model asks for, per peak work (MFU). What is computed again does not "
        "count. Standard attention counts for each pair of tokens, flash attention for those "
        "that are not masked; many publications count all pairs for either."
    )
    hardware_flops_utilization = count("The same with what is computed again (HFU).")
    model_flops = result("Work of a step that the model asks for.")
    hardware_flops = result("Work of a step, with what is computed again.")
    forward_time = result("Time of the forward pass of a micro-batch in a stage.")
    recompute_time = result("Time in which a micro-batch's activations are computed again.")
    backward_time = result("Time of the backward pass of a micro-batch in a stage.")
    exchange_time = result("Time of a stage's exchanges for a micro-batch.")
    stage_time = result("Time of a micro-batch in the slowest stage, forward and backward.")
    steady_time = result("Time of a step in which the slowest stage works on micro-batches.")
    output_share = count("Part of the last stage's time that the output layer takes.")
    bubble_time = result("Time of a step in which stages of a pipeline wait.")
    gradient_time = result("Time in which copies add up their gradients.")
    exposed_gradient_time = result("The same, as far as the backward pass does not hide it.")
    pipeline_time = result("Time of a micro-batch's sends between stages.")
    optimizer_time = result("Time in which the optimizer updates the weights.")
    weight_memory = result("Memory of the fullest device that weights take.")
    gradient_memory = result("Memory of the fullest device that gradients take.")
    optimizer_memory = result("Memory of the fullest device that the optimizer's states take.")
    state_memory = result("Weights, gradients and the optimizer's states together.")
    activation_memory = result("Memory of the fullest device that activations take.")
    saved_memory = result("The part of it that waits for the backward pass.")
    working_memory = result("The part of it that lives while an operator runs.")
    trained_parameters = count("Parameters that are trained: all, or those of adapters.")
    trained_share = count("The same as a part of the whole model.")
    memory_required = result("Memory that the fullest device needs.")
    memory_free = result("Memory that is left; negative where it does not fit.")
    memory_capacity = result("Memory of a device that a program can take.")
    usable_memory = result("The same without the part that is kept in reserve.")
    training_time = result("Time of the whole run.")
    computing_time = result("Time of the whole run without failures and checkpoints.")
    device_time = result("Time of the whole run, counted for each device.")
    training_cost = result("Price of the devices for the whole run.")
    goodput = count("Part of the time that is not lost to checkpoints and failures.")
    checkpoint_interval = result("Time between two checkpoints.")
    failure_interval = result("Time between two failures of the whole system.")
    run_tokens_per_parameter = count("Tokens of the run for each parameter that a token meets.")
    training_flops = result("Work of the whole run.")

    @property
    def has_parts(self) -> bool:
        """Whether it says where the time goes; the bound does not."""
        return not self.run.bound

    @property
    def breakdown(self) -> dict[str, Quantity]:
        """Where the time of a step goes; the parts add up to `step_time`."""
        return {name: self.quantity(PARTS[name]) for name in self._parts()}

    @property
    def shares(self) -> dict[str, Plain]:
        """The same as parts of the step; they add up to 1."""
        whole = self.step_time
        return {name: as_share(part, whole) for name, part in self.breakdown.items()}

    def _parts(self) -> dict[str, float]:
        if not self.has_parts:
            raise InvalidValueError(
                "the bound is the least time of a whole step and has no parts: "
                'estimate="roofline" says where the time goes.'
            )
        return {part: self.value(name) for part, name in PARTS.items()}

    @property
    def factors(self) -> dict[str, Plain]:
        """What turns the time at peak rate into the time of the run, one after another.

        They multiply to 1 / (MFU x goodput): device-hours at the peak rate, times
        all of them, are the device-hours of the run.
        """
        of, parts = self.quantity, self.breakdown
        waits = ("exchange", "bubble", "pipeline", "gradients", "optimizer")
        times = [of("ideal_step_time"), of("peak_step_time")]
        times += accumulate((parts[name] for name in waits), initial=of("kernel_step_time"))
        longer = (later / earlier for earlier, later in pairwise(times))
        found = dict(zip(("recomputation", "kernels", *waits), longer, strict=True))
        return {**found, "failures": 1 / self.goodput}

    @property
    def memory(self) -> dict[str, Quantity]:
        """Memory of the fullest device by part."""
        parts = (*_MEMORY[:4], "memory_free")
        return {name: self.quantity(name) for name in parts}

    @property
    def bottleneck(self) -> str:
        """What limits the step for the largest part of its time.

        "Compute Bound", "Memory Bound", "Network Bound", or "Overhead Bound": tiles that don't
        fill the device, launches of kernels, and the bubble of a pipeline. `cause` says which.

        >>> from mlsim import Engine
        >>> training = Engine.train(model="Llama3_8B", hardware="hgx_h100", global_batch=8,
        ...     micro_batch=1, data_parallel=8, shard="zero3", estimate="calibrated")
        >>> training.bottleneck, training.causes["tiles"] > 0
        ('Compute Bound', True)
        """
        self._parts()
        return str(label_of(self._caused))

    @cached_property
    def _caused(self) -> Question:
        return with_training_causes(self.question, calibrated=self.run.calibrated)

    @property
    def causes(self) -> dict[str, float]:
        """Part of the step by cause; the parts add up to 1.

        "arithmetic", "memory", "network" (messages in a stage, between stages and among copies,
        as far as they aren't hidden) and "bubble"; of the calibrated estimate also "tiles" that
        don't fill the device, and "launches" of kernels.

        Raises
        ------
        InvalidValueError
            Of the bound, which has no parts.
        DoesNotFitError
            If the run does not fit.
        """
        self._parts()
        return training_shares_of(self._caused, calibrated=self.run.calibrated)

    def _as_roofline(self) -> Training | None:
        if not self.run.calibrated:
            return None
        given = {n: v for n, v in self.run.given.items() if n in TRAINING_GIVABLE}
        asked = replace(self.run, estimate="roofline", software=None, given=given)
        return type(self)(asked, check_memory=self._check_memory)

    def _calibrated(self) -> Training:
        from mlsim.solvers.calibrated import software_of

        made_by = software_of(None, CALIBRATED, self._door)
        asked = replace(self.run, estimate=CALIBRATED, software=made_by)
        return type(self)(asked, check_memory=self._check_memory)

    @property
    def _whole_run(self) -> bool:
        """Whether the whole run was asked about, and not a step alone."""
        return not {"training_tokens", "training_samples"}.isdisjoint(self.run.whole)

    def load(self) -> Load:
        """Return what the devices are asked to do, for `Engine.footprint`.

        It is that of the whole run, or of one step where no tokens were given.
        """
        from mlsim.solvers.load import Load

        whole, read = self._whole_run, "step_tokens" in self.names
        return Load(
            device=self.device,
            system=self.run.node,
            devices=self.devices,
            time=self.value("training_time" if whole else "step_time"),
            compute_utilisation=float(self.value("hardware_flops_utilization")),
            memory_utilisation=min(1.0, self.value("memory_utilisation")),
            label=f"training of {self.model.name}",
            labels=self.run.labels,
            tokens=self.value("training_tokens" if whole else "step_tokens") if read else 0.0,
        )

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        run = self.run
        required, there = (
            held(self._value(name)) for name in ("memory_required", "memory_capacity")
        )
        return (
            f"Training {run.model.name} on {run.hardware_name} with {self._together()} needs "
            f"{required} on each device, which has {there}, {run.reserve_share:.0%} of it "
            f"reserved: {held(-self._value('memory_free'))} too much. {self._advice()} "
            "check_memory=False gives the time it would take."
        )

    def _together(self) -> str:
        """Say what a device works on at one time."""
        run = self.run
        return f"micro-batches of {run.micro_batch:,.0f} x {run.sequence_tokens:,.0f} tokens"

    def _advice(self) -> str:
        """Say what would make a run fit that does not."""
        run, ways = self.run, []
        if run.recipe.recompute != "full":
            ways.append("recompute='full'")
        if run.parallelism.copies > 1 and run.parallelism.shard != "zero3":
            ways.append("shard='zero1' (or 'zero2', 'zero3')")
        if run.parallelism.tensor > 1 and not run.parallelism.sequence:
            ways.append("sequence_parallel=True")
        if run.micro_batch > 1 and self._value("activation_memory") > self._value("state_memory"):
            ways.append("a smaller micro_batch")
        adapters = run.recipe.adapters
        if adapters and not adapters.quantized:
            ways.append(f"adapters=QLoRA(rank={adapters.rank}), which keeps the model in 4 bits")
        ways.append("more tensor or pipeline parallelism")
        return f"Try {', '.join(ways)}; search=True looks for a layout that fits."

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        run = self.run
        return (
            f"training {run.model.name} on {run.hardware_name}, {run.global_batch:,.0f} x "
            f"{run.sequence_tokens:,.0f} tokens a step, {run.precision.name}, {run.estimate}"
            f"{f', {run.recipe.adapters}' if run.recipe.adapters else ''}"
        )

    def __repr__(self) -> str:
        return f"<Training {self.about.removeprefix('training ')}>"

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """Results that JSON has."""
        return (*_STEP, *self._of_whole_run(), *_MEMORY)

    def _of_whole_run(self) -> tuple[str, ...]:
        """Name the results of a whole run, as far as it was asked for."""
        if not self._whole_run or not self.shows_times:
            return ()
        cost = ("training_cost",) if "device_price" in self.run.whole else ()
        return ("training_time", "device_time", "goodput", *cost)
