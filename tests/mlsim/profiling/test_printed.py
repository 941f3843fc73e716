"""What commands print: `perf stat`, and a log of `nvidia-smi`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from kept import FIXTURES

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.profiling import read_nvidia_smi, read_perf_stat, read_profile
from mlsim.profiling.read.printed import read_log

PRINTED = tomllib.loads((FIXTURES / "cases" / "printed.toml").read_text("utf-8"))
TEXT, QUERY = PRINTED["perf"]["text"], PRINTED["nvidia_smi"]["query"]
MIB = 2**20


def test_what_can_t_be_read_is_refused() -> None:
    readers: dict[str, Callable[[str], Any]] = {
        "perf": read_perf_stat,
        "nvidia_smi": read_nvidia_smi,
    }
    wrong = []
    for name, read in readers.items():
        for printed, words in PRINTED["refused"][name]:
            try:
                wrong.append((printed, read(printed)))
            except DataFileError as error:
                wrong += [] if words in str(error) else [(printed, str(error))]
    assert wrong == []


# ---- perf stat ----


def german(printed: str) -> str:
    return printed.translate(str.maketrans(",.", ".,")).replace("',/a,out'", "'./a.out'")


def test_a_text_and_its_profile_have_the_same_ratios(tmp_path: Path) -> None:
    """By hand: 12e9 / 8e9; 20e6 misses of 64 B. A profile has the same counters."""
    for printed in (TEXT, german(TEXT)):
        found = read_perf_stat(printed)
        assert (found.ipc, found.cpi, found.traffic()) == (1.5, pytest.approx(2 / 3), 1.28e9)
        assert found.counters["cycles"].share == pytest.approx(0.8331)
        assert set(found.scaled) == {"cycles", "instructions"}
    path = tmp_path / "perf.txt"
    path.write_text(TEXT, encoding="utf-8")
    profile, alone = read_profile(path), read_perf_stat(path)
    assert profile.kernels[0].facts == {"ipc": 1.5, "cpi": pytest.approx(2 / 3)}
    assert profile.kernels[0].seconds == alone.elapsed == 2.56
    assert profile.counters["LLC-load-misses"] == alone["LLC-load-misses"] == 20e6
    assert "83.31 % of the time" in profile.notes[0]
    with pytest.raises(DataFileError, match="there is no such file"):
        read_perf_stat(tmp_path / "none.txt")


def test_kinds_of_cores_are_added_and_are_as_sure_as_the_less_watched() -> None:
    """6e9 + 2e9 cycles for 12e9 instructions."""
    lines = (
        "6,000,000,000  cpu_core/cycles/  (61.50%)",
        "2,000,000,000  cpu_atom/cycles/  (38.25%)",
        "12,000,000,000  instructions",
    )
    for order in (lines, (lines[1], lines[0], lines[2])):
        text = "\n    ".join((" Performance counter stats for 'a':\n", *order))
        found = read_perf_stat(f"{text}\n\n  2.5 seconds time elapsed\n")
        assert (found.counters["cycles"].share, found.ipc) == (0.3825, 1.5)
        assert found.scaled == ("cycles",)


def test_times_of_the_text_and_bandwidth() -> None:
    found = read_perf_stat(TEXT)
    assert found.bandwidth() == pytest.approx(1.28e9 / 2.56)
    assert found.bandwidth_use(5e9) == pytest.approx(0.1)
    # Apple's lines are twice as long.
    assert found.traffic(line=128) == 2.56e9
    assert (found.user, found.system) == (2.44, 0.01)
    assert found["task-clock"] == pytest.approx(2.45031)


def test_a_counter_that_is_not_there_is_no_zero() -> None:
    found = read_perf_stat(TEXT)
    with pytest.raises(NotMeasuredError, match="<not supported>: a virtual machine"):
        found["LLC-prefetch-misses"]
    with pytest.raises(NotMeasuredError, match="Counted: task-clock, context-switches, cycles"):
        found["branches"]
    for printed, figure, words in PRINTED["refused"]["uncounted"]:
        with pytest.raises(NotMeasuredError, match=words):
            attrgetter(figure)(read_perf_stat(printed))()


def test_what_was_counted_by_hand() -> None:
    for each in [*PRINTED["counted"], {"printed": f"12 epochs\nslow\n{TEXT}", "cycles": 8e9}]:
        printed, options = each.pop("printed"), each.pop("options", {})
        found = read_perf_stat(printed, **options)
        kept = {name: found.elapsed if name == "elapsed" else found[name] for name in each}
        assert kept == each, printed


# ---- nvidia-smi ----


def test_a_query_with_and_without_units() -> None:
    first, second = read_nvidia_smi(QUERY)
    assert (first.index, first.name, first.busy) == (0, "Tesla T4", 0.37)
    assert (first.memory_used, first.memory_total) == (1024 * MIB, 15360 * MIB)
    assert (first.power, first.clock) == (42.5, 1.59e9)
    # What is not there is absent, not zero.
    assert (second.busy, second.power, second.memory_used) == (None, None, 0)
    plain = re.sub(r" (%|MiB|W|MHz)(?=[,\n])", "", QUERY)
    assert read_nvidia_smi(plain) == (first, second)


def test_a_log_is_one_of_nvidia_smi_or_another_s(tmp_path: Path) -> None:
    """A query may ask for more than is known here."""
    path = tmp_path / "log.csv"
    for printed in (QUERY, "index, pstate, power.limit [W]\n2, P8, 70.5 W\n"):
        path.write_text(printed, "utf-8")
        assert read_log(path) == read_nvidia_smi(printed)
    assert [(each.index, each.power_limit) for each in read_log(path)] == [(2, 70.5)]
    path.write_text("index, power.limit [W]\n2, many W\n", "utf-8")
    with pytest.raises(DataFileError, match=r"log\.csv: .*line 2: 'many W' is no number"):
        read_log(path)
    path.write_text("name, pstate\nT4, P8\n", "utf-8")
    assert read_log(path) is None
