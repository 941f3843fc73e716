"""Lengths of texts: means and draws by hand, words in both directions, and what is no length."""

from __future__ import annotations

import numpy as np
import pytest

from mlsim.errors import InvalidValueError
from mlsim.workloads.lengths import Lengths, lengths, spread

# Words, kind and numbers, the mean, and how it is written again.
READ = {
    "512": ("fixed", (512.0,), 512, "512"),
    "fixed 4096": ("fixed", (4096.0,), 4096, "4,096"),
    "uniform 3 8": ("uniform", (3.0, 8.0), 5.5, "uniform 3 8"),
    "exponential 37.5": ("exponential", (37.5,), 37.5, "exponential 37.5"),
    "lognormal 300 0.8": ("lognormal", (300.0, 0.8), 300, "lognormal 300 0.8"),
    "uniform 1 1": ("uniform", (1.0, 1.0), 1, "uniform 1 1"),
    "10000000": ("fixed", (1e7,), 1e7, "10,000,000"),
}


def test_lengths_in_words() -> None:
    for words, (kind, numbers, mean, written) in READ.items():
        found = lengths(words)
        assert found == Lengths(kind, numbers) == lengths(found)
        assert (found.mean, str(found)) == (mean, written)
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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "prompt_tokens must be a whole number from 1 to 10,000,000, or .*; not 0"),
        (1.5, "not 1.5"),
        (True, "not True"),
        (10_000_001, "not 10000001"),
        ("", "prompt_tokens '' is no length"),
        ("512 8", "'512 8' is no length"),
        ("nan", "'nan' is no length"),
        ("lognorm 5 1", "is no length. Did you mean 'lognormal'"),
        ("uniform 5", "uniform takes 2 number.s., least and most, such as 'uniform 100 900'"),
        ("exponential x", "exponential takes 1 number.s., mean"),
        ("uniform 8 3", "the least first"),
        ("uniform 0 3", "lengths are from 1 to 10,000,000 tokens"),
        ("uniform 1.5 3", "both ends are whole"),
        ("exponential 0.9", "lengths are from 1"),
        ("lognormal 300 0", "a spread is above 0"),
        ("lognormal 300 20000000", "a spread is above 0"),
    ],
)
def test_what_is_no_length(value: object, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        lengths(value)
