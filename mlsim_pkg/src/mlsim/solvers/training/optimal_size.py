"""How large a model should be for the work that one can afford."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.equations import Plan, equations_of, plan, run
from mlsim.errors import InvalidValueError
from mlsim.records import Figure
from mlsim.solvers.explain import Explanation
from mlsim.solvers.inputs import validate
from mlsim.units import scaled, text
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, TRAINING_MULTIPLY_ADDS
from mlsim.workloads.operators import NO_OPERATORS, OperatorTable

if TYPE_CHECKING:
    from pint import Quantity

FILE = records.DATA / "scaling.toml"

OPTIMAL = tuple(
    each
    for each in equations_of(run)
    if each.name in ("flops_per_parameter_token", "optimal_parameters", "optimal_tokens")
)


@cache
def measured_ratio() -> Figure:
    """Return the tokens for each parameter that experiments found best."""
    file = records.load(FILE)
    return file.figure(file.data["tokens_per_parameter"], "token/parameter", "tokens_per_parameter")


@dataclass(frozen=True, eq=False)
class OptimalSize:
    """The size of a dense model that learns most from a given amount of work.

    >>> best = optimal_size("1.2e20 FLOP")
    >>> f"{best.parameters:.0f}", f"{best.tokens:.0f}"
    ('1000000000 parameter', '20000000000 token')
    """

    known: Mapping[str, Any]
    origins: Mapping[str, str]

    @property
    def table(self) -> OperatorTable[Any]:
        """No operators."""
        return NO_OPERATORS

    @property
    def shape(self) -> tuple[int, ...]:
        """One point."""
        return ()

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": "a dense model",
            "model_source": "",
            "hardware": text(self.known["training_flops"], "FLOP"),
            "precision": "any precision",
            "estimate": "compute-optimal",
        }

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        return self.origins[name]

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        return plan(OPTIMAL, self.known, wanted)

    def value(self, name: str) -> float:
        """Return a quantity in its base unit."""
        if name in self.known:
            return float(self.known[name])
        return float(self.plan(name).run(self.known)[name])

    @property
    def parameters(self) -> Quantity[Any]:
        """Parameters of the model."""
        return scaled(self.value("optimal_parameters"), "parameter")

    @property
    def tokens(self) -> Quantity[Any]:
        """Tokens that it reads."""
        return scaled(self.value("optimal_tokens"), "token")

    def explain(self, name: str = "optimal_parameters") -> Explanation:
        """Show how a result came to be: equations, values, units, sources."""
        return Explanation(self, name)

    def __str__(self) -> str:
        parameters, tokens = self.value("optimal_parameters"), self.value("optimal_tokens")
        return (
            f"{text(self.known['training_flops'], 'FLOP')} train {parameters / 1e9:,.0f} billion "
            f"parameters on {tokens / 1e9:,.0f} billion tokens"
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
    known = {
        "training_flops": work,
        "flops_per_multiply_add": FLOPS_PER_MULTIPLY_ADD,
        "training_multiply_adds": TRAINING_MULTIPLY_ADDS,
        "tokens_per_parameter": ratio,
    }
    origins = {
        "training_flops": "given",
        "flops_per_multiply_add": "definition",
        "training_multiply_adds": "definition: one forward, and two backward",
        "tokens_per_parameter": "given" if tokens_per_parameter else figure.origin(),
    }
    return OptimalSize(known, origins)
