"""Formats of five tools in small: figures worked by hand, and what each lacks."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kept import FIXTURES

from mlsim.errors import DataFileError, InvalidValueError, NotMeasuredError
from mlsim.profiling import MeasuredKernel, MeasuredProfile, combine, join, read_profile
from mlsim.profiling.measured_profile import added
from mlsim.profiling.read import kineto, tables
from mlsim.profiling.read.operators import flops_of
from mlsim.profiling.read.tables import Source, header_in, locale_of

LONG = '"ID","Kernel Name","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
STATS = '"Name","Calls","TotalDurationNs"\n'


@pytest.fixture
def put(tmp_path: Path):
    """Return what writes a file and reads it as a profile."""

    def write(text: str | bytes, name: str = "profile.csv", **options) -> MeasuredProfile:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_profile(path, **options)

    return write


def scalar(kind: str, *counts: float) -> list[list[str]]:
    """Return the rows of additions, products and both in one."""
    metric = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    names = (metric.format(f"{kind}{op}") for op in ("add", "mul", "fma"))
    return [[name, "inst", f"{count:,.0f}"] for name, count in zip(names, counts, strict=True)]


def long(rows: list[list[str]], name: str = "k", cc: str = "8.0", launch: int = 0) -> str:
    """Return rows of a long table of Nsight Compute, without its head."""
    start = f'"{launch}","{name}","{cc}","Command line profiler metrics"'
    return "".join(f'{start},"{metric}","{unit}","{value}"\n' for metric, unit, value in rows)


def of_table(name: str) -> list[Any]:
    return tomllib.loads((FIXTURES / "cases" / f"{name}.toml").read_text("utf-8"))["cases"]


def reached(value: Any, path: str) -> Any:
    """Return what a path of names, keys and places leads to; a method is called."""
    for part in path.split("."):
        if isinstance(value, Mapping) and not part.startswith("__"):
            value = value[part]
        else:
            value = value[int(part)] if part.isdigit() else getattr(value, part)
    return value() if callable(value) else value


def same(found: Any, expected: Any) -> bool:
    approx = not isinstance(expected, str)
    found = tuple(found) if isinstance(expected, list) else found
    return bool(found == (pytest.approx(expected) if approx else expected))


def odd(case: dict[str, Any], put: Any) -> list[Any]:
    """Return what a case of the table says and the profile doesn't."""
    rows = scalar(*case["count"]) if "count" in case else []
    rows += case.get("ncu", [])
    text = case.get("text", LONG + long(rows, case.get("name", "k"), case.get("cc", "8.0")))
    try:
        profile = put(text, case.get("file", "profile.csv"), **case.get("options", {}))
    except DataFileError as error:
        return [] if re.search(case.get("says", "^$"), str(error)) else [str(error)]
    kernel, wrong = next(iter(profile.kernels), None), ["is read"] if "says" in case else []
    for of, key in ((kernel, "kernel"), (profile, "profile")):
        found = {path: (reached(of, path), value) for path, value in case.get(key, {}).items()}
        wrong += [(path, *two) for path, two in found.items() if not same(*two)]
    for of, key in ((kernel, "lacks"), (profile, "lost")):
        for path, words in case.get(key, {}).items():
            try:
                wrong.append((path, reached(of, path)))
            except NotMeasuredError as error:
                wrong += [] if re.search(words, str(error)) else [str(error)]
    missing = case.get("missing", {})
    wrong += [path for path, words in missing.items() if words not in kernel.missing[path]]
    notes = " ".join(profile.notes)
    wrong += [notes] if case.get("note", "") not in notes else []
    return [*wrong, notes] if "no_note" in case and case["no_note"] in notes else wrong


def test_small_files_say_what_was_worked_by_hand(put) -> None:
    cases = of_table("profiles")
    assert len(cases) > 80
    found = [(case, odd(case, put)) for case in cases]
    assert [each for each in found if each[1]] == []


def test_numbers_of_so_many_rows_tell_how_they_are_written(tmp_path: Path, monkeypatch) -> None:
    """1.234 alone could be a fraction, or thousands; a comma in the second row decides."""
    path = tmp_path / "a.csv"
    path.write_text("Name;Value\nk;1.234\nk;4,5\n")
    source = Source(path, path.read_bytes(), packed=False, encoding="utf-8")
    table = header_in(source, 1, "Name;Value", {"Name", "Value"}.__eq__)
    assert locale_of(table, None, ["Value"]).number("5.678") == 5678
    monkeypatch.setattr(tables, "_MOST_ROWS", 1)
    with pytest.raises(DataFileError, match="could be a fraction or thousands"):
        locale_of(table, None, ["Value"])
    assert locale_of(table, ".", ["Value"]).number("5.678") == 5.678


