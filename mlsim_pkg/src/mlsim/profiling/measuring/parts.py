"""What a round measures of a processor: memory, registers, the start of a call, and a disk.

Memory is gone through by working sets from a few kilobytes to far beyond caches. Each worker has
three arrays of its own within its share. Bytes are counted as STREAM counts them: 24 for each
element, two numbers read and one written, whatever else a cache moves. No product of matrices
reaches the ceilings of registers, since it must also fetch its numbers.

The kernels in C stand in `data/profilers/kernels.c`. They are compiled into a temporary folder for
this processor, and loaded; nothing is installed. Threads are Python's: a call leaves the
interpreter while it runs, so several run at once, with any compiler.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from mlsim.equations import roofline
from mlsim.errors import MissingLibraryError, MlsimError
from mlsim.hardware.this_machine import Machine
from mlsim.profiling.measuring.samples import Workers, best_sample, enough_passes
from mlsim.records import DATA

SOURCE = DATA / "profilers" / "kernels.c"
CHAINS = 12

# What the register kernels are compiled as: with everything, and with a thing less.
VARIANTS: dict[str, tuple[str, ...]] = {
    "registers": ("-ffp-contract=fast",),
    "no_fma": ("-ffp-contract=off",),
    "no_vectors": ("-ffp-contract=fast", "-DSCALAR", "-fno-tree-vectorize", "-fno-slp-vectorize"),
}
_OPTIONS = ("-O3", "-fPIC", "-shared")


@dataclass(frozen=True)
class CompiledKernels:
    """Loaded kernels, and the words that say how they were compiled."""

    libraries: dict[str, Any]
    compiler: str

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Go through three arrays of doubles so many times: the first gets b + 3 c."""
        addresses = [each.ctypes.data for each in arrays]
        self.libraries["registers"].triad(*addresses, 3.0, len(arrays[0]), passes)

    def chains(self, variant: str, precision: str, rounds: int) -> int:
        """Run chains of multiply-adds; return how many a round has."""
        out = ctypes.create_string_buffer(256)
        aligned = ctypes.addressof(out) + (-ctypes.addressof(out) % 64)
        function = getattr(self.libraries[variant], f"chains_{precision}")
        return CHAINS * int(function(rounds, aligned))


