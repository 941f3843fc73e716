"""A machine that does not exist: its kernels only move its clock, so all its rates are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, sqrt
from random import Random
from types import SimpleNamespace
from typing import Any, Self

import numpy

from mlsim.hardware.this_machine import Machine, ReportedCache
from mlsim.profiling.measuring.samples import Answer, disturbed

KIB = 2**10
CACHES = (ReportedCache(1, 32 * KIB, 1), ReportedCache(2, 512 * KIB, 1))
RATES = (100e9, 50e9, 20e9)
START = 2e-6
NEIGHBOR = 10.0
PRODUCTS = {"fp64": 50e9, "fp32": 100e9, "bf16": 400e9, "fp16": 1e9}
MACHINE = Machine("Made Chip 1", "Nobody", 1, 160 * 2**20, CACHES, "Linux 6 x86_64")


class MadeMachine:
    """Kernels, products and a clock. `noise` is how far each sample may be slowed down.

    What is `noisy` is slowed down for some seconds, by a factor that nobody foresees.

    A `neighbor` is a program that takes this part of the core, all the time or in every second
    `NEIGHBOR` seconds only (`comes`). The system says how long a thread waited for it.

    Its speed may drift: its logarithm has the standard deviation `drift`, and is forgotten within
    some `memory` seconds, as that of an Ornstein-Uhlenbeck process.
    """

    compiler = "made kernels"

    def __init__(
        self,
        noise: float = 0.002,
        seed: int = 0,
        noisy: Sequence[str] = (),
        drift: float = 0.0,
        memory: float = 10.0,
        neighbor: float = 0.0,
        comes: bool = False,
    ) -> None:
        self.now, self._random = 0.0, Random(seed)
        self.noise, self.noisy, self.drift, self.memory = noise, noisy, drift, memory
        self.neighbor, self.comes, self.waited = neighbor, comes, 0.0
        self._speed, self._seen = self._random.gauss(), 0.0

    def clock(self) -> float:
        """Return the time; to look at it takes a little."""
        self.now += 1e-8
        return self.now

    def take(self, seconds: float, what: str = "") -> None:
        """Let time pass, more where there is noise."""
        slower = self.noise * self._random.random()
        if what in self.noisy:
            # A neighbor who comes and goes: the best of many samples does not get past it.
            slower = 1.5 * Random(f"{what} {self.now // NEIGHBOR}").random()
        if self.drift:
            kept = exp((self._seen - self.now) / self.memory)
            self._speed = kept * self._speed + sqrt(1 - kept * kept) * self._random.gauss()
            self._seen = self.now
        speed = exp(self.drift * self._speed)
        seconds *= (1 + slower) / speed
        if self.neighbor and not (self.comes and int(self.now // NEIGHBOR) % 2):
            waited = seconds * self.neighbor / (1 - self.neighbor)
            self.waited += waited
            seconds += waited
        self.now += seconds

    def waits(self) -> Mapping[str, int]:
        """Return how long the one thread has waited, in ns."""
        return {"1": int(self.waited * 1e9)}

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Go through three arrays at the rate of the level in which they fit."""
        size = 3 * arrays[0].nbytes
        rate = next(
            (rate for rate, cache in zip(RATES, CACHES, strict=False) if size <= cache.size),
            RATES[-1],
        )
        self.take(passes * size / rate, "memory" if rate == RATES[-1] else "")

    def add(self, *_: Any, out: Any) -> None:
        """Add two arrays of one number, as NumPy's function of that name does."""
        self.take(START, "start")

    @property
    def numpy(self) -> Any:
        """NumPy, of which this machine adds."""
        return SimpleNamespace(
            add=self.add, empty=numpy.empty, ones=numpy.ones, float64=numpy.float64
        )

    def worker(self, library: str, threads: int) -> MadeWorker:
        """Return what multiplies."""
        return MadeWorker(self, library, threads)


class MadeWorker:
    """Products at rates that are known."""

    def __init__(self, machine: MadeMachine, library: str, threads: int) -> None:
        self._machine, self.library, self.threads = machine, library, threads
        self.version = f"made {library}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self) -> None:
        """Do nothing: it is ready."""

    def multiply(self, number_format: str, side: int, times: int) -> Answer:
        """Multiply; NumPy knows two formats only."""
        if number_format not in PRODUCTS or (self.library == "numpy" and number_format[-1] == "6"):
            return Answer((), "there is no product in it")
        seconds, marks = [], []
        for _ in range(times):
            begin, before = self._machine.now, self._machine.waits()
            self._machine.take(2 * side**3 / PRODUCTS[number_format], number_format)
            seconds.append(self._machine.now - begin)
            marks.append(disturbed(before, self._machine.waits(), seconds[-1]))
        return Answer(tuple(seconds), "", tuple(marks))
