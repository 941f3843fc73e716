"""Whether a model fits, as text for people and as plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import need
from mlsim.solvers.formats import formats
from mlsim.solvers.question import of_context, of_device
from mlsim.solvers.serving.fit import COLUMNS, Question, Row
from mlsim.units import held, text

if TYPE_CHECKING:
    import pandas

# Heads of the columns that are printed; an encoder has only the first and the fourth.
_HEADS = {
    "weight_memory": "weights",
    "largest_batch": "batch",
    "longest_context": "context",
    "time_to_first_token": "first token",
    "time_per_output_token": "per token",
    "tokens_per_second": "token/s",
}


def as_dict(question: Question, rows: list[Row]) -> dict[str, Any]:
    """Return the question and its rows for JSON: numbers as {"value": ..., "unit": ...}."""
    asked = question.plain
    layout = asked.parallelism
    return {
        "model": question.model.name,
        "hardware": asked.hardware_name,
        "layout": {
            "tensor_parallel": layout.tensor,
            "pipeline_parallel": layout.pipeline,
            "expert_parallel": layout.expert,
        },
        "reserve": question.reserve,
        "prompt_tokens": {"value": asked.prompt_tokens, "unit": "token/sample"},
        "output_tokens": {"value": asked.output_tokens, "unit": "token/sample"},
        "rows": [
            {
                name: {"value": value, "unit": COLUMNS[name]} if COLUMNS[name] else value
                for name, value in row.items()
            }
            for row in rows
        ],
        **({"assumptions": told} if (told := assumptions(question, rows)) else {}),
    }


def assumptions(question: Question, rows: list[Row]) -> list[str]:
    """Return what nobody asked for, and changes what fits by a tenth, in words."""
    labels = [row["precision"] for row in rows]
    # Where a wider cache stands beside it, the table says so itself.
    named = [
        row["kv_cache"]
        for row in rows
        if row["precision"] == row["kv_cache"]
        and not any(label.startswith(f"{row['precision']}, KV") for label in labels)
    ]
    longest = max((row["longest_context"] or 0 for row in rows), default=0)
    found = [*of_device(question.device), *of_context(question.model, longest)]
    if question.model.decoder:
        told = (formats(each).cache_follows for each in dict.fromkeys(named))
        found.extend(words for words in told if words)
    return found


def as_table(rows: list[Row]) -> pandas.DataFrame:
    """Return the rows as a table; a count that is not there is missing, not 0.

    Raises
    ------
    MissingLibraryError
        If pandas is not installed.
    """
    types = {
        name: "Int64" if unit in ("sample", "token") else "float64"
        for name, unit in COLUMNS.items()
        if unit not in ("", "1")
    }
    table: pandas.DataFrame = need("pandas", "a table", "arrays").DataFrame(rows)
    return table.astype(types)


def as_text(question: Question, rows: list[Row]) -> str:
    """Return a table with a line for each format, and a last line with the verdict."""
    asked, heads = question.plain, dict(_HEADS)
    lengths = f"{asked.prompt_tokens:,.0f} prompt"
    note = "Times are those of one sequence, token/s that of the largest batch."
    if question.model.decoder:
        lengths += f" + {asked.output_tokens:,.0f} output"
    else:
        heads = {"weight_memory": "weights", "time_to_first_token": "one pass"}
        note = "The time is that of one text."
    title = (
        f"{question.model.name} on {asked.hardware_name}, {lengths} tokens, "
        f"{question.reserve:.0%} of memory reserved"
    )
    cells = [["precision", *heads.values()]]
    cells += [[row["precision"], *(_cell(row, name) for name in heads)] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = []
    for line, row in zip(cells, [None, *rows], strict=True):
        padded = [f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)]
        padded[0] = f"{line[0]:<{widths[0]}}"
        if row and row["reason"]:
            padded[2:] = [f"no: {row['reason']}"]
        lines.append("  " + "  ".join(padded))
    notes = [note]
    if question.model.released:
        notes.append(f"As released: {question.model.released} ({question.model.released.where}).")
    told = (*assumptions(question, rows), *(words for _, words in asked.known.guessed_memory()))
    notes += [f"{words[0].upper()}{words[1:]}." for words in told]
    return "\n".join([title, *lines, *notes, _verdict(rows)])


def _cell(row: Row, name: str) -> str:
    value, unit = row[name], COLUMNS[name]
    if row["reason"] and name != "weight_memory":
        return ""
    if value is None:
        return "-"
    if unit == "B":
        return held(value)
    return text(value, unit) if unit == "s" else f"{value:,.0f}"


def _verdict(rows: list[Row]) -> str:
    names = [row["precision"] for row in rows if row["feasible"]]
    if not names:
        return "It fits in none of these."
    return f"It fits in {'; '.join(names)}." if len(names) < len(rows) else "It fits in each."
