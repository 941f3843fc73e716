"""Numbers that open, of answers: profiles, services, training runs, footprints, sizes."""

from __future__ import annotations

from mlsim.display.number import Number, words
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.derivation import as_card, as_note
from mlsim.units import text


def of_answer(answer: Answer, name: str) -> Number:
    """Return a result of an answer of one point as a number that can be opened."""
    if answer.shape:
        raise InvalidValueError(f"{answer!r} has many points; pick one, such as {answer.picked}.")
    answer, name = answer.part(name)
    derivation = answer.explain(name).to_dict()
    value, base = float(answer.value(name)), term(name).unit
    brief = f"{words(name)} = {text(value, base)} ({answer.about})"
    return Number(value, base, words(name), brief, as_card(derivation), note=as_note(derivation))
