"""A question about training of a network of layers, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.errors import InvalidValueError, unknown_name
from mlsim.hardware import Device
from mlsim.precision import precision as find_precision
from mlsim.solvers.calibrated import made_by
from mlsim.solvers.inputs import CALIBRATED, ESTIMATES, validate_given
from mlsim.solvers.question import check_consistent, check_shares
from mlsim.solvers.training.arguments import (
    gradients_format,
    one_number,
    one_of,
    overlap_of,
    share_of,
)
from mlsim.solvers.training.network_run import OPTIMIZERS, NetworkRun
from mlsim.solvers.training.network_training import NETWORK_GIVABLE
from mlsim.solvers.training.plan import COLLECTIVES
from mlsim.solvers.training.spread import data_copies
from mlsim.solvers.training.validate import USUAL, Asked, reliability_of
from mlsim.workloads.adapters import check_adapters, check_language
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.steps import Parallelism

# The optimizer of a network that asks for none.
USUAL_OPTIMIZER = "momentum"
SHARDS = ("none", "zero1")
# What is asked of language models only, what it is if nobody asks, and why.
_OF_LANGUAGE: Mapping[str, tuple[Any, str]] = {
    "sequence_tokens": (None, "a sample of a network has one size"),
    "tokens": (None, "give the samples of the run, such as samples=90 * 1281167"),
    "tensor_parallel": (1, "each device takes its samples through the whole network"),
    "pipeline_parallel": (1, "each device takes its samples through the whole network"),
    "context_parallel": (1, "a sample is not cut into parts"),
    "expert_parallel": (1, "there are no experts"),
    "interleaved": (1, "there is no pipeline"),
    "sequence_parallel": (False, "there is no sequence"),
    "attention": ("flash", "attention is a layer as its network describes it"),
    "dropout": (False, "dropout is a layer of its own"),
}
_FIXED = (
    *("global_batch", "micro_batch", "training_samples", "data_parallel", "devices"),
    *("mean_time_to_failure", "checkpoint_bandwidth", "restart_time", "device_price"),
    "reserve_share",
)
_SHARES = ("model_flops_utilization", "hardware_flops_utilization", "goodput")


def network_run(asked: Asked) -> NetworkRun:
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
    parallelism = Parallelism(data=_copies(asked), shard=one_of("shard", asked.shard, SHARDS))
    global_batch = one_number("global_batch", asked.global_batch, whole=True)
    precision = find_precision(USUAL if asked.precision is None else asked.precision)
    made = NetworkRun(
        model=asked.model,
        hardware=asked.hardware,
        parallelism=parallelism,
        recipe=Recipe(recompute="none", attention="flash", dropout=False),
        precision=precision,
        assumed=asked.precision is None,
        gradients=gradients_format(asked.gradients, precision, asked.hardware),
        estimate=one_of("estimate", asked.estimate, ESTIMATES),
        software=made_by(asked.software, asked.estimate, "train_network"),
        global_batch=global_batch,
        micro_batch=_micro_batch(asked, global_batch, parallelism.data),
        sequence_tokens=1.0,
        tokens=None,
        samples=None if asked.samples is None else one_number("training_samples", asked.samples),
        overlap=overlap_of(asked.overlap),
        reliability=reliability_of(asked),
        price=None if asked.price is None else one_number("device_price", asked.price),
        collective=one_of("collective", asked.collective, ("auto", *COLLECTIVES)),
        reserve_share=share_of("reserve", asked.reserve, below_one=True),
        given=_given(asked),
        optimizer=optimizer,
    )
    _check_given(made)
    return made


def _check_asked(asked: Asked) -> None:
    """Refuse what is asked of language models only."""
    if adapters := check_adapters(asked.adapters):
        check_language(asked.model, adapters)
    for name, (usual, why) in _OF_LANGUAGE.items():
        given = getattr(asked, name)
        if given != usual:
            raise InvalidValueError(
                f"{name} = {given!r} is for language models; {asked.model.name} is a network of "
                f"layers: {why}. Leave {name} out."
            )
    if asked.recompute == "full":
        raise InvalidValueError(
            "recompute = 'full': which layers of a network are computed again is not counted "
            "here. Leave it out, or use a smaller micro_batch."
        )
    one_of("recompute", asked.recompute, ("none", "selective"))


def _copies(asked: Asked) -> int:
    copies = data_copies(asked, 1)
    there = 1 if isinstance(asked.hardware, Device) else asked.hardware.devices
    if copies > there:
        have = "is one" if there == 1 else f"has {there:,}"
        raise InvalidValueError(
            f"data_parallel = {copies:,} needs {copies:,} devices; {asked.hardware.name} {have}. "
            "Use fewer, or give a larger system: one of the zoo, a .toml file, or Cluster('mine', "
            "node, nodes=..., link_bandwidth='200 Gb/s')."
        )
    return copies


def _micro_batch(asked: Asked, global_batch: float, copies: int) -> float:
    """Return the samples that a device takes at a time: by default all of its share."""
    given = asked.micro_batch
    micro = 1.0 if given is None else one_number("micro_batch", given, whole=True)
    each = copies * micro
    if global_batch % each:
        below, above = global_batch // each * each, -(-global_batch // each) * each
        words = f" x micro_batch = {copies} x {micro:,.0f}" if given is not None else ""
        raise InvalidValueError(
            f"global_batch = {global_batch:,.0f} is no multiple of data_parallel{words} = "
            f"{each:,.0f}. Near it: {f'{below:,.0f} and ' if below else ''}{above:,.0f}."
        )
    return global_batch / copies if given is None else micro


def _given(asked: Asked) -> dict[str, Any]:
    if not asked.given:
        return {}
    measured = asked.estimate == CALIBRATED
    more = ("compute_fraction", "kernel_overhead") if measured else ()
    found = validate_given(asked.given, (*NETWORK_GIVABLE, *more))
    for name, value in found.items():
        if getattr(value, "ndim", 0):
            raise InvalidValueError(
                f"{name} must be one number, not an array: ask for one run at a time."
            )
    return {name: float(value) for name, value in found.items()}


def _check_given(run: NetworkRun) -> None:
    """Refuse given quantities that contradict each other, or the devices' peak."""
    if not run.given:
        return
    question = run.question
    fixed = {name: question.known[name] for name in _FIXED if name in question.known}
    check_consistent(question.equations, run.given, fixed)
    check_shares(question.evaluate(*_SHARES), run.given)
