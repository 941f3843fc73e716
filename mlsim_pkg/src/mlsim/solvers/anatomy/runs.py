"""How an anatomy runs: its time on a device, and what a step of training holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mlsim.equations.roofline import memory_free
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.forward import profile as forward
from mlsim.values import Origin
from mlsim.workloads.graph.training import TrainingStep, network_of, training_network

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.solvers.anatomy.anatomy import Anatomy
    from mlsim.values.kinds import Quantity
    from mlsim.workloads.model import Network

# Numbers that each optimizer keeps of a parameter.
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2}


def forward_pass(anatomy: Anatomy) -> forward.Profile:
    """Return one forward pass on the device, kernel by kernel."""
    network = network_of(anatomy.graph, like=anatomy.model, samples=anatomy.batch_size)
    return _profile(anatomy, network)


def training_pass(anatomy: Anatomy) -> forward.Profile:
    """Return one step of training on the device: forward, the way back, the update."""
    states = OPTIMIZERS[anatomy.optimizer]
    return _profile(anatomy, training_network(anatomy.graph, states, like=anatomy.model))


def _profile(anatomy: Anatomy, network: Network) -> forward.Profile:
    return forward.solve(
        network,
        device_of(anatomy, "time"),
        batch_size=anatomy.batch_size,
        precision=anatomy.precision,
        estimate=anatomy.estimate,
        software=anatomy.software,
        check_memory=False,
    )


def device_of(anatomy: Anatomy, what: str) -> Device:
    """Return the device of an anatomy.

    Raises
    ------
    InvalidValueError
        If no hardware was given; names what needs it.
    """
    if anatomy.device is None:
        raise InvalidValueError(f"{what} needs a device: give hardware=, such as 'A100'.")
    return anatomy.device


def training_step(anatomy: Anatomy) -> TrainingStep:
    """Return one step of training, moment by moment.

    Raises
    ------
    InvalidValueError
        If training was not asked about, or the network was not described closely enough.
    """
    if not anatomy.training:
        raise InvalidValueError(
            "moments and peak are those of a step of training: give training=True."
        )
    if anatomy.notes:
        raise InvalidValueError(f"what training holds is not known: {' '.join(anatomy.notes)}")
    return TrainingStep(
        anatomy.graph,
        batch_size=anatomy.batch_size,
        element_bytes=anatomy.precision.bytes,
        states=OPTIMIZERS[anatomy.optimizer],
    )


def required(anatomy: Anatomy) -> float:
    """Return the bytes at the worst moment: of a forward pass, or of a step of training."""
    if anatomy.training:
        return anatomy.step.peak.total
    live = max(each.operator.activations_live for each in anatomy.kernels)
    return anatomy.traffic.inference_memory(live)


def free(anatomy: Anatomy) -> float:
    """Return the bytes that are left on the device, negative if it does not fit."""
    return float(memory_free(device_of(anatomy, "memory").capacity_si, required(anatomy)))


def in_memory(anatomy: Anatomy, name: str, value: float) -> Quantity:
    """Return bytes in memory as a value."""
    return term(name).scaled(value, partial(_origin, anatomy, name))


def _origin(anatomy: Anatomy, name: str, value: Quantity) -> Origin:
    words = name.replace("_", " ")
    brief = f"{words} = {value.in_full} ({anatomy.about})"
    what = "the peak of a step" if anatomy.training else "weights, and the activations alive"
    return Origin(words, brief, f"{brief}\n\nBy {what} at the worst moment.")
