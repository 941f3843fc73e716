"""The ceilings of the processor that runs this."""

from __future__ import annotations

import contextlib
import datetime
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from mlsim.hardware.this_machine import Machine, this_machine
from mlsim.profiling.measuring.measurement import (
    TIME_UP,
    VIRTUAL_DRIFT,
    MeasuredFigure,
    Measurement,
    lacking,
)
from mlsim.profiling.measuring.parts import (
    SIZE,
    CompiledKernels,
    DiskError,
    DiskFile,
    Kernels,
    Plan,
    RegisterChains,
    Stream,
    call_start,
    find_kernels,
    largest_set,
    one_memory,
    sweep_sizes,
)
from mlsim.profiling.measuring.rounds import (
    CLOCK_STEP,
    PATIENCE,
    Measure,
    Rounds,
    best_curves,
    judged,
    level_figures,
    level_words,
    middle_curve,
    more_time,
    run_rounds,
)
from mlsim.profiling.measuring.samples import (
    FORMATS,
    Clock,
    ProductWorker,
    Waits,
    WorkerError,
    Workers,
    product_flops,
    thread_waits,
    try_sides,
)

# Samples in a round, of which the best counts.
SAMPLES = 3
# Main memory is a figure of its own and takes this time, or so many samples; of the other working
# sets, which are many, a round takes one sample each.
MEMORY_SECONDS, MEMORY_SAMPLES = 0.25, 2
# This part of a curve's points must be undisturbed.
MOST_POINTS = 0.90
# Products within this part of the best are measured as well: which one is the best is not known
# before the last round.
NEARLY_BEST, CANDIDATES = 0.90, 3
# Several workers start within some tens of microseconds: their samples are longer.
ALONE_SECONDS, TOGETHER_SECONDS = 0.005, 0.01
LIBRARIES = ("numpy", "torch")
NOT_BEGUN = f"{TIME_UP} before it was measured"


@dataclass
class Team:
    """So many workers with their memory: one core, or all."""

    table: str
    words: str
    stream: Stream
    sizes: list[int]
    plan: Plan
    curves: list[list[float] | None] = field(default_factory=list)

    def sweep(self) -> Mapping[str, float | None]:
        """Go through every working set once more; return the bandwidth of main memory.

        The levels are found at the end, in curves that other programs hardly disturbed.
        """
        self.stream.move()
        *small, last = self.sizes
        curve = [self.stream.sample(size, self.plan) for size in small]
        curve.append(self.stream.sample(last, self.plan, MEMORY_SECONDS, MEMORY_SAMPLES))
        clean = sum(clean for _, clean in curve) >= MOST_POINTS * len(curve)
        self.curves.append([rate for rate, _ in curve] if clean else None)
        return {f"{self.table}.bandwidth": curve[-1][0] if curve[-1][1] else None}


@dataclass
class Product:
    """A product of one format on one team: by whom, with which side, and how fast."""

    worker: ProductWorker
    side: int
    rate: float


