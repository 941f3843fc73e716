"""Samples of time, long enough for the clock: on threads of this process, or of one of its own.

Linux counts for each thread how long it waited for a core. A neighbor who works all the time slows
every sample alike: no spread shows that, and the least of many samples does not get past it. Where
the system does not say, every sample counts as undisturbed.

Products of matrices run in a process of their own, so that the number of threads is set before a
library is loaded, whatever was loaded here. This module is that process, too: a line of JSON in, a
line of JSON out; it ends with its input.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self, TextIO

from mlsim.errors import MlsimError

# A sample in which a thread waited longer than this part of it tells of other programs.
DISTURBED = 0.02

# Nanoseconds that each thread of this process has waited so far, by its number.
Waits = Callable[[], Mapping[str, int]]
_THREADS = Path("/proc/self/task")


def thread_waits(threads: Path = _THREADS) -> Mapping[str, int]:
    """Return how long each thread of this process has waited for a core, in ns.

    The system counts it in the second number of each thread's `schedstat`.
    """
    found: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for each in threads.iterdir():
            # A thread may end meanwhile, and a system may print other things.
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[each.name] = int((each / "schedstat").read_text().split()[1])
    return found


def disturbed(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> bool:
    """Whether other programs took a core from a sample of so many seconds.

    The thread that waited longest decides: the others wait for it at the end.

    >>> disturbed({"1": 0, "2": 0}, {"1": 0, "2": 100_000}, 0.01)
    False
    >>> disturbed({"1": 0, "2": 0}, {"1": 0, "2": 4_000_000}, 0.01)
    True
    """
    longest = max((ns - before.get(thread, ns) for thread, ns in after.items()), default=0)
    return longest * 1e-9 > DISTURBED * seconds


Clock = Callable[[], float]
# A job gets the number of its worker and how many passes to make.
Job = Callable[[int, int], object]

# A sample takes this long at least: the clock and the start of threads are small beside it.
LEAST_SECONDS = 0.005
MOST_PASSES = 2**40
# If other programs disturbed all samples, so many more are taken.
MORE_SAMPLES = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """The best of some samples.

    Attributes
    ----------
    seconds
        How long a pass took.
    clean
        Whether no other program took a core from it.
    """

    seconds: float
    clean: bool


class Workers:
    """So many threads that start together; a sample lasts from the first start to the last end.

    One worker runs in the calling thread.
    """

    def __init__(
        self, count: int, clock: Clock = perf_counter, waits: Waits = thread_waits
    ) -> None:
        self.count, self._clock, self._waits = count, clock, waits
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown()

    def each(self, job: Callable[[int], object]) -> None:
        """Let each worker do something once, such as touching its memory first."""
        self._spans(lambda worker, _: job(worker), 1)

    def seconds(self, job: Job, passes: int) -> float:
        """Return how long it took until all workers had made so many passes."""
        spans = self._spans(job, passes)
        return max(end for _, end in spans) - min(begin for begin, _ in spans)

    def sample(self, job: Job, passes: int) -> Sample:
        """Return how long so many passes took, and whether no other program took a core."""
        before = self._waits()
        seconds = self.seconds(job, passes)
        return Sample(seconds, not disturbed(before, self._waits(), seconds))

    def _spans(self, job: Job, passes: int) -> Sequence[tuple[float, float]]:
        if self._pool is None:
            begin = self._clock()
            job(0, passes)
            return [(begin, self._clock())]
        gate = threading.Barrier(self.count)

        def run(worker: int) -> tuple[float, float]:
            gate.wait()
            begin = self._clock()
            job(worker, passes)
            return begin, self._clock()

        return list(self._pool.map(run, range(self.count)))


def enough_passes(
    workers: Workers, job: Job, least: float = LEAST_SECONDS, begin: int = 1
) -> tuple[int, float]:
    """Return how many passes take `least` seconds, and how long the last try took.

    The first call also warms the caches up.
    """
    passes = begin
    while True:
        taken = workers.seconds(job, passes)
        if taken >= least or passes >= MOST_PASSES:
            return passes, taken
        # Aim a tenth beyond, at most ten times further: short times are not to be trusted.
        wanted = 1.1 * least / taken if taken > 0 else 10.0
        passes = max(passes + 1, int(passes * min(wanted, 10.0)))


def best_sample(workers: Workers, job: Job, passes: int, samples: int) -> Sample:
    """Return the best of some samples, for one pass: of those that nobody disturbed, if any.

    Where all were disturbed, a few more are taken, until one is not.
    """
    found: list[Sample] = []
    while len(found) < samples or (
        len(found) < samples + MORE_SAMPLES and not any(each.clean for each in found)
    ):
        found.append(workers.sample(job, passes))
    clean = [each for each in found if each.clean]
    least = min(each.seconds for each in clean or found)
    return Sample(least / passes, bool(clean))


# Threads wake up and a processor's clock settles within some 20 ms of work; then all products of a
# while are taken. If other programs disturbed all of them, a few more.
WARM_SECONDS, SAMPLE_SECONDS, MORE_PRODUCTS = 0.03, 0.04, 2
# Short products follow one another without a pause for so long; then it is asked who was disturbed.
BLOCK_SECONDS = 0.01
# A format's name in a library.
NUMPY = {"fp64": "float64", "fp32": "float32"}
TORCH = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

Product = Callable[[], object]
Maker = Callable[[str, int], Product]


def numpy_products(threads: int) -> tuple[str, Maker]:
    """Return NumPy's version with that of its library, and what makes a product."""
    import numpy as np

    def make(number_format: str, side: int) -> Product:
        kind = NUMPY[number_format]
        # Random numbers, since a core that multiplies zeros stays cool; few, since they take time.
        few = np.random.default_rng(0).random(2**16 + 1).astype(kind)
        a, b = (np.resize(few, (side, side)) for _ in range(2))
        out = np.empty((side, side), dtype=kind)
        return lambda: np.matmul(a, b, out=out)

    return f"NumPy {np.__version__}{_blas(np)}", make


