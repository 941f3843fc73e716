"""A question about a training run, checked: the spread against model, devices and batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mlsim.equations import plan
from mlsim.errors import InvalidValueError, nearest
from mlsim.hardware import Device
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.calibrated import made_by
from mlsim.solvers.consistency import check_consistent, check_shares
from mlsim.solvers.formats import WIDE
from mlsim.solvers.inputs import CALIBRATED, ESTIMATES, check_flag, validate, validate_given
from mlsim.solvers.training.job import Overlap, Reliability
from mlsim.solvers.training.plan import COLLECTIVES
from mlsim.solvers.training.run import Run
from mlsim.solvers.training.training import CALIBRATED_GIVABLE, TRAINING_GIVABLE
from mlsim.systems import Cluster, System
from mlsim.systems.torus import check_exchange
from mlsim.workloads.adapted import adapted
from mlsim.workloads.adapters import check_adapters
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.passes import Recipe
from mlsim.workloads.training_lowering import check_trainable, stage_layers

# The precision of a run that asks for none.
USUAL = "bf16"
RECOMPUTE = ("none", "selective", "full")
ATTENTION = ("flash", "standard")
SHARDS = ("none", "zero1", "zero2", "zero3")
# What is asked for by number, beside the quantities that are given.
_FIXED = (
    "global_batch",
    "micro_batch",
    "sequence_tokens",
    "training_tokens",
    "data_parallel",
    "pipeline_parallel",
    "context_parallel",
    "interleaved",
    "devices",
    "mean_time_to_failure",
    "checkpoint_bandwidth",
    "restart_time",
    "device_price",
    "reserve_share",
)
_SHARES = ("model_flops_utilization", "hardware_flops_utilization", "goodput", "output_share")
# Tokens of a sequence where nobody says how many, if the model's context allows.
SEQUENCE_TOKENS = 4096
_SIZES = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "interleaved",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The arguments of `Engine.train`, as they were given."""

    model: Any
    hardware: Device | System | Cluster
    global_batch: Any
    devices: Any = None
    micro_batch: Any = None
    sequence_tokens: Any = None
    tokens: Any = None
    precision: str | Precision | None = None
    gradients: str | Precision | None = None
    tensor_parallel: Any = 1
    pipeline_parallel: Any = 1
    data_parallel: Any = None
    context_parallel: Any = 1
    expert_parallel: Any = 1
    interleaved: Any = 1
    sequence_parallel: Any = False
    shard: str = "none"
    recompute: str = "selective"
    attention: str = "flash"
    dropout: Any = False
    overlap: Any = 0.0
    collective: str = "auto"
    mean_time_to_failure: Any = None
    checkpoint_bandwidth: Any = None
    restart_time: Any = None
    price: Any = None
    optimizer: str | None = None
    samples: Any = None
    adapters: Any = None
    reserve: Any = 0.1
    estimate: str = "roofline"
    software: Any = None
    given: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, **arguments: Any) -> Asked:
        """Return arguments as they were given; what is none of these overrides a quantity."""
        own = {each.name for each in fields(cls)} - {"given"}
        given = {name: value for name, value in arguments.items() if name not in own}
        return cls(**{name: arguments[name] for name in own & set(arguments)}, given=given)


def run(asked: Asked, fixed: Mapping[str, Any] | None = None) -> Run:
    """Check a question about a training run; see `Engine.train` for its parts.

    `fixed` is what was checked already, for a search, which asks many in turn.

    Raises
    ------
    MlsimError
        As `Engine.train`.
    """
    # What any layout would have wrong is said before what this one has.
    fixed = settled(asked) if fixed is None else fixed
    made = Run(parallelism=parallelism_of(asked), **fixed)
    _check_batch(made)
    _check_given(made)
    return made


def settled(asked: Asked) -> dict[str, Any]:
    """Check what does not depend on how the run is spread; return it for a `Run`."""
    one_of("estimate", asked.estimate, ESTIMATES)
    one_of("collective", asked.collective, ("auto", *COLLECTIVES))
    one_of("shard", asked.shard, SHARDS)
    _check_language(asked)
    precision = find_precision(USUAL if asked.precision is None else asked.precision)
    for name in _SIZES:
        _whole(name, getattr(asked, name))
    return {
        "model": asked.model,
        "hardware": asked.hardware,
        "recipe": _recipe(asked, precision),
        "precision": precision,
        "assumed": asked.precision is None,
        "gradients": gradients_format(asked.gradients, precision, asked.hardware),
        "estimate": asked.estimate,
        "software": made_by(asked.software, asked.estimate, "train"),
        "global_batch": one_number("global_batch", asked.global_batch, whole=True),
        "micro_batch": one_number(
            "micro_batch", 1 if asked.micro_batch is None else asked.micro_batch, whole=True
        ),
        "sequence_tokens": _sequence(asked),
        "tokens": None if asked.tokens is None else one_number("training_tokens", asked.tokens),
        "overlap": overlap_of(asked.overlap),
        "reliability": reliability_of(asked),
        "price": None if asked.price is None else one_number("device_price", asked.price),
        "collective": asked.collective,
        "reserve_share": share_of("reserve", asked.reserve, below_one=True),
        "given": _given(asked),
    }


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


def reliability_of(asked: Asked) -> Reliability:
    """Return how often devices fail, as far as that was asked."""
    names = ("mean_time_to_failure", "checkpoint_bandwidth", "restart_time")
    asked_for = {name: getattr(asked, name) for name in names}
    return Reliability(
        **{
            name: None if value is None else one_number(name, value)
            for name, value in asked_for.items()
        }
    )


