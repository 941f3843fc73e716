"""A service under load whose prompts are read by a pool of devices of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from mlsim.equations import Equation, arrivals, arrivals as physics, equations_of, plan
from mlsim.errors import InvalidValueError
from mlsim.hardware.kernel_constants import Loan
from mlsim.solvers.arrivals.asked import Loaded
from mlsim.solvers.arrivals.closed_forms import Steady
from mlsim.solvers.arrivals.loaded import RESULTS, LoadedService
from mlsim.solvers.arrivals.reading import Reading
from mlsim.solvers.arrivals.residents import Run
from mlsim.solvers.arrivals.results import results
from mlsim.solvers.arrivals.steady import OBSERVED, Typical
from mlsim.solvers.arrivals.step_times import step_times
from mlsim.solvers.arrivals.tandem import Reader, Station, in_tandem
from mlsim.solvers.calibrated import farthest
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.pools import Pools, transfer_bytes
from mlsim.workloads.requests import Requests

_STEADY = (
    *("split_first_token", "prompt_wait", "time_per_output_token", "token_interval"),
    *("request_latency", "running_requests"),
)
_RATES = ("prefill_rate", "transfer_rate", "decode_rate", "split_rate")
# Of the pools what one batch of prompts after another comes to, and of arrivals what a prompt
# adds to the steps of others.
_LEFT_OUT = ("decode_rate", "serial_transfer_time", "layered_transfer_time")
_OF_ONE_POOL = (
    *("token_interval", "closed_token_interval", "interval_variance", "met_interval"),
    *("steady_first_token", "request_latency", "interval_per_token", *OBSERVED),
)


class _Decoding(Typical):
    """A request of mean lengths on devices that only decode: prompts take none of their time."""

    def prompt_time(self, running: float, prompts: float) -> float:
        """Time that a prompt adds to a step: none."""
        return 0.0

    @property
    def lone_prompt_time(self) -> float:
        """Time of a step that reads one prompt: there is none."""
        return 0.0


@dataclass(frozen=True, eq=False)
class SplitLoaded(Loaded):
    """A question about two pools under load; `service` is that of the pool that decodes."""

    pools: Pools | None = None

    @property
    def both(self) -> Pools:
        """The two pools."""
        assert self.pools is not None
        return self.pools

    @property
    def readers(self) -> int:
        """Steps that read prompts at one time: on each copy, and in each stage of a pipeline."""
        layout = self.both.prefill.parallelism
        return self.both.pool.copies * layout.data * layout.pipeline

    @cached_property
    def reading(self) -> Reading:
        """One copy that reads these prompts."""
        rule = self.scheduler.on(self.both.prefill.device)
        times = step_times(
            self.both.prefill,
            running=rule.running_limit,
            tokens=rule.tokens_per_step,
            longest=int(self.requests.prompt_tokens.max()),
            prompt=self.requests.mean_prompt,
        )
        return Reading(times, self.requests, rule)

    @cached_property
    def typical(self) -> Typical:
        """One copy that decodes, and a request of the mean lengths."""
        asked = self.requests
        return _Decoding(
            self.times,
            asked.mean_prompt,
            asked.mean_output,
            self.scheduler,
            shared=False,
            alike=asked.alike,
            call_time=self.of_software("call_time"),
            tokenizing_time=self.of_software("tokenizing_time"),
        )

    @property
    def station(self) -> Station:
        """The copies that read prompts, idle."""
        return Station(
            self.requests,
            self.paths(self.requests),
            self.reading.times,
            self.reading.rule.tokens_per_step,
            self.reading.limit,
            self.sending,
            [Reader() for _ in range(self.readers)],
        )

    @cached_property
    def sending(self) -> Callable[[float], float]:
        """Time that a prompt's cache is waited for."""
        import numpy as np

        lengths = self.reading.lengths
        known = self.both.known
        size = transfer_bytes(replace(self.service, prompt_tokens=lengths, batch_size=1.0))
        known.add("the caches of prompts", transfer_bytes=size, prefill_batch=1.0)
        known.add("prompts of these lengths", time_to_first_token=self.reading.alone)
        wanted = "exposed_transfer_time"
        sent = plan(self.both.equations, known, (wanted,)).run(dict(known))[wanted]
        return self.reading.by_prompt(np.broadcast_to(sent, lengths.shape))

    @cached_property
    def known(self) -> Known:
        """What the closed forms need of both pools, whatever the rate."""
        reading = self.reading
        found = self.both.known.joined(reading.known)
        sent = [self.sending(float(each)) for each in self.requests.prompt_tokens]
        words = "mean of the requests' prompts"
        found.add("prompts that are read at one time", prefill_copies=float(self.readers))
        found.add("a full step", prefill_batch=reading.step_prompts)
        found.add("a full step", prefill_interval=reading.together(reading.step_prompts))
        found.add(words, exposed_transfer_time=sum(sent) / len(sent))
        size = transfer_bytes(
            replace(self.service, prompt_tokens=self.requests.mean_prompt, batch_size=1.0)
        )
        found.add("the cache of a prompt of mean length", transfer_bytes=float(size))
        most = self.typical.saturating()
        all_copies = float(most.value("saturation_rate")) * self.copies
        return found.add("closed form, all copies that decode", decode_rate=all_copies)

    def rate_of(self, name: str) -> float:
        """Return one of the rates at which pools and link are full."""
        return float(Question(self.known, self.equations, {}).value(name))

    @property
    def equations(self) -> tuple[Equation, ...]:
        """One equation for each quantity of two pools under load."""
        of_pools = [each for each in equations_of(physics.POOLS) if each.name not in _LEFT_OUT]
        own = (*of_pools, *equations_of(arrivals.PROMPT_LINES))
        rest = self.typical.equations(users=False)
        return (*own, *(each for each in rest if each.name not in _OF_ONE_POOL))


