"""Tables of how long a step takes, by what it works on: computed once, looked up often.

A step works on all tokens together in its matrix products, on each running sequence's cache,
and on each chunk of a prompt's own tokens. So its time on the device is the sum of three tables'
entries, and a simulation of a million steps asks the operators' equations only a few times. The
scheduler's turn comes on top, or runs beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mlsim.equations.arrivals import cache_room
from mlsim.errors import DoesNotFitError, WrongKindError
from mlsim.solvers.question import Question
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.steps import step_question
from mlsim.units import held
from mlsim.workloads.model import OperatorTable
from mlsim.workloads.steps import Speculation

# Places of the grids of contexts and chunks: what lies between is interpolated.
CONTEXTS, CHUNKS = 65, 65
# Kinds of operators whose work depends on what is cached, or that only make the next token.
_ATTENTION, _OUTPUT, _ADAPTER = "attention", "output", "adapter"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of the parts of a step on the device, in s, on one copy of the model.

    Attributes
    ----------
    together
        By tokens in the step: all that works on tokens together.
    scores
        By sequences that get a token: the output layer.
    reading
        By running sequences, a row of times over mean contexts: attention of decoding.
    reading_prompt
        By chunk, a row of times over contexts: attention of a chunk of a prompt.
    context_step, chunk_step
        Tokens between the places of the grids.
    memory
        By tokens of a sequence, over the grid: bytes of cache that it takes.
    cache_room
        Bytes of cache that there are.
    longest
        The longest sequence that the tables know.
    width, pace
        Tokens of a running sequence that a step works on, and that it makes, on average: one,
        but with speculation.
    prefix_bytes, prefixes
        Bytes of cache of a sequence that others use too, and how many different ones there are.
    step_host, sequence_host, ahead
        Time that a scheduler takes for a step, and for each sequence in it, in s; whether it
        takes its turn beside the device.
    starts, captured
        Time in which a program starts the kernels of a step of more than so many tokens, in s;
        the device works on the first meanwhile.
    """

    together: list[float]
    scores: list[float]
    reading: list[list[float]]
    reading_prompt: list[list[float]]
    context_step: float
    chunk_step: float
    memory: list[float]
    cache_room: float
    longest: int
    width: int = 1
    pace: float = 1.0
    prefix_bytes: float = 0.0
    prefixes: float = math.inf
    step_host: float = 0.0
    sequence_host: float = 0.0
    ahead: bool = False
    starts: float = 0.0
    captured: float = math.inf

    def step(self, device: float, tokens: float, sequences: float) -> float:
        """Time of a step that takes the device so long, with what the host takes for it.

        As `hosted_step_latency` and `ahead_step_latency` say: host and device once for each step,
        from however many tables its time on the device is put together.
        """
        if tokens > self.captured:
            device = max(device, self.starts)
        host = self.step_host + sequences * self.sequence_host
        return max(device, host) if self.ahead else device + host

    def saved(self, sequences: int) -> float:
        """Bytes of cache that so many sequences save by sharing their prefixes."""
        if not self.prefix_bytes:
            return 0.0
        from mlsim.equations.switches import cache_saved

        return float(cache_saved(self.prefix_bytes, float(sequences), self.prefixes))


