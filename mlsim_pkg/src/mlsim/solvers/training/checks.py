"""A question about a training run, checked: the spread against model, devices and batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mlsim.equations import plan
from mlsim.errors import InvalidValueError, nearest
from mlsim.hardware import Device
from mlsim.parameters import (
    CALIBRATED,
    check,
    one_number,
    parameter,
    parameters_of,
    validate_given,
)
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.formats import WIDE
from mlsim.solvers.question import check_shares
from mlsim.solvers.training.equations import NAMES, TRAINING_GIVABLE
from mlsim.solvers.training.scenario import Scenario
from mlsim.systems import Cluster, System
from mlsim.systems.system import check_exchange
from mlsim.workloads.adapters import check_adapters
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import check_trainable, stage_layers

if TYPE_CHECKING:
    from mlsim.software import Software

# The precision of a run that asks for none.
USUAL = "bf16"
# Arguments whose row in the table of parameters is all that is asked of them.
_SIZES = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
_CHECKED = (
    *("estimate", "collective", "shard", "recompute", "attention", "dropout"),
    *("sequence_parallel", "reserve", *_SIZES, "interleaved"),
)
_OF_WHOLE_RUN = (
    *("tokens", "price", "mean_time_to_failure", "checkpoint_bandwidth", "restart_time"),
    "samples",
)
_SHARES = ("model_flops_utilization", "hardware_flops_utilization", "goodput", "output_share")
# What computing may hide: sends within a stage, between stages, and of gradients.
OVERLAPS = ("exchange", "pipeline", "gradient")
# Tokens of a sequence where nobody says how many, if the model's context allows.
SEQUENCE_TOKENS = 4096


# What is asked where nobody asks otherwise, and it is not None.
USUAL_ARGUMENTS: Mapping[str, Any] = {
    **dict.fromkeys((*_SIZES, "interleaved"), 1),
    **dict.fromkeys(("sequence_parallel", "dropout"), False),
    "shard": "none",
    "recompute": "selective",
    "attention": "flash",
    "collective": "auto",
    "overlap": 0.0,
    "reserve": 0.1,
    "estimate": "roofline",
}


class Asked(SimpleNamespace):
    """The arguments of `Engine.train`: each has a row among the parameters.

    `given` has the others, which override a quantity.
    """

    @classmethod
    def of(cls, **arguments: Any) -> Asked:
        """Return arguments as they were given, and those that were left out as they are then."""
        usual = _usual()
        given = {name: value for name, value in arguments.items() if name not in usual}
        return cls(**{**usual, "given": given, **arguments})

    def but(self, **changes: Any) -> Asked:
        """Return the same with other arguments."""
        return Asked(**{**vars(self), **changes})


@cache
def _usual() -> dict[str, Any]:
    names = (row.name for row in parameters_of("train"))
    return {name: USUAL_ARGUMENTS.get(name) for name in names if "." not in name}


def scenario(asked: Asked, fixed: Mapping[str, Any] | None = None) -> Scenario:
    """Check a question about a training run; see `Engine.train` for its parts.

    `fixed` is what was checked already, for a search, which asks many in turn.

    Raises
    ------
    MlsimError
        As `Engine.train`.
    """
    # What any layout would have wrong is said before what this one has.
    fixed = settled(asked) if fixed is None else fixed
    if "parallelism" not in fixed:
        fixed = {**fixed, "parallelism": parallelism_of(asked)}
    made = Scenario(**fixed)
    check_batch(made)
    _ = made.table  # refuses devices that were not measured
    _check_given(made)
    return made


def settled(asked: Asked) -> dict[str, Any]:
    """Check what does not depend on how the run is spread; return it for a `Scenario`."""
    _check_language(asked)
    found = settled_of_any(asked, "train")
    return {
        **found,
        "recipe": _recipe(asked, found["precision"]),
        "micro_batch": found["micro_batch"] or 1.0,
        "sequence_tokens": _sequence(asked),
        "given": given_of(asked, TRAINING_GIVABLE),
    }


def settled_of_any(asked: Asked, door: str) -> dict[str, Any]:
    """Check what a run of any kind is asked."""
    for name in _CHECKED:
        check(name, getattr(asked, name), "train")
    precision = find_precision(USUAL if asked.precision is None else asked.precision)
    software: Software | None = None
    if asked.estimate == CALIBRATED or asked.software is not None:
        from mlsim.solvers.calibrated import software_of

        software = software_of(asked.software, asked.estimate, door)
    micro = asked.micro_batch
    return {
        "model": asked.model,
        "hardware": asked.hardware,
        "precision": precision,
        "assumed": asked.precision is None,
        "gradients": _gradients(asked.gradients, precision, asked.hardware),
        "estimate": asked.estimate,
        "software": software,
        "global_batch": one_number("global_batch", asked.global_batch, whole=True),
        "micro_batch": None if micro is None else one_number("micro_batch", micro, whole=True),
        "overlap": _overlap(asked.overlap),
        "whole": {
            parameter(name, "train").quantity or name: float(check(name, value, "train"))
            for name in _OF_WHOLE_RUN
            if (value := getattr(asked, name)) is not None
        },
        "collective": asked.collective,
        "reserve_share": float(asked.reserve),
    }


def given_of(asked: Asked, givable: Sequence[str]) -> dict[str, float]:
    """Check what is given in place of data or equations: single numbers."""
    if not asked.given:
        return {}
    measured = ("compute_fraction", "kernel_overhead") if asked.estimate == CALIBRATED else ()
    found = validate_given(asked.given, (*givable, *measured))
    if arrays := [name for name, value in found.items() if getattr(value, "ndim", 0)]:
        raise InvalidValueError(
            f"{arrays[0]} must be one number, not an array: ask for one at a time."
        )
    return {name: float(value) for name, value in found.items()}


def _check_language(asked: Asked) -> None:
    """Refuse what is asked of a network of layers only."""
    if asked.optimizer not in (None, "adam"):
        raise InvalidValueError(
            f"optimizer = {asked.optimizer!r}: a language model is trained with Adam here. Leave "
            "optimizer out, or give state_bytes='8 B/parameter' for what another one keeps."
        )
    if asked.samples is not None:
        raise InvalidValueError(
            "samples are of a network of layers: give the tokens of the run, such as tokens=1e12."
        )


def _recipe(asked: Asked, precision: Precision) -> Recipe:
    adapters = check_adapters(asked.adapters)
    if adapters:
        check_trainable(asked.model)
        from mlsim.workloads.adapters import adapted

        adapted(asked.model, adapters)  # refuses targets that the model has none of
        if adapters.quantized and precision.bits < WIDE:
            raise InvalidValueError(
                f"precision = {precision.name!r}: QLoRA turns its 4 bits into 16 to compute with "
                "them. Use precision='bf16' or 'fp16', or adapters=LoRA(...)."
            )
    return Recipe(
        recompute=asked.recompute,
        attention=asked.attention,
        dropout=asked.dropout,
        adapters=adapters,
    )


def _sequence(asked: Asked) -> float:
    model = asked.model
    usual = min(model.context, SEQUENCE_TOKENS)
    value = usual if asked.sequence_tokens is None else asked.sequence_tokens
    tokens = one_number("sequence_tokens", value, whole=True)
    if tokens > model.context:
        raise InvalidValueError(
            f"sequences of {tokens:,.0f} tokens are longer than the context of {model.name}, "
            f"{model.context:,}. Shorten them; if you know that the model was extended, give a "
            "config.json that says so, or dataclasses.replace(model, context=...)."
        )
    if tokens % asked.context_parallel:
        raise InvalidValueError(
            f"context_parallel = {asked.context_parallel} does not divide sequences of "
            f"{tokens:,.0f} tokens."
        )
    return tokens


def _check_given(run: Scenario) -> None:
    """Refuse given quantities that contradict each other, what was asked, or the devices' peak."""
    if not run.given:
        return
    question = run.question
    shares = (name for name in _SHARES if not (run.bound and name == "output_share"))
    question.check_given(run.given, NAMES["fixed"], shares)
    # Nor may rates and times of the whole run be such that no step reaches them at the peak.
    tokens = run.whole.get("training_tokens")
    names = ("token_rate",) if tokens is None else ("token_rate", "device_time")
    found = question.evaluate(*names)
    each_step = run.global_batch * run.sequence_tokens
    step_times = {"token_rate": each_step / found["token_rate"]}
    if tokens is not None:
        taken = found["device_time"] / run.parallelism.devices
        step_times["device_time"] = taken * each_step / tokens
    share, known = _SHARES[0], question.known
    implied = plan(question.equations, (*known, "step_time"), (share,))
    for name, step_time in step_times.items():
        found = implied.run({**known, "step_time": step_time})
        check_shares({f"{share} by {name}": found[share]}, run.given)