def test_text_that_ends_within_a_letter_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for content in ("\ufeffName;\u00e9".encode(), "Name;\u00e9".encode()):
        path.write_bytes(content)
        assert (
            "".join(Source(path, content, packed=False, encoding="utf-8").text()) == "Name;\u00e9"
        )
        path.write_bytes(content[:-1])
        with pytest.raises(DataFileError, match="it is no text in utf-8"):
            _ = list(Source(path, content, packed=False, encoding="utf-8").text())


def test_work_of_operators_follows_from_their_shapes() -> None:
    cases = of_table("shapes")
    found = [flops_of(f"aten::{name}", dims, values) for name, dims, values, *_ in cases]
    assert found == [next(iter(flops), None) for _, _, _, *flops in cases]
    assert flops_of("aten::mm", None, []) is flops_of("aten::conv2d", [[2, 3, 8, 9]], None) is None


def test_a_count_that_other_launches_have_is_lacking(put) -> None:
    tensor = [["sm__ops_path_tensor_src_bf16_dst_fp32.sum", "", "4,096"]]
    one = scalar("f", 1, 1, 1)
    two = long([*one, ["sm__x.sum", "", "1"]], "two", launch=1)
    profile = put(LONG + long(one + tensor, "one") + two)
    assert profile.kernel("one").flop_count == 4100
    with pytest.raises(NotMeasuredError, match="it lacks sm__ops_path_tensor_src_bf16"):
        _ = profile.kernel("two").flops


EXPORT = """
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'void add<float>(float*)'), (2, 'cudaLaunchKernel');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    demangledName INTEGER, correlationId INTEGER, gridX INTEGER, gridY INTEGER,
    gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (1000, 2000, 0, 1, 5, 8, 1, 1, 64, 1, 1), (3000, 4500, 0, 1, 6, 8, 1, 1, 64, 1, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
    bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 500, 0, 4096, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER,
    correlationId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (700, 800, 2, 5), (2200, 2300, 2, 6);
CREATE TABLE TARGET_INFO_GPU (name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA A30');
"""
TRAP = """
CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS
    (SELECT 1 UNION ALL SELECT start FROM n) SELECT start, start AS end FROM n;
"""


# On the third device: a graph, an exchange, a kernel with a short name alone, and fills.
MORE = """
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce'), (2, 'short');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    demangledName INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1700, 3, 1, 2), (2000, 2300, 3, 9, 2),
    (2400, 2500, 3, 9, 9);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (3000, 3400, 3), (4000, 4900, 3);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER,
    bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (5000, 5200, 3, 7), (5300, 5400, 3, 5);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
    bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5500, 5600, 3, 11, 2), (5700, 5800, 3, 13, 99);
"""


def export(path: Path, script: str = EXPORT) -> Path:
    """Make a small export of Nsight Systems."""
    with sqlite3.connect(path) as database:
        database.executescript(script)
    database.close()
    return path


def test_an_export_is_read_and_never_written(tmp_path: Path) -> None:
    path = export(tmp_path / "a b#?.sqlite")
    path.chmod(0o444)
    before = path.read_bytes()
    packed = tmp_path / "packed.sqlite.gz"
    packed.write_bytes(gzip.compress(before))
    for each in (path, packed):
        profile = read_profile(each)
        (kernel,) = profile.kernels
        assert (kernel.calls, kernel.seconds) == (2, pytest.approx(2500e-9))
        assert kernel.facts["grid"] == "(8, 1, 1)"
        assert profile.launches is not None
        # 300 ns from one launch to its kernel, 800 from the other.
        assert profile.launches.queued == pytest.approx(550e-9)
        assert profile.activity[0].gaps[0][1] == pytest.approx(1000e-9)
        assert (profile.copies[0].bytes, profile.device_name) == (4096, "NVIDIA A30")
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a b#?.sqlite", "packed.sqlite.gz"]
    with pytest.raises(DataFileError, match=r"no GPU activity.*is not among: no table"):
        read_profile(export(tmp_path / "trap.sqlite", TRAP))


