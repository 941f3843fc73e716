"""What `time` prints, in all its forms."""

from __future__ import annotations

import pytest

from mlsim.errors import DataFileError
from mlsim.profiling import read_time

GNU_V = """\tCommand being timed: "./a.out"
\tUser time (seconds): 0.43
\tSystem time (seconds): 0.02
\tPercent of CPU this job got: 18%
\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:02.45
\tMaximum resident set size (kbytes): 2048
\tExit status: 0
"""
FORMS = {
    "bash": "\nreal\t0m2.450s\nuser\t0m0.430s\nsys\t0m0.020s\n",
    "bash, German": "\nreal\t0m2,450s\nuser\t0m0,430s\nsys\t0m0,020s\n",
    "zsh": "./a.out  0.43s user 0.02s system 18% cpu 2.450 total\n",
    "GNU time": "0.43user 0.02system 0:02.45elapsed 18%CPU (0avgtext+0avgdata 2048maxresident)k\n"
    "0inputs+0outputs (0major+100minor)pagefaults 0swaps\n",
    "GNU time -v": GNU_V,
    "POSIX time -p": "real 2.45\nuser 0.43\nsys 0.02\n",
    "macOS": "        2.45 real         0.43 user         0.02 sys\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form: str) -> None:
    found = read_time(f"what the program printed\n{FORMS[form]}")
    assert (found.run.wall, found.run.user, found.run.system) == (2.45, 0.43, 0.02)
    assert found.run.waiting == pytest.approx(2.0)
    assert found.form == form.partition(",")[0]
    assert found.most_memory == (2048 * 1024 if form.startswith("GNU") else None)


@pytest.mark.parametrize(
    ("said", "wall"),
    [
        ("real\t75m0.5s\nuser\t0m1.0s\nsys\t0m0.0s", 4500.5),
        ("1.00user 0.00system 1:15:00elapsed 0%CPU", 4500.0),
        ("x  1.00s user 0.00s system 0% cpu 1:15:00.50 total", 4500.5),
    ],
)
def test_minutes_and_hours(said: str, wall: float) -> None:
    assert read_time(said).run.wall == wall


@pytest.mark.parametrize("said", ["", "Segmentation fault", "real 2.45", "real\t0m2.450s\nuser\tx"])
def test_what_is_no_time_is_refused(said: str) -> None:
    with pytest.raises(DataFileError, match="no times in a form that is known: GNU"):
        read_time(said)


def test_times_of_two_commands_are_refused() -> None:
    with pytest.raises(DataFileError, match="times of 2 commands"):
        read_time(2 * FORMS["bash"])
