"""The parts of a measurement: kernels in C, samples, products, rounds, a disk."""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mlsim.errors import MissingLibraryError
from mlsim.hardware.this_machine import Machine, ReportedCache
from mlsim.profiling import Spread
from mlsim.profiling.measuring import parts, samples
from mlsim.profiling.measuring.cpu import reported_sizes
from mlsim.profiling.measuring.parts import (
    BLOCK,
    DiskError,
    DiskFile,
    NumpyKernels,
    Plan,
    RegisterChains,
    Stream,
    find_kernels,
    largest_set,
    sweep_sizes,
)
from mlsim.profiling.measuring.rounds import Rounds, run_rounds, too_noisy
from mlsim.profiling.measuring.samples import (
    Answer,
    ProductWorker,
    WorkerError,
    Workers,
    best_sample,
    disturbed,
    enough_passes,
    product_flops,
    thread_waits,
    try_sides,
)

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
def test_kernels_in_c_add_up_and_count_their_multiply_adds() -> None:
    compiled = parts.compile_kernels()
    a, b, c = np.zeros(1000), np.arange(1000.0), np.ones(1000)
    compiled.triad([a, b, c], 2)
    assert (a == b + 3).all()
    for variant in parts.VARIANTS:
        wide = [compiled.chains(variant, each, 10) for each in ("fp64", "fp32")]
        # Twelve chains; a vector holds twice as many numbers of half the size.
        assert wide == [12, 12] if variant == "no_vectors" else wide[1] == 2 * wide[0]
        assert wide[0] % 12 == 0


def test_a_compiler_that_fails_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(MissingLibraryError, match="could not compile the kernels: no such option"):
        parts.compile_kernels(str(broken))


def test_without_a_compiler_numpy_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.shutil, "which", lambda _: None)
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


def test_samples_that_others_disturbed_count_where_there_is_no_other() -> None:
    """Each of 2 passes waits for half of its time until as many were taken as are said."""
    now, taken = [0.0], [0]

    def sampled(samples: int, disturbed: int) -> tuple[float, bool, int]:
        now[0], taken[0] = 0.0, 0

        def job(_: int, passes: int) -> None:
            taken[0] += 1
            now[0] += passes * (0.3 if taken[0] <= disturbed else 0.5)

        def waits() -> dict[str, int]:
            return {"1": int(min(taken[0], disturbed) * 0.3e9)}

        with Workers(1, lambda: now[0], waits) as workers:
            found = best_sample(workers, job, 2, samples)
        return found.seconds, found.clean, taken[0]

    assert sampled(3, 0) == (pytest.approx(0.5), True, 3)
    # A disturbed one does not count, however fast; of disturbed ones alone four more are taken.
    assert sampled(3, 2) == (pytest.approx(0.5), True, 3)
    assert sampled(3, 5) == (pytest.approx(0.5), True, 6)
    assert sampled(3, 9) == (pytest.approx(0.3), False, 7)


def test_a_stream_takes_the_samples_that_fit_into_its_seconds() -> None:
    """A pass lasts 1 s by a clock that goes on by a second a look."""
    looks = itertools.count()
    with Workers(1, lambda: float(next(looks)), dict) as workers:
        stream = Stream(np, NumpyKernels(np), workers, 2**16)
        plan = Plan(0.5)
        for seconds, least, samples in ((0.0, 1, 1), (3.9, 1, 3), (0.0, 5, 5)):
            begin, tried = next(looks), int(not plan.passes)
            assert stream.sample(2**15, plan, seconds, least) == (stream.moved(2**15), True)
            assert next(looks) - begin - 1 == 2 * (samples + tried)
        assert (plan.passes, plan.taken) == ({2**15: 1}, {2**15: 1.0})


