"""Two pools under load against another simulation of them, written apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import TRACES, own_step, requests_like, write

from mlsim import Engine
from mlsim.systems import PrefillPool
from mlsim.workloads.requests import Requests


def read_apart(
    asked: Requests, step: Callable[..., float], copies: int, budget: int, path: list[float]
) -> Any:
    """Return when each prompt was read: copies that are free take from one line, in order."""
    left = [int(tokens) for tokens in asked.prompt_tokens]
    there = np.asarray(asked.arrived) + np.asarray(path)
    line = list(np.argsort(there, kind="stable"))
    free, mine = [0.0] * copies, [[] for _ in range(copies)]
    first = np.zeros(len(left))
    while line or any(mine):
        # A copy with a prompt that is cut goes on; others wait for the head of the line.
        starts = [
            free[c] if mine[c] else max(free[c], there[line[0]]) if line else np.inf
            for c in range(copies)
        ]
        c = int(np.argmin(starts))
        now, room, chunks, ended = starts[c], budget, [], []
        while room and (mine[c] or (line and there[line[0]] <= now)):
            i = mine[c].pop() if mine[c] else line.pop(0)
            new = min(left[i], room)
            chunks.append((new, int(asked.prompt_tokens[i]) - left[i]))
            room, left[i] = room - new, left[i] - new
            if left[i]:
                mine[c].append(i)
                break
            ended.append(i)
        free[c] = now + step(budget - room, [], chunks)
        first[ended] = free[c]
    return first


def decoded_apart(asked: Requests, ready: Any, step: Callable[..., float]) -> Any:
    """Return when each request had its last token: one token a step for whoever was there."""
    last, left = np.array(ready, float), {}
    order, now, came, began = list(np.argsort(ready, kind="stable")), 0.0, 0, 0.0
    more = [i for i in order if asked.output_tokens[i] > 1]
    while came < len(more) or left:
        if not left:
            now = began = max(now, ready[more[came]])
        while came < len(more) and ready[more[came]] <= began:
            left[more[came]] = int(asked.output_tokens[more[came]]) - 1
            came += 1
        began = now
        contexts = [int(asked.prompt_tokens[i] + asked.output_tokens[i]) - left[i] for i in left]
        now += step(len(left), contexts, [])
        left = {i: steps - 1 for i, steps in left.items()}
        for i in [i for i, steps in left.items() if not steps]:
            last[i] = now
            del left[i]
    return last


@pytest.mark.parametrize("trace", TRACES)
def test_it_agrees_with_a_simulation_written_apart(trace: str, tmp_path: Path) -> None:
    asked, link = requests_like(trace), 50e9
    loaded = Engine.load(
        model="Llama3_8B",
        hardware="H100",
        trace=write(tmp_path / "trace.csv", asked),
        estimate="calibrated",
        software="vllm",
        prefill=PrefillPool(hardware="H100", copies=2, link_bandwidth=f"{link / 1e9} GB/s"),
    )
    call = loaded.loaded.of_software("call_time")
    path = [call + 3.5e-6 * int(tokens) for tokens in asked.prompt_tokens]
    step = own_step("Llama3_8B", software="vllm")
    first = read_apart(asked, step, 2, 8192, path)
    # Keys and values of 32 layers, 8 heads of 128 numbers, 2 bytes each: 128 KiB a token.
    ready = first + asked.prompt_tokens * (2 * 32 * 8 * 128 * 2) / link
    last = decoded_apart(asked, ready, step)
    last = np.where(asked.output_tokens > 1, last, first)
    steps = asked.output_tokens - 1
    each = ((last - first) / np.where(steps > 0, steps, np.nan))[steps > 0]
    # Of steps that read the fit here is within 5 %, of those that decode within half a per cent.
    for name, values, within in (
        ("time_to_first_token", first - asked.arrived, 0.05),
        ("time_per_output_token", each, 0.005),
        ("request_latency", last - asked.arrived, 0.01),
    ):
        assert loaded.value(name) == pytest.approx(values.mean(), rel=within)
        assert loaded.value(f"{name}_p90") == pytest.approx(np.quantile(values, 0.9), rel=within)
