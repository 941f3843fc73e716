"""Two pools of devices, one that reads prompts and one that decodes: the best of each pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlsim.equations import arrivals
from mlsim.errors import MlsimError
from mlsim.solvers.plan.options import (
    Candidate,
    Goals,
    Option,
    Refused,
    batches,
    decode_steps,
    decoding,
    margin_of,
    name_of,
    pool_words,
    schedulers_in,
    token_prices,
)
from mlsim.solvers.plan.prompts import Readers, readers
from mlsim.solvers.serving.pools import transfer_bytes
from mlsim.systems.schedulers import Scheduler


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
