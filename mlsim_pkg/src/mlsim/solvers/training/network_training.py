"""What training of a network of layers takes: time, memory, and what the time is spent on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.solvers.answer import Report
from mlsim.solvers.load import Load
from mlsim.solvers.training import network_report
from mlsim.solvers.training.network_run import NetworkRun
from mlsim.solvers.training.plan import NETWORK_TRAINING
from mlsim.solvers.training.training import Training
from mlsim.units import held
from mlsim.values.attributes import count
from mlsim.workloads.model import Network

# What a caller may give in place of what the data or the equations say.
NETWORK_GIVABLE = tuple(
    dict.fromkeys(
        (
            *("peak_flops", "memory_bandwidth", "memory_capacity", "node_bandwidth"),
            *("fabric_bandwidth", "hop_latency", "link_fraction", "memory_fraction"),
            *("bytes_per_parameter", "bytes_per_element", "bytes_per_gradient", "state_bytes"),
            *("gradient_memory", "activation_memory", "checkpoint_bytes"),
            *(each.yields for each in NETWORK_TRAINING if not each.sums),
        )
    )
)
_OF_MEMORY = (
    *("activation_memory", "gradient_memory", "state_memory", "memory_required", "memory_free"),
)


class NetworkTraining(Training):
    """The answer to a question about training of a network of layers.

    As `Training`, with samples in place of tokens.
    """

    noun = "training run"

    def __init__(self, run: NetworkRun, *, check_memory: bool = True) -> None:
        super().__init__(run, check_memory=check_memory)  # type: ignore[arg-type]
        self.network_run = run

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        return NETWORK_NAMES

    @property
    def network(self) -> Network:
        """The network that is trained."""
        return self.network_run.network

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
        notes = self.network_run.graph.notes
        if notes and name in _OF_MEMORY:
            return (
                f"{name} of training {self.network.name} is not known: {' '.join(notes)} "
                "check_memory=False gives the time of a step."
            )
        if "training_samples" in words:
            return f"{name} needs the samples of the whole run: such as samples=90 * 1281167."
        return super()._missing(name, words)

    def load(self) -> Load:
        """Return what the devices are asked to do, for `Engine.footprint`.

        It is that of the whole run, or of one step where no samples were given.
        """
        run = self.network_run
        whole = run.samples is not None
        return Load(
            device=self.device,
            system=run.node,
            devices=self.devices,
            time=self.value("training_time" if whole else "step_time"),
            compute_utilisation=float(self.value("hardware_flops_utilization")),
            memory_utilisation=min(1.0, self.value("memory_utilisation")),
            label=f"training of {run.model.name}",
            labels=run.labels,
        )

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        run = self.network_run
        return (
            f"Training {run.model.name} on {run.hardware_name} with {run.micro_batch:,.0f} "
            f"samples at a time needs {held(self._value('memory_required'))} on each device, "
            f"which has {held(self._value('memory_capacity'))}, {run.reserve_share:.0%} of "
            f"it reserved: {held(-self._value('memory_free'))} too much. Try a smaller "
            "micro_batch, or more devices. check_memory=False gives the time it would take."
        )

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        run = self.network_run
        return (
            f"training {run.model.name} on {run.hardware_name}, {run.global_batch:,.0f} samples "
            f"a step, {run.precision.name}, {run.estimate}"
        )

    def _reported(self) -> tuple[str, ...]:
        return network_report.reported(self)

    def _inputs(self) -> Mapping[str, Any]:
        return network_report.inputs(self)

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        return network_report.report(self)


NETWORK_NAMES = tuple(
    dict.fromkeys(name for each in NETWORK_TRAINING for name in (each.yields, *each.inputs))
)
