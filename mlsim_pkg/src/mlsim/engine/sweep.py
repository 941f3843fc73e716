"""`Engine.sweep`: every combination of what is given, through any door, as a table or a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim import quantities
from mlsim.engine.sweeps.question import DOORS, Question, question
from mlsim.engine.sweeps.rows import BORROWED, UNITS, Block, as_table
from mlsim.engine.sweeps.runner import Progress, run, say
from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.solvers.answer import plain
from mlsim.units import text

if TYPE_CHECKING:
    import pandas

# Of a table: that nobody asked for the precision.
ASSUMED = "formats_assumed"
# Rows that a table in memory may have.
MOST_ROWS = 50_000_000


def sweep(
    model: Any = ...,
    hardware: Any = ...,
    *,
    door: str | None = None,
    results: Sequence[str] | str | None = None,
    out: Path | str | None = None,
    scheduler: Any = None,
    progress: bool | Callable[[Progress], None] = False,
    block_rows: int | None = None,
    **given: Any,
) -> Any:
    """Ask a door for every combination of the values that its arguments are given.

    Each argument of the door is one value or a list of them. The table has a row for each
    combination: what was asked, the results in base units (`table.attrs["units"]`), and
    whether it can run. Rows that can't are kept: `feasible` is False, `reason` says why, and
    their times are missing. A row has what the door answers when it is asked alone.

    Parameters
    ----------
    door
        "solve", "serve", "train", "load", "gemm" or "footprint". If left out, the one that
        the arguments belong to: a language model is served, with `global_batch` trained,
        with `rate`, `users` or `burst` under load; other models are solved.
    model, hardware, **given
        Arguments of that door, `check_memory` aside, and quantities in place of what is on
        record: see `help(Engine.serve)` and its like. Batches, lengths, and of a network or
        a service all quantities are computed as arrays; other values one after the other.
    results
        Columns of the answer, such as ["decode_throughput", "decode.memory_bound_share"]; by
        default the door's times, its rate and its memory.
    out
        A folder for sweeps beyond memory: Parquet files of `block_rows` each. A sweep that was
        stopped goes on where it was when it is asked again. `pandas.read_parquet(out)` reads
        them, or some columns and rows.
    scheduler
        What computes the blocks: a Dask client, a `concurrent.futures` executor, or anything
        with their `submit`. By default this process, on all its processors. A service under
        load has schedulers of this name, too: words are its own, and a list may hold both.
    progress
        True for a line of text on the standard error, or a function of a `Progress`.
    block_rows
        Rows that are computed, and written, at one time.

    Returns
    -------
    pandas.DataFrame or SweptFolder
        The table; with `out` the folder.

    Raises
    ------
    MlsimError
        If an argument is unknown, or a value can't be. What is wrong of one combination alone
        is a row.
    InvalidValueError
        If nothing can run, all for one reason; if the folder holds another sweep; if there are
        too many rows for a table.
    UnfinishedError
        If the folder can't be written, or a worker dies; says what is kept.
    MissingLibraryError
        If pandas, or with `out` pyarrow, is not installed.

    >>> from mlsim import Engine, Hardware, Models
    >>> table = Engine.sweep(model=Models.ResNet50, batch_size=[1, 8],
    ...                      hardware=[Hardware.Cloud.V100, Hardware.Cloud.A100])
    >>> len(table), bool(table.feasible.all())
    (4, True)
    >>> served = Engine.sweep(model="Llama3_70B", hardware=["HGX_H100", "HGX_A100"],
    ...                       tensor_parallel=[2, 8], batch_size=[1, 64], prompt_tokens=2048)
    >>> served.reason.value_counts().to_dict()
    {'': 6, 'does not fit': 2}
    """
    scheduler, rule = _schedulers(
        scheduler, own=door == "load" or bool(given.keys() & DOORS["load"].tells)
    )
    named = {"model": model, "hardware": hardware, **given, "scheduler": rule}
    asked = {name: value for name, value in named.items() if value is not ...}
    made = question(door, asked, results)
    watch = say if progress is True else progress or None
    if out is not None:
        from mlsim.engine.sweeps.runner import sweep_into

        return sweep_into(made, Path(out), scheduler, watch, block_rows)
    if made.rows > MOST_ROWS:
        raise InvalidValueError(
            f"{made.rows:,} rows are more than a table in memory should have "
            f"({MOST_ROWS:,}). Give out='a folder/', and read what you need of it."
        )
    blocks = run(made, scheduler, watch, block_rows)
    check_some_run(made, blocks)
    return as_table(made, blocks)


def _schedulers(given: Any, *, own: bool) -> tuple[Any, Any]:
    """Return what computes the blocks, and the schedulers of a service under load.

    Both have the one name: what has a `submit` computes, the others are the service's.

    Raises
    ------
    InvalidValueError
        If it is neither.
    """
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    computing = [each for each in several if callable(getattr(each, "submit", None))]
    rules = [each for each in several if each not in computing]
    if given is None or (own and len(computing) < 2):  # one is enough
        words = rules if isinstance(given, (list, tuple)) else rules[0] if rules else None
        return (computing or [None])[0], words or ...
    if rules or len(computing) != 1:
        raise InvalidValueError(
            "scheduler must be a Dask client or an executor of concurrent.futures, which have "
            f"submit(function, ...); not {given!r}."
        )
    return computing[0], ...


def check_some_run(asked: Question, blocks: Sequence[Block]) -> None:
    """Refuse a sweep none of whose rows can run, all for one and the same wrong argument.

    Raises
    ------
    InvalidValueError
        With the words that each row would have.
    """
    if any(each.feasible.any() for each in blocks):
        return
    wrong = {words: kind for each in blocks for words, kind in each.refused.items()}
    if len(wrong) == 1:
        words, kind = wrong.popitem()
        if issubclass(kind, (InvalidValueError, NotMeasuredError)):
            raise kind(words)


def sweep_rows(table: pandas.DataFrame) -> list[dict[str, Any]]:
    """Return a sweep's rows for JSON: numbers as {"value": ..., "unit": ...}."""
    units = table.attrs[UNITS]
    assumed = {ASSUMED: table.attrs[ASSUMED]} if ASSUMED in table.attrs else {}
    lent = table.attrs.get(BORROWED, {})
    return [
        assumed
        | ({BORROWED: lent[row["hardware"]]} if row.get("hardware") in lent else {})
        | {
            str(name): {"value": plain(value), "unit": units[name]}
            if name in units
            else (None if value != value else plain(value))  # noqa: PLR0124  # NaN alone differs
            for name, value in row.items()
        }
        for row in table.to_dict(orient="records")
    ]


