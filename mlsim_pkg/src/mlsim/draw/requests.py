"""Requests: a prompt and its tokens, who shares a step, and who waits in a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsim.draw.canvas import ACCENT, HEAD, MID, QUIET, TINT, WIDTH, Canvas, Drawing
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError, check_whole

if TYPE_CHECKING:
    from mlsim.solvers.serving.serving import Serving


def prefill_and_decode(service: Serving) -> Drawing:
    """Draw one request over time: prefill reads the prompt, decode makes token after token.

    Parameters
    ----------
    service
        An answer of `Engine.serve`.

    >>> from mlsim import Engine
    >>> service = Engine.serve("Llama3_8B", "H100", prompt_tokens=1024, output_tokens=65)
    >>> print(prefill_and_decode(service).alt.partition(". ")[0])
    A request of Llama 3.1 8B on NVIDIA H100 SXM 80 GB over time
    """
    first, each = (
        float(service.value(f"time_{name}")) for name in ("to_first_token", "per_output_token")
    )
    tokens = round(float(service.value("output_tokens")))
    sheet = Canvas(f"Prefill and decode of {service.model.name} on {service.hardware.name}")
    whole = first + each * (tokens - 1)
    said = [
        sheet.fact("prefill", "time to first token", service.time_to_first_token),
        sheet.fact("decode", "time per output token", service.time_per_output_token),
        sheet.fact("request", "output tokens", f"{tokens:,}", "given"),
    ]
    scale = WIDTH / whole
    sheet.text(0, 8, "Prefill", bold=True, size=HEAD)
    sheet.text(WIDTH, 8, "Decode", "end", bold=True, size=HEAD)
    sheet.rect(0, 22, scale * first, 34, fill=ACCENT, radius=0)
    for at in range(tokens - 1):
        left = scale * (first + at * each)
        sheet.rect(left, 22, 0.72 * scale * each, 34, fill=MID, radius=0)
    sheet.line((0, 60), (WIDTH, 60))
    sheet.text(0, 72, f"first token after {said[0]}", color=QUIET)
    sheet.text(WIDTH, 88, f"then one each {said[1]}, {said[2]} in all", "end", color=QUIET)
    return sheet.finish(
        f"A request of {service.model.name} on {service.hardware.name} over time. "
        f"Prefill reads the whole prompt at once: the first token comes after {said[0]}. Decode "
        f"then makes one token each {said[1]}, {said[2]} in all.",
        height=96,
    )


def batching(lengths: Sequence[int] = (3, 8, 2, 5, 4, 6, 3), *, slots: int = 3) -> Drawing:
    """Draw requests that share steps: in fixed batches, and joined as soon as a slot is free.

    Parameters
    ----------
    lengths
        Steps that each request needs, in the order in which they wait.
    slots
        Requests that share a step.

    Raises
    ------
    InvalidValueError
        If a length or the slots are no whole number from 1 up.

    >>> [each.value for each in batching([1, 3, 2], slots=2).facts]
    ['5', '3']
    """
    check_whole("slots", slots)
    if not lengths:
        raise InvalidValueError("lengths must name a request at least, such as [3, 8, 2].")
    for each in lengths:
        check_whole("lengths", each)
    fixed, joined = _fixed(lengths, slots), _joined(lengths, slots)
    sheet = Canvas("Fixed batches, and continuous batching")
    ends = [max(begin + lengths[at] for _, begin, at in plan) for plan in (fixed, joined)]
    step = min(WIDTH / max(ends), 26.0)
    said = []
    top = 0.0
    for name, plan, end in (
        ("Fixed batches", fixed, ends[0]),
        ("Continuous batching", joined, ends[1]),
    ):
        said.append(sheet.fact(name, "steps", f"{end}", "counted, of these lengths"))
        sheet.text(0, top + 8, name, bold=True, size=HEAD)
        sheet.text(WIDTH, top + 8, f"{end} steps", "end", bold=True, size=HEAD, color=ACCENT)
        for slot in range(slots):
            sheet.rect(0, top + 22 + 22 * slot, step * end - 2, 18, fill=TINT, radius=1)
        for slot, begin, at in plan:
            sheet.rect(step * begin, top + 22 + 22 * slot, step * lengths[at] - 2, 18,
                       fill=ACCENT if at % 2 else MID, radius=1)  # fmt: skip
        top += 22 * slots + 40
    return sheet.finish(
        f"{len(lengths)} requests share {slots} slots, a row each. In fixed batches, a slot "
        f"waits until the longest request of its batch is done: {said[0]} steps. In continuous "
        f"batching, the next request takes a slot as soon as it is free: {said[1]} steps.",
        height=top - 12,
    )


def queue(*loads: float) -> Drawing:
    """Draw how a line grows as a server gets busy: who waits, on average.

    Arrivals and times of service are random (M/M/1). A mark is a request that waits.

    Parameters
    ----------
    loads
        Shares of the time in which the server is busy; 0.5, 0.8, 0.9 and 0.95 if none is given.

    Raises
    ------
    InvalidValueError
        If a share is not between 0 and 0.96, the most that fits on the sheet.

    >>> [each.value for each in queue(0.5, 0.9).facts if each.what == "wait"]
    ['1', '9']
    """
    sheet = Canvas("A line before a server")
    sheet.text(0, 8, "Server busy", bold=True, size=HEAD)
    sheet.text(WIDTH, 8, "mean wait, in times of service", "end", color=QUIET)
    told, top, left = ["Lines before a server, as long as they are on average."], 26.0, 62.0
    for load in loads or (0.5, 0.8, 0.9, 0.95):
        if not 0 < load <= 0.96:
            raise InvalidValueError(f"a load is between 0 and 0.96, not {load!r}.")
        wait = float(EQUATIONS["queue_wait"](load, 1.0, 1.0))
        share = sheet.fact("server", "busy", f"{100 * load:g} %", "given")
        written = sheet.fact(share, "wait", f"{wait:.3g}", "queue_wait, times of service")
        sheet.text(0, top + 10, share)
        sheet.rect(left, top, 24, 20, fill=ACCENT)
        waiting = load * wait  # Little's law
        for at in range(math.ceil(waiting)):
            wide = min(1.0, waiting - at)
            sheet.rect(left + 32 + 11 * at, top + 4, 9 * wide, 12, fill=MID, radius=1)
        sheet.text(WIDTH, top + 10, written, "end", bold=True)
        told.append(
            f"Where the server is busy {share} of the time, the mean wait is {written} times that "
            "of service."
        )
        top += 30
    return sheet.finish(" ".join(told), height=top - 8)


Plan = list[tuple[int, int, int]]  # slot, first step, request


def _fixed(lengths: Sequence[int], slots: int) -> Plan:
    plan, begin = [], 0
    for first in range(0, len(lengths), slots):
        batch = range(first, min(first + slots, len(lengths)))
        plan += [(at - first, begin, at) for at in batch]
        begin += max(lengths[at] for at in batch)
    return plan


def _joined(lengths: Sequence[int], slots: int) -> Plan:
    free, plan = [0] * slots, []
    for at, length in enumerate(lengths):
        slot = free.index(min(free))
        plan.append((slot, free[slot], at))
        free[slot] += length
    return plan