@dataclass
class Processor:
    """Everything that is measured of a processor, round by round.

    Attributes
    ----------
    numpy, kernels
        What computes; kernels may be named: "c", "numpy" or "auto".
    deadline
        On the clock.
    disk_folder
        Where a file is written and read; None for no disk.
    say
        Is told what is being measured.
    accept_noisy
        Whether noisy figures are kept; None for where there is no roof without them.
    machine, worker, clock, waits
        May be others than this machine's, for tests.
    today, load
        The date, and how busy the machine was before.
    """

    numpy: Any
    kernels: str | Kernels
    deadline: float
    disk_folder: Path | None = None
    say: Callable[[str], None] = lambda _: None
    accept_noisy: bool | None = False
    machine: Machine = field(default_factory=this_machine)
    worker: Callable[[str, int], ProductWorker] = ProductWorker
    clock: Clock = perf_counter
    waits: Waits = thread_waits
    today: datetime.date = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date())
    load: float = 0.0
    teams: list[Team] = field(default_factory=list)
    products: dict[str, list[Product]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _workers_of: dict[tuple[int, str], ProductWorker] = field(default_factory=dict)

    def measure(self) -> Measurement:
        """Measure all of it; see `mlsim.profiling.measure`.

        Raises
        ------
        MlsimError
            As `mlsim.profiling.measure`.
        """
        began = self.clock()
        self.say("compiling the kernels")
        if isinstance(self.kernels, str):
            self.kernels = find_kernels(self.numpy, self.kernels)
        with self._stack:
            self._prepare(self.kernels)
            parts, asked = self.parts(self.kernels), bool(self.accept_noisy)
            rounds = run_rounds(parts, self.clock, self.deadline, self.say, accept_noisy=asked)
            figures, refused = self.judged(rounds)
            if self.accept_noisy is None and lacking(figures):
                # A busy machine is a device all the same: one that says how busy it was.
                self.accept_noisy, now = True, self.clock()
                until = now + PATIENCE * max(self.deadline - began, 0.0)
                self.say("other programs work: more rounds, and their best is marked as noisy")
                more = run_rounds(parts, self.clock, until, self.say, accept_noisy=True)
                rounds = rounds.with_more(more)
                figures, refused = self.judged(rounds)
        return Measurement(
            machine=self.machine,
            kind="cpu",
            name=self.machine.processor,
            date=self.today,
            figures=figures,
            refused=refused,
            curves={team.words: (team.sizes, middle_curve(team.curves)) for team in self.teams},
            versions={"Python and system": self.machine.system, **self.versions},
            rounds=rounds.count,
            seconds=self.clock() - began,
            capacity=self.machine.memory,
            load=self.load,
        )

    def _prepare(self, kernels: Kernels) -> None:
        # They load their libraries while memory is touched.
        for threads, library in itertools.product({1, self.machine.cores}, LIBRARIES):
            worker = self._workers_of[threads, library] = self.worker(library, threads)
            self._stack.push(worker)
        largest = largest_set(self.machine)
        self.versions["kernels"] = kernels.compiler
        caches = max((each.total for each in self.machine.caches), default=0)
        counts = {"memory": self.machine.cores, "one_core": 1}
        # Where noise is accepted, nobody asks who disturbed a sample.
        self._workers = {
            table: self._stack.enter_context(Workers(count, self.clock, self._asked_waits))
            for table, count in counts.items()
        }
        memory = None
        for table, workers in self._workers.items():
            words = "one core" if table == "one_core" else "all cores"
            least = ALONE_SECONDS if workers.count == 1 else TOGETHER_SECONDS
            stream = Stream(self.numpy, kernels, workers, largest, memory)
            memory = stream.memory if one_memory() else None
            sizes = sweep_sizes(largest, workers.count, caches)
            self.teams.append(Team(table, words, stream, sizes, Plan(least)))
        self._choose_products()

    def _asked_waits(self) -> Mapping[str, int]:
        return {} if self.accept_noisy else self.waits()

    def _choose_products(self) -> None:
        # All of them first: one that loads would disturb the others' products.
        for (threads, library), worker in list(self._workers_of.items()):
            try:
                worker.wait()
                self.versions[library] = worker.version
            except WorkerError as error:
                self.versions[library] = str(error)
                del self._workers_of[threads, library]
        for table, threads in (("one_core", 1), ("compute", self.machine.cores)):
            tried: dict[str, list[Product]] = {}
            reasons: dict[str, str] = {}
            for library in LIBRARIES:
                if tried and self.clock() > self.deadline:
                    reasons = dict.fromkeys(FORMATS, f"time was up before {library} was tried")
                    break
                self.say(f"products with {library}, {threads} threads")
                for name, found, reason in self._tried(library, threads):
                    tried.setdefault(name, []).extend(found)
                    reasons[name] = reason
            for name, products in tried.items():
                products.sort(key=lambda each: -each.rate)
                enough = [each for each in products if each.rate >= NEARLY_BEST * products[0].rate]
                if enough:
                    self.products[f"{table}.{name}"] = enough[:CANDIDATES]
            if table == "compute":
                self.lost |= {
                    f"compute.{name}": reasons.get(name) or "no library multiplies in it"
                    for name in FORMATS
                    if not tried.get(name)
                }

    def _tried(self, library: str, threads: int) -> Iterator[tuple[str, list[Product], str]]:
        worker = self._workers_of.get((threads, library))
        if worker is None:
            return
        floor = 0.0
        for name in FORMATS:
            try:
                rates, reason = try_sides(worker, name, floor)
            except WorkerError as error:
                self.lost[f"{library}, {threads} threads"] = str(error)
                return
            yield name, [Product(worker, side, rate) for side, rate in rates.items()], reason
            if name == "fp32":
                floor = max(rates.values(), default=0.0)

    def parts(self, kernels: Kernels) -> Mapping[str, Measure]:
        """Return what a round consists of."""
        parts: dict[str, Measure] = {f"memory, {team.words}": team.sweep for team in self.teams}
        parts["products"] = self._multiply
        if isinstance(kernels, CompiledKernels):
            chains = RegisterChains(kernels, self._workers["memory"])
            parts["registers"] = lambda: chains.measure(SAMPLES)
        call = call_start(self.numpy, self._workers["one_core"], SAMPLES)
        parts["starts"] = lambda: {"starts.call": call()}
        disk = self._disk()
        if disk:
            parts["disk"] = disk
        return parts

    def _multiply(self) -> Mapping[str, float | None]:
        """Return the best rates of this round, where there are any: None where others disturbed.

        A disturbed product that was faster in other rounds leaves the best of this one unknown.
        """
        rates: dict[str, float | None] = {}
        for name, products in self.products.items():
            found = [(self._rate(name, each), each.rate) for each in list(products)]
            best = max((rate for rate, _ in found if rate is not None), default=0.0)
            unsure = any(rate is None and known > best for rate, known in found)
            if unsure or best:
                rates[name] = None if unsure else best
        return rates

    def _rate(self, name: str, product: Product) -> float | None:
        """Return the rate of this round; keep the best of all rounds.

        It is 0 where there was no product, and None where other programs disturbed all.
        """
        try:
            answer = product.worker.multiply(name.partition(".")[2], product.side, SAMPLES - 1)
        except WorkerError as error:
            self.lost[name] = str(error)
            self.products[name].remove(product)
            return 0.0
        if not answer.seconds:
            return 0.0
        best = min(answer.seconds) if self.accept_noisy else answer.best
        if best is None:
            return None
        rate = product_flops(product.side) / best
        product.rate = max(product.rate, rate)
        return rate

    def _disk(self) -> Measure | None:
        if self.disk_folder is None:
            return None
        try:
            file = self._stack.enter_context(DiskFile(self.disk_folder, clock=self.clock))
            file.write()
            file.read()
        except DiskError as error:
            self.lost["disk"] = str(error)
            return None

        def measure() -> Mapping[str, float]:
            with contextlib.suppress(DiskError):
                return {
                    "disk.write": file.size / file.write(),
                    "disk.read": file.size / file.read(),
                }
            return {}

        return measure

    def how(self, name: str) -> str:
        """Say what a figure was measured by, in a sentence."""
        table, _, short = name.partition(".")
        if name in self.products:
            best = max(self.products[name], key=lambda each: each.rate)
            threads = f"{best.worker.threads} thread{'s' if best.worker.threads != 1 else ''}"
            what = f"Product of two matrices of {best.side} x {best.side}"
            return f"{what}, {best.worker.version}, {threads}."
        if short == "bandwidth":
            team = next(each for each in self.teams if each.table == table)
            size = team.sizes[-1] / 2**20
            return (
                f"Triad over three arrays, {size:.0f} MiB together, {team.words}, "
                f"{self.versions['kernels']}; counted as STREAM counts, 24 B for each element."
            )
        if table == "ceilings":
            return f"Chains of multiply-adds in registers, all cores, {self.versions['kernels']}."
        if table == "starts":
            return "Addition of two arrays of one number by NumPy, one call after another."
        return (
            f"A file of {SIZE / 2**20:.0f} MiB, past the system's "
            "cache, written until it is on the disk, and read in blocks of 4 MiB."
        )

    def judged(self, rounds: Rounds) -> tuple[dict[str, MeasuredFigure], dict[str, str]]:
        """Return the figures that are ceilings, and what is none, with the reason."""
        values, disturbed = rounds.stretches(), rounds.disturbed
        hows = {name: self.how(name) for name in values}
        if self.accept_noisy:
            _no_slower_together(values, hows)
        refused = dict(self.lost)
        for team in self.teams:
            reported = reported_sizes(self.machine, team)
            found, lost = level_figures(team.table, team.sizes, best_curves(team.curves), reported)
            refused |= lost if team.curves else dict.fromkeys(lost, NOT_BEGUN)
            values |= found
            disturbed |= dict.fromkeys(found, team.curves.count(None))
            hows |= {name: level_words(name, team.words, reported) for name in found}
        figures, noisy = judged(
            values,
            hows.__getitem__,
            rounds.count,
            disturbed,
            VIRTUAL_DRIFT if self.machine.virtual else CLOCK_STEP / 2,
            wanted=rounds.wanted,
            accept_noisy=bool(self.accept_noisy),
        )
        rest = {"the rest": f"{NOT_BEGUN}: {more_time(rounds.wanted)}"}
        return figures, refused | noisy | (rest if not rounds.count else {})


def _no_slower_together(values: dict[str, list[float]], hows: dict[str, str]) -> None:
    """Let one core count where all together were slower: others had taken some of them."""
    for name in [name for name in values if name.startswith("compute.")]:
        alone = name.replace("compute.", "one_core.")
        if max(values.get(alone, ()), default=0.0) > max(values[name], default=0.0):
            values[name] = values[alone]
            hows[name] = f"{hows[alone]} All cores together were slower, since others used them."


def reported_sizes(machine: Machine, team: Team) -> Mapping[int, int]:
    """Return the caches that a team has, in B by level: of one core, or of all."""
    alone = team.table == "one_core"
    return {each.level: each.size if alone else each.total for each in machine.caches}
