"""What an answer is made of: its questions, and what leads from one to the next.

One point of a service is several questions: a pass over the prompts, a few decode steps, and the
whole of them. Each result belongs to one, whose known quantities are numbers, what was asked, or
results of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlsim.equations import EQUATIONS, Equation, Plan
from mlsim.errors import DoesNotFitError, InvalidValueError, MlsimError
from mlsim.live.settled import MADE, Settled, settled_of
from mlsim.solvers.answer import Answer
from mlsim.solvers.arrivals.steady import Steady
from mlsim.solvers.causes import LABELS, SHARES
from mlsim.solvers.question import Question, quiet
from mlsim.solvers.training.scenario import sequence_question
from mlsim.solvers.training.training import Training

# The longest sequence of a service, found by halving; the two lengths of a sequence.
LONGEST, LENGTHS = "longest_context", ("prompt_tokens", "output_tokens")


@dataclass(frozen=True)
class Refusal:
    """Why there is no result: a few words for a page; the package's error, and words in it.

    Where no error is named, the package does not refuse, but nobody proved the script there.
    """

    words: str
    error: type[MlsimError] | None = InvalidValueError
    told: str = ""

    def of(self, error: MlsimError) -> bool:
        """Tell whether the package refused for this reason."""
        return self.error is not None and isinstance(error, self.error) and self.told in str(error)


REFUSALS: Mapping[str, Refusal] = {
    "out_of_range": Refusal("beyond the range that was computed", None),
    "between_steps": Refusal("no step of the slider", None),
    "not_whole": Refusal("only whole numbers count here", told="must be a whole number"),
    "too_long": Refusal("longer than the model can read", told="longer than the context"),
    "does_not_fit": Refusal("does not fit in memory", DoesNotFitError),
    "saturated": Refusal("more than the service can answer", told="it saturates at"),
    "no_form": Refusal("prompts longer than a step", told="there is no closed form of"),
    "unsupported": Refusal("there is no such configuration", MlsimError),
}


def code_of(error: MlsimError) -> str:
    """Return the code of what the package refused.

    >>> code_of(DoesNotFitError("131 GiB too much")), code_of(InvalidValueError("not so"))
    ('does_not_fit', 'unsupported')
    """
    return next(code for code, each in REFUSALS.items() if each.of(error))


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
    # Known quantities that are a ("result", of a part, by name), or a ("call", by name).
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)

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
    # The memory that is left, where results hang on it: its part, and the quantity there.
    fits: tuple[str, str] | None = None
    # The most tokens that the model reads, where that counts; inputs of calls that no question has.
    context: float | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    # Of a service under load, the batch at which it settles.
    settled: Settled | None = None

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
        return float(self.numbers[name] if name in self.numbers else self.known[name])

    def values(self) -> dict[str, Any]:
        """Return all results, as the answer gives them; the refused ones are left out."""
        found: dict[str, Any] = {}
        shares: dict[str, Mapping[str, Any]] = {}
        for name in self.results:
            try:
                found[name] = _value(self.answer, name, shares)
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
    if LONGEST in results or any(not held for *_, held in chain.results.values()):
        at, question, quantity = _asked(answer, "memory_free")
        _include(chain, answer, at, question, quantity)
        chain.fits = (at, quantity)
    service = getattr(answer, "service", None)
    if service is not None:
        chain.calls = _lengths(service)
        _link_steps(chain)
        if service.model.decoder:
            chain.context = float(service.model.context)
            chain.numbers["attention_window"] = float(service.model.window)
    if "asked" in chain.parts and isinstance(answer, Steady):
        _settle(chain, answer)
    if isinstance(answer, Training):
        _count_sequence(chain, answer)
    return chain


def _count_sequence(chain: Chain, answer: Training) -> None:
    """Link the work of a sequence to the equations of its tokens, where any part takes it."""
    name, work = "sequence_flops", "total_flops"
    asking = [
        each
        for each in chain.parts.values()
        if any(name in step.inputs for step in each.plan().steps)
    ]
    if asking and name not in answer.run.given:
        part = Part(sequence_question(answer.run), {work: None})
        chain.parts = {"sequence": part, **chain.parts}
        for each in asking:
            each.links[name] = ("result", "sequence", work)


def _settle(chain: Chain, answer: Steady) -> None:
    """Add what the closed forms of a service under load take beside their equations."""
    chain.settled = settled_of(answer)
    asked = answer.loaded
    chain.numbers = {"rate": float(asked.rate or 0.0), "copies": float(asked.copies)}
    chain.calls = {"load": Call(EQUATIONS["replica_load"], ("rate", "copies"))}
    links = {name: ("result", "settled", name) for name in MADE}
    chain.parts["asked"].links = {"arrival_rate": ("call", "load"), **links}


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
    if name == LONGEST:
        chain.results[name] = (LONGEST, LONGEST, True)
        return
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
                part.links[name] = ("result", before, there)
        chain.parts[at] = part
    part.wanted[quantity] = None


def _value(answer: Answer, name: str, shares: dict[str, Mapping[str, Any]]) -> Any:
    """Return a result as the answer gives it; of operators, a list. `shares` are kept by phase."""
    if name == LONGEST:
        return float(answer.longest_context)  # type: ignore[attr-defined]
    phase, owner, inner, cause = _split(answer, name)
    if cause:
        if phase not in shares:
            shares[phase] = owner.causes  # type: ignore[attr-defined]
        return float(shares[phase][cause])
    with quiet():
        found = owner.value(inner)
    if getattr(found, "ndim", 0):
        return [float(each) for each in found.ravel()]
    return [float(each) for each in found] if isinstance(found, list) else float(found)


# Which call tells the tokens that are cached in each step; the first has the prompt.
_CACHED = {
    "middle_token_time": "middle",
    "filling_token_time": "filling",
    "full_window_time": "full",
    "later_token_time": "later",
    "last_token_time": "last",
    "decode.asked": "middle",
    "decode.causes": "middle",
}


def _link_steps(chain: Chain) -> None:
    """Say of each step by which call it knows how many tokens are cached, and how many new."""
    calls = chain.calls
    for at, part in chain.parts.items():
        if _CACHED.get(at) in calls:
            part.links["cached_tokens"] = ("call", _CACHED[at])
        elif "prefix" in calls and at in ("asked", "prefill.asked", "prefill.causes"):
            part.links |= {"cached_tokens": ("call", "prefix"), "new_tokens": ("call", "uncached")}
        elif at == "whole" and "share" in calls:
            part.links["filling_share"] = ("call", "share")


def _lengths(service: Any) -> dict[str, Call]:
    """Return what the tokens of steps are made of, as `decode_contexts` has it."""

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