def step_times(
    service: Service,
    *,
    running: int,
    tokens: int,
    longest: int,
    prompt: float = 1.0,
    shortest: int = 1,
) -> StepTimes:
    """Return the tables of a service for steps of so many sequences and tokens at most.

    `prompt` is the mean length of the prompts, by which prefixes are as long as they are, and
    `shortest` the least: no more sequences run than the cache has room for, and no table is longer.

    Raises
    ------
    WrongKindError
        If the model is an encoder.
    DoesNotFitError
        If the weights leave no room for one sequence of the longest length.
    """
    if not service.model.decoder:
        raise WrongKindError(
            f"{service.model.name} is an encoder: it generates nothing, so no requests run on "
            "in it. Engine.serve tells the time of its pass."
        )
    import numpy as np

    drafted = service
    host, service = _host(service)
    speculation = service.switches.speculation
    asked, width = (
        (service, 1) if speculation is None else (service.checking[0], speculation.checked)
    )
    parts = _parts(service)
    contexts = np.linspace(0.0, float(longest), CONTEXTS)
    memory, room = _memory(service, contexts, running, tokens, longest)
    shared = _prefix_bytes(service, prompt)
    least = float(np.interp(shortest, contexts, memory))
    if least and not shared:
        running = min(running, int(room / least) + 1)
    most = tokens + running * width
    chunks = np.linspace(1.0, max(2.0, float(tokens)), CHUNKS)
    many = np.arange(1.0, running + 1.0)
    scored = np.arange(1.0, running * width + 1.0)
    counts = np.arange(1.0, most + 1.0)
    alone = _on_one_copy(service)
    # What all sequences share counts once, so each part is what a step grows by.
    together = alone(parts["rest"], counts, 1.0, 0.0)
    scores = alone(parts["no attention"], scored, 1.0, 0.0) - together[: running * width]
    check = _on_one_copy(asked)
    without = check(_parts(asked)["no attention"], many, float(width), 0.0)
    reading = check(asked.table, many[:, None], float(width), contexts[None, :]) - without[:, None]
    others = alone(parts["rest"], chunks, 1.0, 0.0)[:, None] + scores[0]
    prompts = alone(service.table, 1.0, chunks[:, None], contexts[None, :]) - others
    if speculation is not None:
        reading = reading + _drafting(drafted, many[:, None], 1.0, contexts, of_round=True)
        prompts = prompts + _drafting(drafted, 1.0, chunks[:, None], contexts, of_round=False)
    return StepTimes(
        [0.0, *together.tolist()],
        [0.0, *scores.tolist()],
        [[0.0] * CONTEXTS, *reading.tolist()],
        prompts.tolist(),
        float(contexts[1]),
        float(chunks[1] - chunks[0]),
        memory,
        room,
        longest,
        width,
        1.0 if speculation is None else _pace(speculation),
        shared,
        math.inf if service.switches.prefix_count is None else service.switches.prefix_count,
        **host,
    )


def _host(service: Service) -> tuple[dict[str, Any], Service]:
    """Return what the host takes for a step, and the service without it."""
    made_by = service.software
    if made_by is None or not made_by.hosted:
        return {}, service
    from mlsim.software import HOST, without_host

    taken = {name: float(service.given.get(name, made_by.value(name))) for name in HOST}
    step, sequence, start = (taken[name] for name in HOST)
    found = {"step_host": step, "sequence_host": sequence, "ahead": made_by.ahead}
    if start:
        captured = float(service.given.get("captured_tokens", made_by.value("captured_tokens")))
        copies = float(service.parallelism.data * service.parallelism.pipeline)
        one = step_question(replace(service, batch_size=copies), "starts", captured + 1.0, 0.0)
        found |= {"starts": start * float(one.value("launch_count")), "captured": captured}
    kept = {name: value for name, value in service.given.items() if name not in HOST}
    return found, replace(service, software=without_host(made_by), given=kept)


def _pace(speculation: Speculation) -> float:
    from mlsim.equations.switches import expected_tokens

    return float(expected_tokens(float(speculation.acceptance), float(speculation.tokens)))


def _drafting(service: Service, batch: Any, new: Any, contexts: Any, *, of_round: bool) -> Any:
    """Return what drafting adds to a step: the tokens of a round, or a chunk of a prompt.

    Of a draft of which only the cost is known, reading prompts takes no time.
    """
    from mlsim.equations.switches import draft_time_by_cost, round_time

    speculation, draft = service.switches.speculation, service.switches.draft_of(service)
    assert speculation is not None
    if draft is not None:
        each = _on_one_copy(draft)(draft.table, batch, new, contexts[None, :])
        return round_time(float(speculation.tokens), each, 0.0) if of_round else each
    if not of_round:
        return 0.0
    plain = _on_one_copy(service)(service.table, batch, new, contexts[None, :])
    each = draft_time_by_cost(float(speculation.cost or 0.0), plain)
    return round_time(float(speculation.tokens), each, 0.0)


def _prefix_bytes(service: Service, prompt: float) -> float:
    """Return the cache of a sequence that others use too, where prefixes are shared."""
    if service.switches.prefix_count is None:
        return 0.0
    asked = replace(service, batch_size=float(service.parallelism.data), prompt_tokens=prompt)
    return float(step_question(asked, "the cache", 1.0, 0.0).value("prefix_cache"))


def _parts(service: Service) -> dict[str, OperatorTable[Any] | None]:
    """Return the operators without attention, and without the output layer too."""
    kinds = [each.kind for each in service.table]
    picked = {
        # What a step reads of adapters depends on its sequences, and not on its tokens alone.
        "no attention": [kind not in (_ATTENTION, _ADAPTER) for kind in kinds],
        "rest": [kind not in (_ATTENTION, _ADAPTER, _OUTPUT) for kind in kinds],
    }
    return {name: _subset(service.table, mask) for name, mask in picked.items()}


