"""A row that somebody published, as a value: what it says, in which words, where."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mlsim.units import factor
from mlsim.values import Origin, counts, literal, of_base, quantity

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


class Published:
    """What rows of published values have in common: `published` is the value.

    A row says its `value` in `unit`, the `source` and its `quote`, and a `note`.
    """

    __slots__ = ()

    value: float
    unit: str
    source: str
    quote: str
    note: str

    def said(self) -> tuple[str, str]:
        """Return what the value is, in words: as a name, and in one line of Markdown."""
        raise NotImplementedError

    @property
    def published(self) -> Quantity:
        """What was measured, with its unit and its origin, printed as the source prints it."""
        # Six digits would turn a million hours into a power of ten.
        form = ",g" if abs(self.value) < 1e6 else ",.0f"
        base = quantity(1.0, self.unit).base
        si = self.value * factor(self.unit, base)
        origin = partial(_origin, self, f"{self.value:{form}} {self.unit}")
        if counts(self.unit):
            return of_base(si, base, origin)
        return of_base(si, base, origin, unit=self.unit, form=form)

    def by_name(self, _: str = "") -> Quantity:
        """Return what was measured, as `show` asks for it."""
        return self.published


def _origin(row: Published, printed: str, _: Quantity) -> Origin:
    name, words = row.said()
    brief = f"{words}: {printed} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    return Origin(name, brief, how.strip())
