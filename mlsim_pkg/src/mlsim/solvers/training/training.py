"""What training takes: time, memory, and what the time is spent on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, UnreachableError
from mlsim.solvers.answer import Answer, Report
from mlsim.solvers.causes import (
    TRAINING_SHARES,
    Causes,
    cause_of,
    label_of,
    training_shares_of,
    with_training_causes,
)
from mlsim.solvers.explain import Explanation
from mlsim.solvers.load import Load
from mlsim.solvers.question import Question
from mlsim.solvers.training.names import (
    PARTS,
    SIZES,
    TRAINING_GIVABLE,
    TRAINING_NAMES,
    WITH_FAILURES,
)
from mlsim.solvers.training.refusals import missing, must_get_on, too_large
from mlsim.solvers.training.run import Run
from mlsim.solvers.training.training_report import inputs, report, reported
from mlsim.values import as_share
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.hardware.relatives import Loan
    from mlsim.values.kinds import Quantity
    from mlsim.values.plain import Plain
    from mlsim.workloads.language import Transformer


class Training(Answer):
    """The answer to a question about a training run.

    Any quantity of it is to be had by name: `training["bubble_time"]`. Times of
    a run that does not fit are refused, unless `check_memory` is False.
    """

    noun, variable, first = "training run", "training", "step_time"

    def __init__(self, run: Run, *, check_memory: bool = True) -> None:
        super().__init__(check_memory=check_memory)
        self.run = run

    @property
    def question(self) -> Question:
        """What is asked."""
        return self.run.question

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        return TRAINING_NAMES

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
        if name in WITH_FAILURES and name not in self.question.known:
            must_get_on(self)
        return found

    def _lasts(self, name: str) -> bool:
        return name in SIZES

    def _value(self, name: str) -> Any:
        try:
            return super()._value(name)
        except UnreachableError as error:
            raise InvalidValueError(self._missing(name, str(error))) from None

    def _missing(self, name: str, words: str) -> str:
        return missing(self, name, words)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants of a calibrated answer that were measured on other devices, and on which."""
        return self.run.loans

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer by a tenth, in words."""
        return self.run.assumptions

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
        parts = (
            "weight_memory",
            "gradient_memory",
            "optimizer_memory",
            "activation_memory",
            "memory_free",
        )
        return {name: self.quantity(name) for name in parts}

    @property
    def bottleneck(self) -> str:
        """What limits the step for the largest part of its time.

        "Compute Bound", "Memory Bound", "Network Bound", or "Overhead Bound": tiles that don't
        fill the device, starts of kernels, and the bubble of a pipeline. `cause` says which.

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
        """The question, with what the time goes into."""
        return with_training_causes(self.question, calibrated=self.run.calibrated)

    @property
    def causes(self) -> dict[str, float]:
        """Part of the step by cause; the parts add up to 1.

        "arithmetic", "memory", "network" (messages in a stage, between stages and among copies,
        as far as they aren't hidden) and "bubble"; of the calibrated estimate also "tiles" that
        don't fill the device, and "starts" of kernels.

        Raises
        ------
        InvalidValueError
            Of the bound, which has no parts.
        DoesNotFitError
            If the run does not fit.
        """
        self._parts()
        return training_shares_of(self._caused, calibrated=self.run.calibrated)

    @property
    def cause(self) -> str:
        """The largest cause under the label of `bottleneck`, such as "bubble"."""
        return cause_of(self.causes, self.bottleneck)

    def explain(self, name: str = "") -> Any:
        """Show how a result came to be; "bottleneck" shows why it has its label."""
        if name in TRAINING_SHARES.values():
            self._parts()
            return Explanation(self._caused, name)
        if name != "bottleneck":
            return super().explain(name)
        roofline = ""
        if self.run.calibrated:
            given = {n: v for n, v in self.run.given.items() if n in TRAINING_GIVABLE}
            asked = replace(self.run, estimate="roofline", software=None, given=given)
            roofline = type(self)(asked, check_memory=self._check_memory).bottleneck
        return Causes(self.about, self.bottleneck, self.cause, self.causes, roofline)

    def load(self) -> Load:
        """Return what the devices are asked to do, for `Engine.footprint`.

        It is that of the whole run, or of one step where no tokens were given.
        """
        run, step = self.run, self.value("step_time")
        whole = run.tokens is not None
        return Load(
            device=self.device,
            system=run.node,
            devices=self.devices,
            time=self.value("training_time") if whole else step,
            compute_utilisation=float(self.value("hardware_flops_utilization")),
            memory_utilisation=min(1.0, self.value("memory_utilisation")),
            tokens=self.value("training_tokens" if whole else "step_tokens"),
            label=f"training of {self.model.name}",
            labels=run.labels,
        )

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        return too_large(self)

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

    def _reported(self) -> tuple[str, ...]:
        return reported(self)

    def _inputs(self) -> Mapping[str, Any]:
        return inputs(self)

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        return report(self)
