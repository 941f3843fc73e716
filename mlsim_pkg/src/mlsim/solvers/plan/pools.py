"""Two pools of devices, one that reads prompts and one that decodes: the best of each pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlsim.equations import arrivals, equations_of, plan
from mlsim.errors import MlsimError
from mlsim.solvers.plan.options import (
    Candidate,
    Goals,
    Option,
    Refused,
    batches,
    decode_steps,
    decoding,
    largest_batch,
    margin_of,
    name_of,
    path_of,
    pool_words,
    reading_times,
    schedulers_in,
    token_prices,
)
from mlsim.solvers.serving.split import transfer_bytes
from mlsim.systems.schedulers import Scheduler

# Numbers of prompts whose steps are timed, and shares of what saturates that are tried.
_STEPS, _SHARES = 12, 40
# Times that a rate and the prompts of a step are tried until they agree.
_ROUNDS = 12
# How far from a number of prompts a step's time is looked up for what each adds.
_NEAR = 1.5
# More copies than any pool that is tried has.
_MOST = 256


@dataclass(frozen=True, eq=False)
class Readers:
    """A layout that reads prompts.

    Attributes
    ----------
    candidate
        The model on its devices.
    goals
        What is asked for.
    prompts, times
        Numbers of prompts, and the time of a step that reads so many, in s.
    room, beside
        Prompts for which a step has room, and how many it reads beside one that it ends.
    """

    candidate: Candidate
    goals: Goals
    prompts: Any
    times: Any
    room: float
    beside: float

    @property
    def devices(self) -> float:
        """Devices of one copy."""
        return float(self.candidate.service.parallelism.devices)

    @property
    def alone(self) -> float:
        """Time to read one prompt alone, in s."""
        return float(self.times[0])

    @cached_property
    def packed(self) -> float:
        """Time of a full step for each of its prompts, in s."""
        return float(self._together(self.room)) / self.room

    @property
    def path(self) -> float:
        """Time of a request on its way to the line, in s."""
        return path_of(self.candidate.service, self.goals.prompt_tokens)

    @property
    def alone_first_token(self) -> float:
        """Time to the first token of a request that waits for nobody, in s."""
        return float(arrivals.split_first_token(self.path, 0.0, self.alone))

    def saturation(self, copies: Any) -> Any:
        """Prompts a second of so many copies that are never idle."""
        return copies * schedulers_in(self.candidate.service) / self.packed

    def _together(self, prompts: Any) -> Any:
        import numpy as np

        return np.interp(prompts, self.prompts, self.times)

    def _further(self, prompts: Any) -> Any:
        """Time that each prompt adds to a step of about so many."""
        import numpy as np

        fewer, more = np.maximum(1.0, prompts / _NEAR), np.maximum(2.0, prompts * _NEAR)
        several = self._together(more) - self._together(fewer)
        return np.clip(several / (more - fewer), 0.0, self.packed)

    def waits(self, rate: Any, copies: Any) -> tuple[Any, Any]:
        """Return the time to the first token, and the prompts read beside each, at rates."""
        import numpy as np

        stages = schedulers_in(self.candidate.service)
        rate, copies = np.broadcast_arrays(np.asarray(rate, float), np.asarray(copies, float))
        known = {
            "pool_arrival_rate": rate,
            "prefill_copies": copies * stages,
            "lone_prompt_time": self.alone,
            "step_prompts": self.room,
            "beside_limit": self.beside,
            "packed_prompt_time": self.packed,
            "service_variance": 0.0,
            "path_time": self.path,
        }
        names = ("prompts_together", "prompts_time", "prompt_time")
        wanted = ("split_first_token", "prompts_beside")
        made = plan(equations_of(arrivals.PROMPT_LINES), {*known, *names}, wanted)
        prompts = np.ones(rate.shape)
        for _ in range(_ROUNDS):
            asked = (prompts, self._together(prompts), self._further(prompts))
            found = made.run(known | dict(zip(names, asked, strict=True)))
            prompts = (prompts + 1.0 + found["prompts_beside"]) / 2
        return found["split_first_token"], found["prompts_beside"]

    def within(self, most: float) -> tuple[Any, Any, Any]:
        """Return numbers of copies, the rate of each within the goal, and prompts beside each.

        Up to as many copies as the required rate takes, or as `most` says. The rate is 0 where
        the goal can't be met.
        """
        import numpy as np

        needed = math.ceil(self.goals.rate * self.packed) * 2 + 2
        copies = np.arange(1.0, max(1.0, min(most, needed, _MOST)) + 1.0)
        shares = np.linspace(0.0, 1.0, _SHARES + 1)[1:-1]
        rates = self.saturation(copies)[:, None] * shares
        first, beside = self.waits(rates, copies[:, None])
        kept = first <= self.goals.first_token
        # The wait grows with the rate: what comes before the first that is too late is in time.
        late = np.where(kept.all(axis=1), kept.shape[1], kept.argmin(axis=1))
        last = np.maximum(late - 1, 0)
        rows = np.arange(len(copies))
        return copies, np.where(kept[:, 0], rates[rows, last], 0.0), beside[rows, last]


def readers(candidate: Candidate, goals: Goals, rule: Scheduler) -> Readers | Refused:
    """Return what a layout can do that only reads prompts, or why it can't."""
    try:
        return _readers(candidate, goals, rule.on(candidate.service.device))
    except MlsimError as error:
        return Refused(candidate, name_of(candidate.service), str(error))