def _gradients(
    given: str | Precision | None, precision: Precision, system: Device | System | Cluster
) -> Precision:
    """Return the format of gradients: that of the weights, unless told otherwise."""
    device = system if isinstance(system, Device) else system.device
    if precision.name.startswith("int"):
        raise InvalidValueError(
            f"precision = {precision.name!r}: training needs floating-point numbers, such as "
            "'bf16' or 'fp8'."
        )
    device.compute.figure(precision)  # refuses a format that it can't compute in
    if given is not None:
        found = find_precision(given)
        if found.bits < WIDE or found.name.startswith("int"):
            raise InvalidValueError(
                f"gradients = {found.name!r}: they are added up over micro-batches, in 16 bits or "
                "more, such as 'bf16' or 'fp32'."
            )
        return found
    return precision if precision.bits >= 16 else find_precision("bf16")


def _overlap(value: Any) -> dict[str, float]:
    """Return what computing hides: one share for all that is sent, or one for each part."""
    whole = not isinstance(value, Mapping)
    asked = dict.fromkeys(OVERLAPS, value) if whole else value
    for name, share in asked.items():
        if name not in OVERLAPS:
            raise InvalidValueError(
                f"a part of overlap must be one of {', '.join(OVERLAPS)}, not {name!r}."
                f"{nearest(str(name), OVERLAPS)}"
            )
        plain = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not plain or not 0 <= share <= 1:
            raise InvalidValueError(
                f"{'overlap' if whole else f'overlap[{name!r}]'} must be a share of at least 0 "
                f"and at most 1, not {share!r}."
            )
    return {name: float(asked.get(name, 0.0)) for name in OVERLAPS}


