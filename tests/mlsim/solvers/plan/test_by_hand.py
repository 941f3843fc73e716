"""Plans worked by hand: of made-up times and rates, and of the steps that `Engine.serve` tells."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import kept
import numpy as np
import pytest

from mlsim import Engine
from mlsim.errors import InvalidValueError
from mlsim.hardware.kernel_constants import Loan, Relatives
from mlsim.solvers.plan import options, pools
from mlsim.solvers.plan.options import (
    Candidate,
    Goals,
    Option,
    Refused,
    batches,
    largest_batch,
    name_of,
    points,
    pool_words,
    question_of,
    slowed,
    tried,
)
from mlsim.solvers.plan.planned import Planned, nearest_of, nothing, planned
from mlsim.solvers.plan.pools import Between, Decoders, Readers, _Both, decoders, paired, readers
from mlsim.solvers.serving.service import Service
from mlsim.systems.schedulers import scheduler
from mlsim.workloads import Speculation

PRINTED = kept.blocks("plans.txt")
GOALS = Goals(30.0, 2.0, 1 / 16, 1000.0, 101.0)
# In the middle of its output a sequence has 1,051 tokens.
SERVED = replace(GOALS, output_tokens=102.0)


def serving(tensor: int = 1, pipeline: int = 1, batch: float = 1, **given: Any) -> Any:
    """Llama 3 8B on some devices of a node with eight."""
    asked: dict[str, Any] = {"prompt_tokens": 1000, "output_tokens": 102, "estimate": "roofline"}
    return Engine.serve(
        model="Llama3_8B",
        hardware="HGX_H100",
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        batch_size=batch,
        **asked | given,
    )


def candidate(tensor: int = 1, pipeline: int = 1, price: float = 0.002, **given: Any) -> Candidate:
    return Candidate(serving(tensor, pipeline, **given).service, price, f"{price:g} a second")


def made(where: Candidate, front: dict[str, list[float]]) -> Option:
    """An option of which only the front is known."""
    return Option(where, {}, {name: np.array(values) for name, values in front.items()}, GOALS)


FRONT = {
    "running_requests": [2.0, 3.0, 5.0],
    "replica_rate": [7.0, 11.0, 13.0],
    "prompt_share": [0.2, 0.3, 0.4],
    "time_per_output_token": [1 / 64, 1 / 32, 3 / 64],
    "time_to_first_token": [0.25, 0.5, 0.75],
}

FLEET = {
    "running_requests": 3.0,
    "replica_rate": 5.5,
    "prompt_share": 0.3,
    "time_per_output_token": 1 / 16,
    "time_to_first_token": 1.0,
    "required_rate": 30.0,
    "replicas": 6.0,
    "replica_use": 5 / 5.5,
    "replica_devices": 2.0,
    "fleet_devices": 12.0,
    "fleet_price": 0.024,
    "output_token_price": 0.024 / 3030,
    "prompt_token_price": 0.0072 / 30_000,
    "answer_token_price": 0.0168 / 3030,
    "margin": 1.0,
}


def test_a_fleet_of_pipelines() -> None:
    """Steps twice as long: of three batches the second is in time, at its very limit.

    Two stages are a copy. It answers 11 / 2 = 5.5 requests a second, so 30 take 6 copies, of which
    each gets 5: 5 / 5.5 of its rate. 12 devices at 0.002 are 0.024 a second, 0.3 of it for
    30 * 1,000 tokens that are read and the rest for 30 * 101 that are made. A token may take as
    long as it does, 1 / 16 s, and the first twice as long as its second.
    """
    option = made(candidate(pipeline=2), FRONT)
    assert slowed(option, GOALS, 2.0) == pytest.approx(FLEET)
    # Three times as long, the first is in time; 4.5 times, none.
    assert slowed(option, GOALS, 3.0)["running_requests"] == 2.0
    assert slowed(option, GOALS, 4.5) == {}
    # Where the first token is what may take longest but for 2 / 1.5, that is the margin.
    assert slowed(option, replace(GOALS, per_token=1.0), 2.0)["margin"] == pytest.approx(4 / 3)


def test_users_of_a_fleet_ask_as_often_as_they_are_answered() -> None:
    """1 s and 100 tokens of 1 / 16 s are 7.25 s, 10 with the pause: 60 users ask 6 times a second.

    Of 5.5 that a copy answers, that takes two.
    """
    goals = replace(GOALS, rate=0.0, users=60.0, think_time=2.75)
    found = slowed(made(candidate(pipeline=2), FRONT), goals, 2.0)
    assert found["required_rate"] == pytest.approx(6)
    assert found["replicas"] == 2
    assert found["replica_use"] == pytest.approx(3 / 5.5)
    assert found["output_token_price"] == pytest.approx(2 * 2 * 0.002 / 606)
    for each, words in ((goals, "of 60 users who wait and think"), (GOALS, "given")):
        option = replace(told("one", 0.024), goals=each)
        assert question_of(option).known.origin("required_rate") == words


def front_of(where: Candidate, **given: Any) -> Any:
    return points(where.service, SERVED, scheduler("vllm").on(where.service.device), **given)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_times_of_a_pipeline_follow_from_its_steps(share: float) -> None:
    """A step of two batches in two stages, and what a second to a fourth prompt adds to a step.

    Of a prompt that is cached to 60 %, 400 tokens are read, and 101 tokens follow the first. Of a rate r and a time p for each prompt, prompts take r p of the time.
    """
    given = {"estimate": "calibrated", "software": "vllm"}
    given |= {"prefix_share": share, "prefix_count": 1} if share else {}
    where = candidate(2, 2, **given)
    front = front_of(where)
    alone, four = (serving(2, 2, 2 * many, **given).prefill.value("latency") for many in (1.0, 4.0))
    prompt = (four - alone) / 3
    assert where.service.software is not None
    path = where.service.software.value("call_time")
    path += 1000 * where.service.software.value("tokenizing_time")
    assert len(front["running_requests"]) > 25
    assert front["running_requests"][0] == 1
    for place in (0, 9, 20, -1):
        many = float(front["running_requests"][place])
        step = serving(2, 2, 2 * many, **given).decode_at(1051).value("latency")
        rate = many / (101 * step + many * prompt)
        interval = step / (1 - rate * prompt)
        met = interval + rate * prompt**2 / (1 - (rate * prompt) ** 2)
        nobody = math.exp(-many)
        busy = met / 2 + interval + step + prompt + rate * met * prompt
        wanted = {
            "replica_rate": 2 * rate,
            "prompt_share": rate * prompt,
            "time_per_output_token": interval,
            "time_to_first_token": path + nobody * alone + (1 - nobody) * busy,
        }
        got = {name: float(front[name][place]) for name in wanted}
        assert got == pytest.approx(wanted, rel=1e-9)


def test_times_of_rounds_follow_from_what_a_round_takes_and_makes() -> None:
    """Of three tokens guessed with a chance of 0.7, a round makes 1 + 0.7 + 0.49 + 0.343."""
    given = {"speculation": Speculation(cost=0.1, tokens=3, acceptance=0.7)}
    front = front_of(candidate(2, **given))
    made_by_round = 2.533
    alone, four = (serving(2, 1, many, **given).prefill.value("latency") for many in (1.0, 4.0))
    prompt = (four - alone) / 3
    asked = serving(2, 1, 5.0, **given)
    place = front["running_requests"].tolist().index(5)
    round_time = _round_at(asked.service, 1051)
    rate = 5 / (101 / made_by_round * round_time + 5 * prompt)
    assert front["replica_rate"][place] == pytest.approx(rate)
    interval = round_time / (1 - rate * prompt)
    assert front["time_per_output_token"][place] == pytest.approx(interval / made_by_round)


def _round_at(service: Service, cached: float) -> float:
    """A check of four tokens, and three steps of a draft that take a tenth of a step each."""
    from mlsim.solvers.serving.steps import step_question

    checking, new = service.checking
    assert new == 4
    check = step_question(checking, "check", new, cached).value("latency")
    without = replace(service, switches=replace(service.switches, speculation=None))
    step = step_question(without, "decode", 1.0, cached).value("latency")
    return float(check + 3 * 0.1 * step)


def test_batches_that_are_tried_have_room_and_are_within_the_limit() -> None:
    """32 of equal ratio, as far as they are whole numbers; each of two stages has half the room."""
    rule = scheduler("vllm").with_limits(running_limit=40)
    two = serving(2, 2).service
    whole = serving(2, 2, 2).value("largest_batch")
    assert largest_batch(two, GOALS) == whole // 2
    found = batches(two, GOALS, rule)
    assert found.tolist() == sorted({round(40 ** (part / 31)) for part in range(32)})
    many = batches(two, GOALS, scheduler("vllm").with_limits(running_limit=10**9))
    assert many[-1] == whole // 2
    assert (many[-1] / many[-2]) == pytest.approx(many[-1] ** (1 / 31), rel=0.01)
    # 12 GB of 80 have no room for weights of 16 GB.
    full = candidate(reserve=0.85)
    assert batches(full.service, GOALS, rule) is None
    # 43 GB have it for one cache of 130,000 tokens of 131,072 bytes.
    long = {"prompt_tokens": 130_000, "reserve": 0.5}
    few = replace(GOALS, prompt_tokens=130_000)
    assert batches(serving(**long).service, few, rule) == [1]
    assert isinstance(readers(candidate(**long), few, rule), Readers)
    for door in (tried, readers, decoders):
        lost: Any = door(full, GOALS, rule)
        assert (lost.candidate, lost.name) == (full, name_of(full.service))
        assert (lost.why, lost.short) == ("does not fit in memory", math.inf)


def test_what_is_late_says_what_and_by_how_much() -> None:
    """The nearest batch counts: the least of the greater of both times over their goals."""
    where, rule = candidate(2), scheduler("vllm")
    front = front_of(where)
    for name, goals, times in (
        ("each token", replace(SERVED, per_token=1e-4), front["time_per_output_token"] / 1e-4),
        ("first token", replace(SERVED, first_token=1e-3), front["time_to_first_token"] / 1e-3),
    ):
        lost: Any = tried(where, goals, rule)
        assert (lost.candidate, lost.name) == (where, name_of(where.service))
        assert lost.short == pytest.approx(times.min())
        assert lost.why == f"{name} takes {times.min():.3g} times the goal at its best"
        assert lost.nearest == {key: column[times.argmin()] for key, column in front.items()}
    won: Any = tried(where, SERVED, rule)
    in_time = (front["time_to_first_token"] <= 2.0) & (front["time_per_output_token"] <= 1 / 16)
    assert won.value("replica_rate") == front["replica_rate"][in_time].max()


# Two pools.

LINE = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0]


def reading(tensor: int = 4, pipeline: int = 2, **changed: Any) -> Readers:
    """A step takes 0.2 s, and 0.1 for each prompt; at most four at a time, three beside one."""
    times = 0.2 + 0.1 * np.array(LINE)
    known: dict[str, Any] = {"prompts": np.array(LINE), "times": times, "room": 4.0, "beside": 3.0}
    return Readers(candidate(tensor, pipeline, 0.003), GOALS, **known | changed)


def test_a_pool_of_readers() -> None:
    """Four prompts in 0.6 s are one in 0.15: five copies of two stages read 10 / 0.15 a second.

    Of 8 a second, each of 2 * 2 stages gets 2. Steps of one and two begin with 0.2 s. In 0.3 s
    nobody comes with a chance of exp(-0.6), so steps read (0.4 + 0.548812) / 0.8 = 1.186015, and
    run 2 * (0.2 / 1.186015 + 0.1) = 0.537264 of the time; so often all are busy:
    0.537264 ** (sqrt(10) - 2) = 0.485739. Beside a prompt are read 0.485739 * 0.04 / 0.96
    = 0.020239 for those before it, which can be three: 0.020103; and 0.485739 * 4 * (0.04 /
    1.186015 + 0.04) / 0.96 = 0.149217 for the start. The step that runs has still to go
    0.04 / 1.186015 + 0.04 + 0.01 * 1.169320 = 0.085420, a quarter of which counts, by 0.485739.
    The line adds nothing. The step takes 0.2 + 0.1 * 1.169320.
    """
    reads = reading()
    assert reads.devices == 8
    assert reads.alone == pytest.approx(0.3)
    assert reads.packed == pytest.approx(0.15)
    assert reads.saturation(5.0) == pytest.approx(10 / 0.15)
    assert reads.alone_first_token == pytest.approx(0.3)
    first, beside = reads.waits(8.0, 2.0)
    assert float(beside) == pytest.approx(0.169320, abs=2e-6)
    assert float(first) == pytest.approx(0.485739 * 0.085420 / 4 + 0.3169320, abs=2e-6)


def test_readers_whose_steps_bend_agree_with_themselves() -> None:
    """Up to three prompts a step takes as long; from there on each adds. Both ways are one."""
    times = np.array([0.3, 0.3, 0.3, 0.5, 0.8, 1.3])
    reads = reading(times=times, room=8.0, beside=7.0)
    beside = float(reads.waits(48.0, 3.0)[1])
    pools = 1 + beside
    assert 2 < pools < 8
    low, high = pools / 1.5, pools * 1.5
    slope = (np.interp(high, LINE, times) - np.interp(low, LINE, times)) / (high - low)
    line = np.interp(pools, LINE, times) - slope * pools + slope * np.array(LINE)
    # A pool whose times lie on that line all along, but for a step with one prompt.
    line[0] = 0.3
    straight = Readers(reads.candidate, GOALS, np.array(LINE), line, 8.0, 7.0)
    assert float(straight._further(np.array(5.0))) == pytest.approx(slope)
    assert beside == pytest.approx(float(straight.waits(48.0, 3.0)[1]), rel=0.02)


def test_rates_within_a_goal_are_the_last_of_forty_parts() -> None:
    """30 requests of 0.15 s take 4.5 copies, so up to 12 are tried, or as many as have room."""
    reads = reading()
    copies, rates, beside = reads.within(math.inf)
    assert copies.tolist() == [float(each) for each in range(1, 13)]
    assert reads.within(5.0)[0].tolist() == [1, 2, 3, 4, 5]
    assert reads.within(0.0)[0].tolist() == [1]
    assert len(replace(reads, goals=replace(GOALS, rate=1e5)).within(math.inf)[0]) == 256
    # Within 2 s nearly all that saturates; of a goal of 0.4 s less, of 0.29 s nothing.
    tight = replace(reads, goals=replace(GOALS, first_token=0.4))
    for pool in (reads, tight):
        copies, rates, beside = pool.within(4.0)
        parts = rates / pool.saturation(copies) * 40
        assert parts == pytest.approx(np.rint(parts))
        first, with_it = pool.waits(rates, copies)
        assert beside == pytest.approx(with_it)
        assert (first <= pool.goals.first_token).all()
        later = np.minimum(np.rint(parts) + 1, 39)
        over, _ = pool.waits(pool.saturation(copies) * later / 40, copies)
        assert ((over > pool.goals.first_token) | (np.rint(parts) == 39)).all()
    assert (rates < reads.within(4.0)[1]).all()
    # What comes just in time is in time.
    shares = reads.saturation(copies)[:, None] * np.linspace(0, 1, 41)[1:-1]
    edge = float(reads.waits(shares, copies[:, None])[0][1, 20])
    just = replace(reads, goals=replace(GOALS, first_token=edge))
    assert just.within(4.0)[1][1] == shares[1, 20]
    never = replace(reads, goals=replace(GOALS, first_token=0.29))
    assert never.within(3.0)[1].tolist() == [0, 0, 0]
    always = replace(reads, goals=replace(GOALS, first_token=1e9))
    assert always.within(1.0)[1] == pytest.approx([39 / 40 * 2 / 0.15])


def test_readers_have_room_for_the_tokens_of_a_step() -> None:
    """8,192 tokens are 8.192 prompts of 1,000; beside the end of one, (8,192 - 8) / 1,000 more.

    8 tokens are what all multiples of both have in common. Times go up to 1.5 * 9.184 prompts.
    """
    where = candidate(2, 2)
    found: Any = readers(where, GOALS, scheduler("vllm"))
    assert found.room == pytest.approx(8.192)
    assert found.beside == pytest.approx(8.184)
    assert found.prompts.tolist() == sorted({round(14 ** (part / 11)) for part in range(12)})
    for place in (0, 1, -1):
        asked = serving(2, 2, 2 * float(found.prompts[place]), output_tokens=1)
        assert found.times[place] == pytest.approx(asked.prefill.value("latency"))
    few: Any = readers(where, GOALS, scheduler("vllm").with_limits(running_limit=5))
    assert (few.room, few.beside, few.prompts[-1]) == (5, 4, 8)
    small: Any = readers(where, GOALS, scheduler("vllm").with_limits(tokens_per_step=600))
    # A prompt takes two steps: 400 / 1,000 of one are left.
    assert (small.room, small.beside, small.prompts[-1]) == (1, 0.4, 3)
    cached = candidate(prefix_share=0.6, prefix_count=1)
    part: Any = readers(cached, GOALS, scheduler("vllm"))
    assert part.room == pytest.approx(8192 / 400)


def both(between: Between, **readers_: Any) -> _Both:
    """Two devices that decode beside eight that read; a cache of 0.25 GB."""
    batches_, steps = np.array([2.0, 3.0, 5.0]), np.array([1 / 80, 1 / 64, 1 / 50])
    one = Decoders(candidate(1, 2, 0.002), batches_, steps, 100.0, 1.0)
    return _Both(reading(**readers_), one, between, GOALS, 0.25e9)


def test_the_time_per_token_of_two_pools() -> None:
    """A cache goes through two links of 0.5 GB/s in 0.25 s, and with one prompt beside in 0.375.

    A request joins the step after the next one: 1.5 steps, but for exp(-batch) of them. 100 tokens
    come after the first.
    """
    found = both(Between(0.5e9)).token_times(np.array([0.0, 1.0]), 1.0)
    for row, wait in zip(found, (0.25, 0.375), strict=True):
        for each, batch, step in zip(row, (2, 3, 5), (1 / 80, 1 / 64, 1 / 50), strict=True):
            joining = (1 - math.exp(-batch)) * 1.5 * step
            assert each == pytest.approx((100 * step + wait + joining) / 100)
    # Of 32 layers one is sent at the end: 0.25 / 32, as the prompt takes 0.3 s to be read.
    early = both(Between(0.5e9, overlap=True)).token_times(np.array([0.0]), 0.0)
    joining = (1 - math.exp(-2)) / 160
    assert early[0, 0] == pytest.approx((100 / 80 + 0.25 / 32 + joining) / 100)
    # In 0.3 s 31 of 32 layers have time to be sent; of 2.5 s more is left.
    late = both(Between(0.05e9, overlap=True)).token_times(np.array([0.0]), 0.0)
    left = 2.5 - 0.3 * 31 / 32
    assert late[0, 0] == pytest.approx((100 / 80 + left + joining) / 100)


def test_a_pair_of_pools() -> None:
    """16 devices read 11 a second; beside them copies of two decode, each batch in two stages.

    A batch of 3 answers 2 * 3 / (100 / 64) = 3.84 a second in time (a token takes 1 / 16 s at
    most); one of 5 would answer 5, but is late. 11 a second take 3
    copies, which could answer 11.52: the pair answers 11. 30 a second take 3 pairs, at 10 / 11.
    """
    two = both(Between(5e9))
    times = np.array([[0.02, 0.04, 0.07], [0.02, 0.0625, 0.07]])
    pairs = list(two.pairs(np.array([1.0, 2.0]), np.array([0.0, 11.0]), times))
    assert len(pairs) == 1
    pair = pairs[0]
    assert (pair.copies, pair.decode_copies, pair.batch) == (2, 3, 1)
    assert (pair.rate, pair.decode_rate) == (11, pytest.approx(11.52))
    # 16 devices at 0.003 and 6 at 0.002, three times.
    assert pair.price == pytest.approx(3 * 0.06)
    # Of each batch what three copies answer: 3 * 2 * 2 / (100 / 80) of the first; 11 hold back the others.
    assert pair.rates == pytest.approx([9.6, 11, 11])
    option = two.option(pair)
    first = float(two.reads.waits(11.0, 2.0)[0])
    assert option.found == pytest.approx(
        {
            **FLEET,
            "replica_rate": 11.0,
            "prompt_share": 0.8,
            "time_to_first_token": first,
            "replicas": 3.0,
            "fleet_price": 0.18,
            "replica_use": 10 / 11,
            "replica_devices": 22.0,
            "fleet_devices": 66.0,
            "output_token_price": 0.18 / 3030,
            "prompt_token_price": 0.144 / 30_000,
            "answer_token_price": 0.036 / 3030,
            "prefill_copies": 2.0,
            "decode_copies": 3.0,
            "prefill_use": 10 / (4 / 0.15),
            "decode_use": 10 / 11.52,
        }
    )
    assert option.front["running_requests"].tolist() == [2, 3, 5]
    assert option.name == (
        "prefill on 2 x 8 x NVIDIA H100 SXM 80 GB (TP4 PP2), "
        "decode on 3 x 2 x NVIDIA H100 SXM 80 GB (PP2), bf16"
    )
    # Slower steps cost as many more devices, while the margin is wide enough.
    easy = two.option(replace(pair, times=pair.times / 2))
    assert easy.value("margin") == 2
    twice = slowed(easy, GOALS, 2.0)
    assert (twice["fleet_price"], twice["fleet_devices"]) == (pytest.approx(0.36), 132)
    assert twice["time_per_output_token"] == easy.value("time_per_output_token")
    assert slowed(easy, GOALS, 2.01) == {}


def test_what_holds_a_pair_back() -> None:
    """The link, the room, or a required rate that less than one pair answers."""
    times, one = np.array([[0.02, 0.0625, 0.07]]), np.array([1.0])
    # Two devices of three copies send 0.05 GB/s each: 6 * 0.05 / 0.25 = 1.2 caches a second.
    (slow,) = both(Between(0.05e9)).pairs(one, np.array([11.0]), times)
    assert slow.rate == pytest.approx(1.2)
    assert slow.price == pytest.approx(25 * (8 * 0.003 + 6 * 0.002))
    # Beside eight of twelve devices two copies of two have room, which answer 7.68.
    (room,) = both(Between(5e9, room=13.0)).pairs(one, np.array([11.0]), times)
    assert (room.decode_copies, room.rate) == (2, pytest.approx(7.68))
    assert list(both(Between(5e9, room=9.0)).pairs(one, np.array([11.0]), times)) == []
    (least,) = both(Between(5e9, room=10.0)).pairs(one, np.array([11.0]), times)
    assert least.decode_copies == 1
    # 100 a second could be read; 30 are asked, which take 8 copies of 3.84.
    (most,) = both(Between(5e9)).pairs(one, np.array([100.0]), times)
    assert (most.decode_copies, most.rate) == (8, pytest.approx(30.72))
    assert list(both(Between(5e9)).pairs(one, np.array([11.0]), times + 1)) == []
    assert Between(1.0, room=13.0).copies(4.0, 3.0) == 2
    assert Between(1.0, room=13.0).copies(4.0) == 3
    assert Between(1.0).copies(4.0, 3.0) == math.inf


def test_pools_that_do_not_go_together_say_why() -> None:
    lost = both(Between(5e9, room=9.0)).lost(np.array([[1.0]]))
    assert lost.candidate.price == 0.002
    assert lost.why == "a copy of each takes 10 devices, and 9 are joined"
    assert lost.short == math.inf
    assert lost.split
    fits = both(Between(5e9, room=10.0)).lost(np.array([[0.5, 0.25], [0.375, 0.5]]))
    # 0.25 s over 1 / 16 s; the first token takes 0.3 of 2 s.
    assert fits.why == "each token takes 4 times the goal at its best"
    assert (fits.candidate.price, fits.short) == (0.002, 4)
    times = {"time_to_first_token": pytest.approx(0.3), "time_per_output_token": 0.25}
    assert fits.nearest == {**times, "running_requests": 2.0}
    assert "prefill on 8 x NVIDIA H100" in fits.name
    first = both(Between(5e9), times=np.array(LINE) * 5).lost(np.array([[0.0625]]))
    assert first.why == "first token takes 2.5 times the goal at its best"


def test_the_best_partner_is_the_cheapest_of_all() -> None:
    """All readers beside all decoders, each number of copies: none has a lower bill.

    30 prompts a second take one copy, of 20 ms each; up to four are tried.
    """
    reads = [candidate(1, 1, 0.003), candidate(2, 1, 0.0011)]
    decode = [candidate(1, 1, 0.002), candidate(2, 1, 0.0009)]
    goals, rule, between = replace(GOALS, per_token=0.02), scheduler("vllm"), Between(20e9, 8.0)
    found, tried_ = paired(reads, decode, between, goals, rule)
    assert tried_ == 2 * (4 + 4)
    assert len(found) == 2
    for option, one in zip(found, decode, strict=True):
        assert isinstance(option, Option)
        assert option.candidate is one
        prices = []
        for each in reads:
            able: Any = readers(each, goals, rule)
            lone: Any = decoders(one, goals, rule)
            copies, rates, beside = able.within(8.0 // able.devices)
            size = 1000 * 131_072.0  # 32 layers, 8 heads of 128 twice, two bytes
            pair = _Both(able, lone, between, goals, size)
            times = pair.token_times(beside, 1.0)
            prices += [(got.price, got.copies) for got in pair.pairs(copies, rates, times)]
        assert (option.value("fleet_price"), option.value("prefill_copies")) == min(prices)
    fp8 = candidate(1, 1, precision="fp8")
    assert paired([fp8], decode, between, goals, rule) == ([], 0)
    full = candidate(reserve=0.85)
    (lost,), _ = paired([full], decode[:1], between, goals, rule)
    assert isinstance(lost, Refused)
    assert (lost.candidate, lost.split, lost.why) == (full, True, "does not fit in memory")
    late, _ = paired(reads, decode[:1], between, replace(goals, per_token=1e-6), rule)
    assert [type(each) for each in late] == [Refused]
    apart = (
        paired([each], decode[:1], between, replace(goals, per_token=1e-6), rule) for each in reads
    )
    assert late[0].short == min(each.short for found, _ in apart for each in found)


def test_a_layout_that_cannot_be_asked_about_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    where, rule = candidate(2), scheduler("vllm")

    def refuse(*_: Any) -> Any:
        raise InvalidValueError("no such layout")

    for module, name, door in (
        (options, "points", tried),
        (pools, "largest_batch", readers),
        (pools, "batches", decoders),
    ):
        monkeypatch.setattr(module, name, refuse)
        lost: Any = door(where, GOALS, rule)
        assert (lost.candidate, lost.why) == (where, "no such layout")
        assert lost.name == "2 x NVIDIA H100 SXM 80 GB of NVIDIA HGX H100, 8 GPUs (TP2), bf16"


def test_devices_that_decode_by_themselves() -> None:
    """Steps are those of `Engine.serve`; 101 of them make what comes after the first token."""
    found: Any = decoders(candidate(2, 2), SERVED, scheduler("vllm"))
    assert (found.devices, found.steps, found.made) == (4, 101, 1)
    asked = serving(2, 2, 2 * float(found.batch[7]), chunk_tokens=1024)
    assert found.step[7] == pytest.approx(asked.decode_at(1051).value("latency"))


# What is told of a plan.


def told(name: str, price: float, **changed: Any) -> Option:
    """An option with round numbers, of which the price is that of 12 devices."""
    found = FLEET | {
        name: value * price / 0.024 for name, value in FLEET.items() if "price" in name
    }
    found |= {"time_per_output_token": 0.05, "time_to_first_token": 1.25, "margin": 1.25}
    found["fleet_price"] = price
    more = {
        key: changed.pop(key) for key in ("prefill", "loans", "slower", "slow") if key in changed
    }
    where = Candidate(candidate(pipeline=2).service, price / 12, f"asked by {name}")
    return replace(made(where, FRONT), found=found | changed, **more)


TWO = {"prefill_copies": 2.0, "decode_copies": 3.0, "prefill_use": 0.375, "decode_use": 0.868}


def two_pools(price: float, **changed: Any) -> Option:
    return told("pools", price, prefill=candidate(4, 2, 0.003), **TWO, **changed)


def asked(*found: Option | Refused, objective: str = "cost", **given: Any) -> Planned:
    given = {"limits": (0.8, 1.2, "some rows"), "left_out": {}} | given
    return planned("A model", GOALS, found, objective=objective, **given)


def rows(found: Planned) -> dict[str, str]:
    return dict(found.report().rows)


LATE = Refused(candidate(), "a late one", "too late", 1.5, {"time_to_first_token": 3.0})
LOAN = Loan("memory_fraction", Relatives("sibling", ("Cloud.A100",)))


def lends(**changed: Any) -> Option:
    """An option with borrowed constants: cheaper as predicted, dearer at 1.5 times its steps."""
    slow = {"fleet_price": 0.036, "fleet_devices": 18.0}
    return told("lent", 0.02, **{"loans": (LOAN,), "slower": 1.5, "slow": slow} | changed)


def test_plans_in_words() -> None:
    """0.024 USD/s are 86.40 an hour, 7.92 for a million of 3,030 new tokens a second.

    Of them 0.0072 are for 30,000 tokens that are read, 0.24 for a million, and 0.0168 for 3,030,
    5.54. A copy gets 5 of 5.5. What is borrowed costs 0.036 at its edge, 129.60 an hour.
    """
    one, own = told("one", 0.024), told("own", 0.03)
    two = told("two", 0.03, replica_rate=6.6, fleet_devices=15.0)
    watts = told("one", 8400.0), told("two", 10_500.0, fleet_devices=9.0)
    for name, found in {
        "two layouts": asked(two, LATE, one),
        "two pools second": asked(one, two_pools(0.03), pools="either", pairs=1234),
        "two pools first": asked(two_pools(0.02), one, pools="either"),
        "energy": asked(*watts, objective="energy"),
        "borrowed": asked(lends(), own),
    }.items():
        assert str(found).split() == " ".join(PRINTED[name]).split(), name


def test_what_is_said_of_a_plan() -> None:
    first = told("one", 0.024)
    assert asked(first).why == "nothing else meets the goals"
    seven = asked(*(told(f"{each}", 0.02 + each / 1000) for each in range(7)))
    assert [name for name in rows(seven) if name.isdigit()] == ["1", "2", "3", "4", "5"]
    bare = Planned("A model", GOALS, (first,), (), "cost")
    assert (bare.report().label, bare.report().width) == (10, 120)
    assert rows(bare)["tried"] == "1 layouts meet the goals, 0 do not"
    assert (bare.limits, bare.pools, bare.to_dict().get("left_out")) == (None, "one", None)
    assert ": 1 copy of " in rows(asked(told("alone", 0.002, replicas=1.0)))["1"]
    narrow = rows(asked(told("tight", 0.024, margin=1.1)))["margin"]
    assert narrow.endswith("for that, ask for 1.20 times less")
    assert rows(asked(told("limit", 0.024, margin=1.2)))["margin"].endswith("that is enough")
    assert "published" not in rows(asked(first, limits=None))["margin"]
    counted = rows(asked(first, told("two", 0.03, fleet_devices=9.0), objective="devices"))
    assert counted["1"].startswith("9 devices: ")
    assert "1.33 times the devices" in counted["runner-up"]


def test_what_is_said_of_the_other_kind_of_pools() -> None:
    """Of a kind without any: the nearest that was refused, or that none can run."""
    one, two = told("one", 0.024), two_pools(0.03)
    third = rows(asked(one, told("second", 0.027), two, pools="either"))["two pools"]
    assert third.startswith(f"{two.name}: 1.25 times the cost. Of the two pools")
    gone = replace(LATE, split=True, name="two that lost")
    assert rows(asked(one, LATE, gone, pools="either"))["two pools"] == "two that lost: too late"
    assert rows(asked(one, LATE, pools="either"))["two pools"] == "none can run"
    assert "two pools" not in rows(asked(one, gone))
    assert ": 1 pair of pools, prefill" in rows(asked(two_pools(0.02, replicas=1.0)))["1"]


def test_borrowed_constants_stand_by_the_slow_edge() -> None:
    """As dear at its edge as what is measured, it stands behind that; late there, behind all."""
    lent, own = lends(), told("own", 0.03)
    assert [each.candidate.words for each in asked(lent, own).options] == [
        *("asked by own", "asked by lent")
    ]
    devices = asked(lent, told("own", 0.03, fleet_devices=15.0), objective="devices")
    assert [bool(each.loans) for each in devices.options] == [False, True]
    assert "(18 devices at the slow edge)" in rows(devices)["2*"]
    watts = asked(lends(slow={"fleet_price": 9600.0}), own, objective="energy")
    assert "(9,600 W at the slow edge)" in rows(watts)["2*"]
    assert asked(lends(slow={"fleet_price": 0.03}), own).options[0] is own
    first = asked(lends(slow={"fleet_price": 0.029}), own)
    assert first.options[0].loans
    assert first.borrowed[1].endswith(
        f"the best that is measured: {own.name}, 108.00 USD/h (9.90 USD per million new tokens)"
    )
    assert "there is none" in asked(lent).borrowed[1]
    assert "up to 1.75 times" in asked(lent, lends(slower=1.75)).borrowed[1]
    late = asked(lends(slow={}), own, told("dear", 9.0))
    assert late.options[-1].loans
    assert "; 1 would miss the goals then, and stand last. " in late.borrowed[1]
    assert "slow edge" not in rows(late)["3*"]
    dear = replace(lent, found=lent.found | {"fleet_price": 0.04})
    assert "The first borrows nothing that decides a tenth" in asked(own, dear).borrowed[1]
    # A margin counts the wider band of what is borrowed: 1.2 * 1.5.
    assert rows(asked(lent))["margin"].endswith(
        "0.80 to 1.80 times theirs: for that, ask for 1.80 times less"
    )
    # By less than half a per cent slower, no word of an edge.
    near = asked(lends(slower=1.004))
    assert len(near.borrowed) == 1
    assert "slow edge" not in rows(near)["1*"]
    edge = asked(lends(slower=1.005))
    assert (len(edge.borrowed), "slow edge" in rows(edge)["1*"]) == (2, True)


def test_of_equal_cost_the_faster_comes_first_and_of_refused_the_nearest() -> None:
    one, two = told("one", 0.024, margin=1.1), told("two", 0.024, margin=1.3)
    far = replace(LATE, short=9.0, name="far")
    found = asked(one, far, two, LATE)
    assert found.options == (two, one)
    assert found.refused == (LATE, far)
    assert nearest_of([LATE, far]) is LATE
    unable = [Refused(None, name, "no room") for name in ("small", "large")]
    assert nearest_of(unable).name == "large"


def test_the_front_by_hand() -> None:
    """Tokens a second of a user, and of a device: 101 tokens of each request, two devices.

    Of 64, 32 and 21.3 tokens a second 353.5, 555.5 and 656.5 come from each device; another
    layout is beaten by the second, beats the third, and has its last point twice.
    """
    other = replace(
        told("other", 0.03, replica_devices=1.0),
        front={
            "time_per_output_token": np.array([1 / 30, 1 / 25, 1 / 20, 1 / 20]),
            "replica_rate": np.array([5.5, 6.0, 7.0, 7.0]),
            "running_requests": np.array([7.0, 8.0, 9.0, 10.0]),
        },
    )
    front = asked(told("one", 0.024), other).front
    assert front.tokens_per_user.tolist() == pytest.approx([64, 32, 25, 64 / 3, 20])
    assert front.tokens_per_device.tolist() == pytest.approx([353.5, 555.5, 606, 656.5, 707])
    assert front.batch.tolist() == [2, 3, 8, 5, 9]


def test_nothing_that_serves_says_what_comes_nearest() -> None:
    times = {"time_to_first_token": 3.0, "time_per_output_token": 0.075}
    near = replace(LATE, nearest={**times, "running_requests": 1234.0})
    no_room = Refused(None, "B", "no room")
    words = nothing("A model", [near], {"B": no_room, "C": near, "D": replace(no_room, name="D")})
    assert "Nearest is a late one, batch 1,234: first token 3 s, each token 75 ms." in words
    assert words.endswith("Left out: B, D: no room.")
    assert "Left out" not in nothing("A model", [near], {"C": near})
    unable = [replace(no_room, name=name) for name in ("B", "C", "C", "D")]
    assert nothing("A model", unable, {}) == (
        "nothing that was tried can serve A model. B: no room; C: no room"
    )
    assert nothing("A model", [], {}) == "nothing that was tried can serve A model."


def test_a_plan_as_json_and_as_a_table() -> None:
    users = replace(GOALS, rate=0.0, users=60.0, think_time=2.75)
    one, two = told("one", 0.024, loans=(LOAN,)), two_pools(0.03)
    given: dict[str, Any] = {"limits": None, "left_out": {"C": LATE}}
    found = planned("A", users, [one, two, LATE], objective="cost", **given)
    data = found.to_dict()
    assert data["goals"] == {
        "users": {"value": 60.0, "unit": "1"},
        "think_time": {"value": 2.75, "unit": "s"},
        "time_to_first_token": {"value": 2.0, "unit": "s"},
        "time_per_output_token": {"value": 0.0625, "unit": "s"},
        "prompt_tokens": {"value": 1000.0, "unit": "token/sample"},
        "output_tokens": {"value": 101.0, "unit": "token/sample"},
    }
    assert asked(one).to_dict()["goals"]["rate"] == {"value": 30.0, "unit": "sample/s"}
    parts = {"goals", "objective", "borrowed", "options", "refused", "left_out"}
    assert set(data) == {"model", *parts}
    assert data["refused"] == [{"layout": "a late one", "why": "too late"}]
    assert data["left_out"] == {"C": "too late"}
    assert "60 users who think for 2.75 s, 30 requests/s or more" in found.report().title
    table = found.table.set_index("price")
    last = table.loc["asked by pools; 0.003 a second"]
    layout = [f"{name}_parallel" for name in ("tensor", "pipeline", "context", "data", "expert")]
    assert last[layout].tolist() == [1, 2, 1, 1, 1]
    reads = [f"prefill_{name}" for name in layout if name != "data_parallel"]
    assert last[reads].tolist() == [4, 2, 1, 1]
    assert last.fleet_price == 0.03
    assert "from A100" in "".join(table.borrowed)
    assert pool_words(one.service, 1) == "2 x NVIDIA H100 SXM 80 GB (PP2)"
    assert pool_words(candidate().service, 1200.0) == "1,200 x NVIDIA H100 SXM 80 GB"