def test_an_export_of_graphs_exchanges_and_fills(tmp_path: Path) -> None:
    profile = read_profile(export(tmp_path / "more.sqlite", MORE))
    ran = {each.name: (each.calls, each.seconds, each.kind) for each in profile.kernels}
    assert ran == {
        "ncclDevKernel_AllReduce": (1, pytest.approx(700e-9), "kernel"),
        "short": (1, pytest.approx(300e-9), "kernel"),
        "(no name)": (1, pytest.approx(100e-9), "kernel"),
        "graph": (2, pytest.approx(1300e-9), "graph"),
    }
    (activity,) = profile.activity
    # 300 + 100 + 400 + 900 compute, 700 are exchanged and 500 copied, from 1,000 to 5,800.
    assert activity.device == 3
    found = (activity.computing, activity.exposed, activity.busy, activity.span)
    assert found == pytest.approx((1700e-9, 1200e-9, 2900e-9, 4800e-9))
    moved = {each.name: (each.calls, each.bytes) for each in profile.copies}
    assert moved == {"device to host": (1, 11), "other copy": (1, 13), "fill": (2, 12)}
    assert (profile.launches, profile.device_name) == (None, "")
    assert [each.name for each in profile.exchanges] == ["ncclDevKernel_AllReduce"]
    for at, old, new, words in (
        ("backward", "3000, 3400", "3400, 3000", "goes from 3400 to 3000"),
        ("empty", MORE[MORE.index("INSERT INTO CUPTI") :], "", "no kernel and no copy is in"),
        ("nothing", MORE[MORE.index("CREATE TABLE CUPTI") :], "", "is not among: StringIds"),
    ):
        with pytest.raises(DataFileError, match=words):
            read_profile(export(tmp_path / f"{at}.sqlite", MORE.replace(old, new, 1)))


def trace(*events: dict, **beside) -> str:
    return json.dumps({**beside, "traceEvents": list(events)})


def event(cat: str, name: str, ts: float, dur: float, **args) -> dict:
    where = {"pid": 1, "tid": 1, "args": args}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **where}


def test_operators_of_a_gpu_have_the_time_of_their_kernels(put) -> None:
    dims = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
    reduce = {"Collective name": "all_reduce", "In msg nelems": 300, "dtype": "Float"}
    text = trace(
        event("cpu_op", "aten::linear", 0, 50, **{"External id": 1}),
        event("cpu_op", "aten::mm", 10, 30, **{"External id": 2}, **dims),
        event("kernel", "sgemm", 60, 5, **{"External id": 2}, correlation=9),
        event("kernel", "splitK", 65, 3, **{"External id": 2}, correlation=10),
        event("kernel", "ncclKernel_AllReduce", 70, 10, correlation=11, **reduce),
        event("kernel", "ncclKernel_AllReduce", 90, 7, **reduce),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 100, 2, bytes=700),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 110, 3, bytes=500),
        event("gpu_memset", "Memset (Device)", 120, 4, bytes=True),
        event("cuda_runtime", "cudaLaunchKernel", 20, 4, correlation=9),
        deviceProperties=[{"name": "NVIDIA A30", "computeMajor": 8, "computeMinor": 0}],
    )
    profile = put(text, "trace.json")
    (operator,) = profile.operators
    assert (operator.name, operator.calls) == ("aten::mm", 1)
    assert operator.flop_count == 2 * 8 * 16 * 4
    assert operator.seconds == pytest.approx(8e-6)
    (activity,) = profile.activity
    # 5 + 3 of products, 17 of exchanges, 9 of copies, from 60 to 124; the longest gap from 80 to 90.
    assert (activity.computing, activity.exposed) == pytest.approx((8e-6, 26e-6))
    assert (activity.busy, activity.span) == pytest.approx((34e-6, 64e-6))
    assert activity.gaps[0] == pytest.approx((20e-6, 10e-6))
    moved = {each.name: (each.calls, each.bytes) for each in (*profile.exchanges, *profile.copies)}
    assert moved == {"all_reduce": (2, 2400), "host to device": (2, 1200), "fill": (1, None)}
    took = [each.seconds for each in (*profile.exchanges, *profile.copies)]
    assert took == pytest.approx([17e-6, 5e-6, 4e-6])
    assert profile.launches is not None
    assert profile.launches.queued == pytest.approx(40e-6)
    assert profile.device_facts == {"compute capability": "8.0"}
    alone = json.dumps([event("kernel", "k", 0, 5)])
    for content, name in ((alone, "a.json"), (gzip.compress(alone.encode()), "b.json.gz")):
        assert put(content, name).time.si == pytest.approx(5e-6)
    behind = {"traceEvents": [event("kernel", "k", 0, 5)], "deviceProperties": [{"name": "Chip"}]}
    assert put(json.dumps(behind), "c.json").device_name == "Chip"
    with pytest.raises(DataFileError, match="something stands behind its events, after 1 events"):
        put(f"{alone} more", "d.json")
    # An event without a number of its device is of the first.
    assert [kineto._device(each) for each in ({}, {"device": "x"}, {"device": 3})] == [0, 0, 3]


