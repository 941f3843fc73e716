"""Events of a trace, one by one: a file of 200 MB needs no more memory than its longest event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from mlsim.errors import DataFileError
from mlsim.profiling.read.sources import LONGEST_LINE, Source

_KEY = re.compile(r'"traceEvents"\s*:\s*\[')
_LETTER = re.compile(r"\S")


def _no_constant(name: str) -> None:
    """Read NaN and Infinity, which are no JSON and yet stand in traces, as no value."""


_DECODER = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def _next(text: str, place: int) -> int:
    """Return where the next sign that is no space stands, or the end."""
    found = _LETTER.search(text, place)
    return found.start() if found else len(text)


class Events:
    """The events of a trace; once they are read, `about` has what stands beside them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.about: dict[str, Any] = {}
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        pieces = self.source.text()
        buffer = self._begin(pieces)
        place, first = 0, True
        while True:
            place = _next(buffer, place)
            if place >= len(buffer):
                buffer, place = self._more(buffer, place, pieces), 0
                continue
            if buffer[place] == "]":
                break
            if not first:
                if buffer[place] != ",":
                    self._refuse("two events have no comma between them")
                place = _next(buffer, place + 1)
            try:
                event, end = _DECODER.raw_decode(buffer, place)
            except RecursionError:
                self._refuse("an event is nested too deeply")
            except ValueError as error:
                start = place if first else buffer.rindex(",", 0, place + 1)
                if len(buffer) - place > LONGEST_LINE:
                    self._refuse(f"it is no JSON ({error})")
                buffer, place = self._more(buffer, start, pieces, error), 0
                continue
            if not isinstance(event, dict):
                self._refuse(f"{event!r:.40} stands where an event should")
            self.count += 1
            place, first = end, False
            yield event
        self._finish(buffer[place + 1 :], pieces)

    def _begin(self, pieces: Iterator[str]) -> str:
        """Return the text from the first event on, and keep what stands before it."""
        text = ""
        for piece in pieces:
            text += piece
            if text.lstrip()[:1] == "[":
                self._bare = True
                return text.lstrip()[1:]
            found = _KEY.search(text)
            if found:
                self._bare = False
                self._keep(text[: found.start()].rstrip().rstrip(",") + "}")
                return text[found.end() :]
            if len(text) > 4 * LONGEST_LINE:
                break
        self._refuse_other(text)
        return self._refuse("it has no traceEvents")

    def _refuse_other(self, text: str) -> None:
        """Refuse whole JSON that is no trace: nothing is wrong with it but its kind."""
        try:
            found = _DECODER.decode(text.strip())
        except (ValueError, RecursionError):
            return
        names = ", ".join(str(each) for each in found)[:120] if found else "nothing"
        raise DataFileError(
            f"{self.source.path}: this JSON has {names}, and no traceEvents, so it is no trace of "
            "PyTorch. Write one: profiler.export_chrome_trace(FILE)"
        )

    def _more(
        self, buffer: str, place: int, pieces: Iterator[str], error: Exception | None = None
    ) -> str:
        """Return the rest of the text with another piece."""
        piece = next((each for each in pieces if each), None)
        if piece is None:
            why = f" ({error})" if error else ""
            self._refuse(f"the file ends within its events{why}")
        return buffer[place:] + piece

    def _finish(self, rest: str, pieces: Iterator[str]) -> None:
        """Read what stands behind the events."""
        for piece in pieces:
            rest += piece
            if len(rest) > 4 * LONGEST_LINE:
                self._refuse("too much stands behind its events")
        rest = rest.strip()
        if self._bare:
            if rest:
                self._refuse("something stands behind its events")
        else:
            self._keep("{" + rest.removeprefix(",") if rest != "}" else "{}")

    def _keep(self, text: str) -> None:
        try:
            found = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            self._refuse(f"what stands beside its events is no JSON ({error})")
        if isinstance(found, dict):
            self.about |= found

    def _refuse(self, why: str) -> NoReturn:
        raise DataFileError(
            f"{self.source.path}: the trace is damaged or cut off: {why}, after {self.count:,} "
            "events. Export it again: profiler.export_chrome_trace(FILE)"
        )
