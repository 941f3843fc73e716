"""Requests for a service: when they arrive, and how long each is.

They come at a rate, all at once, from users who wait for their answers, or out of a trace. They
are of one length, or of a distribution, which is written in one way for Python, the command line
and files: its name and its numbers, such as "lognormal 512 0.8".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.errors import InvalidValueError, nearest
from mlsim.records import DATA

if TYPE_CHECKING:
    import numpy


# The name of a distribution, what its numbers are, and an example of them.
KINDS = {
    "fixed": (("tokens",), "512"),
    "uniform": (("least", "most"), "100 900"),
    "exponential": (("mean",), "512"),
    "lognormal": (("mean", "spread"), "512 0.8"),
}
_FORMS = ", ".join(repr(f"{kind} {example}") for kind, (_, example) in KINDS.items())
LONGEST = 10_000_000
USUAL = DATA / "lengths.toml"


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of texts, in tokens: whole numbers from 1 up.

    Attributes
    ----------
    kind, numbers
        A name of `KINDS`, and its numbers. The spread of a lognormal distribution is its
        standard deviation as a share of its mean.

    >>> lengths("uniform 100 300").mean
    200.0
    """

    kind: str
    numbers: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean, before lengths are made whole."""
        if self.kind == "uniform":
            least, most = self.numbers
            return (least + most) / 2
        return self.numbers[0]

    @property
    def fixed(self) -> bool:
        """Whether all are equally long."""
        return self.kind == "fixed" or (self.kind == "uniform" and len(set(self.numbers)) == 1)

    def draw(self, count: int, random: numpy.random.Generator) -> numpy.ndarray[Any, Any]:
        """Draw lengths: whole numbers, at least 1."""
        import numpy as np

        if self.kind == "fixed":
            return np.full(count, int(self.numbers[0]))
        if self.kind == "uniform":
            least, most = self.numbers
            return random.integers(int(least), int(most), count, endpoint=True)
        if self.kind == "exponential":
            drawn = random.exponential(self.numbers[0], count)
        else:
            mean, spread = self.numbers
            variance = math.log(1 + spread**2)
            drawn = random.lognormal(math.log(mean) - variance / 2, math.sqrt(variance), count)
        return np.clip(np.rint(drawn), 1, LONGEST).astype(int)

    def __str__(self) -> str:
        if self.kind == "fixed":
            return f"{self.numbers[0]:,.0f}"
        return " ".join((self.kind, *(f"{each:g}" for each in self.numbers)))


def spread(mean: Lengths, name: str = "prompt_tokens") -> Lengths:
    """Return lengths about a mean, as far apart as those of a published service.

    What is a distribution already stays as it is.

    >>> str(spread(lengths(1000))), str(spread(lengths(300), "output_tokens"))
    ('lognormal 1000 0.96', 'lognormal 300 0.77')
    """
    if not mean.fixed:
        return mean
    return Lengths("lognormal", (mean.mean, _spreads()[name.replace("tokens", "spread")]))


@cache
def _spreads() -> dict[str, float]:
    file = records.load(USUAL)
    return {name: file.figure(table, "1", name).value for name, table in file.data.items()}


def lengths(value: Any, name: str = "prompt_tokens") -> Lengths:
    """Read a length: a whole number, or a distribution in words.

    Raises
    ------
    InvalidValueError
        If it is neither; names the distributions and their numbers.

    >>> str(lengths("lognormal 512 0.8")), str(lengths(512))
    ('lognormal 512 0.8', '512')
    """
    if isinstance(value, Lengths):
        return value
    if isinstance(value, str):
        return _read(value, name)
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not 1 <= value <= LONGEST:
        raise InvalidValueError(
            f"{name} must be a whole number from 1 to {LONGEST:,}, or a distribution such as "
            f"{_FORMS}; not {value!r}."
        )
    return Lengths("fixed", (float(value),))


def _read(text: str, name: str) -> Lengths:
    kind, *rest = text.split() or [""]
    if kind not in KINDS:
        if not rest and not math.isnan(number(kind)):
            return lengths(number(kind), name)
        raise InvalidValueError(
            f"{name} {text!r} is no length.{nearest(kind, KINDS)} Write a whole number, "
            f"or one of {_FORMS}."
        )
    (wanted, example), numbers = KINDS[kind], tuple(map(number, rest))
    if len(numbers) != len(wanted) or any(map(math.isnan, numbers)):
        raise InvalidValueError(
            f"{name} {text!r}: {kind} takes {len(wanted)} number(s), {' and '.join(wanted)}, "
            f"such as '{kind} {example}'."
        )
    if kind == "fixed":
        return lengths(numbers[0], name)
    in_range = all(0 < each <= LONGEST for each in numbers) and numbers[0] >= 1
    if kind == "uniform":
        least, most = numbers
        in_range = in_range and least.is_integer() and most.is_integer() and least <= most
    if not in_range:
        raise InvalidValueError(
            f"{name} '{Lengths(kind, numbers)}': lengths are from 1 to {LONGEST:,} tokens; of a "
            "uniform one both ends are whole, the least first; a spread is above 0."
        )
    return Lengths(kind, numbers)


def number(text: str) -> float:
    """Return the number that a text is; NaN where it is none."""
    try:
        found = float(text)
    except ValueError:
        return math.nan
    return found if math.isfinite(found) else math.nan


# Requests that are followed where nobody says how many: of a rate, and for each user.
FOLLOWED, FOLLOWED_PER_USER = 2000, 10
MOST = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests in the order of their arrival.

    Attributes
    ----------
    arrived
        When each arrives, in s; of users, their turns, all 0.
    prompt_tokens, output_tokens
        Whole numbers from 1 up, an array each.
    users
        How many wait for their answers before they ask again; 0 where nobody waits.
    think_time
        Between an answer and the user's next request, in s, on average.
    settled
        How many come before the service is in its usual state; they are not counted.
    words
        How they arrive, in words.
    prefix_tokens
        Tokens of each prompt that are in the cache when it arrives, an array; or None.
    pauses
        How long the user thinks before each request, in s, an array; None: as long each time.
    lengths
        What is assumed of lengths, in words; empty where somebody gave them.
    in_step
        Of users: whether all are alike, so that those who ask together do so ever after.
    followed
        Answers after which a run is over, while users still ask; 0: it goes on to the last.
    """

    arrived: numpy.ndarray[Any, Any]
    prompt_tokens: numpy.ndarray[Any, Any]
    output_tokens: numpy.ndarray[Any, Any]
    users: int = 0
    think_time: float = 0.0
    settled: int = 0
    words: str = ""
    prefix_tokens: numpy.ndarray[Any, Any] | None = None
    pauses: numpy.ndarray[Any, Any] | None = None
    lengths: str = ""
    followed: int = 0
    in_step: bool = False

    def __len__(self) -> int:
        return len(self.arrived)

    @property
    def mean_prompt(self) -> float:
        """Mean tokens of a prompt."""
        return float(self.prompt_tokens.mean())

    @property
    def mean_output(self) -> float:
        """Mean new tokens of a request."""
        return float(self.output_tokens.mean())

    @property
    def alike(self) -> bool:
        """Whether each request has as many tokens, in and out, as any other."""
        lengths = (self.prompt_tokens, self.output_tokens)
        return all(int(each.min()) == int(each.max()) for each in lengths)

    @property
    def mean_prefix(self) -> float:
        """Mean tokens of a prompt that are in the cache when it arrives."""
        return 0.0 if self.prefix_tokens is None else float(self.prefix_tokens.mean())

    @property
    def prefix_share(self) -> float:
        """Share of all prompts' tokens that are in the cache when they arrive."""
        return self.mean_prefix / self.mean_prompt

    def with_prefix(self, share: float) -> Requests:
        """Return them with a share of each prompt in the cache, in whole tokens."""
        import numpy as np

        cached = np.minimum(np.floor(share * self.prompt_tokens), self.prompt_tokens - 1)
        return replace(self, prefix_tokens=cached.astype(int))

    def part(self, index: int, parts: int) -> Requests:
        """Return every so-manieth request: what one of several copies is sent."""
        own = slice(index, None, parts)
        arrays = ("arrived", "prompt_tokens", "output_tokens", "prefix_tokens", "pauses")
        found = {name: getattr(self, name) for name in arrays}
        found = {name: None if each is None else each[own] for name, each in found.items()}
        for name in ("users", "settled", "followed"):
            found[name] = len(range(index, getattr(self, name), parts))
        return replace(self, **found, lengths="", in_step=False)

    def pause(self, index: int) -> float:
        """Return how long a user thinks before a request, in s."""
        return self.think_time if self.pauses is None else float(self.pauses[index])

    def within(self, context: int) -> Requests:
        """Return them with no request longer than a context, prompts before answers."""
        import numpy as np

        prompt = np.minimum(self.prompt_tokens, context - 1)
        output = np.minimum(self.output_tokens, context - prompt)
        return replace(self, prompt_tokens=prompt, output_tokens=output)


