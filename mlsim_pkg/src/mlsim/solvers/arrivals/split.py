"""A service under load whose prompts are read by a pool of devices of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlsim.equations import Equation, arrivals, equations_of, plan, pools as physics
from mlsim.errors import InvalidValueError
from mlsim.solvers.arrivals.loaded import RESULTS, Loaded, LoadedService, Steady
from mlsim.solvers.arrivals.results import results
from mlsim.solvers.arrivals.simulate import Run
from mlsim.solvers.arrivals.steady import OBSERVED, Typical
from mlsim.solvers.arrivals.step_times import StepTimes, step_times
from mlsim.solvers.arrivals.tandem import in_tandem
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.pools import Pools, transfer_bytes
from mlsim.workloads.requests import Requests

# Lengths of prompts at which times are computed; between them they are interpolated.
_LENGTHS = 65
_STEADY = ("split_first_token", "token_interval", "request_latency", "running_requests")
_RATES = ("prefill_rate", "transfer_rate", "decode_rate", "split_rate")
_LEFT_OUT = (
    *("closed_token_interval", "request_latency", "serial_transfer_time", "output_rounds"),
    *OBSERVED,
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
        """Prompts that are read at one time: on each copy, and in each stage of a pipeline."""
        layout = self.both.prefill.parallelism
        return self.both.pool.copies * layout.data * layout.pipeline

    @cached_property
    def prefill_times(self) -> StepTimes:
        """How long steps of the pool that reads prompts take."""
        longest = int(self.requests.prompt_tokens.max())
        tokens = self.scheduler.tokens_per_step
        return step_times(self.both.prefill, running=1, tokens=tokens, longest=longest)

    @cached_property
    def typical(self) -> Typical:
        """One copy that decodes, and a request of the mean lengths."""
        asked = self.requests
        return _Decoding(self.times, asked.mean_prompt, asked.mean_output, self.scheduler)

    @cached_property
    def _grid(self) -> tuple[Any, Any, Any]:
        """Lengths of prompts, and the times to read one of them, and to send its cache."""
        import numpy as np

        prompts = self.requests.prompt_tokens
        lengths = np.unique(np.rint(np.linspace(prompts.min(), prompts.max(), _LENGTHS)))
        times, rule = self.prefill_times, self.scheduler
        read = [Typical(times, float(each), 1.0, rule).lone_prompt_time for each in lengths]
        known = self.both.known
        size = transfer_bytes(replace(self.service, prompt_tokens=lengths, batch_size=1.0))
        known.add("the caches of prompts", transfer_bytes=size, prefill_batch=1.0)
        known.add("prompts of these lengths", time_to_first_token=np.array(read))
        wanted = "exposed_transfer_time"
        sent = plan(self.both.equations, known, (wanted,)).run(dict(known))[wanted]
        return lengths, np.array(read), np.broadcast_to(sent, lengths.shape)

    @property
    def reading(self) -> Callable[[float], float]:
        """Time to read a prompt of so many tokens."""
        return self._at(self._grid[1])

    @property
    def sending(self) -> Callable[[float], float]:
        """Time that a prompt's cache is waited for."""
        return self._at(self._grid[2])

    def _at(self, values: Any) -> Callable[[float], float]:
        import numpy as np

        found: dict[float, float] = {}

        def at(prompt: float) -> float:
            if prompt not in found:
                found[prompt] = float(np.interp(prompt, self._grid[0], values))
            return found[prompt]

        return at

    @cached_property
    def known(self) -> Known:
        """What the closed forms need of the pool that reads prompts."""
        import numpy as np

        times = np.interp(self.requests.prompt_tokens, *self._grid[:2])
        sent = np.interp(self.requests.prompt_tokens, self._grid[0], self._grid[2])
        found = self.both.known
        found.add("prompts that are read at one time", prefill_copies=float(self.readers))
        found.add("one by one", prefill_batch=1.0)
        mean = float(times.mean())
        found.add("mean of the requests' prompts", service_time=mean, prefill_interval=mean)
        found.add("of the requests' prompts", service_variance=float(times.var()))
        found.add("mean of the requests' prompts", exposed_transfer_time=float(sent.mean()))
        size = transfer_bytes(
            replace(self.service, prompt_tokens=self.requests.mean_prompt, batch_size=1.0)
        )
        found.add("the cache of a prompt of mean length", transfer_bytes=float(size))
        most = self.typical.saturating()
        all_copies = float(most.value("saturation_rate")) * self.copies
        return found.add("closed form, all copies that decode", decode_rate=all_copies)

    def rate_of(self, name: str) -> float:
        """Return one of the rates at which pools and link are full."""
        return float(Question(self.known, equations_for(), {}).value(name))


def equations_for() -> tuple[Equation, ...]:
    """Return one equation for each quantity of two pools under load."""
    own = [each for each in equations_of(physics) if each.name not in _LEFT_OUT]
    decided = {each.yields for each in own if each.name != "layered_transfer_time"}
    rest = [each for each in equations_of(arrivals) if each.name not in _LEFT_OUT]
    return tuple(each for each in (*own, *rest) if each in own or each.yields not in decided)


class SplitLoadedService(LoadedService):
    """The answer for two pools under load: as `LoadedService`, for both together.

    Prompts are read one by one by the next copy that is free; the links are taken to be free.
    `steady` has the closed forms of arrivals at random.

    >>> from mlsim import Engine
    >>> from mlsim.systems import PrefillPool
    >>> loaded = Engine.load(
    ...     model="Llama3_8B", hardware="HGX_H100", rate=5, prompt_tokens=2048,
    ...     prefill=PrefillPool(),
    ... )
    >>> loaded.time_to_first_token < loaded["time_to_first_token_p90"]
    True
    """

    noun = "loaded service in two pools"
    loaded: SplitLoaded

    def __init__(self, loaded: SplitLoaded) -> None:
        # Refuses a rate beyond saturation before any step is taken.
        self._check_rate(loaded)
        super().__init__(loaded)
        self.steady = SplitSteady(loaded) if loaded.rate else None

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
            readers=loaded.readers,
            copies=loaded.copies,
            reading=loaded.reading,
            sending=loaded.sending,
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
        self._known = loaded.known.joined(self._known)
        self._known.add("given", pool_arrival_rate=loaded.rate)
        self._results = _STEADY
        self.first = self._results[0]

    @cached_property
    def question(self) -> Question:
        """What is asked, of one copy that decodes."""
        return Question(self._known, equations_for(), self.loaded.service.labels)