def test_operators_of_a_processor_take_what_they_call(put) -> None:
    """An addmm of 40 us calls a mm of 30, and a linear of 70 calls both it and a relu of 5."""
    dims, same = {"Input Dims": [[7], [3, 5], [5, 7]]}, {"Input Dims": [[4, 4]]}
    profile = put(
        trace(
            event("cpu_op", "aten::linear", 0, 70),
            event("cpu_op", "aten::addmm", 10, 40, **dims, **{"Input type": ["", "double"]}),
            event("cpu_op", "aten::mm", 15, 30, **{"Input Dims": [[3, 5], [5, 7]]}),
            event("cpu_op", "aten::relu", 55, 5, **same),
            event("cpu_op", "aten::relu", 70, 2, **same),
            event("cpu_op", "aten::addmm", 80, 9, **dims),
        ),
        "trace.json",
    )
    found = {each.name: (each.calls, each.seconds) for each in profile.kernels}
    assert found == {
        "aten::addmm": (2, pytest.approx(49e-6)),
        "aten::linear": (1, pytest.approx(25e-6)),
        "aten::relu": (2, pytest.approx(7e-6)),
    }
    assert [each.flop_count for each in profile.kernels] == [420, 0, 0]
    first, _, last = profile.kernels
    assert first.facts == {"shape": "[7] x [3, 5] x [5, 7]", "type": "double"}
    assert first.sources["any"].startswith("2 x multiply-adds")
    assert last.sources["any"].startswith("no matrix product")
    # Without shapes nothing is known of work.
    with pytest.raises(NotMeasuredError, match="record_shapes"):
        _ = put(trace(event("cpu_op", "aten::relu", 0, 5)), "trace.json").flops
    (alone,) = put(trace(event("cpu_op", "aten::relu", 0, 5)), "trace.json").kernels
    assert alone.sources == {"seconds": "durations of the events"}


def test_exchanges_move_their_numbers_by_the_size_of_their_type(put) -> None:
    """15 numbers of each type: of a host the first input, of a GPU what the message says."""
    types = {"Float": 4, "double": 8, "Half": 2, "BFloat16": 2, "c10::Half": 2, "c10::BFloat16": 2}
    types |= {"Int": 4, "Long": 8, "long int": 8, "Byte": 1, "char": 1, "Float8_e4m3fn": 1, "x": 0}
    for kind, size in types.items():
        gpu = event("kernel", "ncclKernel", 0, 1, **{"In msg nelems": 15, "dtype": kind})
        dims = {"Input Dims": [[3, 5], [9]], "Input type": [kind, "x"]}
        host = event("user_annotation", "gloo:all_reduce", 5, 2, **dims)
        found = put(trace(gpu, host), "a.json").exchanges
        assert [each.bytes for each in found] == [15 * size or None] * 2, kind
        assert [each.name for each in found] == ["ncclKernel", "gloo:all_reduce"]


