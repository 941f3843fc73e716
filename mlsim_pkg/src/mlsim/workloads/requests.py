"""Requests for a service: when they arrive, and how long each is.

They come at a rate, all at once, from users who wait for their answers, or out of a trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsim import records
from mlsim.errors import InvalidValueError, WrongKindError, check_whole, nearest
from mlsim.records import DATA

if TYPE_CHECKING:
    import numpy


# The name of a distribution, and what its numbers are.
KINDS = {
    "fixed": ("tokens",),
    "uniform": ("least", "most"),
    "exponential": ("mean",),
    "lognormal": ("mean", "spread"),
}
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
            f"{_forms()}; not {value!r}."
        )
    return Lengths("fixed", (float(value),))


def _read(text: str, name: str) -> Lengths:
    kind, *rest = text.split() or [""]
    if kind not in KINDS:
        if not rest and _number(kind) is not None:
            return lengths(_number(kind), name)
        raise InvalidValueError(
            f"{name} {text!r} is no length.{nearest(kind, KINDS)} Write a whole number, "
            f"or one of {_forms()}."
        )
    numbers = [_number(each) for each in rest]
    wanted = KINDS[kind]
    if len(numbers) != len(wanted) or None in numbers:
        raise InvalidValueError(
            f"{name} {text!r}: {kind} takes {len(wanted)} number(s), {' and '.join(wanted)}, "
            f"such as {_example(kind)!r}."
        )
    return _checked(Lengths(kind, tuple(each for each in numbers if each is not None)), name)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _checked(found: Lengths, name: str) -> Lengths:
    if found.kind == "fixed":
        return lengths(found.numbers[0], name)
    in_range = all(0 < each <= LONGEST for each in found.numbers)
    if found.kind == "uniform":
        least, most = found.numbers
        in_range = in_range and least.is_integer() and most.is_integer() and 1 <= least <= most
    elif found.numbers[0] < 1:
        in_range = False
    if not in_range:
        raise InvalidValueError(
            f"{name} {str(found)!r}: lengths are from 1 to {LONGEST:,} tokens; of a uniform one "
            "both ends are whole, the least first; a spread is above 0."
        )
    return found


def _example(kind: str) -> str:
    numbers = {"fixed": "512", "uniform": "100 900", "exponential": "512", "lognormal": "512 0.8"}
    return f"{kind} {numbers[kind]}"


def _forms() -> str:
    return ", ".join(repr(_example(kind)) for kind in KINDS)


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
        users = len(range(index, self.users, parts))
        return Requests(
            self.arrived[own],
            self.prompt_tokens[own],
            self.output_tokens[own],
            users,
            self.think_time,
            len(range(index, self.settled, parts)),
            self.words,
            None if self.prefix_tokens is None else self.prefix_tokens[own],
            None if self.pauses is None else self.pauses[own],
            followed=len(range(index, self.followed, parts)),
        )

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
    gaps = _gaps(rate, count, burstiness, random)
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


def _gaps(
    rate: float, count: int, burstiness: float, random: numpy.random.Generator
) -> numpy.ndarray[Any, Any]:
    import numpy as np

    if burstiness == 0:
        return np.full(count, 1 / rate)
    # A gamma distribution of mean 1/rate; its shape is one over the squared variation.
    return random.gamma(1 / burstiness, burstiness / rate, count)


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
    told, pauses, arrived, settled = [], None, np.zeros(count), 0
    if not constant:
        for name, each in own.items():
            if each.fixed:
                made = spread(each, name)
                drawn[name] = _about(made, count, random)
                told.append(f"{made.numbers[1]:g} for {name.removesuffix('_tokens')}s")
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
        lengths=f"lengths assumed lognormal, spread {' and '.join(told)}" if told else "",
    )


def _about(lengths: Lengths, count: int, random: numpy.random.Generator) -> Any:
    """Draw lengths whose mean is that of the distribution, but for whole numbers."""
    import numpy as np

    drawn = lengths.draw(count, random)
    return np.maximum(1, np.rint(drawn * (lengths.mean / drawn.mean()))).astype(int)


def check_count(name: str, value: Any, most: int = MOST) -> int:
    """Return a whole number from 1 up.

    Raises
    ------
    InvalidValueError
        If it is none.
    """
    return check_whole(name, value, most=most)


# More drafted tokens than anybody checks at once.
_MOST_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: a draft guesses tokens, and the model checks them in one step.

    Parameters
    ----------
    tokens
        Tokens that are drafted before each check.
    acceptance
        Chance that a drafted token is accepted, given that those before it are: from 0 to 1.
        It belongs to the two models and to the text, and has to be measured.
    draft
        The model that drafts: a record of the zoo, or its name. It reads the prompts, too, and
        keeps a cache of its own.
    cost
        In place of a draft: time of one of its steps over that of a step of the model, such as
        0.05 for a small head, or 0 for looking tokens up. Its memory is not counted.
    precision
        Number format of the draft; by default what it was released in.

    Raises
    ------
    InvalidValueError
        If a number can't be.
    WrongKindError
        If neither or both of draft and cost are given.

    >>> Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7).tokens
    4
    """

    tokens: int = 4
    acceptance: float
    draft: Any = None
    cost: float | None = None
    precision: Any = None

    def __post_init__(self) -> None:
        check_whole("tokens of a draft", self.tokens, most=_MOST_TOKENS)
        _check_share("acceptance", self.acceptance)
        if (self.draft is None) == (self.cost is None):
            have = "neither" if self.draft is None else "both"
            raise WrongKindError(
                f"speculation has a draft, such as draft='Llama3_8B', or what a step of it costs, "
                f"such as cost=0.05; given is {have}."
            )
        if self.cost is not None and not (_is_number(self.cost) and 0 <= self.cost < 1):
            raise InvalidValueError(
                "cost of a draft must be a share of a step of the model, from 0 to below 1, not "
                f"{self.cost!r}: a draft that takes as long can't save time."
            )
        if self.precision is not None and self.draft is None:
            raise WrongKindError("precision is that of a draft; with a cost alone leave it out.")

    @property
    def checked(self) -> int:
        """Tokens that a check works on: those drafted, and the one before them."""
        return self.tokens + 1

    def __str__(self) -> str:
        what = f"cost {self.cost:g}" if self.draft is None else _name(self.draft)
        return f"{self.tokens} tokens from {what}, acceptance {self.acceptance:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """What lies in the host's memory, and comes over the host's link in each step.

    Parameters
    ----------
    cache, weights
        Shares of the KV cache and of the weights, from 0 to 1.
    overlap
        How far an operator's reading from the host overlaps with its reading of device memory:
        1 for all (the longer counts), 0 for none (their sum).

    Raises
    ------
    InvalidValueError
        If one is no share.

    >>> print(Offload(cache=0.3))
    30% of the cache and 0% of the weights on the host
    """

    cache: float = 0.0
    weights: float = 0.0
    overlap: float = 1.0

    def __post_init__(self) -> None:
        for name in ("cache", "weights", "overlap"):
            _check_share(f"{name} of an offload", getattr(self, name))

    def __str__(self) -> str:
        return f"{self.cache:.0%} of the cache and {self.weights:.0%} of the weights on the host"


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _check_share(name: str, value: Any) -> None:
    if not (_is_number(value) and 0 <= value <= 1):
        raise InvalidValueError(f"{name} must be a share from 0 to 1, such as 0.7, not {value!r}.")


def _name(model: Any) -> str:
    return str(getattr(model, "name", model))
