"""Numbers and tables that open, for a page as Markdown, else as plain text.

`show` finds a value by its name, `table` puts values in rows, and what a page or a notebook
prints of each opens to a note that says how it was computed.

A page of a Quarto book gets the Markdown that Quarto reads, with citations and buttons. A
notebook would print those raw, so it gets the same table in words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.display.notes import name_documents
from mlsim.errors import InvalidValueError, UnknownNameError, nearest
from mlsim.values import given, is_number

if TYPE_CHECKING:
    from mlsim.solvers.forward.profile import Profile
    from mlsim.values.kinds import Quantity


# Set for the cells of a page by Quarto, and by what builds this book.
_PAGE = "QUARTO_FIG_WIDTH"
_OPENS = re.compile(r"\[(?:`[^`]*`\{=html\})?([^\[\]`]*)(?:`[^`]*`\{=html\})?\]\{\.opens [^}]*\}")
_MARKS = re.compile(r"\\([_*|$])|(?<![\\\w])\*{1,2}(?=\S)|(?<=\S)\*{1,2}(?!\w)|`")


class Table:
    """Rows of cells below a header; a notebook or a page shows it as a table.

    Parameters
    ----------
    header
        A name for each column, as Markdown.
    rows
        As many cells in each: numbers that open, or anything else that prints as Markdown.
    align
        A letter for each of the first columns, l or r; the others are aligned to the right.

    Raises
    ------
    InvalidValueError
        If a row has not as many cells as the header.

    >>> print(Table(("Device", "TFLOP/s"), [("A100", 312), ("H100", "**989**")]))
    Device  TFLOP/s
    ------  -------
    A100        312
    H100        989
    """

    def __init__(
        self, header: Sequence[str], rows: Sequence[Sequence[Any]], *, align: str = "l"
    ) -> None:
        if set(align) - {"l", "r"} or len(align) > len(header):
            raise InvalidValueError(
                f"align={align!r} must be letters l and r, one for each column at most."
            )
        for row in rows:
            if len(row) != len(header):
                raise InvalidValueError(
                    f"a row has {len(row)} cells, and the header {len(header)}: {row!r}"
                )
        self.header = tuple(header)
        self.rows = tuple(tuple(row) for row in rows)
        self.align = align.ljust(len(self.header), "r")

    def turned(self) -> Table:
        """Return the table with a row for each of its columns, and the other way round.

        >>> print(table([{"Device": "A100", "GB": 80}, {"Device": "H200", "GB": 141}]).turned())
        Device  A100  H200
        ------  ----  ----
        GB        80   141
        """
        header, *rows = zip(self.header, *self.rows, strict=True)
        return Table(header, rows)

    def markdown(self) -> str:
        """Return the table as Quarto reads it."""
        return self._piped(lambda cell: cell.markdown() if _is_value(cell) else str(cell))

    def plain_markdown(self) -> str:
        """Return the table as a notebook reads it: plain numbers, citations as words."""
        return self._piped(_read)

    def _piped(self, write: Callable[[Any], str]) -> str:
        cells = [[write(cell) for cell in row] for row in (self.header, *self.rows)]
        _, widths = self._texts()
        # Should a table be given relative widths, they follow the number of dashes.
        rule = [
            "-" * (width + 1) + ("-" if side == "l" else ":")
            for width, side in zip(widths, self.align, strict=True)
        ]
        head, *rows = ("| " + " | ".join(row) + " |" for row in cells)
        return "\n".join([head, "|" + "|".join(rule) + "|", *rows])

    def _texts(self) -> tuple[list[list[str]], list[int]]:
        """Return all cells without marks of Markdown, and how wide each column is."""
        texts = [
            [_MARKS.sub(lambda match: match[1] or "", _read(cell)) for cell in row]
            for row in (self.header, *self.rows)
        ]
        return texts, [max(map(len, column)) for column in zip(*texts, strict=True)]

    def __str__(self) -> str:
        (head, *rows), widths = self._texts()
        sides = [{"l": "<", "r": ">"}[side] for side in self.align]
        lines = (
            "  ".join(f"{c:{s}{w}}" for c, s, w in zip(line, sides, widths, strict=True))
            for line in (head, ["-" * width for width in widths], *rows)
        )
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.markdown() if _PAGE in os.environ else self.plain_markdown()


@dataclass(frozen=True)
class Column:
    """What stands below a heading, and how it is printed; `column` makes one."""

    what: str | int | Callable[[Any], Any]
    header: str
    unit: str | None = ""
    form: str = ""
    opens: bool = False

    def cell(self, row: Any) -> Any:
        """Return the cell of a row: text, or a value that opens; of a shape, "6 × 24 × 24"."""
        found = self.what(row) if callable(self.what) else _named(row, self.what)
        if found is None:
            return "-"
        if _is_value(found):
            shown = found.show(self.form, self.unit) if self.form or self.unit != "" else found
            shown = shown.without_unit() if self.unit else shown
            return shown if self.opens else shown.text
        if isinstance(found, tuple) and found:
            return "\u00a0×\u00a0".join(map(str, found))
        if isinstance(found, bool) or not hasattr(found, "__float__"):
            return found
        if not self.form and int(found) == found:
            return f"{found:,}"
        return f"{found:{self.form or ',.4g'}}".replace("%", " %")


def column(
    what: str | int | Callable[[Any], Any],
    header: str = "",
    unit: str | None = "",
    form: str = "",
    *,
    opens: bool = False,
) -> Column:
    """Return a column of a table: what it shows of each row, below which heading, printed how.

    Parameters
    ----------
    what
        A result, figure or key of a row by its name, such as "latency" or "decode.total_bytes",
        or of what a mapping has by a key, "alone.latency"; the place of a cell in a row that
        is a sequence; or a function of the row. What is not there, None, is a dash.
    header
        The heading, as Markdown; the name in words if it is left out.
    unit
        The unit of the column, which the heading names and the cells leave out.
    form
        A format such as ".1f"; ".0%" prints shares in percent.
    opens
        Whether cells open to how they came to be, which makes a page heavier.

    >>> from mlsim import Engine, table
    >>> profiles = [Engine.solve(model="ResNet50", hardware=each) for each in ("A100", "H100")]
    >>> print(table(profiles, [column("hardware.name", "Device"),
    ...                        column("latency", "Time (µs)", "us", ".1f")]))
    Device                 Time (µs)
    ---------------------  ---------
    NVIDIA A100 SXM 80 GB       55.5
    NVIDIA H100 SXM 80 GB       32.3
    """
    if not header and not isinstance(what, str):
        raise InvalidValueError(
            "a column that is not named needs a heading: column(f, 'Time (ms)')."
        )
    words = header or str(what).replace("_", " ").replace(".", " ").capitalize()
    return Column(what, words, unit, form, opens)


def table(
    rows: Sequence[Any] | Mapping[Any, Any],
    columns: Sequence[str | Column] | None = None,
    *,
    align: str = "l",
    total: Any = None,
) -> Table:
    """Return rows as a table.

    Parameters
    ----------
    rows
        One thing for each row: an answer, a device, a row of measurements, a mapping from
        heading to cell, or the cells; or a mapping whose keys stand in the first column, those
        that are tuples in as many of them.
    columns
        Headings, and for what is not made of cells, `column` specifications. They may be
        left out where each row is a mapping.
    align
        A letter, l or r, for each of the first columns; the others get r.
    total
        Of rows by key, what stands below them all in bold, as "total".

    Raises
    ------
    InvalidValueError
        If there is no row, or one doesn't fit the columns.

    >>> print(table([{"Batch": 1, "Time": "55 µs"}, {"Batch": 8, "Time": "313 µs"}]))
    Batch    Time
    -----  ------
    1       55 µs
    8      313 µs
    >>> print(table({("A100", 8): {"time": 313}}, ["Device", "Batch", column("time", "Time (µs)")]))
    Device  Batch  Time (µs)
    ------  -----  ---------
    A100        8        313
    """
    if columns is None:
        if not rows:
            raise InvalidValueError("a table needs a row, or a header.")
        first = next(iter(rows))
        if not isinstance(first, Mapping):
            raise InvalidValueError("rows without names need a header: table(rows, header).")
        return Table(tuple(first), [tuple(dict(row).values()) for row in rows], align=align)
    header = [each if isinstance(each, str) else each.header for each in columns]
    specified = [each for each in columns if isinstance(each, Column)]
    if not specified:
        if any(not isinstance(row, (list, tuple)) for row in rows):  # names, not headings
            return table(rows, [column(str(each)) for each in columns], align=align)
        return Table(header, [tuple(row) for row in rows], align=align)
    if isinstance(rows, Mapping):
        of_keys = len(columns) - len(specified)
        if not of_keys or any(isinstance(each, Column) for each in columns[:of_keys]):
            raise InvalidValueError(
                "rows by key need a heading for the keys, and a column(...) for each other one."
            )
        keys = [key if of_keys > 1 and isinstance(key, tuple) else (key,) for key in rows]
        made = [
            (*key, *(each.cell(row) for each in specified))
            for key, row in zip(keys, rows.values(), strict=True)
        ]
        if total is not None:
            cells = ("total", *[""] * (of_keys - 1), *(str(each.cell(total)) for each in specified))
            made.append(tuple(cell and f"**{cell}**" for cell in cells))
        return Table(header, made, align=align)
    if len(specified) != len(columns):
        named = next(each for each in columns if isinstance(each, str))
        raise InvalidValueError(
            f"{named!r} is a heading only: column('name', {named!r}) says what stands below it."
        )
    return Table(header, [tuple(each.cell(row) for each in specified) for row in rows], align=align)


def _named(row: Any, name: str | int) -> Any:
    """Return what a row has by its place, or by a name: a key, an attribute, or for `show`.

    Of a mapping whose figures are attributes too, these: they know their unit. Dots lead into
    parts; of a part that is not there, None, there is nothing.
    """
    if isinstance(name, int):
        return row[name]
    found, parts = row, name.split(".")
    if isinstance(row, Mapping) and name in row and not _valued(row, name):
        return row[name]
    for place, part in enumerate(parts):
        if found is None:
            return None
        if isinstance(found, Mapping) and not _valued(found, part):
            found = found[part]
        elif hasattr(type(found), part) or hasattr(found, part):
            found = getattr(found, part)
        elif hasattr(type(found), "by_name"):
            return found.by_name(".".join(parts[place:]))
        else:
            raise InvalidValueError(
                f"a row has no {name!r}: {type(found).__name__!r} has no {part!r}."
                f"{nearest(part, [each for each in dir(found) if each[0] != '_'])} A function of "
                "the row may stand in place of a name: column(lambda row: ..., 'Heading')."
            )
    return found


def _valued(row: Any, name: str) -> bool:
    return isinstance(getattr(type(row), name, None), property)


def _is_value(cell: Any) -> bool:
    return hasattr(type(cell), "in_full")


def _read(cell: Any) -> str:
    """Return a cell as a notebook shows it."""
    if _is_value(cell):
        return str(cell.text)
    return name_documents(_OPENS.sub(r"\1", str(cell)))


def show(
    what: Any, name: str = "", *, unit: str | None = "", form: str = "", because: str = ""
) -> Quantity:
    """Return a value by its name as text, where no attribute is written.

    Parameters
    ----------
    what
        An answer of one point (a profile, a service, a phase of a service, a
        training run, a footprint), a row of a sweep, a device, a system, a cluster,
        a grid, a data center, a region, a model, a measurement or a published
        figure, or a plain number that you computed yourself.
    name
        Of an answer: any result, the first if it is left out; of a service also with a
        phase before it, such as "decode.total_bytes". Of a device or a
        system: a figure such as "memory.bandwidth" or "link.bandwidth"; or
        "ridge_point", and "device_bandwidth" (of a link, one way). Of a grid, a
        data center or a region: a figure such as "carbon_intensity" (the last on
        record) or "pue.2023". Of a model:
        "parameters"; of a network "inference_flops"; of a language model
        "active_parameters" and "cache_bytes_per_token" (bf16); and a number of its
        architecture, "attention.kv_heads". Of a plain number: what it is.
    unit, form
        How to print it, as `Quantity.show` takes them.
    because
        For a plain number: where it comes from.

    Raises
    ------
    UnknownNameError
        If there is no such result or figure.
    InvalidValueError
        If it is not one number.
    DoesNotFitError
        If a time is asked for that needs more memory than there is.

    >>> from mlsim import Engine, Hardware
    >>> print(show(Engine.solve(model="ResNet50", hardware="A100"), "latency"))
    55.5 µs
    >>> print(show(Hardware.Cloud.A100, "memory.bandwidth"))
    2,039 GB/s
    """
    made = _by_name(what, name, because)
    return made if unit == "" and not form else made.show(form, unit)


def _by_name(what: Any, name: str, because: str) -> Quantity:
    if hasattr(type(what), "by_name"):
        found: Quantity = what.by_name(name)
        return found
    if hasattr(what, "index") and hasattr(what, "get") and "hardware" in what:
        return show(_solve_again(what), name)
    if hasattr(what, "named"):
        kept: Quantity = what.named(name, because=because) if name else what
        return kept
    if not is_number(what):
        raise InvalidValueError(
            "show takes an answer, a device, a system, a model, a measurement or a number, "
            f"not {what!r}."
        )
    return given(what, name or "number", because)


def _solve_again(row: Any) -> Profile:
    """Return the profile behind a row of a sweep.

    Raises
    ------
    UnknownNameError
        If its model or device is not in the zoo (one of your own, say).
    """
    from mlsim.solvers.forward.profile import solve
    from mlsim.zoo import resolve

    try:
        return solve(
            resolve.network(row["model"]),
            resolve.device(row["hardware"]),
            batch_size=int(row["batch_size"]),
            precision=row["precision"],
            estimate=row.get("estimate", "roofline"),
            activations=row.get("activations", "memory"),
        )
    except UnknownNameError as error:
        raise UnknownNameError(
            f"this row can't be opened: {error} Solve it yourself, and show the profile."
        ) from None
