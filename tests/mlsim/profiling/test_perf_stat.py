"""What `perf stat` prints: text, -x and --json."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.profiling import read_perf_stat, read_profile

TEXT = """
 Performance counter stats for './a.out':

          2,450.31 msec task-clock                #    0.998 CPUs utilized
                12      context-switches          #    4.897 /sec
     8,000,000,000      cycles                    #    3.265 GHz                         (83.31%)
    12,000,000,000      instructions              #    1.50  insn per cycle              (83.35%)
        20,000,000      LLC-load-misses           #   10.00% of all LL-cache accesses
   <not supported>      LLC-prefetch-misses

       2.560000000 seconds time elapsed

       2.440000000 seconds user
       0.010000000 seconds sys
"""
CSV = """# started on Mon Nov 23 03:00:00 2026

2450.31,msec,task-clock,2450310000,100.00,0.998,CPUs utilized
8000000000,,cycles:u,2041000000,83.31,3.265,GHz
12000000000,,instructions:u,2041000000,83.35,1.50,insn per cycle
20000000,,LLC-load-misses,2041000000,100.00,,
<not supported>,,LLC-prefetch-misses,0,100.00,,
2560000000,ns,duration_time,2560000000,100.00,,
"""
JSON = """
{"counter-value" : "8000000000.000000", "unit" : "", "event" : "cycles", "event-runtime" : 1, "pcnt-running" : 83.31, "metric-value" : "3.265", "metric-unit" : "GHz"}
{"counter-value" : "12000000000.000000", "unit" : "", "event" : "instructions", "event-runtime" : 1, "pcnt-running" : 83.35, "metric-value" : "1.5", "metric-unit" : "insn per cycle"}
{"counter-value" : "20000000.000000", "unit" : "", "event" : "LLC-load-misses", "event-runtime" : 1, "pcnt-running" : 100.00}
{"counter-value" : "<not supported>", "unit" : "", "event" : "LLC-prefetch-misses", "event-runtime" : 0, "pcnt-running" : 100.00}
"""
GERMAN = TEXT.replace(",", "\0").replace(".", ",").replace("\0", ".").replace("'./a", "'./a")


@pytest.mark.parametrize(
    "printed",
    [TEXT, CSV, JSON, GERMAN, CSV.replace(",", ";")],
    ids=["text", "csv", "json", "german", "semi"],
)
def test_all_forms_give_the_same_ratios(printed: str) -> None:
    found = read_perf_stat(printed)
    # By hand: 12e9 / 8e9; 20e6 misses of 64 B.
    assert found.ipc == 1.5
    assert found.cpi == pytest.approx(2 / 3)
    assert found.traffic() == 1.28e9
    assert found.counters["cycles"].share == pytest.approx(0.8331)
    assert set(found.scaled) == {"cycles", "instructions"}


def test_bandwidth_and_its_use() -> None:
    found = read_perf_stat(TEXT)
    assert found.bandwidth() == pytest.approx(1.28e9 / 2.56)
    assert found.bandwidth_use(5e9) == pytest.approx(0.1)
    # Apple's lines are twice as long.
    assert found.traffic(line=128) == 2.56e9


def test_times_of_the_text() -> None:
    found = read_perf_stat(TEXT)
    assert found.run.waiting == pytest.approx(0.11)
    assert found["task-clock"] == pytest.approx(2.45031)
    assert read_perf_stat(CSV).elapsed == pytest.approx(2.56)
    with pytest.raises(NotMeasuredError, match="leave -x and --json out"):
        _ = read_perf_stat(CSV).run


def test_a_counter_that_is_not_there_is_no_zero() -> None:
    found = read_perf_stat(TEXT)
    with pytest.raises(NotMeasuredError, match="<not supported>: a virtual machine"):
        found["LLC-prefetch-misses"]
    with pytest.raises(NotMeasuredError, match="Counted: task-clock, context-switches, cycles"):
        found["branches"]
    hidden = TEXT.replace("     8,000,000,000 ", "   <not supported> ")
    with pytest.raises(NotMeasuredError, match="cycles was not counted"):
        _ = read_perf_stat(hidden).ipc
    alone = read_perf_stat(" 5 cycles\n")
    with pytest.raises(NotMeasuredError, match="no misses of the last cache"):
        alone.traffic()
    with pytest.raises(NotMeasuredError, match="how long"):
        alone.bandwidth()
    with pytest.raises(NotMeasuredError, match="too short"):
        _ = read_perf_stat(" 5 cycles\n 0 instructions\n").cpi


def test_two_kinds_of_cores_are_added_up() -> None:
    found = read_perf_stat(
        " 6,000 cpu_core/cycles/ (60.00%)\n 2,000 cpu_atom/cycles/ (40.00%)\n"
        " 9,000 cpu_core/instructions/\n 3,000 cpu_atom/instructions/\n"
    )
    assert found["cycles"] == 8000
    assert found.ipc == 1.5


def test_repeats_of_perf_itself() -> None:
    found = read_perf_stat(
        " 8,000,000 cycles # 3.2 GHz ( +-  0.50% )\n"
        " 12,000,000 instructions # 1.50 insn per cycle ( +-  0.10% )\n"
        " 0.0025600 +- 0.0000100 seconds time elapsed  ( +-  0.39% )\n"
    )
    assert found.ipc == 1.5
    assert found.elapsed == 0.00256


@pytest.mark.parametrize(
    "printed",
    [
        "     1.000123456      8,000 cycles\n",
        "S0  2  8,000 cycles\n",
        "1.000123456,8000,,cycles,1,100.00\n",
        "S0,2,8000,,cycles,1,100.00\n",
        '{"interval" : 1.0, "counter-value" : "8", "event" : "cycles"}',
    ],
)
def test_counts_that_are_split_up_are_refused(printed: str) -> None:
    with pytest.raises(DataFileError, match="split by time, core or socket"):
        read_perf_stat(printed)


@pytest.mark.parametrize(
    "printed", ["", "hello world\n", '{"event": ', "[1, 2]", "real 2.45\nuser 1.0\n"]
)
def test_what_is_no_perf_stat_is_refused(printed: str) -> None:
    with pytest.raises(DataFileError):
        read_perf_stat(printed)


def test_one_event_twice_is_refused() -> None:
    with pytest.raises(DataFileError, match="cycles stands twice"):
        read_perf_stat(" 8,000 cycles\n 9,000 cycles\n")


def test_what_a_program_printed_before_is_passed_over() -> None:
    assert read_perf_stat("12 epochs\nwarning: slow\n" + TEXT).ipc == 1.5
    with pytest.raises(DataFileError, match="'warning: slow' is no line of perf stat"):
        read_perf_stat("warning: slow\n 8,000 cycles\n")


def test_a_number_that_could_be_either_is_asked_for() -> None:
    with pytest.raises(DataFileError, match="could be a fraction or thousands"):
        read_perf_stat(" 8.000 cycles\n")
    assert read_perf_stat(" 8.000 cycles\n", decimal=",")["cycles"] == 8000


def test_events_that_only_sound_like_operations_are_counted() -> None:
    found = read_perf_stat(" 7,000 mem_inst_retired.all_loads:u\n 5,000 br_inst_retired.all\n")
    assert found["mem_inst_retired.all_loads"] == 7000
    with pytest.raises(DataFileError, match="damaged, or counts operations in a way"):
        read_perf_stat(" 7,000 fp_arith_inst_retired.triple\n")


@pytest.mark.parametrize("printed", [TEXT, CSV, JSON], ids=["text", "csv", "json"])
def test_a_profile_has_the_same_counters(printed: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(printed, encoding="utf-8")
    profile, alone = read_profile(path), read_perf_stat(path)
    assert profile.kernels[0].facts == {"ipc": 1.5, "cpi": pytest.approx(2 / 3)}
    assert profile.kernels[0].seconds == alone.elapsed == (None if printed is JSON else 2.56)
    assert profile.counters["LLC-load-misses"] == alone["LLC-load-misses"]
    assert "83.31 % of the time" in profile.notes[0]


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert read_perf_stat(path).ipc == 1.5
    with pytest.raises(DataFileError, match="there is no such file"):
        read_perf_stat(tmp_path / "none.txt")
