"""Speculative decoding: rounds of a draft and a check, and from where on they pay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import Any

from mlsim.equations import switches as rounds
from mlsim.solvers.answer import Answer, Form, Pairs, Row, plain
from mlsim.solvers.arrays import bisect, scan
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.steps import step_question
from mlsim.solvers.serving.switches import ROUND
from mlsim.values.attributes import count

RESULTS = (
    "expected_tokens",
    "draft_step_time",
    "verification_time",
    "round_time",
    "plain_step_time",
    "speculative_token_time",
    "speculative_speedup",
    "break_even_tokens",
)


def round_question(service: Service, cached: Any, name: str = "latency") -> Question:
    """Return what a round asks: the tokens it makes, and the time that it takes.

    `name` is the quantity of a step that its times are: its latency, or how long it would
    compute, or move bytes, at full rate.
    """
    switches = service.switches
    speculation = switches.speculation
    assert speculation is not None

    def of(asked: Service, what: str, new: Any) -> Any:
        return step_question(asked, what, new, cached).evaluate(name)[name]

    many = float(speculation.tokens)
    known = Known().add("given", acceptance_rate=float(speculation.acceptance), draft_tokens=many)
    without = replace(service, switches=replace(switches, speculation=None, draft=None))
    known.add(
        "decode without speculation: explained on its own",
        plain_step_time=of(without, "decode", 1.0),
    )
    asked, new = service.checking
    known.add(
        f"{service.model.name} works on {speculation.checked} tokens of each sequence",
        verification_time=of(asked, "check", new),
    )
    draft = switches.draft_of(service)
    if draft is None:
        known.add("given", draft_cost=float(speculation.cost or 0.0))
    else:
        words = f"a decode step of {draft.model.name} ({draft.formats.name})"
        known.add(words, draft_step_time=of(draft, "draft", 1.0))
    return Question(known, ROUND, lambda: service.labels, shape=service.shape_with({"at": cached}))


def _rows(speculated: Speculated) -> Pairs:
    rate, batch = speculated.break_even_acceptance, speculated.break_even_batch
    pays = "no acceptance" if rate is None else f"an acceptance of {rate:.2f}"
    until = "at no batch that fits" if batch is None else f"up to a batch of {batch:,}"
    return [("pays", f"from {pays} on at this batch; {until} at this acceptance")]


class Speculated(Answer):
    """What speculation does for a service, in the middle of its output.

    >>> from mlsim import Engine
    >>> from mlsim.workloads import Speculation
    >>> serving = Engine.serve(model="Llama3_70B", hardware="H200", weights="fp8",
    ...                        speculation=Speculation(cost=0.1, tokens=4, acceptance=0.75))
    >>> f"{serving.speculation.value('expected_tokens'):.2f}"
    '3.05'
    """

    noun, variable, first = "speculation", "serving.speculation", "speculative_speedup"
    reported = RESULTS
    form = Form(
        rows=(*(Row(name.replace("_", " "), name) for name in RESULTS), Row("", _rows)),
        inputs={
            "draft": lambda each: each.draft.model.name if each.draft else None,
            "draft_tokens": lambda each: each.speculation.tokens,
            "acceptance": lambda each: each.speculation.acceptance,
            "break_even_acceptance": lambda each: (
                "" if each.shape else plain(each.break_even_acceptance)
            ),
        },
        label=22,
    )

    expected_tokens = count("Tokens that a round makes, on average.")
    speculative_speedup = count("How many times as fast tokens come with speculation.")

    def __init__(self, service: Service, cached: Any) -> None:
        super().__init__()
        self.service, self.cached = service, cached
        self.speculation, self.draft = service.switches.speculation, service.switches.draft

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        return round_question(self.service, self.cached)

    @property
    def names(self) -> Collection[str]:
        """What can be asked for by name."""
        return tuple(dict.fromkeys((*RESULTS, *self.question.known)))

    @property
    def break_even_acceptance(self) -> float | None:
        """Acceptance rate from which on speculation pays; None where none does.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("break_even_acceptance")
        needed, tokens = self.value("break_even_tokens"), self.question.known["draft_tokens"]
        if needed > rounds.expected_tokens(1.0, tokens):
            return None
        if needed <= rounds.expected_tokens(0.0, tokens):
            return 0.0
        return bisect(
            lambda rate: rounds.expected_tokens(rate, tokens), needed, 0.0, 1.0, whole=False
        )

    @property
    def break_even_batch(self) -> int | None:
        """Largest batch that fits at which speculation pays; None where it pays at none.

        A large batch computes for long enough that checking more tokens takes longer.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("break_even_batch")
        import numpy as np

        service = self.service
        alone = step_question(service, "prefill", *service.prefill)
        most = int(alone.value("largest_batch"))
        if most < 1:
            return None

        def slower(batch: Any) -> Any:
            asked = replace(service, batch_size=batch)
            found = round_question(asked, self.cached).evaluate("speculative_speedup")
            return found["speculative_speedup"] < 1

        points = scan(1.0, float(most), whole=True) if most > 1 else np.ones(1)
        late = slower(points)
        if late.all():
            return None
        last = int((~late).nonzero()[0][-1])
        if last == len(points) - 1:
            return most
        at = bisect(slower, 0.5, float(points[last]), float(points[last + 1]), whole=True)
        return int(at) - 1

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return f"speculation of {self.service.model.name}: {self.speculation}"