def at_rate(
    rate: float, prompt: Lengths, output: Lengths, *, count: int, burstiness: float, seed: int
) -> Requests:
    """Return requests that arrive at random, at a mean rate in requests per second.

    `burstiness` is the squared coefficient of variation of the times between them: 1 where
    they know nothing of one another (Poisson), 0 where they are evenly spaced.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    if burstiness == 0:
        gaps = np.full(count, 1 / rate)
    else:
        # A gamma distribution of mean 1/rate; its shape is one over the squared variation.
        gaps = random.gamma(1 / burstiness, burstiness / rate, count)
    spaced = "evenly spaced" if burstiness == 0 else "at random"
    if burstiness not in (0, 1):
        spaced += f", burstiness {burstiness:g}"
    return Requests(
        np.cumsum(gaps),
        prompt.draw(count, random),
        output.draw(count, random),
        settled=count // 10,
        words=f"{rate:g} request{'' if rate == 1 else 's'}/s, {spaced}",
    )


def at_once(count: int, prompt: Lengths, output: Lengths, *, seed: int) -> Requests:
    """Return requests that are all there at the start."""
    import numpy as np

    random = np.random.default_rng(seed)
    return Requests(
        np.zeros(count),
        prompt.draw(count, random),
        output.draw(count, random),
        words=f"{count:,} request{'' if count == 1 else 's'} at once",
    )


def of_users(
    users: int,
    prompt: Lengths,
    output: Lengths,
    *,
    count: int,
    think_time: float,
    seed: int,
    constant: bool = True,
) -> Requests:
    """Return requests of users who each wait for an answer before they ask again.

    Where all is constant they ask together, and in step for ever after: the opening burst of a
    benchmark with a fixed concurrency. Else pauses are exponential (users who know nothing of one
    another), and of lengths that are a mean alone the spread is a published one; means are met.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    followed = count if think_time and not constant else 0
    # While the last ones are answered, users still ask: the service is as busy as before.
    count += users if followed else 0
    thinking = f", {think_time:g} s between answer and request" if think_time else ""
    own = {"prompt_tokens": prompt, "output_tokens": output}
    drawn = {name: each.draw(count, random) for name, each in own.items()}
    spreads, pauses, arrived, settled = [], None, np.zeros(count), 0
    if not constant:
        for name, each in own.items():
            if each.fixed:
                made = spread(each, name)
                lognormal = made.draw(count, random)
                # Their mean is that of the distribution, but for whole numbers.
                scaled = np.rint(lognormal * (made.mean / lognormal.mean()))
                drawn[name] = np.maximum(1, scaled).astype(int)
                spreads.append(f"{made.numbers[1]:g} for {name.removesuffix('_tokens')}s")
        if think_time:
            pauses = random.exponential(1.0, count)
            pauses *= think_time / pauses.mean()
            arrived[:users], settled = pauses[:users], followed // 10
            thinking += " on average, exponential"
    return Requests(
        arrived,
        **drawn,
        users=users,
        think_time=think_time,
        settled=settled,
        words=f"{users:,} user{'' if users == 1 else 's'}{thinking}",
        pauses=pauses,
        followed=followed,
        in_step=constant,
        lengths=f"lengths assumed lognormal, spread {' and '.join(spreads)}" if spreads else "",
    )
