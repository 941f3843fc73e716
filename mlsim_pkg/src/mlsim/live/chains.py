"""What an answer is made of: its questions, and what leads from one to the next.

One point of a service is several questions: a pass over the prompts, a few decode steps, and the
whole of them. Each result belongs to one, whose known quantities are numbers, what was asked, or
results of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlsim.equations import Equation, Plan
from mlsim.errors import DoesNotFitError, InvalidValueError, MlsimError
from mlsim.solvers.answer import Answer
from mlsim.solvers.causes import LABELS, SHARES
from mlsim.solvers.question import Question, quiet

# What a result may be refused for: the error of Python, and a few words for a page.
REFUSALS: Mapping[str, tuple[type[MlsimError], str]] = {
    "out_of_range": (InvalidValueError, "beyond the range that was computed"),
    "not_whole": (InvalidValueError, "only whole numbers count here"),
    "too_long": (InvalidValueError, "longer than the model can read"),
    "does_not_fit": (DoesNotFitError, "does not fit in memory"),
    "unsupported": (MlsimError, "there is no such configuration"),
}


@dataclass(frozen=True)
class Call:
    """A number that an equation makes of what was asked, beside all questions.

    `inputs` are names of other calls, or of what is known.
    """

    equation: Equation
    inputs: tuple[str, ...]


@dataclass
class Part:
    """One question of an answer, and which quantities of it are wanted."""

    question: Question
    wanted: dict[str, None] = field(default_factory=dict)
    # Known quantities that are results of another part: its name, and the quantity there.
    links: dict[str, tuple[str, str]] = field(default_factory=dict)

    def plan(self) -> Plan:
        """Return the equations that lead to what is wanted."""
        return self.question.plan(*self.wanted)


@dataclass
class Chain:
    """An answer as questions, in an order in which each finds its links ready.

    `results` tells of each result to which part it belongs, its quantity there, and whether it
    has a meaning where memory does not hold the workload.
    """

    answer: Answer
    parts: dict[str, Part] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    results: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    # The most tokens that the model reads, and those in the window of its attention, if it counts.
    context: float | None = None
    window: float | None = None

    @property
    def known(self) -> Mapping[str, Any]:
        """What is known of the first question, by name."""
        found: Mapping[str, Any] = next(iter(self.parts.values())).question.known
        return found

    def called(self) -> dict[str, float]:
        """Return the numbers of all calls."""
        found: dict[str, float] = {}
        for name, call in self.calls.items():
            values = (found[each] if each in found else self.scalar(each) for each in call.inputs)
            found[name] = float(call.equation.function(*values))
        return found

    def scalar(self, name: str) -> float:
        """Return an input of calls that none of them makes."""
        found = self.window if name == "attention_window" else self.known[name]
        assert found is not None
        return float(found)

    def values(self) -> dict[str, Any]:
        """Return all results, as the answer gives them; the refused ones are left out."""
        found: dict[str, Any] = {}
        for name in self.results:
            try:
                found[name] = _value(self.answer, name)
            except DoesNotFitError:
                continue
        return found


def chain_of(answer: Answer, results: Sequence[str]) -> Chain:
    """Return the questions behind results, by their names.

    A name is one of the answer ("latency"), of a part ("decode.latency"), or "causes" with a
    part before it or not, which stands for each cause's share of the time.

    Raises
    ------
    MlsimError
        If there is no such result, or no equation leads to it.
    """
    chain = Chain(answer)
    for each in results:
        for name in _spread(answer, each):
            _add(chain, name)
    service = getattr(answer, "service", None)
    if service is not None:
        chain.calls = _lengths(service)
        if service.model.decoder:
            chain.context, chain.window = float(service.model.context), float(service.model.window)
    return chain


def _spread(answer: Answer, name: str) -> list[str]:
    before, dot, last = name.rpartition(".")
    if last != "causes":
        return [name]
    owner: Any = getattr(answer, before) if before else answer
    return [f"{before}{dot}causes.{cause}" for cause in owner.causes]


def _split(answer: Answer, name: str) -> tuple[str, Answer, str, str]:
    """Return the part's name, its answer, the result there, and the cause it is, or ""."""
    before, dot, cause = name.rpartition(".")
    if dot and before.rpartition(".")[2] == "causes" and cause in LABELS:
        phase = before.rpartition(".")[0]
        return phase, getattr(answer, phase) if phase else answer, "", cause
    owner, inner = answer.part(name)
    return name.rpartition(".")[0], owner, inner, ""


