"""Profiles, and a thousand ways to damage them: what is read afterwards must be true or refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from mlsim.profiling import MeasuredProfile

# What a kernel says: seconds, work by path, bytes by level. None where it says nothing.
Figures = dict[str, tuple[object, ...]]


def figures(profile: MeasuredProfile) -> list[tuple[object, ...]]:
    """Return the figures of each kernel, rounded as sums of floats are."""
    return [
        (
            each.calls,
            None if each.seconds is None else f"{each.seconds:.9g}",
            tuple(sorted((path, f"{count:.9g}") for path, count in each.operations.items()))
            if each.counted
            else None,
            f"{each.traffic['dram']:.9g}" if "dram" in each.traffic else None,
        )
        for each in profile.kernels
    ]


def agrees(found: tuple[object, ...], original: tuple[object, ...]) -> bool:
    """Whether figures are those of the original, or absent where they had been."""
    return all(mine in (None, theirs) for mine, theirs in zip(found, original, strict=True))


_THREAD = "smsp__sass_thread_inst_executed_op_f{}_pred_on.sum"
# Names with what reports print: commas, templates, quotation marks, letters of other alphabets.
_NAMES = ("void add<float, 4>(int, float*)", "saxpy", "größe_kernel(ünit)", 'k<"x">', "reduce|sum")


def _metrics(number: int) -> dict[str, tuple[str, float]]:
    return {
        "gpu__time_duration.sum": ("us", 12.5 + 3 * number),
        "dram__bytes_read.sum": ("byte", 1_234_560 + 32_000 * number),
        "dram__bytes_write.sum": ("byte", 654_336 + 6_400 * number),
        _THREAD.format("add"): ("inst", 1_000_001 + number),
        _THREAD.format("mul"): ("inst", 2_000_003 + number),
        _THREAD.format("fma"): ("inst", 30_000_007 + number),
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum": ("", 4_194_304 * (number + 1)),
    }


def _number(value: float) -> str:
    return f"{value:,.2f}" if value != int(value) else f"{int(value):,}"


def _table(rows: list[list[str]], *, quoted: bool = True) -> str:
    text = io.StringIO()
    style = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(text, quoting=style, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _long() -> str:
    head = ["ID", "Kernel Name", "Block Size", "Grid Size", "CC", "Section Name"]
    rows = [[*head, "Metric Name", "Metric Unit", "Metric Value"]]
    for number, name in enumerate(_NAMES):
        for metric, (unit, value) in _metrics(number).items():
            about = [str(number), name, "(128, 1, 1)", "(64, 1, 1)", "8.0", "Command line"]
            rows.append([*about, metric, unit, _number(value)])
    return "==PROF== Connected to process 1 (/bin/app)\nan app's own, output\n" + _table(rows)


def _wide() -> str:
    metrics = _metrics(0)
    rows = [["ID", "Kernel Name", "CC", *metrics], ["", "", "", *(u for u, _ in metrics.values())]]
    for number, name in enumerate(_NAMES):
        values = [_number(value) for _, value in _metrics(number).values()]
        rows.append([str(number), name, "8.0", *values])
    return _table(rows)


def _nsys() -> str:
    rows = [["Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "StdDev (ns)", "Name"]]
    for number, name in enumerate(_NAMES):
        total, count = 1_500_000 + 90_000 * number, number + 2
        rows.append(["20.0", str(total), str(count), f"{total / count:.1f}", "0.5", name])
    return _table(rows, quoted=False)


def _trace() -> str:
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "ts": 1000.25 * number,
            "dur": 12.5 + number,
            "args": {"device": 0, "grid": [number + 1, 1, 1], "block": [64, 1, 1]},
        }
        for number, name in enumerate(_NAMES)
    ]
    about = {"deviceProperties": [{"name": "NVIDIA A30"}], "traceEvents": events}
    return json.dumps(about, ensure_ascii=False, indent=1)


def _rocprof() -> str:
    head = ["Index", "KernelName", "gpu-id", "FETCH_SIZE", "WRITE_SIZE", "SQ_INSTS_VALU_ADD_F32"]
    head += ["SQ_INSTS_VALU_MUL_F32", "SQ_INSTS_VALU_FMA_F32", "BeginNs", "EndNs"]
    rows = [head]
    for number, name in enumerate(_NAMES):
        values = [1000.5 + number, 500.25 + number, 10_001 + number, 20_003, 300_007]
        begin = 1_591_372_997_856_209 + 1_000_000 * number
        times = [str(begin), str(begin + 250_000 + 1000 * number)]
        rows.append([str(number), name, "0", *(f"{each:.10f}" for each in values), *times])
    return _table(rows, quoted=False)


def _perf() -> str:
    return """
 Performance counter stats for './triad':

     3,808,323,185      cycles                    #    3.033 GHz
     7,616,646,370      instructions              #    2.00  insn per cycle
        10,000,000      fp_arith_inst_retired.scalar_double
         5,000,000      fp_arith_inst_retired.256b_packed_double

       1.258000000 seconds time elapsed

