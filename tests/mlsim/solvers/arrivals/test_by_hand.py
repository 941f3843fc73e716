"""Runs of a scheduler worked by hand, on tables of round numbers; and what they come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlsim.errors import InvalidValueError
from mlsim.solvers.arrivals.loaded import binding, results
from mlsim.solvers.arrivals.simulate import Log, simulate
from mlsim.solvers.arrivals.split import Reader, Reading, Station, in_tandem
from mlsim.solvers.arrivals.steady import Typical
from mlsim.solvers.arrivals.step_times import (
    CHUNKS,
    CONTEXTS,
    StepTimes,
    between,
    chunk_time,
    inverse,
)
from mlsim.systems.schedulers import scheduler
from mlsim.workloads.requests import Requests

PLACES = 100.0 * np.arange(CONTEXTS)
PARTS = 1 + 10.0 * np.arange(CHUNKS)
# A step takes 1 s, 0.01 for each token and 0.1 for each sequence that gets one; a sequence that
# decodes 0.0001 for each token that it has, and a chunk of a prompt 0.001 for each of its own, and
# 0.00001 for each of those for each before them. A token takes a byte.
TIMES = StepTimes(
    together=[0.0, *(1 + 0.01 * np.arange(1, 501))],
    scores=[*(0.1 * np.arange(31))],
    reading=[[*(0.0001 * many * PLACES)] for many in range(9)],
    reading_prompt=[[*(0.001 * part + 1e-5 * part * PLACES)] for part in PARTS],
    context_step=100.0,
    chunk_step=10.0,
    memory=[*PLACES],
    cache_room=1e6,
    longest=6400,
)
RULE = replace(
    scheduler("vllm"), steps_ahead=0, running_limit=9, tokens_per_step=250, block_tokens=2
)


def asked(*each: tuple[float, int, int], **more: Any) -> Requests:
    """Requests by when they come, their prompt and their output."""
    arrived, prompt, output = (np.array(column) for column in zip(*each, strict=True))
    return Requests(arrived.astype(float), prompt, output, **more)


def run(requests: Requests, rule: Any = RULE, **changed: Any) -> Log:
    return simulate(requests, replace(TIMES, **changed), rule)


def test_tables_between_their_entries() -> None:
    assert chunk_time(TIMES, 37.0, 250.0) == pytest.approx(0.037 + 1e-5 * 37 * 250)
    assert between(TIMES.reading[3], 1.25) == pytest.approx(0.0375)
    # Beyond the last entry it goes on as before.
    assert between([*range(64), 65.0], 65.0) == 67
    assert inverse([float(3 * each) for each in range(CONTEXTS)], 7.5) == 2.5
    assert inverse([0.5 * each for each in range(CONTEXTS)], 3.25) == 6.5
    assert inverse([0.0, 2.0, *[5.0] * (CONTEXTS - 2)], 5.0) == 1e12
    assert inverse([0.0, 2.0, 5.0, *range(6, CONTEXTS + 3)], 3.5) == 1.5


def test_a_prompt_is_cut_and_read_beside_what_decodes() -> None:
    """100 tokens: 0.1 + 2 + 0.1 s. Beside them 249 of 300: 0.249 + 3.5, and 0.1 + 0.01 to decode.

    Then the last 51, with 249 before them: 0.17799 + 1.52, and 0.2 for two tokens, 0.0101 for the
    one that decodes and ends here. The other makes its last one in 1.01 + 0.1 + 0.03 s.
    """
    found = run(asked((0.0, 100, 3), (2.0, 300, 2)))
    assert found.first == pytest.approx([2.2, 7.96709])
    assert found.finished == pytest.approx([7.96709, 9.10709])
    assert (found.busy, found.steps, found.tokens) == (pytest.approx(9.10709), 4, 5)
    # One in the first and the last step, two in the others.
    assert found.running_time == pytest.approx(2.2 + 2 * (3.859 + 1.90809) + 1.14)
    assert found.waiting_time == 0
    # A thousand steps of 1.11 s and 0.0001 for 100 to 1,099 tokens, before the step that ends then.
    long = run(asked((0.0, 100, 3000), (1172.0, 100, 1)))
    assert long.first[1] == pytest.approx(2.2 + 1110 + 59.95 + 2.01 + 0.2 + 0.1 + 0.11)
    # Of a step made up ahead, who comes at 2 is in the next but one: nobody else decodes then.
    late = run(asked((0.0, 100, 3), (2.0, 300, 2)), replace(RULE, steps_ahead=1))
    assert late.finished[0] == pytest.approx(2.2 + 1.12 + 3.8591)


def test_a_limit_of_requests_holds_the_next_one_back() -> None:
    """Two steps of 1.11 + 0.01005 s; then 250 tokens of 300 in 3.75 s, 50 in 1.775, and 1.14."""
    one = replace(RULE, running_limit=1)
    found = run(asked((0.0, 100, 3), (2.0, 300, 2)), one)
    assert found.finished == pytest.approx([4.4401, 11.1051])
    assert found.first == pytest.approx([2.2, 9.9651])
    assert found.held == {"running_limit": pytest.approx(2.2401)}
    assert found.waiting_time == pytest.approx(2.2401)
    assert found.running_time == found.busy == pytest.approx(11.1051)


def test_a_step_has_room_for_so_many_tokens() -> None:
    """250 fill the first step: who comes with them waits for it, and takes none of its time."""
    found = run(asked((0.0, 250, 1), (0.0, 100, 1)))
    assert found.first == pytest.approx([0.25 + 3.5 + 0.1, 3.85 + 2.2])
    assert found.held == {"tokens_per_step": pytest.approx(3.85)}
    # 247 beside one whose three tokens are checked fill it, too: 2.5 + 1 s, four scores, 0.01.
    rounds = run(asked((0.0, 100, 50), (1.0, 247, 1), (1.0, 100, 1)), width=3, pace=2.0)
    assert rounds.held == {"tokens_per_step": pytest.approx(3.5 + 0.4 + 0.247 + 0.01, abs=1e-3)}
    # One token less, and the other begins with it.
    both = run(asked((0.0, 249, 1), (0.0, 100, 1)))
    second = 0.099 + 1e-5 * 99 + 1.99 + 0.1
    assert both.first == pytest.approx([0.249 + 0.001 + 3.5 + 0.1, 3.85 + second])
    assert both.held == {}


@pytest.mark.parametrize(
    ("rule", "output", "needed"),
    [
        # Two of 103 tokens at their ends, half a block of two more for each.
        (replace(RULE, reserves_output=True), 3, 208.0),
        # Two of 100 now, likewise; a hundredth of the room stays free.
        (RULE, 2, 202 / 0.99),
    ],
)
def test_a_cache_with_room_for_two(rule: Any, output: int, needed: float) -> None:
    two = asked((0.0, 100, output), (0.0, 100, output))
    assert run(two, rule, cache_room=needed).held == {}
    tight = run(two, rule, cache_room=needed - 0.01)
    assert tight.held == {"cache": pytest.approx(tight.first[1] - 2.2)}
    # Sequences that share a prefix of 40 tokens take it once: 40 bytes less.
    shared = {"prefix_bytes": 40.0, "prefixes": 1.0}
    assert run(two, rule, cache_room=needed - 39, **shared).held == {}
    assert run(two, rule, cache_room=needed - 42, **shared).held


def test_a_full_cache_stops_the_latest_which_is_computed_again() -> None:
    """210 bytes are 105 for each, of which half a block is one: full after four steps.

    Both prompts take 0.2 + 3 + 0.2 s; four steps 1.22 + 0.0203 each. The first goes on alone for
    15 steps of 1.11 + 0.0111. Then 105 tokens of the other are read again, in 0.105 + 2.05 + 0.1 s,
    which makes its sixth, and 14 steps of 1.11 + 0.01115 the rest.
    """
    found = run(asked((0.0, 100, 20), (0.0, 100, 20)), cache_room=210.0)
    assert found.first == pytest.approx([3.4, 3.4])
    assert found.finished == pytest.approx([25.1777, 43.1288])
    assert (found.stopped, found.tokens) == (1, 40)
    assert found.held == {"cache": pytest.approx(16.8165)}
    # Two bytes more are a step more for each of the two.
    later = run(asked((0.0, 100, 20), (0.0, 100, 20)), cache_room=212.0)
    assert later.finished[0] == pytest.approx(3.4 + 5 * 1.2404 + 14 * (1.11 + 0.01115))


def test_rounds_of_speculation_are_whole_steps() -> None:
    """Three tokens are checked and two made in each: five are left, made in three equal rounds.

    1.03 + 0.3 s each, and 0.0001 for 100 + 5 / 3 tokens in the middle.
    """
    found = run(asked((0.0, 100, 6)), width=3, pace=2.0)
    assert found.finished == pytest.approx([2.2 + 3 * (1.33 + 0.0001 * (100 + 5 / 3))])
    assert (found.tokens, found.steps) == (6, 4)
    assert run(asked((0.0, 100, 3)), width=3, pace=2.0).tokens == 3


def test_what_is_cached_of_a_prompt_is_not_read() -> None:
    """60 tokens with 40 before them: 0.06 + 0.024 + 1.6 + 0.1 s."""
    found = run(asked((0.0, 100, 1), prefix_tokens=np.array([40])))
    assert found.first == pytest.approx([1.784])
    # 140 with 150 before them leave room for 100: 0.14 + 0.21, 0.1, 3.4 and two scores.
    both = run(asked((0.0, 290, 1), (0.0, 100, 1), prefix_tokens=np.array([150, 0])))
    assert both.first == pytest.approx([4.05, 4.05])


def test_prompts_go_first_where_a_step_does_not_mix() -> None:
    """Both prompts on their own, 2.2 and 1.84 s; then both decode, and one alone."""
    found = run(asked((0.0, 100, 3), (1.0, 70, 2)), replace(RULE, mixed=False))
    assert found.first == pytest.approx([2.2, 2.2 + 0.07 + 1.7 + 0.1])
    step = 1.02 + 0.2 + 0.0001 * 170
    assert found.finished[1] == pytest.approx(4.07 + step)
    assert found.finished[0] == pytest.approx(4.07 + step + 1.11 + 0.0101)


def test_users_think_and_count_once_the_service_is_in_its_usual_state() -> None:
    """A prompt of 100 and an output of 1 take 2.2 s, then 3 s of thought.

    The first of three answers does not count, and nobody follows the fourth.
    """
    requests = asked(*[(0.0, 100, 1)] * 4, users=1, think_time=3.0, settled=1, followed=3)
    found = run(requests)
    assert found.arrived == pytest.approx([0.0, 5.2, 10.4, 0.0])
    assert found.finished == pytest.approx([2.2, 7.4, 12.6, -1.0])
    assert (found.began, found.tokens) == (pytest.approx(2.2), 2)
    assert found.busy == pytest.approx(4.4)
    told = results([(requests, found)])
    # Two in 12.6 - 2.2 s.
    assert told["run_span"] == pytest.approx(10.4)
    assert told["request_rate"] == told["output_throughput"] == pytest.approx(2 / 10.4)
    assert told["server_use"] == told["running_requests"] == pytest.approx(4.4 / 10.4)
    assert told["time_to_first_token"] == pytest.approx(2.2)
    assert "time_per_output_token" not in told


def test_the_host_takes_its_time_once_for_each_step() -> None:
    """0.5 s and 0.25 for each of three; beside the device only what is longer counts."""
    host = replace(TIMES, step_host=0.5, sequence_host=0.25)
    assert host.step(2.0, 10, 3) == 3.25
    assert replace(host, ahead=True).step(2.0, 10, 3) == 2.0
    assert replace(host, ahead=True).step(1.0, 10, 3) == 1.25
    started = replace(host, starts=2.5, captured=9.0)
    assert (started.step(2.0, 10, 3), started.step(2.0, 9, 3)) == (3.75, 3.25)
    # Two that decode are more than a graph of one token: each of their steps is started in 2.5 s.
    pair = run(asked((0.0, 100, 3), (0.0, 100, 3)), starts=2.5, captured=1.0)
    assert pair.finished == pytest.approx([3.4 + 2 * 2.5] * 2)
    # A prompt beside one that decodes: two sequences.
    found = run(asked((0.0, 100, 3), (2.0, 50, 1)), step_host=0.5, sequence_host=0.25)
    assert found.first[0] == pytest.approx(2.2 + 0.75)
    assert found.first[1] - found.first[0] == pytest.approx(0.05 + 1.51 + 0.2 + 0.01 + 1.0)


def test_what_two_copies_come_to() -> None:
    """Waits of 1, 2 and 4 s; 0.5, 0.25 and 1 s a token; a copy that starts at 1 and ends at 14."""
    one = Log([1.0, 2.0], [2.0, 4.0], [4.0, 5.0], 2.5, 6.0, 1.5, 9, 3, held={"cache": 1.5})
    two = Log([3.0], [7.0], [14.0], 4.0, 8.0, 2.0, 8, 4, held={"running_limit": 0.5, "cache": 0.3})
    runs = [(asked((1.0, 9, 5), (2.0, 9, 5)), one), (asked((3.0, 9, 8)), two)]
    found = results(runs)
    assert found["time_to_first_token"] == pytest.approx(7 / 3)
    assert found["time_to_first_token_p50"] == 2
    # 0.8 of the way from the second to the third.
    assert found["time_to_first_token_p90"] == pytest.approx(3.6)
    assert found["time_to_first_token_p99"] == pytest.approx(3.96)
    assert found["time_per_output_token"] == pytest.approx((0.5 + 0.25 + 1.0) / 3)
    assert found["request_latency"] == pytest.approx((3 + 3 + 11) / 3)
    assert (found["answered_requests"], found["run_span"]) == (3, 13)
    assert found["request_rate"] == pytest.approx(3 / 13)
    assert found["output_throughput"] == pytest.approx(17 / 13)
    assert found["running_requests"] == pytest.approx(14 / 13)
    assert found["waiting_requests"] == pytest.approx(3.5 / 13)
    assert found["server_use"] == pytest.approx(6.5 / 2 / 13)
    # A tenth of three waits: 1.8 and 0.5 s of 0.5 at least.
    assert binding(runs, 5 / 3) == ["cache", "running_limit"]
    assert binding(runs, 1.7) == ["cache"]
    assert binding(runs, 6.1) == []


# Schedulers that look seldom, hold prompts back, or make steps up ahead; requests on their way.

FLAT = {
    "scores": [0.0] * 20,
    "reading": [[0.0] * CONTEXTS] * 20,
    "reading_prompt": [[0.0] * CONTEXTS] * CHUNKS,
}
PLAIN = replace(scheduler("sglang"), steps_ahead=0)
PATIENT = PLAIN.with_limits(tokens_per_step=250).with_patience(wait_steps=20, wait_share=0.8)


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        # Prompt 0 to 2, then steps of 1.01; who comes at 2.5 starts at 3.01 and reads for 2.
        (PLAIN, [2.0, 5.01]),
        (replace(PLAIN, steps_ahead=1), [2.0, 6.02]),
        # Ten steps after the first prompt it looks.
        (PLAIN.with_patience(poll_steps=10), [2.0, 2 + 10 * 1.01 + 2]),
        # Twenty steps after it came it is read; two together fill the share at once.
        (PATIENT, [2.0, 3.01 + 20 * 1.01 + 2]),
        (PATIENT, [2.0, 6.01, 6.01]),
    ],
)
def test_when_a_scheduler_takes_in_who_comes_during_a_step(rule: Any, first: list[float]) -> None:
    come = ((0.0, 100, 50), (2.5, 100, 50), (2.6, 100, 50))[: len(first)]
    assert run(asked(*come), rule, **FLAT).first == pytest.approx(first)


def test_a_prompt_that_is_begun_waits_for_no_others() -> None:
    """250 of 300 tokens fill the share and are read until 6.51; then 50, and 20 of one who came."""
    found = run(asked((0.0, 100, 50), (2.5, 300, 50), (2.6, 20, 50)), PATIENT, **FLAT)
    assert found.first == pytest.approx([2.0, 6.51 + 1.7, 6.51 + 1.7])


def test_a_request_is_on_its_way() -> None:
    """Half a second each; or 5 s and 1, so that who came at 1 is read before who came first.

    Of one user whose text takes a second each time: read from 1 to 3, and from 4 to 6.
    """
    times = replace(TIMES, **FLAT)
    assert simulate(asked((0.0, 100, 2)), times, PLAIN, 0.5).first == pytest.approx([2.5])
    two = asked((0.0, 100, 1), (1.0, 100, 1))
    found = simulate(two, times, PLAIN, [5.0, 1.0])
    assert found.arrived == [0.0, 1.0]
    assert found.first == pytest.approx([7.0, 4.0])
    one = simulate(asked((0.0, 100, 1), (0.0, 100, 1), users=1), times, PLAIN, [1.0, 1.0])
    assert one.arrived == pytest.approx([0.0, 3.0])
    assert one.first == pytest.approx([3.0, 6.0])


# The closed forms.


def typical(prompt: float = 100.0, output: float = 21.0, rule: Any = RULE, **changed: Any) -> Any:
    given = {key: changed.pop(key) for key in ("prefix", "shared", "alike") if key in changed}
    return Typical(replace(TIMES, **changed), prompt, output, rule, **given)


def test_a_typical_request() -> None:
    """Tables of 500 tokens are 492 of prompts beside eight that decode, of which a step has room.

    Of 21 + 100 tokens in each request 21 are decoded: 492 * 21 / 121 = 85.4 could run, nine may.
    In the middle of its output it has 110.5 tokens: a step of 2.5 takes 1 + 0.025 + 0.25 + 0.027625.
    """
    found = typical()
    assert found.budget == 492
    assert found.decoding == pytest.approx(492 * 21 / 121)
    assert found.known["running_limit"] == 9
    assert found.decode_step(2.5) == pytest.approx(1.302625)
    hosted = typical(step_host=0.5, sequence_host=0.25)
    assert hosted.decode_step(2.5) == pytest.approx(1.302625 + 0.5 + 2.5 * 0.25)
    # Fewer than one is one that decodes alone.
    assert found.decode_step(0.5) == pytest.approx(1.11 + 0.01105)
    # 21 of 1,021 tokens: 10.1 at one time, but for the nine of the rule.
    assert typical(1000.0).decoding == pytest.approx(492 * 21 / 1021)
    few = typical(5000.0)
    assert few.known["running_limit"] == pytest.approx(492 * 21 / 5021)
    assert typical(5000.0, shared=False).known["running_limit"] == 9
    assert typical(5000.0, rule=replace(RULE, mixed=False)).known["running_limit"] == 9
    # Three tokens checked and two made: 10.5 rounds of 3.
    drafted = typical(width=3, pace=2.0)
    assert drafted.budget == 476
    assert drafted.rounds == 10.5
    assert drafted.decode_step(2.0) == pytest.approx(1 + 0.06 + 0.6 + 0.0221)
    assert drafted.decoding == pytest.approx(476 * 31.5 / 131.5 / 3)
    assert drafted.known["expected_tokens"] == 2


def test_how_many_typical_requests_fit() -> None:
    """Half grown they have 110.5 tokens, whole 121; a prefix of 40 counts for two of them."""
    kept = replace(RULE, reserves_output=True)
    for rule, alike, fits in (
        *((RULE, False, 500 / 110.5), (RULE, True, 500 / 110.5)),
        *((kept, False, 500 / 121), (kept, True, 4)),
    ):
        found = typical(rule=rule, alike=alike, cache_room=500.0)
        assert found.known["running_limit"] == pytest.approx(fits)
    shared = typical(prefix_bytes=40.0, prefixes=2.0)
    assert replace(TIMES, prefix_bytes=40.0, prefixes=2.0).saved(5) == 3 * 40
    assert replace(TIMES, prefixes=2.0).saved(5) == 0
    for room, fits in ((500.0, 420 / 70.5), (200.0, 200 / 110.5)):
        shared.times = replace(shared.times, cache_room=room)
        assert shared.fitting(110.5) == pytest.approx(fits)
    shared.times = replace(shared.times, prefix_bytes=110.5, cache_room=500.0)
    assert shared.fitting(110.5) == 9


def test_what_a_prompt_adds_to_a_step() -> None:
    """100 tokens: 1 s more where nothing else adds up, and 0.1 s of its own attention."""
    found = typical()
    assert found.attention == pytest.approx(0.1)
    assert found.prompt_time(3.0, 2.0) == pytest.approx(1.1)
    assert found.lone_prompt_time == pytest.approx(2.2)
    # Two together: 3 + 0.2 + 0.2; 5.5 fill 492 tokens, and 58 are left.
    assert found.reading_time(2.0) == pytest.approx(3.4)
    assert found.reading_steps(5.5) == 2
    assert found.reading_time(5.5) == pytest.approx(5.92 + 1.58 + 0.55 + 2 * 0.3)
    assert found.steps_of_a_prompt(3.0) == 1
    assert typical(492.0).steps_of_a_prompt(1.0) == 2
    assert typical(492.0).steps_of_a_prompt(0.0) == 1
    # 60 tokens with 40 before them; the host takes its time for each of so many sequences.
    part = typical(prefix=40.0, step_host=0.5, sequence_host=0.25)
    assert part.attention == pytest.approx(0.06 + 0.024)
    assert part.prompt_time(3.0, 2.0) == pytest.approx(0.6 + 0.084 + 0.25)
    assert part.lone_prompt_time == pytest.approx(1.6 + 0.084 + 0.75 + 0.1)
    assert part.reading_time(3.0) == pytest.approx(2.8 + 3 * 0.084 + 0.5 + 0.75 + 0.3)


def test_what_settles_at_a_rate() -> None:
    """A step of n takes 1 + (0.11 + 0.01105) n, and 1 / (1 - 0.05 * 1.1) as long with prompts.

    In 20 steps of that, as many come as run: n = 0.05 * 20 * step.
    """
    found = typical()
    known = found.at_rate(0.05)
    running = 1 / (1 - 0.055) / (1 - 0.12105 / (1 - 0.055))
    assert known["decode_step_time"] == pytest.approx(1 + 0.12105 * running)
    assert known["prompt_time"] == pytest.approx(1.1)
    assert known["lone_prompt_time"] == pytest.approx(2.2)
    # Nine run in steps of 2.08945 s, and each adds 1.1 s: 9 / (20 * 2.08945 + 9.9).
    most = 9 / (20 * 2.08945 + 9.9)
    assert found.saturating().value("saturation_rate") == pytest.approx(most)
    with pytest.raises(InvalidValueError, match=rf"0.2 requests/s.*saturates at {most:.3g}/s"):
        found.at_rate(0.2)
    with pytest.raises(InvalidValueError, match="saturates"):
        found.at_rate(found.saturating().value("saturation_rate"))
    # Users who think so long that they ask 0.05 times a second, to a ten-thousandth.
    interval = (1 + 0.12105 * running) / (1 - 0.055)
    variance = 0.05 * interval * 1.21 / (1 - 0.055**2)
    met = interval + variance / interval
    nobody = np.exp(-running)
    step = 1 + 0.12105 * running
    first = nobody * 2.2 + (1 - nobody) * (met / 2 + step + 1.1 + 0.05 * met * 1.1)
    users = 0.05 * (30 + first + 20 * interval)
    assert found.users_rate(users, 30.0) == pytest.approx(0.05, rel=1e-3)
    assert found.users_rate(1000.0, 30.0) == 0
    # Three who ask at once: three prompts in one step.
    three = found.with_users(3.0)
    assert (three["burst_time"], three["burst_steps"]) == (pytest.approx(4.6), 1)
    assert three["decode_step_time"] == pytest.approx(1 + 3 * 0.12105)
    assert found.with_users(50.0)["users"] == 9


def test_what_settles_agrees_with_itself_where_tables_bend() -> None:
    """Of all tokens together the time grows as a root: what a prompt adds hangs on the others."""
    found = typical(together=[0.0, *np.sqrt(np.arange(1.0, 501.0))])
    known = found.at_rate(0.06)
    step, prompt = known["decode_step_time"], known["prompt_time"]
    interval = step / (1 - 0.06 * prompt)
    running = 0.06 * 20 * interval
    assert step == pytest.approx(found.decode_step(running), rel=1e-6)
    assert prompt == pytest.approx(found.prompt_time(running, 0.06 * interval), rel=1e-6)
    assert prompt > 1.02 * found.prompt_time(running, 3.0)


def test_a_prompt_longer_than_what_one_request_decodes_beside() -> None:
    """21 steps have room for 21 * 491 of 12,000 tokens; the rest is read without a decode step."""
    found = typical(12_000.0)
    assert found.decoding < 1
    share = 21 * 491 / 12_000
    running = found.known["running_limit"]
    question = found.saturating()
    beside = min(found.prompt_time(running, many) for many in (1.0, 1.001))
    whole = share * beside + (1 - share) * found.lone_prompt_time
    assert question.known["full_prompt_time"] == pytest.approx(whole, rel=1e-3)
    split = typical(12_000.0, rule=replace(RULE, mixed=False)).saturating()
    assert split.known["full_prompt_time"] < whole


# A pool that only reads.


def test_a_pool_that_reads() -> None:
    """Prompts of 100 and 300 tokens: 2.2 and 4.4 s; those of 200 on average 3.3."""
    rule = replace(RULE, running_limit=7)
    found = Reading(TIMES, asked((0.0, 100, 2), (0.0, 300, 2)), rule)
    # The chunk of 300 tokens has none before it.
    assert found.mean == pytest.approx((2.2 + 4.4) / 2)
    assert found.known["service_variance"] == pytest.approx(1.1**2)
    assert found.limit == 7
    assert found.step_prompts == pytest.approx(492 / 200)
    assert found.beside == pytest.approx(491 / 200)
    # One more 200 tokens: 2 s, 0.2 of attention, 0.1 of a token; half of that on the way.
    assert found.together(1.5) == pytest.approx(3.3 + 2.3 / 2)
    # Three take two steps, 9 s. What one of a few adds: of 1 to 2, of 1 to 2.25; not more than a
    # full step's. Of 10: from 6.67 to 15, of which 15 take 7 steps and 7 take 3.
    assert found.packed == pytest.approx((5.6 + 0.46 * 3.4) / 2.46)
    assert found.further(1.0) == pytest.approx(2.3)
    assert found.further(1.5) == pytest.approx((5.6 + 0.25 * 3.4 - 3.3) / 1.25)
    assert found.further(3.0) == found.packed
    settled = found.at_rate(0.2, 2.0)
    assert 1.05 < settled["prompts_together"] < 1.1
    assert settled["prompts_time"] == found.together(settled["prompts_together"])
    alike = Reading(TIMES, asked((0.0, 123, 2), (0.0, 123, 2)), rule)
    assert alike.beside == pytest.approx((492 - 123) / 123)
    assert replace(alike.requests, prompt_tokens=np.array([9, 9])).alike
    few = Reading(TIMES, alike.requests, replace(RULE, running_limit=2))
    assert (few.limit, few.step_prompts, few.beside) == (2, 2, 1)
    assert found.by_prompt(np.linspace(0.0, 2.0, len(found.lengths)))(150.0) == pytest.approx(0.5)


def test_copies_that_read_take_turns() -> None:
    """Two copies, 250 tokens a step, a way of half a second; a cache is sent at 0.001 s a token.

    The first takes 100 and 150 of 200 tokens at 0.5: 0.25 + 3.5 + 0.1 s. The second takes the
    third prompt at 1.5, and its step of 0.1 + 2 + 0.1 s ends first: at 3.7. The rest, 50 tokens
    with 150 before them, takes 0.05 + 0.075 + 1.5 + 0.1 s.
    """
    requests = asked((0.0, 100, 2), (0.0, 200, 2), (1.0, 100, 2))
    station = Station(
        requests, [0.5] * 3, TIMES, 250, 7, lambda tokens: 0.001 * tokens, [Reader(), Reader()]
    )
    for index in range(3):
        station.ask(index, float(requests.arrived[index]))
    assert station.next_start == 0.5
    assert station.step() == [(pytest.approx(4.45), 0)]
    assert station.next_start == 1.5
    assert station.step() == [(pytest.approx(3.8), 2)]
    assert station.step() == [(pytest.approx(6.075 + 0.2), 1)]
    assert station.next_start == np.inf
    assert station.first == pytest.approx([4.35, 6.075, 3.7])
    assert station.queued == [0, 0, 0]


def test_a_cache_that_comes_while_another_decodes() -> None:
    """Read until 2, sent until 2.5, 99 steps of 1.01 s; who asks at 50 is there at 52.5.

    The next step begins at 53, has a token of both, and takes 1.02 s.
    """
    requests, times = asked((0.0, 100, 100), (50.0, 100, 2), users=2), replace(TIMES, **FLAT)
    station = Station(requests, [0.0] * 2, times, 250, 7, lambda _: 0.5, [Reader()])
    ((_, found),) = in_tandem(requests, times, PLAIN, station, copies=1)
    assert found.first == pytest.approx([2.0, 52.0])
    assert found.finished == pytest.approx([2.5 + 98 * 1.01 + 1.02, 54.02])