def test_counters_of_ranges_are_of_kernels_without_a_time(put) -> None:
    """Three fused of 2, one addition, two products: each is counted in replays."""
    rows = {metric: float(value) for metric, _, value in scalar("f", 1, 2, 3)}
    rows |= {"dram__bytes.sum": 5.0, "gpu__time_duration.sum": 7.0, "other": "x"}
    profile = put(
        trace(*(event("cuda_profiler_range", "k", at, 1, **rows) for at in (0, 2))), "a.json"
    )
    (kernel,) = profile.kernels
    assert (kernel.calls, kernel.flop_count, kernel.byte_count()) == (2, 18, 10)
    assert "runs kernels several times" in kernel.missing["seconds"]
    assert any(note.startswith("Counters of 2 ranges: ") for note in profile.notes)
    with pytest.raises(DataFileError, match=r"dram__bytes.sum is -5\.0, and can't be negative"):
        put(trace(event("cuda_profiler_range", "k", 0, 1, **{"dram__bytes.sum": -5.0})), "a.json")


def test_work_of_somebody_elses_operator_is_not_taken_for_none(put) -> None:
    def run(name: str) -> MeasuredProfile:
        one = event("cpu_op", name, 0, 5, **{"Input Dims": [[4, 4]]})
        two = event("cpu_op", "aten::mm", 10, 5, **{"Input Dims": [[4, 8], [8, 2]]})
        return put(trace(one, two), "trace.json")

    # 2 x 4 x 8 x 2 operations of the product, and none of ReLU.
    assert run("aten::relu").flops.magnitude == 128
    for name in ("fbgemm::f8f8bf16_rowwise", "aten::_weight_int4pack_mm", "triton_tem_fused_mm_3"):
        with pytest.raises(NotMeasuredError, match="not counted from shapes"):
            _ = run(name).flops


def test_passes_of_rocprofv3_are_put_together(put) -> None:
    columns = ("Correlation_Id", "Dispatch_Id", "Agent_Id", "Kernel_Name", "Counter_Name")
    header = ",".join((*columns, "Counter_Value", "Start_Timestamp", "End_Timestamp")) + "\n"

    def one(name: str, value: float, *counters: str) -> MeasuredProfile:
        rows = (f'1,1,4,"gemm",{key},{value},1000,3000\n' for key in counters)
        return put(header + "".join(rows), name)

    valu = "SQ_INSTS_VALU_{}_F{}"
    passes = [
        one("a.csv", 1.0, "FETCH_SIZE", "WRITE_SIZE"),
        one("b.csv", 0.0, *(valu.format(op, 16) for op in ("ADD", "MUL", "FMA"))),
        one("c.csv", 1.0, *(valu.format(op, 32) for op in ("ADD", "MUL", "FMA"))),
        one("d.csv", 2.0, "SQ_INSTS_VALU_MFMA_MOPS_BF16"),
    ]
    # One pass alone saw nothing, and must not say that there was nothing.
    with pytest.raises(NotMeasuredError, match="single precision was not counted"):
        _ = passes[1].flops
    whole = combine(passes)
    assert whole.flops.magnitude == 64 * 4 + 2 * 512
    assert whole.intensity.magnitude == (64 * 4 + 1024) / 2048


def test_joining_scales_by_launch_only_what_is_alike(put) -> None:
    header = '"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum"\n"","","us","byte"\n'
    alike = put(header + '"0","k","1","100"\n"1","k","1","100"\n', "a.csv")
    times = put(STATS + '"k",10,20000\n', "b.csv")
    assert join(alike, times).kernels[0].byte_count() == 1000
    with pytest.raises(InvalidValueError, match="counts neither operations nor bytes"):
        join(times, alike)
    with pytest.raises(InvalidValueError, match="no kernel is in both files"):
        join(alike, put(STATS + '"other",10,20000\n', "c.csv"))
    uneven = LONG + long(scalar("f", 0, 0, 10)) + long(scalar("f", 0, 0, 1000), launch=1)
    assert put(uneven, "d.csv").flops.magnitude == 2020
    both = join(put(uneven, "d.csv"), times)
    assert "different amounts of work" in both.kernels[0].missing["flops"]