"""


def _sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "export.sqlite")
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
            database.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, "
                "deviceId INTEGER, demangledName INTEGER)"
            )
            for number, name in enumerate(_NAMES):
                database.execute("INSERT INTO StringIds VALUES (?, ?)", (number, name))
                row = (5000 * number, 5000 * number + 1500 + number, 0, number)
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?)", row)
        database.close()
        return path.read_bytes()


SOURCES: dict[str, Callable[[], str | bytes]] = {
    "long.csv": _long,
    "wide.csv": _wide,
    "nsys.csv": _nsys,
    "trace.json": _trace,
    "rocprof.csv": _rocprof,
    "perf.txt": _perf,
    "export.sqlite": _sqlite,
}


def _cells(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the lines before a table, and its rows."""
    lines = text.splitlines()
    start = next(at for at, line in enumerate(lines) if "Kernel" in line or "Instances" in line)
    return lines[:start], list(csv.reader(lines[start:]))


def _cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(1, len(data))]


def _cut_packed(data: bytes, dice: random.Random) -> bytes:
    return _cut(gzip.compress(data, mtime=0), dice)


def _encode(data: bytes, dice: random.Random) -> bytes:
    text = data.decode()
    encoding = dice.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1", "utf-32"])
    packed = text.replace("\n", "\r\n").encode(encoding)
    return gzip.compress(packed, mtime=0) if dice.random() < 0.3 else packed


def _shuffle(data: bytes, dice: random.Random) -> bytes:
    before, rows = _cells(data.decode())
    order = dice.sample(range(len(rows[0])), len(rows[0]))
    rows = [[row[place] for place in order] for row in rows]
    return ("\n".join(before) + "\n" + _table(rows)).encode()


def _kind(column: str) -> str:
    """Return what a column holds. Who swaps two headers of one kind, nobody can find out."""
    if column in ("Index", "gpu-id", "FETCH_SIZE", "WRITE_SIZE") or column.startswith("SQ_"):
        return "number"
    words = ("Name", "dram__", "_inst_", "Ns", "Size")
    return next((word for word in words if word in column), column)


def _wrong_header(data: bytes, dice: random.Random) -> bytes:
    """Let header and rows no longer belong together."""
    before, rows = _cells(data.decode())
    one = dice.randrange(len(rows[0]))
    others = [at for at, name in enumerate(rows[0]) if _kind(name) != _kind(rows[0][one])]
    two = dice.choice(others)
    rows[0][one], rows[0][two] = rows[0][two], rows[0][one]
    return ("\n".join(before) + "\n" + _table(rows)).encode()


def _locale(data: bytes, dice: random.Random) -> bytes:
    before, rows = _cells(data.decode())
    group = dice.choice([".", "\u202f", " ", "'"])
    swap = {",": group, ".": ","}

    def other(cell: str) -> str:
        number = cell.replace(",", "").replace(".", "")
        return "".join(swap.get(each, each) for each in cell) if number.isdigit() else cell

    keep = [at for at, name in enumerate(rows[0]) if name == "CC"]
    changed = [
        [cell if at in keep else other(cell) for at, cell in enumerate(row)] for row in rows[1:]
    ]
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows([rows[0], *changed])
    return ("\n".join(before) + "\n" + text.getvalue()).encode()


_JUNK = b"\x00\x01\x07\x1b[2J\xff\xfe#@~^{}[]<>?/\\abcxyz\"'\n\t"


def _junk(data: bytes, dice: random.Random) -> bytes:
    """Write junk over a part: no digits, which nobody could tell from the right ones."""
    start = dice.randrange(len(data))
    junk = bytes(dice.choice(_JUNK) for _ in range(dice.randrange(1, 40)))
    return data[:start] + junk + data[start + len(junk) :]


def _insert(data: bytes, dice: random.Random) -> bytes:
    lines = data.split(b"\n")
    words = [b"Loading model... |-\\|/", b"==WARNING== something", b"", b"epoch, loss, 0.5", b"{}"]
    for _ in range(dice.randrange(1, 4)):
        lines.insert(dice.randrange(len(lines)), dice.choice(words))
    return b"\n".join(lines)


def _drop(data: bytes, dice: random.Random) -> bytes:
    """Lose a part in the middle."""
    start = dice.randrange(len(data))
    return data[:start] + data[start + dice.randrange(1, 200) :]


TEXT = (_cut, _cut_packed, _encode, _junk, _insert)
TABLE = (_shuffle, _wrong_header, _locale)
TABLES = ("long.csv", "wide.csv", "nsys.csv", "rocprof.csv")


def damaged(seed: int) -> tuple[str, str, bytes, bytes]:
    """Return the name of a file, what was done to it, and its bytes before and after."""
    dice = random.Random(seed)
    name = dice.choice(list(SOURCES))
    made = SOURCES[name]()
    data = made if isinstance(made, bytes) else made.encode()
    ways = [_cut, _junk] if name.endswith("sqlite") else [*TEXT]
    ways += TABLE if name in TABLES else ()
    way = dice.choice(ways)
    return name, way.__name__.strip("_"), data, way(data, dice)
