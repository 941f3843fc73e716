"""Does it fit? A language model on a device or a system, a row for each number format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, UnsupportedPrecisionError, need
from mlsim.hardware import Device
from mlsim.precision import PRECISIONS, precision as find
from mlsim.solvers.formats import WIDE, Formats, formats
from mlsim.solvers.question import of_context, of_device
from mlsim.solvers.serving.checks import service
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.steps import step_question
from mlsim.units import held, text
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

if TYPE_CHECKING:
    import pandas

    from mlsim.systems import System


# What a row says, and its unit ("" for what is no number).
COLUMNS = {
    "precision": "",
    "weights": "",
    "activations": "",
    "kv_cache": "",
    "tensor_parallel": "1",
    "weight_memory": "B",
    "feasible": "",
    "largest_batch": "sample",
    "longest_context": "token",
    "time_to_first_token": "s",
    "time_per_output_token": "s",
    "tokens_per_second": "token/s",
    "reason": "",
}
# More devices than anybody joins in one group.
_MOST_DEVICES = 1024

Row = dict[str, Any]


def question(
    *,
    model: Transformer,
    hardware: Device | System,
    parallelism: Parallelism,
    widest: bool,
    **request: Any,
) -> Service:
    """Return the service of one sequence in 16 bits, checked; formats are tried of it.

    The `widest` layout has as many devices as share a matrix there.

    Raises
    ------
    MlsimError
        As `Engine.fit`.
    """
    for name in ("prompt_tokens", "output_tokens"):
        if hasattr(request[name], "__len__") and not isinstance(request[name], str):
            raise InvalidValueError(f"{name} must be one number, not {request[name]!r}.")
    if widest:
        parallelism = replace(parallelism, tensor=_widest(model, hardware, parallelism))
    device = hardware if isinstance(hardware, Device) else hardware.device
    return service(
        model=model,
        hardware=hardware,
        batch_size=1,
        formats=formats(_wide(device)),
        parallelism=parallelism,
        **request,
    )


def _widest(model: Transformer, hardware: Device | System, parallelism: Parallelism) -> int:
    """Return the most devices that can share each matrix; 1 if none can, or nobody may."""
    there = 1 if isinstance(hardware, Device) else hardware.devices
    stages = parallelism.pipeline
    if not isinstance(stages, int) or stages < 1:
        return 1  # refused later, in words
    return next(_sizes(model, parallelism, range(there // stages, 0, -1)), 1)


def _sizes(model: Transformer, parallelism: Parallelism, tried: Sequence[int]) -> Iterator[int]:
    """Yield those sizes of tensor parallelism that divide the model."""
    for size in tried:
        try:
            model.check_layout(replace(parallelism, tensor=size))
        except (InvalidValueError, TypeError):
            continue
        yield size


def rows(asked: Service, precision: Any = None) -> list[Row]:
    """Return a row for each number format: those given, or all sensible ones.

    Raises
    ------
    UnknownNameError, InvalidValueError
        If a format that was given can't be.
    """
    if precision is None:
        chosen = list(_sensible(asked))
    else:
        given = list(precision) if isinstance(precision, (list, tuple)) else [precision]
        if not given:
            raise InvalidValueError("precision is an empty list; give at least one.")
        chosen = [(str(getattr(each, "name", each)), formats(each)) for each in given]
    return [_row(asked, label, each) for label, each in chosen]


def _in(asked: Service, chosen: Formats) -> Service:
    """Return the service in other formats; refuses those that the device does not have."""
    found = replace(asked, formats=chosen)
    _ = found.base
    return found


def _row(asked: Service, label: str, chosen: Formats) -> Row:
    row: Row = {
        **dict.fromkeys(COLUMNS),
        "precision": label,
        "weights": chosen.weights.name,
        "activations": chosen.activations.name,
        "kv_cache": chosen.kv_cache.name,
        "tensor_parallel": asked.parallelism.tensor,
        "feasible": False,
        "reason": "",
    }
    try:
        serving = Serving(_in(asked, chosen))
    except UnsupportedPrecisionError as error:
        return {**row, "reason": str(error)}
    row["weight_memory"] = float(serving.value("weight_memory"))
    decoder = asked.model.decoder
    if decoder:  # an encoder keeps nothing of a sequence that would limit either
        row["largest_batch"] = int(serving.value("largest_batch"))
        row["longest_context"] = serving.longest_context
    if not serving.feasible:
        return {**row, "reason": _shortage(serving, row)}
    row["feasible"] = True
    row["time_to_first_token"] = float(serving.value("time_to_first_token"))
    if decoder:
        row["time_per_output_token"] = float(serving.value("time_per_output_token"))
        most = float(max(serving.value("largest_batch"), 1))
        full = replace(serving.service, batch_size=most)
        row["tokens_per_second"] = Serving(full, check_memory=False).value("decode_throughput")
    return row


def _shortage(serving: Serving, row: Row) -> str:
    """Say how much is missing, and what else would do."""
    asked = serving.service
    sequence = asked.prompt_tokens + asked.output_tokens
    words = f"{held(-serving._value('memory_free'))} too much"
    if asked.parallelism.devices > 1:
        words += " on each device"
    ways = []
    if row["longest_context"]:
        ways.append(f"a sequence of {row['longest_context']:,} tokens instead of {sequence:,.0f}")
    more = _enough_devices(asked)
    if more:
        ways.append(f"{more * asked.parallelism.pipeline} devices (tensor_parallel={more})")
    return words + (f"; it would fit with {' or '.join(ways)}" if ways else "")


def _enough_devices(asked: Service) -> int | None:
    """Return the fewest devices that would hold it if they shared each matrix.

    Memory alone is asked about, so the links between them don't come in.
    """
    tensor = asked.parallelism.tensor
    for size in _sizes(asked.model, asked.parallelism, range(tensor + 1, _MOST_DEVICES + 1)):
        wider = replace(asked, parallelism=replace(asked.parallelism, tensor=size), system=None)
        step = step_question(wider, "prefill", wider.prompt_tokens, 0.0)
        if step.value("memory_free") >= 0:
            return size
    return None


def _wide(device: Device) -> str:
    """Return the format of 16 bits (or what is nearest) that a device computes in."""
    known = device.compute.precisions
    return next((each for each in ("bf16", "fp16", "fp32") if each in known), known[0])


def _sensible(asked: Service) -> Iterator[tuple[str, Formats]]:
    """Yield the formats worth trying that the device can compute in, widest first.

    Keys and values are in 16 bits; in 8 as well where it is they that keep a
    sequence from the model's full context.
    """
    device = asked.device
    released = asked.model.released
    first = formats(None, device=device, released=released) if released else None
    if first and _computes(first, device):
        kept = first.weights.name if first.weights.name in PRECISIONS else first.weights.computes_as
        yield f"{kept}, as released", first
    for weights, activations in _pairs(asked):
        wide = find(_wide(device))
        chosen = Formats(find(weights).as_weights, find(activations), wide)
        if chosen == first or not _computes(chosen, device):
            continue
        yield _label(chosen), chosen
        if wide.bits != WIDE or not asked.model.decoder:
            continue
        narrow = "int8" if activations == "int8" or "fp8" not in device.compute.figures else "fp8"
        smaller = replace(chosen, kv_cache=find(narrow))
        reach = Serving(_in(asked, chosen)).longest_context
        if 0 < reach < asked.model.context:
            yield _label(smaller), smaller


def _computes(chosen: Formats, device: Device) -> bool:
    """Tell whether a device can compute in these formats."""
    try:
        chosen.computing(device)
    except UnsupportedPrecisionError:
        return False
    return True


def _pairs(asked: Service) -> Iterator[tuple[str, str]]:
    """Yield formats of weights and activations."""
    wide = _wide(asked.device)
    yield wide, wide
    yield "fp8", "fp8"
    yield "int8", "int8"
    if find(wide).bits == WIDE:
        yield "int8", wide
        # A model of which only the experts are quantized was released in MXFP4.
        yield ("mxfp4" if asked.model.quantised == "experts" else "int4"), wide
    yield "nvfp4", "nvfp4"


def _label(chosen: Formats) -> str:
    """Name formats as briefly as can be: "bf16", "w4a16kv8", "fp8, KV bf16"."""
    weights, activations, cache = chosen.weights, chosen.activations, chosen.kv_cache
    if weights.computes_as.startswith("int"):
        name = f"w{weights.value_bits:g}a{activations.bits:g}"
        if cache.name == "int8":
            return f"{name}kv8"
        return name if cache.bits == WIDE else f"{name}, KV {cache.name}"
    name = weights.name if weights == activations else f"{weights.name} weights"
    return name if cache == activations else f"{name}, KV {cache.name}"


# Heads of the columns that are printed; an encoder has only the first and the fourth.
_HEADS = {
    "weight_memory": "weights",
    "largest_batch": "batch",
    "longest_context": "context",
    "time_to_first_token": "first token",
    "time_per_output_token": "per token",
    "tokens_per_second": "token/s",
}


def as_dict(asked: Service, rows: list[Row]) -> dict[str, Any]:
    """Return what was asked and its rows for JSON: numbers as {"value": ..., "unit": ...}."""
    layout = asked.parallelism
    return {
        "model": asked.model.name,
        "hardware": asked.hardware_name,
        "layout": {
            "tensor_parallel": layout.tensor,
            "pipeline_parallel": layout.pipeline,
            "expert_parallel": layout.expert,
        },
        "reserve": asked.reserve_share,
        "prompt_tokens": {"value": asked.prompt_tokens, "unit": "token/sample"},
        "output_tokens": {"value": asked.output_tokens, "unit": "token/sample"},
        "rows": [
            {
                name: {"value": value, "unit": COLUMNS[name]} if COLUMNS[name] else value
                for name, value in row.items()
            }
            for row in rows
        ],
        **({"assumptions": told} if (told := assumptions(asked, rows)) else {}),
    }


def assumptions(asked: Service, rows: list[Row]) -> list[str]:
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
    found = [*of_device(asked.device), *of_context(asked.model, longest)]
    if asked.model.decoder:
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


def as_text(asked: Service, rows: list[Row]) -> str:
    """Return a table with a line for each format, and a last line with the verdict."""
    heads = dict(_HEADS)
    lengths = f"{asked.prompt_tokens:,.0f} prompt"
    note = "Times are those of one sequence, token/s that of the largest batch."
    if asked.model.decoder:
        lengths += f" + {asked.output_tokens:,.0f} output"
    else:
        heads = {"weight_memory": "weights", "time_to_first_token": "one pass"}
        note = "The time is that of one text."
    title = (
        f"{asked.model.name} on {asked.hardware_name}, {lengths} tokens, "
        f"{asked.reserve_share:.0%} of memory reserved"
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
    if asked.model.released:
        notes.append(f"As released: {asked.model.released} ({asked.model.released.where}).")
    told = (*assumptions(asked, rows), *(words for _, words in asked.known.guessed_memory()))
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