def test_products_grow_until_one_takes_long_enough() -> None:
    """Of 1 GFLOP/s: 256 cubed takes 34 ms, so the next takes 268 and ends it.

    Of 5 GFLOP/s 512 takes 54 ms; of 100, 1024 takes 21 and 1536 takes 72.
    """

    def tried(rate: float, floor: float = 0.0, most: int = 10**9) -> tuple[list[int], str]:
        def multiply(_: str, side: int, times: int) -> Answer:
            if side > most:
                return Answer((), "no memory")
            best = product_flops(side) / rate
            return Answer((2 * best,) * (times - 1) + (best,), "")

        rates, reason = try_sides(SimpleNamespace(multiply=multiply), "fp32", floor)
        assert all(each == pytest.approx(rate) for each in rates.values())
        return list(rates), reason

    assert tried(1e9) == ([256, 512], "")
    assert tried(0.1e9) == ([256], "")
    assert tried(5e9) == ([256, 512], "")
    assert tried(100e9) == ([256, 512, 1024, 1536], "")
    assert tried(100e9, most=600) == ([256, 512], "no memory")
    # The first side is spared if it is not far slower; the second is not.
    assert tried(0.1e9, floor=1e9) == ([256], "")
    assert tried(0.1e9, floor=3e9)[0] == []
    slow, reason = tried(10e9, floor=11e9)
    assert slow == []
    assert reason.startswith("10 GFLOP/s, less than in wider numbers")


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
        # Who takes memory touches it first; who shares another's leaves it as it is.
        assert (stream.memory == 1).all()
        stream.memory[:] = 7
        size = sweep_sizes(2**20, 2)[-1]
        for worker in range(2):
            a, b, c = stream.arrays(worker, size)
            assert len(a) == len(b) == len(c) == size // 2 // 3 // 8
            assert not np.shares_memory(a, b)
            assert not np.shares_memory(b, c)
            assert a.ctypes.data % 64 == 0
            # Behind the last line of one nine more lie before the next.
            lines = -(-a.nbytes // 64)
            assert (
                b.ctypes.data - a.ctypes.data == c.ctypes.data - b.ctypes.data == 64 * (lines + 9)
            )
        assert stream.moved(size) == size
        # 1,000 B for two are 500 each, of which three arrays hold 20 numbers each.
        assert stream.moved(1000) == 2 * 3 * 20 * 8
        # One core goes through the memory of both, and each round through another part of it.
        with Workers(1) as one:
            alone = Stream(np, NumpyKernels(np), one, 2**20, stream.memory)
            assert (alone.memory == 7).all()
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
    samples.serve("numpy", 1, questions, out)
    hello, single, none, double = map(json.loads, out.getvalue().splitlines())
    assert hello["version"].startswith("NumPy ")
    assert min(len(each["seconds"]) for each in (single, double)) >= 3
    assert len(single["seconds"]) == len(single["disturbed"])
    assert "fp8" in none["error"]


def test_pytorch_multiplies_in_the_format_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in whose matrices are words of their side and their format."""
    done: list[Any] = []
    words = {name: f"as {name}" for name in ("float64", "float32", "bfloat16", "float16", "int8")}
    made = {
        "__version__": "9.9",
        "set_num_threads": done.append,
        "rand": lambda sides: SimpleNamespace(to=lambda kind: (sides, kind)),
        "ones": lambda sides, dtype: (sides, dtype),
        "empty": lambda sides, dtype: (sides, dtype),
        "matmul": lambda a, b, out: done.append((a, b, out)),
        "_int_mm": lambda a, b: done.append((a, b)),
    }
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(**words, **made))
    version, make = samples.torch_products(3)
    for kind in ("fp64", "fp32", "bf16", "fp16", "int8"):
        make(kind, 7)()
    expected = [((7, 7), f"as {name}") for name in words]
    assert done == [3, *((each, each, each) for each in expected[:4]), (expected[4], expected[4])]
    assert version == "PyTorch 9.9"


def test_a_product_that_is_slow_at_first_is_warm_when_it_is_timed() -> None:
    """As measured: a product of 7 ms took 9 in its first, and settled within 20 ms of work."""
    now = 0.0

    def product() -> None:
        nonlocal now
        now += 0.009 if now < 0.02 else 0.007

    question = {"format": "fp32", "side": 8, "times": 2}
    said = samples.answer(lambda *_: product, question, lambda: now, dict)
    # Three slow and one fast one warm up for 30 ms or more, six are timed for 40 or more.
    assert (len(said["seconds"]), now) == (6, pytest.approx(4 * 0.007 + 0.006 + 6 * 0.007))
    assert all(each == pytest.approx(0.007) for each in said["seconds"])
    assert Answer(tuple(said["seconds"]), "", tuple(said["disturbed"])).best is not None


def test_products_that_others_disturbed_are_marked_and_more_are_taken() -> None:
    """Half of each product until the fourth, of which one warms up; then of all of them."""
    now, count, most = 100.0, 0, 3

    def product() -> None:
        nonlocal now, count
        now, count = now + 0.1, count + 1

    def answered() -> Any:
        question = {"format": "fp32", "side": 8, "times": 2}
        return samples.answer(
            lambda *_: product,
            question,
            lambda: now,
            lambda: {"1": int(min(count, most) * 0.05e9)},
        )

    assert answered()["disturbed"] == [True, True, False]
    most = 99
    assert answered()["disturbed"] == [True] * 4
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


def test_a_file_is_written_read_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two blocks of two and a half; past the cache by a flag that does nothing here."""
    monkeypatch.setattr("os.O_DIRECT", os.O_CLOEXEC, raising=False)
    times = iter([0.0, 2.0, 3.0, 7.0, 7.0])
    with DiskFile(tmp_path, 5 * BLOCK // 2, lambda: next(times)) as file:
        assert file.write() == 2.0
        assert file.path.stat().st_size == file.size == 2 * BLOCK
        assert file.read() == 4.0
        os.truncate(file.path, BLOCK)
        with pytest.raises(DiskError, match="is shorter than it was written"):
            file.read()
        os.truncate(file.path, 0)
        # What is read from memory is no disk.
        monkeypatch.setattr("os.O_DIRECT", 0)
        monkeypatch.setattr("sys.platform", "other")
        with pytest.raises(DiskError, match="no way to read a file past its cache"):
            file.read()

        def refuse(*_: object) -> int:
            raise OSError(22, "Invalid argument")

        monkeypatch.setattr("os.open", refuse)
        with pytest.raises(DiskError, match="lies in memory"):
            file.read()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DiskError, match="no file can be written"):
        DiskFile(tmp_path / "none")


def test_a_core_has_its_own_caches_and_all_of_them_those_of_all() -> None:
    caches = (ReportedCache(1, 32, 4), ReportedCache(3, 1000, 2))
    machine = Machine("Chip", "", 4, 2**30, caches, "Linux")
    one, every = (
        reported_sizes(machine, SimpleNamespace(table=table))  # type: ignore[arg-type]
        for table in ("one_core", "compute")
    )
    assert (one, every) == ({1: 32, 3: 1000}, {1: 128, 3: 2000})


def test_each_ceiling_has_its_variant_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int]] = []
    monkeypatch.setattr(RegisterChains, "rate", lambda _, *given: asked.append(given) or len(asked))
    found = RegisterChains(SimpleNamespace(), SimpleNamespace()).measure(7)  # type: ignore[arg-type]
    assert {f"ceilings.{precision}_{variant}" for variant, precision, _ in asked} == set(found)
    assert {precision for _, precision, _ in asked} == {"fp64", "fp32"}
    assert {samples for _, _, samples in asked} == {7}
    assert list(found.values()) == list(range(1, len(asked) + 1))