def _add(chain: Chain, name: str) -> None:
    """Add a result with its question."""
    phase, owner, inner, cause = _split(chain.answer, name)
    if cause:
        question: Question = owner._caused  # type: ignore[attr-defined]
        at, quantity = f"{phase}.causes" if phase else "causes", _share(owner, question, cause)
        held = not owner._check_memory
    else:
        at, question, quantity = _asked(owner, inner)
        at = f"{phase}.{at}" if phase else at
        held = not owner._check_memory or owner._lasts(inner)
    _include(chain, owner, at, question, quantity)
    chain.results[name] = (at, quantity, held)


def _share(owner: Answer, question: Question, cause: str) -> str:
    yields = {each.yields for each in question.equations}
    calibrated = "tile_share" in yields and "kernel_overhead" in {
        *question.known,
        *question.table.names,
    }
    return "memory_bound_share" if cause == "memory" and not calibrated else SHARES[cause]


def _asked(owner: Answer, inner: str) -> tuple[str, Question, str]:
    """Return the question of a result, under a name, and the quantity there."""
    question, quantity = owner._asked(inner)
    contexts = getattr(owner, "_contexts", {})
    whole = getattr(owner, "_whole", None)
    if inner in contexts:
        return inner, question, quantity
    if whole is not None and question is not owner.question:
        # All that puts steps together asks one question.
        return "whole", whole("generation_latency"), quantity
    return ("asked" if question is owner.question else "alone"), question, quantity


def _include(chain: Chain, owner: Answer, at: str, question: Question, quantity: str) -> None:
    part = chain.parts.get(at)
    if part is None:
        part = Part(question)
        if at == "whole":
            for name in ("time_to_first_token", *owner._contexts):  # type: ignore[attr-defined]
                before, other, there = _asked(owner, name)
                _include(chain, owner, before, other, there)
                part.links[name] = (before, there)
        chain.parts[at] = part
    part.wanted[quantity] = None


def _value(answer: Answer, name: str) -> Any:
    """Return a result as the answer gives it; of operators, a list."""
    _, owner, inner, cause = _split(answer, name)
    if cause:
        return float(owner.causes[cause])  # type: ignore[attr-defined]
    with quiet():
        found = owner.value(inner)
    if getattr(found, "ndim", 0):
        return [float(each) for each in found.ravel()]
    return [float(each) for each in found] if isinstance(found, list) else float(found)


def _lengths(service: Any) -> dict[str, Call]:
    """Return what the tokens of steps are made of, as `decode_contexts` has it."""
    from mlsim.equations import EQUATIONS

    def call(name: str, *inputs: str) -> Call:
        return Call(EQUATIONS[name], inputs)

    found = {}
    if service.switches.has_prefix:
        found["prefix"] = call("prefix_tokens", "prefix_share", "prompt_tokens")
        found["uncached"] = call("uncached_tokens", "prompt_tokens", "prefix")
    if not service.model.decoder:
        return found
    found["last"] = call("last_cached_tokens", "prompt_tokens", "output_tokens")
    found["middle"] = call("middle_cached_tokens", "prompt_tokens", "last")
    if "windowed" in service.variant:
        found["full"] = call("full_cached_tokens", "prompt_tokens", "last", "attention_window")
        found["filling"] = call("middle_cached_tokens", "prompt_tokens", "full")
        found["later"] = call("middle_cached_tokens", "full", "last")
        found["share"] = call("filling_share", "prompt_tokens", "full", "last")
    return found
