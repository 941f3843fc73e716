"""How fast products of matrices are, by number format, on one core and on all.

A process of its own multiplies, so that the number of threads is set before a library is
loaded, whatever was loaded here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from mlsim.errors import MlsimError

# Variables by which libraries for linear algebra take their number of threads.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
# Formats that a library may multiply in, the widest first.
FORMATS = ("fp64", "fp32", "bf16", "fp16", "int8")
# Sides of the square matrices that are tried, until one product takes this long.
SIDES = (256, 512, 1024, 1536, 2048, 3072, 4096)
LONG_ENOUGH = 0.05
TOO_LONG = 0.5
# A process that says nothing for so long is given up.
PATIENCE = 60.0


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

    def __init__(self, library: str, threads: int, start: Callable[..., Any] | None = None) -> None:
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
        self.library, self.threads, self.version = library, threads, ""
        self._process: Any = (start or subprocess.Popen)(
            [
                sys.executable,
                "-m",
                "mlsim.profiling.measuring.product_worker",
                library,
                str(threads),
            ],
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
            self.__exit__(None, None, None)
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
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
        A rate in FLOP/s. A format that is slower than this on its second side is given up:
        the processor has nothing for it, and the library converts each number.
    """
    rates: dict[int, float] = {}
    for number, side in enumerate(SIDES):
        answer = worker.multiply(number_format, side, 2)
        if answer.reason or not answer.seconds:
            return rates, answer.reason or "there is no product in this format"
        seconds = answer.best or min(answer.seconds)
        rate = rates[side] = product_flops(side) / seconds
        if number and rate < floor:
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