def test_what_one_pass_lacks_another_may_have() -> None:
    """Kernels go by their first word where nothing stricter matches."""

    def one(name: str, calls: int = 2, seconds: float | None = None, **more) -> MeasuredKernel:
        return MeasuredKernel(name, calls, seconds, **more)

    counts = MeasuredProfile(
        (
            one("void k<float>(int)", operations={"fp32": 6.0}, traffic={"dram": 4.0}),
            one("lost", operations={"fp32": 1.0}),
        ),
        *("Nsight Compute", ("a/counts.csv",)),
    )
    times = MeasuredProfile(
        (one("k", 10, 5.0, facts={"grid": "(7)"}), one("other", 3, 8.0)), "trace", ("times.json",)
    )
    both = join(counts, times)
    other, k = both.kernels
    assert (k.calls, k.seconds, k.flop_count, k.byte_count()) == (10, 5.0, 30.0, 20.0)
    assert (k.facts, both.tool) == ({"grid": "(7)"}, "Nsight Compute and trace")
    assert set(other.missing) == {"flops", "dram"}
    assert both.files == ("a/counts.csv", "times.json")
    notes = " ".join(both.notes)
    assert "1 of 2 kernels have counters from counts.csv." in notes
    assert "Counted, but without a time: lost." in notes
    # Each pass adds what the other lacks; what ran another number of times adds nothing.
    missing = {"flops": "no tensor cores were counted", "dram": "no bytes"}
    k = one("k", 2, 1.0, operations={"fp32": 7.0}, missing=missing)
    first = MeasuredProfile((k, one("j", 2, 1.0)), "rocprof")
    second = MeasuredProfile(
        (one("k", traffic={"dram": 3.0}, operations={"tensor": 5.0}), one("j", 3)), "rocprof"
    )
    k, j = combine([first, second]).kernels
    assert (k.seconds, k.flop_count, k.byte_count(), k.missing) == (1.0, 12.0, 3.0, {})
    assert (j.calls, j.traffic) == (2, {})
    with pytest.raises(InvalidValueError, match="give at least one profile"):
        combine([])
    with pytest.raises(InvalidValueError, match="no kernel is in both files"):
        combine([MeasuredProfile((one("a", 1, 1.0),), "x"), MeasuredProfile((one("b"),), "y")])


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (b"\0" * 5000, "a.csv", "the file is empty"),
        (b"NVR\0" + bytes(range(256)), "a.ncu-rep", "ncu --import a.ncu-rep"),
        (b"\x01\x00\x02\x00\xff\x00" * 100, "a.nsys-rep", "nsys export --type sqlite a.nsys-rep"),
        (b"PK\x03\x04abc", "a.zip", "unzip a.zip"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-10], "a.csv.gz", "can't be read|damaged or cut off"),
    ],
)
def test_what_can_not_be_read_says_what_to_do(put, content: bytes, name: str, why: str) -> None:
    with pytest.raises(DataFileError, match=why):
        put(content, name)


def test_a_profile_prints_its_longest_kernels_and_adds_them_up() -> None:
    """Seconds, FLOP and bytes of the first are 2, 6 and 4: 3 FLOP/s; twelve are shown."""
    first = MeasuredKernel("void first<float>(int)", 5, 2.0, {"fp32": 6.0}, {"dram": 4.0})
    rest = [MeasuredKernel(f"k{number}", 1, 1.0) for number in range(12)]
    lines = str(MeasuredProfile((first, *rest), "nsys", device_name="Chip")).splitlines()
    assert (lines[0], lines[-1]) == ("nsys: 13 kernels on Chip", "... and 1 more")
    assert lines[2].split() == ["2", "s", "5", "6", "FLOP", "4", "B", "3", "FLOP/s", "first"]
    assert lines[3].split() == ["1", "s", "1", "-", "-", "-", "k0"]
    assert len(lines) == 2 + 12 + 1
    short = MeasuredProfile((first, *rest[:11]), "nsys")
    assert str(short).splitlines()[0] == "nsys: 12 kernels"
    assert "more" not in str(short)
    assert (MeasuredKernel("k").calls, MeasuredKernel("k").kind) == (1, "kernel")
    whole = added((first, first), "both")
    assert (whole.calls, whole.seconds, whole.flop_count, whole.byte_count()) == (10, 4, 12, 8)
    part = added((first, MeasuredKernel("late", 3, None, {"fp64": 1.0})), "part")
    assert (part.calls, part.seconds, part.operations) == (8, None, {"fp32": 6.0, "fp64": 1.0})
    assert part.missing["seconds"] == "of late no time is in the file"
    assert part.missing["dram"].startswith("of late")


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    for path, error, why in (
        (tmp_path / "nothing.csv", DataFileError, "no such file"),
        (tmp_path, DataFileError, "is a folder"),
        (None, InvalidValueError, "given by its path as text or Path, not None"),
    ):
        with pytest.raises(error, match=why):
            read_profile(path)  # type: ignore[arg-type]