def _blas(numpy: Any) -> str:
    try:
        found = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        version = found.get("version", "")
        return f" with {found['name']} {version}".rstrip()
    except (AttributeError, KeyError, TypeError):
        return ""


def torch_products(threads: int) -> tuple[str, Maker]:
    """Return PyTorch's version, and what makes a product on the processor."""
    import torch

    torch.set_num_threads(threads)

    def make(number_format: str, side: int) -> Product:
        if number_format == "int8":
            whole = [torch.ones((side, side), dtype=torch.int8) for _ in range(2)]
            return lambda: torch._int_mm(*whole)
        kind = getattr(torch, TORCH[number_format])
        a, b = (torch.rand((side, side)).to(kind) for _ in range(2))
        out = torch.empty((side, side), dtype=kind)
        return lambda: torch.matmul(a, b, out=out)

    return f"PyTorch {torch.__version__}", make


LIBRARIES: dict[str, Callable[[int], tuple[str, Maker]]] = {
    "numpy": numpy_products,
    "torch": torch_products,
}


def answer(
    make: Maker,
    question: Any,
    clock: Callable[[], float] = perf_counter,
    waits: Waits = thread_waits,
) -> dict[str, Any]:
    """Time the products of one question; return seconds, or why there are none."""
    try:
        product = make(question["format"], question["side"])
        seconds, marks = _timed(product, question["times"], clock, waits)
    except KeyError as error:
        return {
            "error": f"NumPy multiplies no {error.args[0]}; PyTorch does, where it is installed"
        }
    except (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        return {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}
    return {"seconds": seconds, "disturbed": marks}


def _timed(
    product: Product, times: int, clock: Callable[[], float], waits: Waits
) -> tuple[list[float], list[bool]]:
    """Warm up, then time products; return seconds of each, and whether others disturbed it."""
    begin = last = clock()
    taken = 0.0
    while not taken or last - begin < WARM_SECONDS:
        product()
        now = clock()
        last, taken = now, now - last
    block = max(1, int(BLOCK_SECONDS / taken)) if taken else 1
    seconds: list[float] = []
    marks: list[bool] = []
    begin = clock()
    while (
        len(seconds) < times
        or clock() - begin < SAMPLE_SECONDS
        or (all(marks) and len(seconds) < times + MORE_PRODUCTS)
    ):
        before, first = waits(), clock()
        last = first
        for _ in range(block):
            product()
            now = clock()
            seconds.append(now - last)
            last = now
        marks += [disturbed(before, waits(), last - first)] * block
    return seconds, marks


def serve(library: str, threads: int, questions: Iterable[str], out: TextIO) -> None:
    """Answer one question after the other, until there are no more."""

    def say(what: dict[str, Any]) -> None:
        print(json.dumps(what), file=out, flush=True)

    try:
        version, make = LIBRARIES[library](threads)
    except ImportError as error:
        say({"error": f"not installed: {error}"})
        return
    say({"version": version})
    for line in questions:
        say(answer(make, json.loads(line)))


# Variables by which libraries for linear algebra take their number of threads.
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")
THREAD_VARIABLES = (*(f"{each}_NUM_THREADS" for each in _LIBRARIES), "VECLIB_MAXIMUM_THREADS")
# Formats that a library may multiply in, the widest first.
FORMATS = ("fp64", "fp32", "bf16", "fp16", "int8")
# Sides of the square matrices that are tried, until one product takes this long.
SIDES = (256, 512, 1024, 1536, 2048, 3072, 4096)
LONG_ENOUGH = 0.05
# On its first side a format is given up if it is so many times slower than another.
FAR_BELOW = 20
TOO_LONG = 0.5


class WorkerError(MlsimError, RuntimeError):
    """The process that multiplies ended, or said what can't be understood."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker said: seconds of products, or why there are none.

    Attributes
    ----------
    disturbed
        Of each product, whether other programs took a core from it; empty where nobody says.
    """

    seconds: tuple[float, ...]
    reason: str = ""
    disturbed: tuple[bool, ...] = ()

    @property
    def best(self) -> float | None:
        """The least time of a product that no other program disturbed; None if there is none."""
        marks = self.disturbed or (False,) * len(self.seconds)
        clean = [each for each, mark in zip(self.seconds, marks, strict=True) if not mark]
        return min(clean, default=None)


class ProductWorker:
    """A process that multiplies matrices with one library and so many threads.

    It is asked by a line of JSON, and answers by one.
    """

    def __init__(self, library: str, threads: int) -> None:
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
        self.library, self.threads, self.version = library, threads, ""
        self._process: Any = subprocess.Popen(
            [sys.executable, "-m", __name__, library, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Self:
        """Wait until the library is loaded; see `wait`."""
        try:
            self.wait()
        except WorkerError:
            self.__exit__()
            raise
        return self

    def wait(self) -> None:
        """Wait until the library is loaded.

        Raises
        ------
        WorkerError
            If it can't be.
        """
        hello = self._read()
        if "version" not in hello:
            raise WorkerError(f"{self.library}: {hello.get('error', 'no answer')}")
        self.version = str(hello["version"])

    def __exit__(self, *_: object) -> None:
        try:
            self._process.stdin.close()
            self._process.wait(timeout=2)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()

    def multiply(self, number_format: str, side: int, times: int) -> Answer:
        """Return the seconds of so many products or more, after some that are not counted.

        Raises
        ------
        WorkerError
            If the process ended.
        """
        question = {"format": number_format, "side": side, "times": times}
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise WorkerError(f"{self.library}: the process that multiplies ended.") from error
        said = self._read()
        return Answer(
            tuple(said.get("seconds", ())),
            str(said.get("error", "")),
            tuple(said.get("disturbed", ())),
        )

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise WorkerError(f"{self.library}: the process that multiplies ended.")
        return said


def try_sides(
    worker: ProductWorker, number_format: str, floor: float = 0.0
) -> tuple[dict[int, float], str]:
    """Try larger and larger products; return rates in FLOP/s by side, or why there are none.

    Parameters
    ----------
    floor
        A rate in FLOP/s. A format that is slower than this on its second side, or far slower on
        its first, is given up:
        the processor has nothing for it, and the library converts each number.
    """
    rates: dict[int, float] = {}
    for number, side in enumerate(SIDES):
        answer = worker.multiply(number_format, side, 2)
        if answer.reason or not answer.seconds:
            return rates, answer.reason or "there is no product in this format"
        seconds = answer.best or min(answer.seconds)
        rate = rates[side] = product_flops(side) / seconds
        if rate < (floor if number else floor / FAR_BELOW):
            return {}, (
                f"{rate / 1e9:.3g} GFLOP/s, less than in wider numbers: the processor has no "
                "unit for it, and the library converts each number"
            )
        if seconds > LONG_ENOUGH or seconds * 8 > TOO_LONG:
            break
    return rates, ""


def product_flops(side: int) -> float:
    """Return the operations of a product of two square matrices.

    >>> product_flops(1000)
    2000000000.0
    """
    from mlsim.equations import roofline

    return float(roofline.flops(2.0, float(side) ** 3, 1.0))


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.stdin, sys.stdout)
