"""A question about a training run, checked: the spread against model, devices and batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mlsim.equations import plan
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.calibrated import made_by
from mlsim.solvers.formats import WIDE
from mlsim.solvers.inputs import CALIBRATED, ESTIMATES, check_flag, validate_given
from mlsim.solvers.question import check_consistent, check_shares
from mlsim.solvers.training.arguments import (
    gradients_format,
    one_number,
    one_of,
    overlap_of,
    share_of,
    single,
    whole,
)
from mlsim.solvers.training.job import Reliability
from mlsim.solvers.training.names import CALIBRATED_GIVABLE, TRAINING_GIVABLE
from mlsim.solvers.training.plan import COLLECTIVES
from mlsim.solvers.training.run import Run
from mlsim.solvers.training.spread import SIZES, check_batch, parallelism_of
from mlsim.systems import Cluster, System
from mlsim.workloads.adapters import adapted, check_adapters
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.training_lowering import check_trainable

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
    check_batch(made)
    _check_given(made)
    return made


def settled(asked: Asked) -> dict[str, Any]:
    """Check what does not depend on how the run is spread; return it for a `Run`."""
    one_of("estimate", asked.estimate, ESTIMATES)
    one_of("collective", asked.collective, ("auto", *COLLECTIVES))
    one_of("shard", asked.shard, SHARDS)
    _check_language(asked)
    precision = find_precision(USUAL if asked.precision is None else asked.precision)
    for name in SIZES:
        whole(name, getattr(asked, name))
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


def _given(asked: Asked) -> dict[str, Any]:
    """Check quantities that override others: single numbers, and parts of at most one."""
    if not asked.given:
        return {}
    measured = asked.estimate == CALIBRATED
    found = validate_given(asked.given, CALIBRATED_GIVABLE if measured else TRAINING_GIVABLE)
    return {name: single(name, value) for name, value in found.items()}


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
    context = whole("context_parallel", asked.context_parallel)
    if tokens % context:
        raise InvalidValueError(
            f"context_parallel = {context} does not divide sequences of {tokens:,.0f} tokens."
        )
    return tokens


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
        taken = found["device_time"] / run.parallelism.devices
        step_times["device_time"] = taken * each_step / run.tokens
    share, known = _SHARES[0], question.known
    implied = plan(question.equations, (*known, "step_time"), (share,))
    for name, step_time in step_times.items():
        found = implied.run({**known, "step_time": step_time})
        check_shares({f"{share} by {name}": found[share]}, run.given)