def sweep_text(table: pandas.DataFrame) -> str:
    """Write a sweep for a terminal, a line a point."""
    units = table.attrs[UNITS]
    # What all rows share and nobody asked about says nothing in a line.
    names = [str(name) for name in table.columns if name not in _SILENT]
    rows = [[_HEADS.get(name, name) for name in names]]
    for row in table.to_dict(orient="records"):
        rows.append([_cell(name, row[name], units.get(name)) for name in names])
        if not row["feasible"] or row["reason"]:
            rows[-1].append(str(row["reason"]))
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    lines = [
        "  ".join(
            [
                *(
                    f"{cell:>{width}}" if name in units else f"{cell:<{width}}"
                    for cell, width, name in zip(row, widths, names, strict=False)
                ),
                *row[len(names) :],
            ]
        ).rstrip()
        for row in rows
    ]
    if ASSUMED in table.attrs:
        lines.append(f"formats: {table.attrs[ASSUMED]}")
    lines += [f"borrowed: {name}: {words}" for name, words in table.attrs.get(BORROWED, {}).items()]
    return "\n".join(lines)


_SILENT = ("feasible", "reason", "estimate", "activations", "memory_bound_share")
_HEADS = {"batch_size": "batch", "throughput": "samples/s"}


def _cell(name: str, value: Any, unit: str | None) -> str:
    if value != value:  # noqa: PLR0124  # NaN is what it is not
        return "-"
    if unit is None:
        return str(value)
    if unit == "B":
        # As the doors print it: of memory in GiB, of what moves in GB.
        short = name.rpartition(".")[2]
        return (
            quantities.term(short).text(value)
            if short in quantities.VOCABULARY
            else text(value, unit)
        )
    if unit in ("s", "B/s", "FLOP/s"):
        return text(value, unit)
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"