class SplitLoadedService(LoadedService):
    """The answer for two pools under load: as `LoadedService`, for both together.

    Prompts wait in one line for the next copy that is free, which takes as many as its step has
    room for. The links are taken to be free of other steps' caches.
    `steady` has the closed forms of arrivals at random.

    >>> from mlsim import Engine
    >>> from mlsim.systems import PrefillPool
    >>> loaded = Engine.load(
    ...     model="Llama3_8B", hardware="HGX_H100", rate=5, prompt_tokens=2048,
    ...     prefill=PrefillPool(),
    ... )
    >>> loaded.time_to_first_token < loaded.time_to_first_token_p90
    True
    """

    noun = "loaded service in two pools"
    loaded: SplitLoaded

    def __init__(self, loaded: SplitLoaded) -> None:
        # Refuses a rate beyond saturation before any step is taken.
        self._check_rate(loaded)
        super().__init__(loaded)
        self.steady = SplitSteady(loaded) if loaded.rate else None

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants that were measured on other devices, of either pool."""
        return farthest((*self.loaded.both.prefill.loans, *super().loans))

    def _check_rate(self, loaded: SplitLoaded) -> None:
        most = loaded.rate_of("split_rate")
        if loaded.rate and loaded.rate >= most:
            parts = {name: loaded.rate_of(name) for name in _RATES[:3]}
            least = min(parts, key=lambda name: parts[name]).removesuffix("_rate")
            advice = {
                "prefill": "more copies in PrefillPool(copies=...)",
                "transfer": "a faster link between the pools",
                "decode": "more copies (data_parallel)",
            }[least]
            raise InvalidValueError(
                f"{loaded.rate:g} requests/s are more than both pools can serve: {least} saturates "
                f"at {most:.3g}/s, so the queue would grow without end. Use {advice}, a lower "
                "rate, or burst= to see how long a queue takes."
            )

    @cached_property
    def runs(self) -> list[tuple[Requests, Run]]:
        """What each copy that decodes was sent, and what it did."""
        loaded = self.loaded
        return in_tandem(
            loaded.requests,
            loaded.times,
            loaded.scheduler,
            loaded.station,
            copies=loaded.copies,
        )

    @cached_property
    def question(self) -> Question:
        """What was found: each result with the run that it comes from."""
        loaded, found = self.loaded, results(self.runs)
        words = (
            f"a simulation of {len(loaded.requests):,} requests, read by {loaded.readers} and "
            f"decoded by {loaded.scheduler.name}'s scheduler ({loaded.scheduler.source})"
        )
        known = Known().add(words, **found)
        known.add("closed form, both pools", saturation_rate=loaded.rate_of("split_rate"))
        return Question(known, (), self._labels)

    def _reported(self) -> tuple[str, ...]:
        return tuple(name for name in RESULTS if name in self.question.known)

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        loaded, service = self.loaded, self.loaded.service
        return (
            f"{service.model.name}, {loaded.both.name}, {service.formats.name}, "
            f"{service.estimate}: {loaded.requests.words}, {loaded.scheduler.name}"
        )


class SplitSteady(Steady):
    """What the closed forms say of two pools under the same load."""

    loaded: SplitLoaded

    def __init__(self, loaded: SplitLoaded) -> None:
        super().__init__(loaded)
        pool = loaded.reading.at_rate(float(loaded.rate or 0.0), float(loaded.readers))
        self._known = self._known.joined(loaded.known).joined(pool)
        self._results = _STEADY
        self.first = self._results[0]

    def _leave_out(self, users: float) -> None:
        """Take nothing away: prompts are read elsewhere, in steps of their own."""

    @cached_property
    def question(self) -> Question:
        """What is asked, of one copy that decodes."""
        return Question(self._known, self.loaded.equations, self.loaded.service.labels)
