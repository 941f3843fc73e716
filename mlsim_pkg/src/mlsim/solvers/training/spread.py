"""How a training run is spread, checked against the devices, the model and the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.inputs import check_flag
from mlsim.solvers.training.arguments import whole
from mlsim.solvers.training.run import Run
from mlsim.systems.torus import check_exchange
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import check_trainable, stage_layers

if TYPE_CHECKING:
    from mlsim.solvers.training.validate import Asked

SIZES = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "interleaved",
)


def parallelism_of(asked: Asked) -> Parallelism:
    """Check the parallel sizes against one another, the model and the devices."""
    tensor, pipeline, context, expert, interleaved = (
        whole(name, getattr(asked, name)) for name in SIZES
    )
    there = 1 if isinstance(asked.hardware, Device) else asked.hardware.devices
    data = data_copies(asked, tensor * pipeline * context)
    parallelism = Parallelism(
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        context=context,
        expert=expert,
        interleaved=interleaved,
        sequence=check_flag("sequence_parallel", asked.sequence_parallel),
        shard=asked.shard,
    )
    if parallelism.devices > there:
        have = "is one" if there == 1 else f"has {there:,}"
        raise InvalidValueError(
            f"{_product(parallelism)} needs {parallelism.devices:,} devices; {asked.hardware.name} "
            f"{have}. "
            "Use fewer, or give a larger system: one of the zoo, a .toml file, or Cluster('mine', "
            "node, nodes=..., link_bandwidth='200 Gb/s')."
        )
    check_exchange(asked.hardware, expert, tensor)
    _check_model(asked, parallelism)
    return parallelism


def _product(parallelism: Parallelism) -> str:
    names = ("tensor", "pipeline", "context", "data")
    return " x ".join(f"{name}_parallel {getattr(parallelism, name)}" for name in names)


def data_copies(asked: Asked, others: int) -> int:
    """Return the copies: as given, or as many as the devices make."""
    devices = None if asked.devices is None else whole("devices", asked.devices)
    given = None if asked.data_parallel is None else whole("data_parallel", asked.data_parallel)
    if devices is None:
        return given or 1
    if given is None:
        if devices % others:
            raise InvalidValueError(
                f"tensor, pipeline and context parallelism take {others} devices together, which "
                f"does not divide devices = {devices}. Near it: "
                f"{f'{devices // others * others} and ' if devices > others else ''}"
                f"{-(-devices // others) * others}."
            )
        return devices // others
    if given * others != devices:
        raise InvalidValueError(
            f"the parallel sizes multiply to {given * others}, not to devices = {devices}: "
            f"{others} (tensor x pipeline x context) times data_parallel = {given}. "
            "Leave data_parallel out, or change one of them."
        )
    return given


def _check_model(asked: Asked, parallelism: Parallelism) -> None:
    """Refuse a spread that does not divide the model."""
    model = asked.model
    check_trainable(model)
    if parallelism.interleaved > 1 and parallelism.pipeline == 1:
        raise InvalidValueError(
            f"interleaved = {parallelism.interleaved} parts a stage need a pipeline: "
            "set pipeline_parallel, or leave interleaved out."
        )
    if parallelism.pipeline > model.layers:
        raise InvalidValueError(
            f"pipeline_parallel = {parallelism.pipeline} stages are more than the {model.layers} "
            f"layers of {model.name}: at most {model.layers}."
        )
    full = stage_layers(model, parallelism.pipeline)
    if full % parallelism.interleaved:
        fits = [each for each in range(1, full + 1) if full % each == 0]
        raise InvalidValueError(
            f"interleaved = {parallelism.interleaved} does not divide the {full} layers of a stage "
            f"of {model.name} on {parallelism.pipeline} stages: use one of "
            f"{', '.join(map(str, fits))}."
        )
    if parallelism.sequence and parallelism.tensor == 1:
        raise InvalidValueError(
            "sequence_parallel divides tokens among the devices of tensor parallelism, "
            "of which there is one: set tensor_parallel, or leave it out."
        )


def check_batch(run: Run) -> None:
    """Refuse a batch that does not come out even."""
    each = run.parallelism.data * run.micro_batch
    if run.global_batch % each:
        below, above = run.global_batch // each * each, -(-run.global_batch // each) * each
        raise InvalidValueError(
            f"global_batch = {run.global_batch:,.0f} is no multiple of data_parallel x micro_batch "
            f"= {run.parallelism.data} x {run.micro_batch:,.0f} = {each:,.0f}. Near it: "
            f"{f'{below:,.0f} and ' if below else ''}{above:,.0f}."
        )
    if not comes_out_even(run.parallelism, run.global_batch, run.micro_batch):
        raise InvalidValueError(
            f"with interleaved stages the {run.global_batch / each:,.0f} micro-batches must be a "
            f"multiple of the {run.parallelism.pipeline} stages. Change global_batch, or leave "
            "interleaved out."
        )


def comes_out_even(parallelism: Parallelism, global_batch: Any, micro_batch: Any) -> Any:
    """Tell whether a batch divides into micro-batches, and those over interleaved stages.

    Of arrays, one answer for each.
    """
    each = parallelism.data * micro_batch
    if parallelism.interleaved > 1:
        each = each * parallelism.pipeline
    return global_batch % each == 0