def parallelism_of(asked: Asked) -> Parallelism:
    """Check the parallel sizes against one another, the model and the devices."""
    sizes = {
        name.removesuffix("_parallel"): check(name, getattr(asked, name), "train")
        for name in (*_SIZES, "interleaved")
    }
    parallelism = Parallelism(
        data=data_copies(asked, sizes["tensor"] * sizes["pipeline"] * sizes["context"]),
        sequence=check("sequence_parallel", asked.sequence_parallel),
        shard=asked.shard,
        **sizes,
    )
    names = ("tensor", "pipeline", "context", "data")
    check_devices(
        asked,
        parallelism.devices,
        lambda: " x ".join(f"{name}_parallel {getattr(parallelism, name)}" for name in names),
    )
    check_exchange(asked.hardware, parallelism.expert, parallelism.tensor)
    _check_model(asked, parallelism)
    return parallelism


def check_devices(asked: Asked, needed: int, what: Callable[[], str]) -> None:
    """Refuse more devices than there are; `what` says what needs them."""
    there = 1 if isinstance(asked.hardware, Device) else asked.hardware.devices
    if needed > there:
        have = "is one" if there == 1 else f"has {there:,}"
        raise InvalidValueError(
            f"{what()} needs {needed:,} devices; {asked.hardware.name} {have}. Use fewer, or give "
            "a larger system: one of the zoo, a .toml file, or Cluster('mine', node, nodes=..., "
            "link_bandwidth='200 Gb/s')."
        )


def data_copies(asked: Asked, others: int) -> int:
    """Return the copies: as given, or as many as the devices make."""
    found = {"devices": asked.devices, "data_parallel": asked.data_parallel}
    devices, given = (
        None if value is None else int(check(name, value, "train")) for name, value in found.items()
    )
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


def check_batch(run: Scenario) -> None:
    """Refuse a batch that does not come out even."""
    data, micro = run.parallelism.data, run.micro_batch
    each = data * micro
    check_multiple(run.global_batch, each, f" x micro_batch = {data} x {micro:,.0f}")
    if not comes_out_even(run.parallelism, run.global_batch, run.micro_batch):
        raise InvalidValueError(
            f"with interleaved stages the {run.global_batch / each:,.0f} micro-batches must be a "
            f"multiple of the {run.parallelism.pipeline} stages. Change global_batch, or leave "
            "interleaved out."
        )


def check_multiple(global_batch: float, each: float, words: str = "") -> None:
    """Refuse a batch that does not divide into equal parts for all copies."""
    if global_batch % each:
        below, above = global_batch // each * each, -(-global_batch // each) * each
        raise InvalidValueError(
            f"global_batch = {global_batch:,.0f} is no multiple of data_parallel{words} = "
            f"{each:,.0f}. Near it: {f'{below:,.0f} and ' if below else ''}{above:,.0f}."
        )


def comes_out_even(parallelism: Parallelism, global_batch: Any, micro_batch: Any) -> Any:
    """Tell whether a batch divides into micro-batches, and those over interleaved stages.

    Of arrays, one answer for each.
    """
    each = parallelism.data * micro_batch
    if parallelism.interleaved > 1:
        each = each * parallelism.pipeline
    return global_batch % each == 0