def _readers(candidate: Candidate, goals: Goals, rule: Scheduler) -> Readers | Refused:
    import numpy as np

    service = replace(candidate.service, output_tokens=1.0)
    largest = largest_batch(service, goals)
    if largest < 1:
        return Refused(candidate, name_of(service), "does not fit in memory")
    limit = float(min(largest, rule.running_limit))
    new, _ = service.prefill
    room = max(1.0, min(limit, rule.tokens_per_step / new))
    same = math.gcd(int(new), rule.tokens_per_step)
    beside = min(limit - 1, (rule.tokens_per_step - same) / new)
    most = math.ceil(_NEAR * max(2.0, room, 1 + beside))
    prompts = np.unique(np.rint(np.geomspace(1, most, _STEPS))).astype(float)
    prompts = np.union1d(prompts, (2.0,))
    return Readers(candidate, goals, prompts, reading_times(service, prompts), room, beside)


@dataclass(frozen=True, slots=True)
class Between:
    """What joins two pools.

    Attributes
    ----------
    bandwidth
        What one device sends to the other pool, in B/s.
    room
        Devices among which both pools have to be; infinite where any are joined.
    overlap
        Whether each layer's cache is sent while the next is computed.
    """

    bandwidth: float
    room: float = math.inf
    overlap: bool = False

    def copies(self, devices: float, taken: float = 0.0) -> float:
        """Return for how many copies of so many devices there is room beside those taken."""
        return self.room if math.isinf(self.room) else (self.room - taken) // devices


@dataclass(frozen=True, eq=False, slots=True)
class Decoders:
    """A layout that only decodes: its batches, and the time of a step of each, in s."""

    candidate: Candidate
    batch: Any
    step: Any
    steps: float
    made: float

    @property
    def devices(self) -> float:
        """Devices of one copy."""
        return float(self.candidate.service.parallelism.devices)


