"""Lengths of texts: means and draws by hand, words in both directions, and what is no length."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import answered

from mlsim.workloads.requests import Lengths, Requests, at_once, at_rate, lengths, of_users, spread

# Words, numbers, the mean, and kind and how it is written again.
READ: dict[str, tuple[tuple[float, ...], float, str]] = {
    "512": ((512,), 512, "fixed 512"),
    "fixed 4096": ((4096,), 4096, "fixed 4,096"),
    "uniform 3 8": ((3, 8), 5.5, "uniform 3 8"),
    "exponential 37.5": ((37.5,), 37.5, "exponential 37.5"),
    "lognormal 300 0.8": ((300, 0.8), 300, "lognormal 300 0.8"),
    "uniform 1 1": ((1, 1), 1, "uniform 1 1"),
    "10000000": ((1e7,), 1e7, "fixed 10,000,000"),
}


def test_lengths_in_words() -> None:
    for words, (numbers, mean, written) in READ.items():
        found = lengths(words)
        assert found == Lengths(written.split()[0], numbers) == lengths(found)
        assert (found.mean, str(found)) == (mean, written.removeprefix("fixed "))
    assert lengths(7) == lengths(7.0) == lengths("7")
    assert [lengths(each).fixed for each in ("9", "uniform 4 4", "uniform 4 5")] == [True, True, 0]
    assert spread(lengths("uniform 3 8")) == lengths("uniform 3 8")


def test_what_is_drawn_has_the_mean_and_spread_that_were_asked_for() -> None:
    """200,000 draws: a mean is off by its spread over 447, and three times that is seldom."""
    count = 200_000
    drawn = {words: lengths(words).draw(count, np.random.default_rng(17)) for words in READ}
    assert set(drawn["512"]) == {512}
    assert np.bincount(drawn["uniform 3 8"])[3:] == pytest.approx(np.full(6, count / 6), rel=0.02)
    long = lengths("exponential 500").draw(count, np.random.default_rng(17))
    assert (long.mean(), long.std()) == (pytest.approx(500, rel=0.01), pytest.approx(500, rel=0.02))
    wide = drawn["lognormal 300 0.8"]
    assert (wide.mean(), wide.std()) == (pytest.approx(300, rel=0.01), pytest.approx(240, rel=0.03))
    # Half of them lie below the median, the mean over the root of 1 + spread squared.
    assert (wide < 300 / (1 + 0.8**2) ** 0.5).mean() == pytest.approx(0.5, abs=0.01)
    short = lengths("exponential 1").draw(1000, np.random.default_rng(17))
    assert short.min() == 1


def test_what_is_no_length() -> None:
    assert answered(lengths, "lengths") == []


def test_requests_that_arrive_at_random() -> None:
    two, many = lengths(2), {"count": 20_000, "seed": 17}
    for burstiness in (0.25, 1, 4):
        found = at_rate(5, lengths("uniform 50 150"), two, burstiness=burstiness, **many)
        gaps = np.diff(found.arrived)
        assert gaps.mean() == pytest.approx(0.2, rel=0.05)
        assert gaps.std() / gaps.mean() == pytest.approx(burstiness**0.5, rel=0.05)
        assert (found.settled, found.mean_output) == (2000, 2)
        assert not found.alike
    even = at_rate(4, two, two, count=20, burstiness=0, seed=1)
    assert even.arrived.tolist() == pytest.approx([each / 4 for each in range(1, 21)])
    assert (even.words, even.alike) == ("4 requests/s, evenly spaced", True)
    once = at_once(3, two, two, seed=1)
    assert (once.arrived.tolist(), once.words) == ([0, 0, 0], "3 requests at once")


def test_requests_of_users() -> None:
    asked = {"count": 30, "think_time": 2.0, "seed": 5}
    told = of_users(3, lengths(100), lengths(20), **asked)  # type: ignore[arg-type]
    assert (len(told), told.users, told.pause(7), told.in_step) == (30, 3, 2.0, True)
    assert told.words == "3 users, 2 s between answer and request"
    found = of_users(3, lengths(100), lengths(20), constant=False, **asked)  # type: ignore[arg-type]
    # Users still ask while the last are answered; the means are met.
    assert (len(found), found.followed, found.settled, found.in_step) == (33, 30, 3, False)
    assert found.pauses is not None
    assert found.pauses.mean() == pytest.approx(2)
    assert found.arrived[:4].tolist() == [*found.pauses[:3], 0]
    assert found.mean_prompt == pytest.approx(100, rel=0.01)
    assert "lengths assumed lognormal, spread" in found.lengths


def test_parts_of_requests() -> None:
    count = np.arange(7)
    found = Requests(count * 1.0, 10 * (count + 1), count + 1, users=5, settled=3, followed=7,
                     think_time=2.0, pauses=count / 2)  # fmt: skip
    part = found.part(1, 3)
    assert (part.arrived.tolist(), part.users, part.settled, part.followed) == ([1, 4], 2, 1, 2)
    assert (part.pause(1), part.prompt_tokens.tolist()) == (2.0, [20, 50])
    cached = found.with_prefix(0.35)
    assert cached.prefix_tokens.tolist() == [3, 7, 10, 14, 17, 21, 24]  # type: ignore[union-attr]
    assert (cached.mean_prefix, found.mean_prefix) == (96 / 7, 0)
    assert cached.prefix_share == pytest.approx(96 / 280)
    assert found.with_prefix(1).prefix_tokens.tolist() == [*range(9, 70, 10)]  # type: ignore[union-attr]
    short = found.within(45)
    assert short.prompt_tokens.tolist() == [10, 20, 30, 40, 44, 44, 44]
    assert short.output_tokens.tolist() == [1, 2, 3, 4, 1, 1, 1]