def _subset(table: OperatorTable[Any], mask: list[bool]) -> OperatorTable[Any] | None:
    """Return those operators of a table that are marked, with their columns."""
    if not any(mask):
        return None

    def kept(values: Any) -> tuple[Any, ...]:
        return tuple(each for each, wanted in zip(values, mask, strict=True) if wanted)

    extra = {name: kept(values) for name, values in table.extra.items()}
    return OperatorTable(kept(table), table.counted, extra)


def _on_one_copy(service: Service) -> Callable[..., Any]:
    """Return what computes the latency of some of the operators, for arrays of steps."""
    import numpy as np

    # The stages of a pipeline work on a batch each, and every batch has a scheduler.
    copies = service.parallelism.data * service.parallelism.pipeline

    def latency(table: OperatorTable[Any] | None, batch: Any, new: Any, cached: Any) -> Any:
        shape = np.broadcast_shapes(*(np.shape(each) for each in (batch, new, cached)))
        if table is None:
            return np.zeros(shape)
        asked = replace(service, batch_size=np.asarray(batch, float) * copies)
        full = (np.broadcast_to(np.asarray(each, float), shape) for each in (new, cached))
        question = step_question(asked, "a step of the schedule", *full)
        found = question.evaluate("latency", table=table)["latency"]
        return np.broadcast_to(found, shape)

    return latency


def of_tokens(
    service: Service, cached: float, *, whole: bool
) -> tuple[Question, OperatorTable[Any] | None]:
    """Return what asks how long a step works on a token of each sequence, and its operators.

    All of them, or without attention and output layer: what works on tokens together. They are
    the questions behind the tables of `step_times`, for `batch_size` sequences of all copies.
    """
    _, service = _host(service)
    question = step_question(service, "a step of the schedule", 1.0, cached)
    return question, service.table if whole else _parts(service)["rest"]


def _memory(
    service: Service, contexts: Any, running: int, tokens: int, longest: int
) -> tuple[list[float], float]:
    """Return the cache's bytes by length of a sequence, and how many there are."""
    lengths = [max(1.0, float(each)) for each in contexts]
    import numpy as np

    asked = replace(
        service,
        batch_size=float(service.parallelism.data),
        prompt_tokens=np.array(lengths),
        output_tokens=0.0,
        # Half a block for each sequence is counted by the scheduler.
        block_tokens=1.0,
        chunk_tokens=float(tokens),
    )
    known = step_question(asked, "the cache", float(tokens), 0.0)
    per = known.evaluate("cache_per_sequence")["cache_per_sequence"]
    parts = known.evaluate("usable_memory", "weight_memory", "activation_memory")
    # Batches that are under way in a pipeline share the memory of its devices.
    room = float(np.min(cache_room(**parts))) / service.parallelism.pipeline
    memory = [0.0, *np.broadcast_to(per, (len(lengths),)).tolist()[1:]]
    if room < memory[-1]:
        left = held(max(room, 0.0))
        raise DoesNotFitError(
            f"{service.model.name} leaves {left} for the cache of {service.hardware_name}, and "
            f"one request of {longest:,} tokens needs {held(memory[-1])}. Use fewer bits, "
            "more devices, or shorter requests (Engine.fit tells what fits)."
        )
    return memory, room


# Place of a context that a full cache never stops: a window keeps no more.
_NO_END = 1.0e12


def chunk_time(times: StepTimes, chunk: float, context: float) -> float:
    """Time of attention of a chunk of a prompt, with so many of its tokens before it."""
    place = (chunk - 1) / times.chunk_step
    low = min(int(place), CHUNKS - 2)
    at = context / times.context_step
    below, above = (between(times.reading_prompt[low + i], at) for i in (0, 1))
    return below + (above - below) * (place - low)


def between(row: list[float], place: float) -> float:
    """Look up a row at a place between its entries."""
    low = int(place)
    low = min(low, CONTEXTS - 2)
    start = row[low]
    return start + (row[low + 1] - start) * (place - low)


def inverse(row: list[float], value: float) -> float:
    """Return the place at which a rising row reaches a value."""
    from bisect import bisect_right

    low = min(max(bisect_right(row, value) - 1, 0), CONTEXTS - 2)
    rise = row[low + 1] - row[low]
    if rise <= 0:
        return _NO_END
    return low + (value - row[low]) / rise