def decoders(candidate: Candidate, goals: Goals, rule: Scheduler) -> Decoders | Refused:
    """Return what a layout can do that only decodes, or why it can't."""
    rule = rule.on(candidate.service.device)
    # Devices that only decode work on one token of each sequence at a time.
    service = replace(candidate.service, chunk_tokens=float(rule.running_limit))
    try:
        batch = batches(service, goals, rule)
        if batch is None:
            return Refused(candidate, name_of(service), "does not fit in memory")
        step, made = decoding(service, batch, goals.prompt_tokens + goals.output_tokens / 2)
    except MlsimError as error:
        return Refused(candidate, name_of(service), str(error))
    return Decoders(candidate, batch, step, decode_steps(goals, made), made)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Copies of both pools that go together, what they serve, and what their fleet costs."""

    copies: float
    decode_copies: float
    rate: float
    decode_rate: float
    price: float
    batch: int
    times: Any
    rates: Any


@dataclass(frozen=True, eq=False, slots=True)
class _Both:
    """A layout that reads prompts beside one that decodes; `size` is the cache of a prompt."""

    reads: Readers
    decodes: Decoders
    between: Between
    goals: Goals
    size: float

    def token_times(self, beside: Any, steps_ahead: float) -> Any:
        """Return the time per token, a row for each number of copies that read, by batch."""
        reads, one, between = self.reads, self.decodes, self.between
        streams = arrivals.transfer_streams(reads.devices, one.devices)
        sent = arrivals.transfer_time(1.0, self.size, streams, between.bandwidth)
        if between.overlap:
            layers = float(one.candidate.service.model.layers)
            sent = arrivals.layered_transfer_time(sent, layers, reads.alone)
        return arrivals.split_token_time(
            one.steps,
            one.step,
            arrivals.cache_wait(sent, beside[:, None]),
            arrivals.joining_wait(one.batch, steps_ahead, one.step),
            self.goals.output_tokens,
        )

    def pairs(self, copies: Any, reading: Any, times: Any) -> Iterator[_Pair]:
        """Yield for each number of copies that read the copies that decode beside them."""
        import numpy as np

        goals, between, one, each = self.goals, self.between, self.decodes, self.reads
        stages = float(schedulers_in(one.candidate.service))
        per_token = arrivals.interval_per_token(one.step, one.made)
        full = arrivals.decode_rate(one.batch, goals.output_tokens, per_token) * stages
        in_time = np.where(times <= goals.per_token, full, 0.0)
        for place, batch in enumerate(in_time.argmax(axis=1).tolist()):
            most, each_rate = float(reading[place]), float(in_time[place, batch])
            count = float(copies[place])
            left = between.copies(one.devices, count * each.devices)
            if not (most and each_rate) or left < 1:
                continue
            many = min(float(arrivals.replicas(min(most, goals.rate), each_rate)), left)
            sent = arrivals.transfer_rate(
                between.bandwidth, count, each.devices, many, one.devices, self.size
            )
            rate = float(arrivals.split_rate(most, each_rate * many, sent))
            yield _Pair(
                *(count, many, rate, each_rate * many),
                self._bill(count, many, rate)["fleet_price"],
                *(batch, times[place], arrivals.split_rate(most, full * many, sent)),
            )

    def _bill(self, copies: float, many: float, rate: float) -> dict[str, float]:
        """Return what a fleet costs: as many pairs of pools as the required rate takes."""
        each, one = self.reads, self.decodes
        times = float(arrivals.replicas(self.goals.rate, rate))
        read = arrivals.fleet_devices(times, copies * each.devices)
        other = arrivals.fleet_devices(times, many * one.devices)
        prefill = arrivals.fleet_price(read, each.candidate.price)
        decode = arrivals.fleet_price(other, one.candidate.price)
        price = arrivals.pools_price(prefill, decode)
        return {"replicas": times, "prefill_price": prefill, "fleet_price": price}

    def option(self, pair: _Pair) -> Option:
        """Return a pair of pools as an option, with its times at its full rate."""
        each, one, goals = self.reads, self.decodes, self.goals
        bill = self._bill(pair.copies, pair.decode_copies, pair.rate)
        prefill = bill.pop("prefill_price")
        devices = arrivals.pool_devices(pair.copies, each.devices, pair.decode_copies, one.devices)
        first, _ = each.waits(pair.rate, pair.copies)
        share = arrivals.pool_share(prefill, bill["fleet_price"])
        load = arrivals.replica_load(goals.rate, bill["replicas"])
        times = {
            "running_requests": float(one.batch[pair.batch]),
            "replica_rate": pair.rate,
            "prompt_share": share,
            "time_per_output_token": float(pair.times[pair.batch]),
            "time_to_first_token": float(first),
        }
        found = {
            "required_rate": goals.rate,
            **times,
            **bill,
            "replica_use": float(arrivals.saturation_share(load, pair.rate)),
            "replica_devices": devices,
            "fleet_devices": float(arrivals.fleet_devices(bill["replicas"], devices)),
            **token_prices(bill["fleet_price"], share, goals),
            "margin": margin_of(times, goals),
            "prefill_copies": pair.copies,
            "decode_copies": pair.decode_copies,
            "prefill_use": float(arrivals.saturation_share(load, each.saturation(pair.copies))),
            "decode_use": float(arrivals.saturation_share(load, pair.decode_rate)),
        }
        front = {
            "running_requests": one.batch,
            "replica_rate": pair.rates,
            "time_per_output_token": pair.times,
        }
        return Option(one.candidate, found, front, goals, prefill=each.candidate)

    def lost(self, times: Any) -> Refused:
        """Return why the two don't go together, and how far they are from the goals."""
        each, one, goals, room = self.reads, self.decodes, self.goals, self.between.room
        service = one.candidate.service
        name = (
            f"prefill on {pool_words(each.candidate.service, 1)}, decode on "
            f"{pool_words(service, 1)}, {service.formats.name}"
        )
        devices = arrivals.pool_devices(1.0, each.devices, 1.0, one.devices)
        if devices > room:
            why = f"a copy of each takes {devices:,.0f} devices, and {room:,.0f} are joined"
            return Refused(one.candidate, name, why, split=True)
        first, token = each.alone_first_token, float(times.min())
        late = {"first token": first / goals.first_token, "each token": token / goals.per_token}
        slow = max(late, key=lambda what: late[what])
        why = f"{slow} takes {late[slow]:.3g} times the goal at its best"
        values = {
            "running_requests": float(one.batch[0]),
            "time_to_first_token": first,
            "time_per_output_token": token,
        }
        return Refused(one.candidate, name, why, late[slow], values, split=True)


