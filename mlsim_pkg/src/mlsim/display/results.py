"""Numbers that open, of answers: profiles, services, training runs, footprints, sizes."""

from __future__ import annotations

from mlsim.display.number import Number, words
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.derivation import as_card, as_note
from mlsim.units import MEMORY


def of_answer(answer: Answer, name: str) -> Number:
    """Return a result of an answer of one point as a number that can be opened."""
    if answer.shape:
        raise InvalidValueError(f"{answer!r} has many points; pick one, such as {answer.picked}.")
    answer, name = answer.part(name)
    derivation = answer.explain(name).to_dict()
    value, entry = float(answer.value(name)), term(name)
    brief = f"{words(name)} = {entry.text(value)} ({answer.about})"
    card, note = as_card(derivation), as_note(derivation)
    return Number(
        value, entry.unit, words(name), brief, card, note=note, memory=entry.printed == MEMORY
    )
