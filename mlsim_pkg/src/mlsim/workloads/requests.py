"""Requests for a service: when they arrive, and how long each is.

They come at a rate, all at once, from users who wait for their answers, or out of a trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import check_whole
from mlsim.workloads.lengths import Lengths, spread

if TYPE_CHECKING:
    import numpy

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
