"""The parts of a measurement: kernels in C, samples, products, rounds, a disk."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mlsim.errors import MissingLibraryError
from mlsim.hardware.this_machine import Machine, ReportedCache
from mlsim.profiling import Spread
from mlsim.profiling.measuring import c_kernels, product_worker
from mlsim.profiling.measuring.disk import BLOCK, DiskError, DiskFile
from mlsim.profiling.measuring.other_kernels import NumpyKernels, find_kernels
from mlsim.profiling.measuring.products import Answer, ProductWorker, WorkerError
from mlsim.profiling.measuring.rounds import Rounds, run_rounds, too_noisy
from mlsim.profiling.measuring.samples import Workers, enough_passes
from mlsim.profiling.measuring.streams import Stream, largest_set, sweep_sizes
from mlsim.profiling.measuring.waiting import disturbed, thread_waits

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def compiled() -> c_kernels.CompiledKernels:
    return c_kernels.compile_kernels()


@needs_compiler
def test_the_triad_in_c_is_a_triad(compiled: c_kernels.CompiledKernels) -> None:
    a, b, c = np.zeros(1000), np.arange(1000.0), np.ones(1000)
    compiled.triad([a, b, c], 2)
    assert (a == b + 3).all()


@needs_compiler
def test_chains_count_their_multiply_adds(compiled: c_kernels.CompiledKernels) -> None:
    for variant in c_kernels.VARIANTS:
        wide = [compiled.chains(variant, each, 10) for each in ("fp64", "fp32")]
        # Twelve chains; a vector holds twice as many numbers of half the size.
        assert wide == [12, 12] if variant == "no_vectors" else wide[1] == 2 * wide[0]
        assert wide[0] % 12 == 0


def test_a_compiler_that_fails_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(MissingLibraryError, match="could not compile the kernels: no such option"):
        c_kernels.compile_kernels(str(broken))


def test_without_a_compiler_numpy_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_kernels.shutil, "which", lambda _: None)
    with pytest.raises(MissingLibraryError, match="there is no C compiler"):
        find_kernels(np, "c")
    kernels = find_kernels(np, "numpy")
    assert isinstance(kernels, NumpyKernels)
    a = np.zeros(8)
    kernels.triad([a, np.ones(8), np.ones(8)], 3)
    assert (a == 2).all()


def test_workers_start_together_and_end_with_the_last() -> None:
    times = iter([0.0, 0.1, 5.0, 7.0])
    seen: list[tuple[int, int]] = []
    with Workers(2, lambda: next(times)) as workers:
        taken = workers.seconds(lambda worker, passes: seen.append((worker, passes)), 3)
    assert sorted(seen) == [(0, 3), (1, 3)]
    assert taken == 7.0


def test_a_sample_is_long_enough_for_its_clock() -> None:
    now = [0.0]

    def job(_: int, passes: int) -> None:
        now[0] += 1e-6 * passes

    with Workers(1, lambda: now[0]) as workers:
        passes, taken = enough_passes(workers, job, least=0.005)
    assert 5000 <= passes <= 50_000
    assert taken >= 0.005


def test_working_sets_grow_to_four_times_the_caches() -> None:
    machine = Machine("chip", "", 2, 2**35, (ReportedCache(3, 2**25, 2),), "")
    assert largest_set(machine) == 3 * 4 * 2**26
    # Memory is left to others.
    assert largest_set(Machine("chip", "", 2, 2**28, machine.caches, "")) == 2**26
    sizes = sweep_sizes(2**26, workers=2)
    assert sizes == sorted(set(sizes))
    assert all(size % (2 * 3 * 64) == 0 for size in sizes)


def test_the_arrays_of_a_set_lie_apart() -> None:
    with Workers(2) as workers:
        stream = Stream(np, NumpyKernels(np), workers, 2**20)
        size = sweep_sizes(2**20, 2)[-1]
        for worker in range(2):
            a, b, c = stream.arrays(worker, size)
            assert len(a) == len(b) == len(c) == size // 2 // 3 // 8
            assert not np.shares_memory(a, b)
            assert not np.shares_memory(b, c)
            assert a.ctypes.data % 64 == 0
        assert stream.moved(size) == size
        # One core goes through the memory of both, and each round through another part of it.
        with Workers(1) as one:
            alone = Stream(np, NumpyKernels(np), one, 2**20, stream.memory)
            begin = alone.arrays(0, 2**14)[0].ctypes.data
            assert np.shares_memory(alone.arrays(0, size)[2], stream.arrays(1, size)[2])
            alone.move()
            moved = alone.arrays(0, 2**14)[0].ctypes.data - begin
            assert moved > 0
            assert moved % 4096 == 0
            assert len(alone.arrays(0, size)[2]) == size // 3 // 8


def test_a_product_is_timed_by_lines() -> None:
    out = io.StringIO()
    questions = [
        json.dumps({"format": kind, "side": 8, "times": 3}) for kind in ("fp32", "fp8", "fp64")
    ]
    product_worker.serve("numpy", 1, questions, out)
    hello, single, none, double = map(json.loads, out.getvalue().splitlines())
    assert hello["version"].startswith("NumPy ")
    assert min(len(each["seconds"]) for each in (single, double)) >= 3
    assert len(single["seconds"]) == len(single["disturbed"])
    assert "fp8" in none["error"]


def test_a_product_that_is_slow_at_first_is_warm_when_it_is_timed() -> None:
    """As measured: a product of 7 ms took 9 in its first, and settled within 20 ms of work."""
    now = 0.0

    def product() -> None:
        nonlocal now
        now += 0.009 if now < 0.02 else 0.007

    question = {"format": "fp32", "side": 8, "times": 2}
    said = product_worker.answer(lambda *_: product, question, lambda: now, dict)
    assert len(said["seconds"]) >= 6
    assert all(each == pytest.approx(0.007) for each in said["seconds"])
    assert Answer(tuple(said["seconds"]), "", tuple(said["disturbed"])).best is not None


def test_products_that_others_disturbed_are_marked_and_more_are_taken() -> None:
    now, count = 0.0, 0

    def product() -> None:
        nonlocal now, count
        now, count = now + 0.1, count + 1

    def waits() -> dict[str, int]:
        # Half of each product until the fourth, of which one warms up.
        return {"1": int(min(count, 3) * 0.05e9)}

    question = {"format": "fp32", "side": 8, "times": 2}
    said = product_worker.answer(lambda *_: product, question, lambda: now, waits)
    assert said["disturbed"] == [True, True, False]
    assert Answer((0.2, 0.3, 0.1), "", (False, False, True)).best == 0.2
    assert Answer((0.2,), "", (True,)).best is None


def test_a_thread_that_waits_is_counted(tmp_path: Path) -> None:
    for thread, text in (("7", "900 40 3"), ("8", "900 60 3"), ("9", ""), ("x", "a b c")):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(text)
    assert thread_waits(tmp_path) == {"7": 40, "8": 60}
    assert thread_waits(tmp_path / "none") == {}
    # A thread that began meanwhile has waited before it worked here.
    assert not disturbed({"7": 40}, {"7": 40, "8": 10**9}, 1.0)


def test_a_process_of_its_own_multiplies_and_ends() -> None:
    with ProductWorker("numpy", 1) as worker:
        assert len(worker.multiply("fp64", 16, 2).seconds) >= 2
        process = worker._process
    assert process.poll() == 0
    with pytest.raises(WorkerError, match="ended"):
        worker.multiply("fp64", 16, 2)


def test_a_library_that_is_not_there() -> None:
    worker = ProductWorker("no_such_library", 1)
    with pytest.raises(WorkerError, match="no_such_library"):
        worker.__enter__()
    assert worker._process.poll() is not None


def test_rounds_end_in_time() -> None:
    now = [0.0]

    def slow() -> dict[str, float]:
        now[0] += 10.0
        return {"figure": 1.0}

    def rounds(seconds: float, **options: bool) -> Rounds:
        now[0] = 0.0
        return run_rounds({"slow": slow}, lambda: now[0], deadline=seconds, **options)

    # six rounds take 60 s, and may where 40 were allowed: half as long again
    assert rounds(40.0).count == 6
    assert now[0] == 60.0
    # where they take longer than that, it says so after two
    assert (rounds(39.0).count, now[0], rounds(39.0).wanted) == (2, 20.0, 60.0)
    assert (rounds(5.0).count, now[0]) == (1, 10.0)
    # what is of use all the same is measured up to the end
    assert (rounds(39.0, accept_noisy=True).count, now[0]) == (3, 30.0)
    now[0] = 0.0
    assert run_rounds({"slow": slow}, lambda: now[0], deadline=75.0).count == 7
    now[0] = 0.0
    assert run_rounds({"slow": slow}, lambda: now[0], deadline=1e6).count == 18
    # a first round without an end has one
    now[0] = 0.0
    parts = dict.fromkeys("abcdefgh", slow)
    found = run_rounds(parts, lambda: now[0], deadline=25.0)
    assert (found.count, now[0], len(found.values["figure"])) == (0, 30.0, 3)
    assert found.wanted == 6 * 80.0


def test_noise_has_a_limit() -> None:
    assert too_noisy(Spread.across([95.0, 100.0, 104.9])) == ""
    assert too_noisy(Spread.across([90.0, 100.0, 110.0])).startswith("too noisy")


def test_a_file_is_written_and_removed(tmp_path: Path) -> None:
    times = iter([0.0, 2.0])
    with DiskFile(tmp_path, 2 * BLOCK, lambda: next(times)) as file:
        assert file.write() == 2.0
        assert file.path.stat().st_size == 2 * BLOCK
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_t_be_written(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="no file can be written"):
        DiskFile(tmp_path / "none")


def test_what_is_read_from_memory_is_no_disk(tmp_path: Path, monkeypatch) -> None:
    with DiskFile(tmp_path, BLOCK) as file:
        file.write()

        def refuse(*_: object) -> int:
            raise OSError(22, "Invalid argument")

        monkeypatch.setattr("os.open", refuse)
        with pytest.raises(DiskError, match="lies in memory"):
            file.read()
