"""`Engine.load`: a service to which requests come, and what its users wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.engine.serve import configuration, switched
from mlsim.errors import InvalidValueError, WrongKindError, need
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED, check, validate
from mlsim.precision import Precision
from mlsim.solvers.arrivals.loaded import LoadedService, one_arrival
from mlsim.solvers.serving.checks import requested
from mlsim.systems.schedulers import Scheduler, scheduler as find_scheduler
from mlsim.workloads import requests as arriving
from mlsim.workloads.model import Model
from mlsim.workloads.requests import FOLLOWED, FOLLOWED_PER_USER, Lengths, Requests, lengths
from mlsim.workloads.steps import Offload, Speculation
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.systems import Cluster, System
    from mlsim.systems.system import PrefillPool
    from mlsim.workloads.adapters import LoRA


def load(
    model: Model | str,
    hardware: Device | System | Cluster | str,
    *,
    rate: Any = None,
    users: int | None = None,
    burst: int | None = None,
    trace: Path | str | None = None,
    prompt_tokens: Any = 512,
    output_tokens: Any = 128,
    requests: int | None = None,
    burstiness: float = 1.0,
    think_time: float = 0.0,
    constant: bool = False,
    scheduler: str | Scheduler = "vllm",
    running_limit: int | None = None,
    tokens_per_step: int | None = None,
    seed: int = 0,
    precision: str | Precision | None = None,
    weights: str | Precision | None = None,
    activations: str | Precision | None = None,
    kv_cache: str | Precision | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    data_parallel: int = 1,
    expert_parallel: int = 1,
    context_parallel: int = 1,
    expert_imbalance: float | str = 1.0,
    reserve: float = 0.1,
    estimate: str = "roofline",
    software: str | None = None,
    prefix_share: Any = 0.0,
    prefix_count: int | None = None,
    prefix_blocks: int | None = None,
    speculation: Speculation | None = None,
    offload: Offload | None = None,
    adapters: LoRA | None = None,
    adapter_count: int | None = None,
    prefill: PrefillPool | None = None,
    **given: Any,
) -> LoadedService:
    """Predict what users of a language model wait for while requests keep coming.

    A scheduler's steps are run one after another, each as long as the operators take for the
    tokens in it; closed forms say the same of arrivals at random, with their derivation
    (`steady`).

    Parameters
    ----------
    model, hardware, precision, weights, activations, kv_cache
        As for `serve`.
    rate
        Requests per second that arrive at random.
    users
        Users who each wait for an answer before they ask again. Without `think_time` all ask at
        the start, as in a benchmark with a fixed concurrency.
    burst
        Requests that are all there at the start.
    trace
        A CSV file of requests: when each arrived (s), its prompt and output tokens. Without
        a column of arrivals, `rate` says how they come. Or a JSONL file in Mooncake's format.
    prompt_tokens, output_tokens
        Tokens of each request: a number, or a distribution such as "lognormal 512 0.8"
        (mean, spread as a share of it), "uniform 100 900" or "exponential 512".
    requests
        How many to follow: 2,000 by default, of users ten for each; of a trace, all.
    burstiness
        Squared variation of the times between arrivals: 1 at random, 0 evenly spaced.
    think_time
        Between a user's answer and the next request, in s, on average.
    constant
        Of users: whether all think equally long, and lengths that are a number are those of each
        request, as a benchmark has them. By default pauses are exponential, and lengths are spread
        about their means as those of a published service, so that users don't keep in step.
    scheduler
        "vllm", "sglang" or "tensorrt_llm".
    running_limit, tokens_per_step
        Most requests that run at one time, and most tokens that a step works on, in place
        of those that the engine sets itself on such a device.
    seed
        Of the random lengths and arrivals.
    tensor_parallel, pipeline_parallel, data_parallel, expert_parallel, context_parallel,
    expert_imbalance
        The layout, as for `serve`. Copies, and batches in flight in a pipeline, each have a
        scheduler of their own, and requests go to them in turn.
    software
        Class of software of a calibrated estimate; by default the newest of the scheduler.
    prefix_share
        Share of each prompt's tokens that is in the cache already; or "trace": what the trace
        says of each prompt, by its blocks or its column `prefix_tokens`.
    prefix_blocks
        Blocks that the cache of prefixes holds, the latest used; with "trace" and a trace that
        names blocks. By default all that were ever seen.
    prefix_count, speculation, offload, adapters, adapter_count
        As for `serve`. A request makes the mean number of tokens in each round.
    prefill
        A pool of other devices that reads the prompts, which wait in one line for the next copy
        that is free; its steps hold as many as the scheduler's do. All else here is then of the
        devices that decode. Answers with a `SplitLoadedService`.
    reserve, estimate, **given
        As for `serve`.

    Raises
    ------
    WrongKindError
        If requests arrive in no way or in two, an argument says nothing of requests that arrive
        in this way, or the model is an encoder.
    InvalidValueError
        If a number can't be, a request is longer than the model's context, or the rate is
        beyond saturation; says where that is.
    DataFileError
        If a trace has a hole; names the line.
    DoesNotFitError
        If one request does not fit in memory.
    MissingLibraryError
        If NumPy is not installed.
    MlsimError
        As for `serve`.

    >>> from mlsim import Engine
    >>> loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=10, seed=1)
    >>> round(loaded.steady.value("saturation_rate"))
    81
    """
    need("numpy", "a service under load", "arrays")
    where = resolve.cluster(hardware)
    rule = limited(find_scheduler(scheduler), running_limit, tokens_per_step)
    rule = rule.on(where if isinstance(where, Device) else where.device)
    ways = {"rate": rate, "users": users, "burst": burst, "trace": trace}
    if trace is not None and rate is not None:
        one_arrival({"users": users, "burst": burst, "trace": trace})
    else:
        one_arrival(ways)
    _used(
        ways,
        {
            "burstiness": check("burstiness", burstiness) != 1,
            "think_time": check("think_time", think_time) > 0,
            "constant": check("constant", constant),
            "requests": requests not in (None, burst),
        },
    )
    coming, pace = _requests(
        ways,
        (lengths(prompt_tokens), lengths(output_tokens, "output_tokens")),
        count=None if requests is None else check("requests", requests),
        burstiness=float(burstiness),
        think_time=float(think_time),
        constant=constant,
        seed=check("seed", seed),
    )
    served = resolve.transformer(model)
    if coming.lengths and coming.mean_prompt + coming.mean_output <= served.context:
        coming = coming.within(served.context)
    coming, share = _with_prefixes(coming, prefix_share, prefix_blocks, trace)
    if not served.decoder:
        raise WrongKindError(
            f"{served.name} is an encoder: it generates nothing. Engine.serve tells its pass."
        )
    of = configuration(
        served,
        where,
        (precision, weights, activations, kv_cache),
        (tensor_parallel, pipeline_parallel, data_parallel, context_parallel, expert_parallel),
        estimate=estimate,
        software=rule.software if software is None and estimate == CALIBRATED else software,
        expert_imbalance=expert_imbalance,
    )
    asked = requested(
        of,
        batch_size=data_parallel,
        # How long prompts and answers are is for the requests to say.
        prompt_tokens=1,
        output_tokens=1,
        block_tokens=rule.block_tokens,
        chunk_tokens=rule.tokens_per_step,
        reserve=reserve,
        given=given,
        **switched((share, prefix_count), speculation, offload, (adapters, adapter_count)),
    )
    if prefill is None:
        return LoadedService(asked, coming, rule, pace)
    from mlsim.engine.split import pools
    from mlsim.solvers.arrivals.split import SplitLoadedService

    # How long answers are is for the requests to say.
    both = pools(replace(asked, output_tokens=2.0), prefill)
    return SplitLoadedService(both, coming, rule, pace)


def _with_prefixes(
    coming: Requests, share: Any, blocks: int | None, trace: Path | str | None
) -> tuple[Requests, Any]:
    """Return requests that know which part of each prompt is cached, and the share of all."""
    if isinstance(share, str) and share == "trace":
        if trace is None:
            raise InvalidValueError("prefix_share='trace' needs a trace, which is not given.")
        from mlsim.workloads.traces import cached_tokens

        found = replace(coming, prefix_tokens=cached_tokens(trace, len(coming), blocks))
        return found, found.prefix_share
    if blocks is not None:
        raise InvalidValueError(
            "prefix_blocks counts only with prefix_share='trace': of a share that is given, the "
            "cache has what it has."
        )
    check("prefix_share", share)
    return (coming.with_prefix(share) if share else coming), share


# Arguments that count only where requests arrive in some of the ways, and why not in others.
_OF_WAYS = {
    "burstiness": (("rate",), "it spreads the times between arrivals of a rate"),
    "think_time": (("users",), "only users wait for an answer before they ask again"),
    "constant": (("users",), "it says that users are all alike"),
    "requests": (("rate", "users", "trace"), "of a burst all requests are followed"),
}


def _used(ways: Mapping[str, Any], given: Mapping[str, bool]) -> None:
    """Refuse an argument that says nothing of requests that arrive in this way."""
    there = [name for name, value in ways.items() if value is not None]
    for name, (counts, why) in _OF_WAYS.items():
        if given[name] and not set(counts) & set(there):
            raise WrongKindError(
                f"{name} counts only with {' or '.join(counts)}, and given is "
                f"{' and '.join(there)}: {why}. Leave out {name}, or give {counts[0]}."
            )


def _requests(
    given: dict[str, Any],
    sizes: tuple[Lengths, Lengths],
    *,
    count: int | None,
    burstiness: float,
    think_time: float,
    constant: bool,
    seed: int,
) -> tuple[Requests, float | None]:
    """Return the requests, and their rate where they come at one."""
    rate = None if given["rate"] is None else float(_rate(given["rate"]))
    if given["trace"] is not None:
        return _of_trace(given["trace"], rate, count, burstiness, seed), rate
    if rate is not None:
        followed = count or FOLLOWED
        coming = arriving.at_rate(rate, *sizes, count=followed, burstiness=burstiness, seed=seed)
        return coming, rate if burstiness == 1 else None
    if given["users"] is not None:
        users = check("users", given["users"], "load")
        followed = count or users * FOLLOWED_PER_USER
        return (
            arriving.of_users(
                users,
                *sizes,
                count=followed,
                think_time=think_time,
                seed=seed,
                constant=constant,
            ),
            None,
        )
    return arriving.at_once(check("burst", given["burst"]), *sizes, seed=seed), None


def _of_trace(
    path: Path | str, rate: float | None, count: int | None, burstiness: float, seed: int
) -> Requests:
    from mlsim.workloads.traces import read_trace

    found = read_trace(path, most=count)
    if rate is None:
        return found
    if found.arrived.any():
        raise InvalidValueError(
            f"{path} says when its requests arrive; leave out rate, or its column of arrivals."
        )
    one = Lengths("fixed", (1.0,))
    paced = arriving.at_rate(rate, one, one, count=len(found), burstiness=burstiness, seed=seed)
    return replace(
        found, arrived=paced.arrived, settled=paced.settled, words=f"{found.words}, {paced.words}"
    )


def _rate(value: Any) -> Any:
    if isinstance(value, str):
        raise InvalidValueError(
            f"rate is a number of requests per second, not the text {value!r}. Leave out the "
            "quotes and the unit."
        )
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", False):
        raise InvalidValueError("rate must be one number; ask once for each rate.")
    return validate("arrival_rate", value if hasattr(value, "units") else f"{value} 1/s")


def limited(rule: Scheduler, running: Any, tokens: Any = None) -> Scheduler:
    """Return a scheduler with the limits that are given; on a device it has its own, else.

    Raises
    ------
    InvalidValueError
        If one is no whole number from 1 up.
    """
    given = {"running_limit": running, "tokens_per_step": tokens}
    return rule.with_limits(
        **{name: None if value is None else check(name, value) for name, value in given.items()}
    )
