"""Blocks of a sweep, computed here or by whoever has a `submit`; and how far they are."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from queue import Queue
from typing import Any, TypeVar

from mlsim.engine.sweeps.answering import block
from mlsim.engine.sweeps.question import Question
from mlsim.engine.sweeps.rows import Block
from mlsim.errors import InvalidValueError, MlsimError, UnfinishedError, check_whole
from mlsim.solvers.blocks import alone

# Rows of a block: of a door whose numbers run as arrays, and of one that is asked row by row.
TOGETHER, ONE_BY_ONE = 500_000, 2_000
# Blocks that wait for each worker, beside the one that it has.
WAITING = 1
# Workers of a scheduler that does not say how many it has.
_UNKNOWN = 8

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    rows, of
        Rows that are done, and all of them.
    computed
        Those of them that were computed now; the others were there.
    seconds
        Since it began.

    >>> Progress(rows=3_000_000, of=4_000_000, computed=2_000_000, seconds=2.0).text()
    '3,000,000 of 4,000,000 rows (75%), 1,000,000/s, 1 s left'
    """

    rows: int
    of: int
    computed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.computed / self.seconds if self.seconds > 0 else 0.0

    def text(self) -> str:
        """Say it in a line."""
        left = f", {(self.of - self.rows) / self.rate:,.0f} s left" if self.rate else ""
        share = self.rows / self.of
        return f"{self.rows:,} of {self.of:,} rows ({share:.0%}), {self.rate:,.0f}/s{left}"


def say(progress: Progress) -> None:
    """Write how far a sweep is over the line before, on the standard error."""
    end = "\n" if progress.rows == progress.of else ""
    print(f"\r{progress.text():<78}", end=end, file=sys.stderr, flush=True)


def rows_of_block(question: Question, asked: Any) -> int:
    """Return how many rows a block has.

    Raises
    ------
    InvalidValueError
        If what was asked for is no whole number from 1 up.
    """
    if asked is None:
        return TOGETHER if question.together > 1 else ONE_BY_ONE
    return check_whole("block_rows", asked)


def bounds(rows: int, size: int) -> list[tuple[int, int]]:
    """Return where each block begins and ends.

    >>> bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def run(
    question: Question,
    scheduler: Any,
    watch: Callable[[Progress], None] | None,
    block_rows: Any = None,
) -> list[Block]:
    """Compute all rows of a sweep; return its blocks in order."""
    places = bounds(question.rows, rows_of_block(question, block_rows))
    found: dict[tuple[int, int], Block] = {}
    began = time.perf_counter()
    for place, done in compute(question, places, _compute, (), scheduler):
        found[place] = done
        if watch:
            rows = sum(len(each) for each in found.values())
            watch(Progress(rows, question.rows, rows, time.perf_counter() - began))
    return [found[place] for place in places]


def _compute(question: Question, start: int, stop: int) -> Block:
    return block(question, start, stop)


def compute(
    question: Question,
    places: Iterable[tuple[int, int]],
    work: Callable[..., Result],
    more: tuple[Any, ...],
    scheduler: Any,
) -> Iterator[tuple[tuple[int, int], Result]]:
    """Yield each place with what `work` makes of it, in the order in which they are done.

    `work` takes the question, where a block starts and stops, and what is in `more`.

    Raises
    ------
    UnfinishedError
        If a worker dies, or the scheduler refuses.
    """
    if scheduler is None:
        for place in places:
            yield place, work(question, *place, *more)
        return
    yield from _submitted(question, list(places), (work, more), scheduler)


def _submitted(
    question: Question, places: list[tuple[int, int]], work: tuple[Any, Any], scheduler: Any
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Keep every worker busy with a few blocks at a time; yield them as they are done."""
    sent, dask = _packed(question), hasattr(scheduler, "scatter")
    # A cluster is sent the question once, and not with every block.
    given = scheduler.scatter(sent, broadcast=True, hash=False) if dask else sent
    options = {"pure": False} if dask else {}
    done: Queue[tuple[tuple[int, int], Any]] = Queue()
    waiting, flying = iter(places), {}

    def submit() -> None:
        place = next(waiting, None)
        if place is None:
            return
        future = scheduler.submit(_at_worker, given, place, *work, **options)
        flying[place] = future
        future.add_done_callback(lambda ended, place=place: done.put((place, ended)))

    try:
        for _ in range(min(len(places), _workers(scheduler) * (1 + WAITING))):
            submit()
        while flying:
            place, future = done.get()
            del flying[place]
            submit()
            yield place, future.result()
    except MlsimError:
        raise
    except Exception as error:
        raise UnfinishedError(
            f"a worker stopped: {type(error).__name__}: {error}".rstrip()
        ) from error
    finally:
        for future in flying.values():
            future.cancel()


def _workers(scheduler: Any) -> int:
    """Return how many blocks a scheduler computes at one time."""
    if hasattr(scheduler, "nthreads"):
        return max(1, int(sum(scheduler.nthreads().values())))
    return int(getattr(scheduler, "_max_workers", _UNKNOWN))


def _packed(question: Question) -> bytes:
    try:
        return pickle.dumps(question)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidValueError(
            f"this sweep can't be sent to workers: {error}. Give names, numbers and records of the "
            "zoo, or leave scheduler out."
        ) from None


@lru_cache(maxsize=4)
def _unpacked(sent: bytes) -> Question:
    found: Question = pickle.loads(sent)  # noqa: S301  # the one who asks sent it
    return found


def _at_worker(sent: bytes, place: tuple[int, int], work: Any, more: tuple[Any, ...]) -> Any:
    # Workers share the processors, so each takes one.
    with alone():
        return work(_unpacked(sent), *place, *more)
