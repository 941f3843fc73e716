"""A damaged profile gives its right figures or a clear error: never a wrong number.

Each tenth of the thousand runs always, all of them in `make judge`.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from damaged_profiles import agrees, damaged, figures

from mlsim.errors import DataFileError, MlsimError
from mlsim.profiling import read_profile

JUDGE = bool(os.environ.get("MLSIM_JUDGE"))
STEP = 1 if JUDGE else 10


def outcome(path: Path) -> list[tuple[object, ...]] | MlsimError:
    """Return the figures of a file, or why it was refused."""
    try:
        return figures(read_profile(path))
    except MlsimError as error:
        return error


@pytest.mark.parametrize("tens", range(0, 1000, 50))
def test_a_damaged_profile_is_right_or_refused(tens: int, tmp_path: Path) -> None:
    read = 0
    for seed in range(tens, tens + 50, STEP):
        name, way, before, after = damaged(seed)
        path = tmp_path / name
        path.write_bytes(before)
        original = figures(read_profile(path))
        path.write_bytes(after)
        found = outcome(path)
        if isinstance(found, MlsimError):
            told = (seed, name, way, repr(found))
            assert isinstance(found, DataFileError), told
            assert str(path) in str(found), told
            continue
        read += 1
        for each in found:
            assert any(agrees(each, one) for one in original), (seed, name, way, each, original)
    assert read < 50


def test_what_changes_no_figure_is_read(tmp_path: Path) -> None:
    """Most of what another program or another country does to a file must not stop a reader."""
    read: dict[str, list[bool]] = {way: [] for way in ("encode", "shuffle", "locale", "insert")}
    for seed in range(1000, 1250):
        name, way, before, after = damaged(seed)
        if way not in read or name in ("trace.json", "perf.txt"):
            continue
        path = tmp_path / name
        path.write_bytes(before)
        original = figures(read_profile(path))
        path.write_bytes(after)
        found = outcome(path)
        read[way].append(isinstance(found, list))
        if isinstance(found, list):
            assert sorted(map(str, found)) == sorted(map(str, original)), seed
    assert {way: len(each) > 5 and sum(each) >= 0.8 * len(each) for way, each in read.items()} == (
        dict.fromkeys(read, True)
    )


def test_what_is_too_large_for_a_profile_is_refused_early(tmp_path: Path) -> None:
    head = b'"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    row = b'"0","k","gpu__time_duration.sum","us","3"\n'
    path = tmp_path / "packed.csv.gz"

    def packed(*lines: bytes) -> int:
        path.write_bytes(gzip.compress(b"".join((head, row, *lines))))
        return path.stat().st_size

    assert packed(b"\n" * 16 * 2**20) < 16 * 2**20 / 200
    with pytest.raises(DataFileError, match="more than 200 times its size"):
        read_profile(path)
    # Three megabytes may be as empty as they like, and many lines that say something are none.
    empty = (b" " * 1023 + b"\n") * 3 * 2**10
    assert packed(empty) < len(empty) / 200
    assert read_profile(path).kernels[0].seconds == 3e-6
    noise = random.Random(1).randbytes(500_000).hex().encode()
    lines = [b"==" + noise[at : at + 10_000] + b"\n" for at in range(0, 10**6, 10_000)]
    assert packed(*5 * lines) > 5 * 2**20 / 200
    assert read_profile(path).kernels[0].seconds == 3e-6
    for name, content, words in (
        ("line.csv", b"a" * 5 * 2**20, "more than 4,194,304 characters"),
        (
            "deep.json",
            b'{"traceEvents": [{"a": ' + b"[" * 200_000 + b"]}",
            r"nested too deeply|no JSON|ends within",
        ),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataFileError, match=words):
            read_profile(tmp_path / name)


# Address space for the interpreter, its libraries and the reader: a file read whole would need
# more.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20,) * 2)
from mlsim.profiling import read_profile
profile = read_profile(sys.argv[1])
print(sum(each.calls for each in profile.kernels), profile.time.to("s").magnitude)
"""


def read_within(path: Path) -> tuple[int, float]:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    calls, seconds = done.stdout.split()
    return int(calls), float(seconds)


@pytest.mark.slow
@pytest.mark.skipif(not JUDGE, reason="200 MB each: make judge")
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_200_megabytes_are_read_within_memory(kind: str, tmp_path: Path) -> None:
    path, count = tmp_path / f"large.{kind}", 0
    with path.open("w") as file:
        if kind == "csv":
            file.write('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n')
            while file.tell() < 200e6:
                name = f"void kernel_{count % 50}<float>({'float const*, ' * 10})"
                file.write(f'"{count}","{name}","gpu__time_duration.sum","ns","1,000"\n')
                count += 1
        else:
            file.write('{"traceEvents": [')
            while file.tell() < 200e6:
                args = {"device": 0, "stream": 7, "correlation": count, "grid": [1, 1, 1]}
                one = {"ph": "X", "cat": "kernel", "name": f"kernel_{count % 50}" + "x" * 200}
                one |= {"ts": 2 * count, "dur": 1, "args": args}
                file.write(("," if count else "") + json.dumps(one))
                count += 1
            file.write("]}")
    calls, seconds = read_within(path)
    assert calls == count
    assert seconds == pytest.approx(count * 1e-6)
