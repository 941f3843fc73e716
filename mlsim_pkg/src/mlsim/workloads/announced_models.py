"""Language models of which a size was announced, but no architecture is on record.

Nothing can be computed of them; they are here to be set beside those that the zoo
counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mlsim import records
from mlsim.records import Figure

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

FILE = records.DATA / "announced.toml"

FORMS = ("dense", "experts")
_FIGURES = {
    "release_year": "year",
    "parameters": "parameter",
    "active_parameters": "parameter",
    "training_tokens": "token",
}
_NEEDED = ("release_year", "parameters")


@dataclass(frozen=True, slots=True)
class Announced:
    """What was announced of a model: its year, its size, and perhaps its training.

    `form` is "dense" or "experts"; of a mixture of experts, a token meets only some
    parameters.
    """

    key: str
    name: str
    maker: str
    form: str
    figures: Mapping[str, Figure]

    @property
    def release_year(self) -> int:
        """The year in which it was announced."""
        return int(self.figures["release_year"].value)

    @property
    def parameter_count(self) -> float:
        """Parameters as announced, which is rounded."""
        return self.figures["parameters"].si

    @property
    def parameters(self) -> Quantity:
        """The same as a value, with its source."""
        return self.figures["parameters"].of(self.name, "parameters")

    @property
    def active_parameters(self) -> Quantity | None:
        """Parameters that a token meets, as announced; None if it meets all, or nobody said."""
        figure = self.figures.get("active_parameters")
        return figure.of(self.name, "active_parameters") if figure else None

    @property
    def training_tokens(self) -> Quantity | None:
        """Tokens that it was trained on, as announced; None if nobody said."""
        figure = self.figures.get("training_tokens")
        return figure.of(self.name, "training_tokens") if figure else None


@cache
def announced() -> tuple[Announced, ...]:
    """Return the announced models, by year and size.

    >>> announced()[0].name, announced()[-1].name
    ('GPT-1', 'DeepSeek-V4-Pro')
    """
    return load_announced(FILE)


def load_announced(path: str | Path) -> tuple[Announced, ...]:
    """Read announced models from a file: a table for each, with its figures.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a form is neither "dense" nor "experts", or
        a figure has no source; names file and line.
    """
    file = records.load(path)
    found = [_model(file, key) for key in file.data]
    return tuple(sorted(found, key=lambda each: (each.release_year, each.parameter_count)))


def _model(file: records.DataFile, key: str) -> Announced:
    table = file.need(file.data, key, dict)
    file.only(table, ("name", "maker", "form", *_FIGURES), key)
    name, maker, form = (file.need(table, each, str, key) for each in ("name", "maker", "form"))
    if form not in FORMS:
        raise file.error(
            f"{key}.form must be one of {', '.join(FORMS)}, not {form!r}.", key, "form"
        )
    for needed in _NEEDED:
        file.need(table, needed, dict, key)
    if form == "dense" and "active_parameters" in table:
        raise file.error(
            f"{key}.active_parameters: of a dense model a token meets all parameters. Leave it "
            'out, or say form = "experts".',
            key,
            "active_parameters",
        )
    figures = {
        each: file.figure(table[each], base, key, each)
        for each, base in _FIGURES.items()
        if each in table
    }
    return Announced(key, name, maker, form, figures)