def paired(
    reading: Sequence[Candidate],
    decode: Sequence[Candidate],
    between: Between,
    goals: Goals,
    rule: Scheduler,
) -> tuple[list[Option | Refused], int]:
    """Return for each layout that decodes its best partner; and how many pairs were tried."""
    made = [readers(one, goals, rule) for one in reading]
    able = [each for each in made if isinstance(each, Readers)]
    reads = [(each, each.within(between.copies(each.devices))) for each in able]
    unable = [replace(each, split=True) for each in made if isinstance(each, Refused)]
    found: list[Option | Refused] = []
    tried = 0
    for candidate in decode:
        one = decoders(candidate, goals, rule)
        if isinstance(one, Refused):
            unable.append(one)
            continue
        size = float(transfer_bytes(candidate.service))
        pairs: list[tuple[_Both, _Pair]] = []
        lost: list[Refused] = []
        for each, (copies, rates, beside) in reads:
            if each.candidate.service.formats.name != candidate.service.formats.name:
                continue
            both = _Both(each, one, between, goals, size)
            times = both.token_times(beside, float(rule.steps_ahead))
            tried += len(copies)
            pairs += [(both, pair) for pair in both.pairs(copies, rates, times)]
            lost.append(both.lost(times))
        if pairs:
            both, best = min(pairs, key=lambda two: (two[1].price, two[1].copies))
            found.append(both.option(best))
        elif lost:
            found.append(min(lost, key=lambda each: each.short))
    # Of layouts that can't run, all is told where no pair can.
    return found or [*unable], tried
