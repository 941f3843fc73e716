"""Ask other servers whether the pages that a book links to are there.

Only on request (`mlsim-book check --external`): it needs the network, takes its time,
and depends on others. A page that is gone is a problem. A server that won't say, or
isn't reached in time, is reported but is no problem: it may answer readers all the same.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

_GONE = frozenset({404, 410})
_AGENT = "Mozilla/5.0 (compatible; mlsim-book check)"
_WORKERS = 8


@dataclass(frozen=True)
class Answer:
    """What asking for an address gave: nothing when it is there."""

    url: str
    fault: str | None = None
    sure: bool = True  # whether the fault is the link's


def ask_all(urls: Iterable[str], *, timeout: float = 20.0) -> Iterator[Answer]:
    """Ask for addresses, eight at a time; yield the answers in the order of the addresses.

    Parameters
    ----------
    timeout
        Seconds that each server has.
    """
    with ThreadPoolExecutor(_WORKERS) as workers:
        yield from workers.map(lambda url: ask(url, timeout=timeout), urls)


def ask(url: str, *, timeout: float = 20.0) -> Answer:
    """Ask for an address: for its head, and for all of it where a server knows no heads."""
    for method in ("HEAD", "GET"):
        answer = _request(url, method, timeout)
        if answer.fault is None:
            return answer
    return answer


def _request(url: str, method: str, timeout: float) -> Answer:
    request = urllib.request.Request(url, method=method, headers={"User-Agent": _AGENT})  # noqa: S310 - http(s) only
    try:
        with urllib.request.urlopen(request, timeout=timeout):  # noqa: S310 - http(s) only
            return Answer(url)
    except urllib.error.HTTPError as error:
        return Answer(url, f"the server says {error.code} {error.reason}", error.code in _GONE)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return Answer(url, f"it can't be reached ({reason})", sure=False)