def find_compiler() -> str:
    """Return the path of a C compiler: that of the variable CC, else cc, gcc or clang.

    Raises
    ------
    MissingLibraryError
        If there is none.
    """
    for name in (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise MissingLibraryError(
        "there is no C compiler (cc, gcc, clang, or the variable CC). Install one (Debian: "
        "apt install gcc; macOS: xcode-select --install), or measure with NumPy alone."
    )


def compile_kernels(compiler: str | None = None) -> CompiledKernels:
    """Compile and load the kernels for this processor.

    Raises
    ------
    MissingLibraryError
        If there is no compiler, or it fails; with what it said.
    """
    path = compiler or find_compiler()
    with tempfile.TemporaryDirectory(prefix="mlsim-") as folder:
        libraries, native = {}, ""
        for variant, options in VARIANTS.items():
            target = Path(folder) / f"{variant}.so"
            native = _compile(path, target, options)
            libraries[variant] = _load(target)
    done, said = _said([path, "--version"])
    version = said.splitlines()[0].strip() if done and said else Path(path).name
    return CompiledKernels(libraries, f"{version} {_OPTIONS[0]} {native}".strip())


def _compile(compiler: str, target: Path, options: Sequence[str]) -> str:
    """Compile for this very processor; where a compiler can't, for any of its kind."""
    said = ""
    for native in ("-march=native", "-mcpu=native", ""):
        # A compiler that lacks an option that turns something off has nothing to turn off.
        for wanted in (options, [each for each in options if "slp" not in each]):
            command = [compiler, *_OPTIONS, *filter(None, [native]), *wanted]
            done, said = _said([*command, str(SOURCE), "-o", str(target)])
            if done and target.exists():
                return native
    last = said.splitlines()[-1] if said else "no message"
    raise MissingLibraryError(f"{compiler} could not compile the kernels: {last}")


def _load(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    numbers: list[Any] = [ctypes.c_double, ctypes.c_size_t, ctypes.c_long]
    library.triad.argtypes = [ctypes.c_void_p] * 3 + numbers
    library.triad.restype = None
    for precision in ("fp32", "fp64"):
        function = getattr(library, f"chains_{precision}")
        function.argtypes, function.restype = [ctypes.c_long, ctypes.c_void_p], ctypes.c_long
    return library


def _said(command: Sequence[str]) -> tuple[bool, str]:
    """Run a compiler; return whether it was content, and what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return False, str(error)
    return not done.returncode, (done.stdout + done.stderr).strip()


class NumpyKernels:
    """NumPy's addition of two arrays into a third: it moves what a triad moves.

    A call of NumPy takes about as long as a pass over some ten kilobytes, so the first level
    of cache does not show.
    """

    def __init__(self, numpy: Any) -> None:
        self._add = numpy.add
        self.compiler = f"NumPy {numpy.__version__}, addition of two arrays into a third"

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Add b and c into a, so many times."""
        a, b, c = arrays
        for _ in range(passes):
            self._add(b, c, out=a)


Kernels = NumpyKernels | CompiledKernels


def find_kernels(numpy: Any, kernels: str = "auto") -> Kernels:
    """Return the best kernels there are: C's, or NumPy's.

    Parameters
    ----------
    kernels
        "c" or "numpy" asks for these and nothing else.

    Raises
    ------
    MissingLibraryError
        If there is no C compiler, and its kernels were asked for.
    """
    if kernels in ("auto", "c"):
        try:
            return compile_kernels()
        except MissingLibraryError:
            if kernels == "c":
                raise
    return NumpyKernels(numpy)


ELEMENT = 8
ARRAYS = 3
# Sizes grow by the fourth root of two; the first fits in any first level.
STEPS_PER_DOUBLING = 4
SMALLEST = 8 * 2**10
# A working set of main memory: each array is four times all the caches, as STREAM asks.
BEYOND_CACHES = 4
LEAST_BEYOND = 64 * 2**20
# No more than this part of the memory is taken.
MEMORY_PART = 1 / 4
# Arrays begin on lines of their own, apart by an odd number of lines: equal low bits of
# addresses would make the three fight for one place in a cache.
LINE = 64
APART = 9 * LINE
PAGE = 4096
GOLDEN = (5**0.5 - 1) / 2


def largest_set(machine: Machine) -> int:
    """Return the size in B of a working set of main memory: three arrays of four caches.

    >>> largest_set(Machine("chip", "", 2, 2**36, (), "")) == 3 * 2**26
    True
    """
    caches = max((each.total for each in machine.caches), default=0)
    wanted = ARRAYS * max(BEYOND_CACHES * caches, LEAST_BEYOND)
    return min(wanted, int(machine.memory * MEMORY_PART)) if machine.memory else wanted


def sweep_sizes(largest: int, workers: int = 1, caches: int = 0) -> list[int]:
    """Return the working sets of a sweep, of all workers together, in B.

    Beyond twice the caches (in B, where they are known) only every doubling is taken: there is
    nothing more to find, and a pass over them takes long.

    >>> sizes = sweep_sizes(2**20)
    >>> sizes[0], sizes[4], sizes[-1], len(sizes)
    (8064, 16320, 1048512, 29)
    >>> len(sweep_sizes(2**20, caches=2**17))
    23
    """
    first, grain = SMALLEST * workers, ARRAYS * LINE * workers
    steps = ceil(STEPS_PER_DOUBLING * log2(largest / first))
    sizes = [first * 2 ** (step / STEPS_PER_DOUBLING) for step in range(steps)]
    kept = [
        size
        for step, size in enumerate(sizes)
        if not caches or size <= 2 * caches or step % STEPS_PER_DOUBLING == 0
    ]
    return [int(size) // grain * grain for size in [*kept, largest]]


def one_memory() -> bool:
    """Whether all memory is as near to every core, as far as Linux says; true elsewhere."""
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) < 2


class Stream:
    """Memory for one team of workers, and passes over parts of it.

    With the `memory` of another team of as many workers or more, none is taken: to touch
    gigabytes for the first time takes seconds.
    """

    def __init__(
        self, numpy: Any, kernels: Kernels, workers: Workers, largest: int, memory: Any = None
    ) -> None:
        self._kernels, self._workers = kernels, workers
        share = (largest // workers.count + ARRAYS * (APART + LINE)) // ELEMENT + LINE
        fresh = memory is None
        self.memory = numpy.empty(workers.count * share, dtype=numpy.float64) if fresh else memory
        self._blocks = [self.memory[n * share :][:share] for n in range(workers.count)]
        if fresh:
            # Memory belongs to the core that touches it first.
            workers.each(lambda worker: self._blocks[worker].fill(1.0))
        self._place = 0.0

    def move(self) -> None:
        """Let the sets lie elsewhere: other pages fall on other places of a cache.

        By the golden ratio, so that no two rounds are near each other.
        """
        self._place = (self._place + GOLDEN) % 1

    def arrays(self, worker: int, size: int) -> list[Any]:
        """Return a worker's three arrays within a working set of all workers."""
        block = self._blocks[worker]
        count = size // self._workers.count // ARRAYS // ELEMENT
        begin = -block.ctypes.data % LINE // ELEMENT
        stride = count + (-count % (LINE // ELEMENT)) + APART // ELEMENT
        free = max(0, len(block) - begin - ARRAYS * stride)
        begin += int(self._place * free) // (PAGE // ELEMENT) * (PAGE // ELEMENT)
        return [block[begin + n * stride :][:count] for n in range(ARRAYS)]

    def moved(self, size: int) -> int:
        """Return the bytes of a pass over a working set, as STREAM counts them."""
        whole = self._workers.count * ARRAYS * ELEMENT
        return size // whole * whole

    def sample(
        self, size: int, plan: Plan, seconds: float = 0.0, least: int = 1
    ) -> tuple[float, bool]:
        """Return the best rate in B/s of the samples that fit into some seconds, or of the least.

        The first call finds out how many passes make a sample. Beside the rate stands whether no
        other program took a core.
        """
        sets = [self.arrays(worker, size) for worker in range(self._workers.count)]

        def job(worker: int, passes: int) -> None:
            self._kernels.triad(sets[worker], passes)

        if size not in plan.passes:
            plan.passes[size], plan.taken[size] = enough_passes(self._workers, job, plan.least)
        times = max(least, int(seconds / plan.taken[size]))
        found = best_sample(self._workers, job, plan.passes[size], times)
        return self.moved(size) / found.seconds, found.clean


@dataclass
class Plan:
    """How many passes make a sample, for each size, and how long the first one took."""

    least: float
    passes: dict[int, int] = field(default_factory=dict)
    taken: dict[int, float] = field(default_factory=dict)


PRECISIONS = ("fp64", "fp32")


class RegisterChains:
    """Chains of multiply-adds on every worker."""

    def __init__(self, kernels: CompiledKernels, workers: Workers) -> None:
        self._kernels, self._workers = kernels, workers
        self._rounds: dict[tuple[str, str], int] = {}

    def rate(self, variant: str, precision: str, samples: int) -> float | None:
        """Return operations a second of all workers; None where all samples were disturbed."""

        def job(_: int, passes: int) -> None:
            self._kernels.chains(variant, precision, passes)

        key = (variant, precision)
        if key not in self._rounds:
            self._rounds[key], _ = enough_passes(self._workers, job, begin=10_000)
        found = best_sample(self._workers, job, self._rounds[key], samples)
        if not found.clean:
            return None
        adds = self._kernels.chains(variant, precision, 1) * self._workers.count
        return float(roofline.achieved_flops(roofline.flops(2.0, float(adds), 1.0), found.seconds))

    def measure(self, samples: int) -> dict[str, float | None]:
        """Return the rate of each variant and precision: "ceilings.fp32_no_fma"."""
        return {
            f"ceilings.{precision}_{variant}": self.rate(variant, precision, samples)
            for variant in VARIANTS
            for precision in PRECISIONS
        }


def call_start(numpy: Any, workers: Workers, samples: int) -> Callable[[], float | None]:
    """Return what finds the least time of a call of NumPy on a single number: all of it is start.

    It is None where other programs disturbed all samples.
    """
    one, out, add = numpy.ones(1), numpy.ones(1), numpy.add

    def calls(_: int, passes: int) -> None:
        for _ in range(passes):
            add(one, one, out=out)

    passes, _ = enough_passes(workers, calls, begin=100)

    def seconds() -> float | None:
        found = best_sample(workers, calls, passes, samples)
        return found.seconds if found.clean else None

    return seconds


SIZE = 128 * 2**20
BLOCK = 4 * 2**20
# macOS: F_NOCACHE of fcntl.
_NO_CACHE = 48


class DiskError(MlsimError, OSError):
    """A file can't be written here, or its cache can't be passed by."""


class DiskFile:
    """A file of our own in a folder, which is removed at the end."""

    def __init__(
        self, folder: Path, size: int = SIZE, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._clock, self.size = clock, size // BLOCK * BLOCK
        # A page-aligned block; random, since a file system may compress or leave out zeros.
        self._block = mmap.mmap(-1, BLOCK)
        self._block.write(os.urandom(BLOCK))
        try:
            handle, name = tempfile.mkstemp(prefix="mlsim-disk-", dir=folder)
        except OSError as error:
            raise DiskError(f"no file can be written in {folder}: {error.strerror}.") from error
        os.close(handle)
        self.path = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()
        self.path.unlink(missing_ok=True)

    def write(self) -> float:
        """Return the seconds until the whole file is on the disk.

        Raises
        ------
        DiskError
            If it can't be written: the disk is full, or the folder is read-only.
        """
        try:
            begin = self._clock()
            handle = os.open(self.path, os.O_WRONLY | os.O_TRUNC)
            try:
                for _ in range(self.size // BLOCK):
                    view = memoryview(self._block)
                    while view:
                        view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            return self._clock() - begin
        except OSError as error:
            raise DiskError(f"{self.path} can't be written: {error.strerror}.") from error

    def read(self) -> float:
        """Return the seconds in which the whole file is read from the disk.

        Raises
        ------
        DiskError
            If the system's cache can't be passed by: then a rate would be that of memory.
        """
        handle = self._open_past_cache()
        try:
            begin, left = self._clock(), self.size
            while left > 0:
                done = os.readv(handle, [self._block])
                if done <= 0:
                    raise DiskError(f"{self.path} is shorter than it was written.")
                left -= done
            return self._clock() - begin
        except OSError as error:
            raise DiskError(f"{self.path} can't be read: {error}.") from error
        finally:
            os.close(handle)

    def _open_past_cache(self) -> int:
        direct = getattr(os, "O_DIRECT", 0)
        try:
            handle = os.open(self.path, os.O_RDONLY | direct)
        except OSError as error:
            raise DiskError(
                f"{self.path.parent} lies in memory, or its system keeps every file there: what "
                f"is read does not come from a disk. Name another folder by --disk-folder."
            ) from error
        if direct:
            return handle
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(handle, _NO_CACHE, 1)
            return handle
        os.close(handle)
        raise DiskError("this system has no way to read a file past its cache in memory.")
