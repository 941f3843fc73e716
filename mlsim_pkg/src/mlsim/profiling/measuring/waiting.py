"""How long threads wanted a core and had none: what other programs took from a sample.

A neighbor who works all the time slows every sample alike. No spread shows that, and the least of
many samples does not get past it. Linux counts for each thread how long it waited for a core.
Where the system does not say, every sample counts as undisturbed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

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
