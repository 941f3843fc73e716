"""How large a model should be for the work that one can afford."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from mlsim import records
from mlsim.equations import equations_of, runs
from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.hardware import Device
from mlsim.parameters import validate
from mlsim.records import Figure
from mlsim.solvers.answer import Answer, Form
from mlsim.solvers.question import Known, Question
from mlsim.solvers.training.checks import USUAL_ARGUMENTS, Asked, scenario, settled
from mlsim.solvers.training.training import Training
from mlsim.units import text
from mlsim.values.attributes import count
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, TRAINING_MULTIPLY_ADDS

FILE = records.DATA / "scaling.toml"

OPTIMAL = tuple(
    each
    for each in equations_of(runs.RUN)
    if each.name in ("flops_per_parameter_token", "optimal_parameters", "optimal_tokens")
)


@cache
def measured_ratio() -> Figure:
    """Return the tokens for each parameter that experiments found best."""
    file = records.load(FILE)
    return file.figure(file.data["tokens_per_parameter"], "token/parameter", "tokens_per_parameter")


def _sentence(size: OptimalSize) -> str:
    parameters, tokens = size.value("optimal_parameters"), size.value("optimal_tokens")
    return (
        f"{size.about} train {parameters / 1e9:,.0f} billion parameters on "
        f"{tokens / 1e9:,.0f} billion tokens"
    )


class OptimalSize(Answer):
    """The size of a dense model that learns most from a given amount of work.

    >>> best = optimal_size("1.2e20 FLOP")
    >>> print(best.optimal_parameters, best.optimal_tokens)
    1,000,000,000 20,000,000,000
    """

    noun, variable, first = "size", "size", "optimal_parameters"
    reported = ("training_flops", "tokens_per_parameter", "optimal_parameters", "optimal_tokens")
    form = Form(_sentence, inputs={"estimate": lambda _: "compute-optimal"})

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        labels = {
            "model": "a dense model",
            "model_source": "",
            "hardware": self.about,
            "precision": "any precision",
            "estimate": "compute-optimal",
        }
        return Question(self.known, OPTIMAL, labels)

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        return (*(each.yields for each in OPTIMAL), *self.known)

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return text(self.known["training_flops"], "FLOP")

    optimal_parameters = count("Parameters of the model.")
    optimal_tokens = count("Tokens that it reads.")


def optimal_size(training_flops: Any, tokens_per_parameter: Any = None) -> OptimalSize:
    """Return the size for an amount of work; see `Engine.optimal_size`.

    Raises
    ------
    InvalidValueError, UnitError
        If a value can't be.
    """
    figure = measured_ratio()
    ratio = figure.si
    if tokens_per_parameter is not None:
        ratio = validate("tokens_per_parameter", tokens_per_parameter)
    work = validate("training_flops", training_flops)
    if getattr(work, "ndim", 0) or getattr(ratio, "ndim", 0):
        raise InvalidValueError("optimal_size takes one amount of work, not an array.")
    known = Known().add("given", training_flops=work)
    known.add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
    backward = "definition: one forward, and two backward"
    known.add(backward, training_multiply_adds=TRAINING_MULTIPLY_ADDS)
    origin = "given" if tokens_per_parameter else figure.origin()
    return OptimalSize(known.add(origin, tokens_per_parameter=ratio))


# What a search chooses.
_CHOSEN = (
    *("tensor_parallel", "pipeline_parallel", "data_parallel", "interleaved", "micro_batch"),
    *("sequence_parallel", "shard", "recompute"),
)
# What is tried of each.
_MICRO_BATCHES = (1, 2, 4, 8)
_INTERLEAVED = (1, 2, 3, 4)
# What recomputes more takes longer, so the first that fits will do.
_RECOMPUTE = ("none", "selective", "full")
# What tells layouts apart but for their micro-batches.
_OF_LAYOUT = ("tensor_parallel", "pipeline_parallel", "interleaved", "shard")


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def candidates(asked: Asked) -> Iterator[Asked]:
    """Yield questions with other layouts: tensor, pipeline and data parallel, and batches.

    Tensor parallelism stays within a node. Context and expert parallelism, formats
    and overlaps are as asked.
    """
    there = 1 if isinstance(asked.hardware, Device) else asked.hardware.devices
    devices = there if asked.devices is None else asked.devices
    if isinstance(devices, bool) or not isinstance(devices, int) or not 1 <= devices <= there:
        raise InvalidValueError(
            f"devices must be a whole number from 1 to {there:,}, which {asked.hardware.name} has, "
            f"not {devices!r}."
        )
    node = getattr(getattr(asked.hardware, "node", asked.hardware), "devices", 1)
    for tensor in (each for each in _divisors(node) if devices % each == 0):
        for pipeline in _divisors(asked.model.layers):
            rest = tensor * pipeline * asked.context_parallel
            if devices % rest:
                continue
            base = asked.but(
                devices=devices,
                tensor_parallel=tensor,
                pipeline_parallel=pipeline,
                data_parallel=devices // rest,
                sequence_parallel=tensor > 1,
            )
            yield from _recipes(base)


def _recipes(base: Asked) -> Iterator[Asked]:
    """Yield micro-batches, interleaving and sharding for one layout."""
    each_copy = base.global_batch // base.data_parallel
    copies = base.data_parallel * base.context_parallel
    for micro in _MICRO_BATCHES:
        if base.global_batch % (base.data_parallel * micro) or not each_copy:
            continue
        for parts in _INTERLEAVED if base.pipeline_parallel > 1 else (1,):
            for shard in ("zero1", "zero3") if copies > 1 else ("none",):
                yield base.but(micro_batch=micro, interleaved=parts, shard=shard)


def search(asked: Asked) -> Training:
    """Return the fastest run that fits.

    Raises
    ------
    DoesNotFitError
        If no layout fits; says how much the one that comes nearest lacks.
    InvalidValueError
        If no layout divides model, batch and devices; or if something else can't be.
    """
    fixed = settled(asked)
    if both := [each for each in _CHOSEN if getattr(asked, each) != USUAL_ARGUMENTS.get(each)]:
        raise InvalidValueError(
            f"search=True chooses {', '.join(f'{name}=' for name in both)} itself: leave that "
            "out, or search=True."
        )
    recipes = [replace(fixed["recipe"], recompute=each) for each in _RECOMPUTE]
    best: Training | None = None
    nearest: Training | None = None
    refusal = ""
    # Larger micro-batches never need less memory: what failed with a smaller one is not tried.
    failed: set[tuple[Any, ...]] = set()
    for candidate in candidates(asked):
        layout = tuple(getattr(candidate, name) for name in _OF_LAYOUT)
        chosen: dict[str, Any] = {**fixed, "micro_batch": float(candidate.micro_batch)}
        for recipe in recipes:
            if (*layout, recipe.recompute) in failed:
                continue
            try:
                training = Training(scenario(candidate, {**chosen, "recipe": recipe}))
            except InvalidValueError as error:
                refusal = refusal or f" The first that was tried: {error}"
                break  # does not divide the model or the batch
            chosen["parallelism"] = training.run.parallelism  # checked once for all recipes
            free = training._value("memory_free")
            if free >= 0:
                if best is None or training._value("step_time") < best._value("step_time"):
                    best = training
                break
            failed.add((*layout, recipe.recompute))
            if nearest is None or free > nearest._value("memory_free"):
                nearest = training
    if best is not None:
        return best
    if nearest is None:
        raise InvalidValueError(
            f"no layout divides {asked.model.name}, a global batch of {asked.global_batch} and "
            f"the devices of {asked.hardware.name}. Try a global batch that is a multiple of a "
            f"power of two, or other devices=.{refusal}"
        )
    raise DoesNotFitError(
        f"no layout fits; the nearest one: {nearest.too_large().partition(' Try ')[0]} "
        "Give more devices=, or shorter sequences."
    )
