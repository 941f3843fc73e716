"""How large a model should be for the work that one can afford."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from mlsim import records
from mlsim.equations import equations_of, runs
from mlsim.errors import InvalidValueError
from mlsim.parameters import validate
from mlsim.records import Figure
from mlsim.solvers.answer import Answer, Report
from mlsim.solvers.question import Known, Question
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


class OptimalSize(Answer):
    """The size of a dense model that learns most from a given amount of work.

    >>> best = optimal_size("1.2e20 FLOP")
    >>> print(best.optimal_parameters, best.optimal_tokens)
    1,000,000,000 20,000,000,000
    """

    noun, variable, first = "size", "size", "optimal_parameters"
    reported = ("training_flops", "tokens_per_parameter", "optimal_parameters", "optimal_tokens")

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

    def _inputs(self) -> Mapping[str, Any]:
        return {"estimate": "compute-optimal"}

    def report(self) -> Report:
        """Return the answer as a sentence."""
        parameters, tokens = self.value("optimal_parameters"), self.value("optimal_tokens")
        return Report(
            f"{self.about} train {parameters / 1e9:,.0f} billion parameters on "
            f"{tokens / 1e9:,.0f} billion tokens",
            (),
        )


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