def one_number(name: str, value: Any, *, whole: bool = False) -> float:
    """Return one number in its base unit; refuse an array."""
    return _single(name, validate(name, value, whole=whole))


def _single(name: str, found: Any) -> float:
    if getattr(found, "ndim", 0):
        raise InvalidValueError(
            f"{name} must be one number, not an array: ask for one run at a time."
        )
    return float(found)


def _given(asked: Asked) -> dict[str, Any]:
    """Check quantities that override others: single numbers, and parts of at most one."""
    if not asked.given:
        return {}
    measured = asked.estimate == CALIBRATED
    found = validate_given(asked.given, CALIBRATED_GIVABLE if measured else TRAINING_GIVABLE)
    return {name: _single(name, value) for name, value in found.items()}


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return a word that is allowed; refuse another."""
    if value not in allowed:
        raise InvalidValueError(
            f"{name} must be one of {', '.join(allowed)}, not {value!r}."
            f"{nearest(str(value), allowed)}"
        )
    return str(value)


def share_of(name: str, value: Any, *, below_one: bool = False) -> float:
    """Return a share from 0 to 1; refuse anything else."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    if not fits or (below_one and value == 1):
        end = "below 1" if below_one else "at most 1"
        raise InvalidValueError(f"{name} must be a share of at least 0 and {end}, not {value!r}.")
    return float(value)


def _recipe(asked: Asked, precision: Precision) -> Recipe:
    adapters = check_adapters(asked.adapters)
    if adapters:
        check_trainable(asked.model)
        adapted(asked.model, adapters)  # refuses targets that the model has none of
        if adapters.quantized and precision.bits < WIDE:
            raise InvalidValueError(
                f"precision = {precision.name!r}: QLoRA turns its 4 bits into 16 to compute with "
                "them. Use precision='bf16' or 'fp16', or adapters=LoRA(...)."
            )
    return Recipe(
        recompute=one_of("recompute", asked.recompute, RECOMPUTE),
        attention=one_of("attention", asked.attention, ATTENTION),
        dropout=check_flag("dropout", asked.dropout),
        adapters=adapters,
    )


def gradients_format(
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


def overlap_of(value: Any) -> Overlap:
    """Return what computing hides: one share for all that is sent, or one for each part."""
    if not isinstance(value, Mapping):
        share = share_of("overlap", value)
        return Overlap(share, share, share)
    allowed = tuple(each.name for each in fields(Overlap))
    for name in value:
        one_of("a part of overlap", name, allowed)
    return Overlap(**{name: share_of(f"overlap[{name!r}]", part) for name, part in value.items()})


def _whole(name: str, size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidValueError(f"{name} must be a whole number from 1 up, not {size!r}.")
    return size


def parallelism_of(asked: Asked) -> Parallelism:
    """Check the parallel sizes against one another, the model and the devices."""
    tensor, pipeline, context, expert, interleaved = (
        _whole(name, getattr(asked, name)) for name in _SIZES
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
            "Use fewer, or give a larger system: one of Clusters, or Cluster('mine', node, "
            "nodes=..., link_bandwidth='200 Gb/s')."
        )
    check_exchange(asked.hardware, expert, tensor)
    _check_model(asked, parallelism)
    return parallelism


def _product(parallelism: Parallelism) -> str:
    names = ("tensor", "pipeline", "context", "data")
    return " x ".join(f"{name}_parallel {getattr(parallelism, name)}" for name in names)


def data_copies(asked: Asked, others: int) -> int:
    """Return the copies: as given, or as many as the devices make."""
    devices = None if asked.devices is None else _whole("devices", asked.devices)
    given = None if asked.data_parallel is None else _whole("data_parallel", asked.data_parallel)
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


def _sequence(asked: Asked) -> float:
    model = asked.model
    usual = min(model.context, SEQUENCE_TOKENS)
    value = usual if asked.sequence_tokens is None else asked.sequence_tokens
    tokens = one_number("sequence_tokens", value, whole=True)
    if tokens > model.context:
        raise InvalidValueError(
            f"sequences of {tokens:,.0f} tokens are longer than the context of {model.name}, "
            f"{model.context:,}. Shorten them; if you know that the model was extended, use "
            "dataclasses.replace(model, context=...)."
        )
    context = _whole("context_parallel", asked.context_parallel)
    if tokens % context:
        raise InvalidValueError(
            f"context_parallel = {context} does not divide sequences of {tokens:,.0f} tokens."
        )
    return tokens


def _check_batch(run: Run) -> None:
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


def _check_given(run: Run) -> None:
    """Refuse given quantities that contradict each other, what was asked, or the devices' peak."""
    if not run.given:
        return
    question = run.question
    fixed = {name: question.known[name] for name in _FIXED if name in question.known}
    check_consistent(question.equations, run.given, fixed)
    shares = (name for name in _SHARES if not (run.bound and name == "output_share"))
    check_shares(question.evaluate(*shares), run.given)
    _check_rates(run)


def _check_rates(run: Run) -> None:
    """Refuse rates and times of the whole run that no step could reach at the devices' peak."""
    question = run.question
    found = question.evaluate(
        *(("token_rate",) if run.tokens is None else ("token_rate", "device_time"))
    )
    each_step = run.global_batch * run.sequence_tokens
    step_times = {"token_rate": each_step / found["token_rate"]}
    if run.tokens is not None:
        whole = found["device_time"] / run.parallelism.devices
        step_times["device_time"] = whole * each_step / run.tokens
    share, known = _SHARES[0], question.known
    implied = plan(question.equations, (*known, "step_time"), (share,))
    for name, step_time in step_times.items():
        found = implied.run({**known, "step_time": step_time})
        check_shares({f"{share} by {name}": found[share]}, run.given)
