"""Prefill and decode on separate devices: the two services that `Engine.serve` puts together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers.serving.checks import service
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.split import Pools, pools_of
from mlsim.systems.system import PrefillPool, link_rate
from mlsim.zoo import resolve


def pools(decode: Service, pool: Any) -> Pools:
    """Return two pools, which are asked alike.

    Raises
    ------
    WrongKindError
        If `pool` is none.
    MlsimError
        As `Engine.serve`.
    """
    if decode.given:
        names = ", ".join(decode.given)
        raise InvalidValueError(
            f"{names} can't be given with prefill=PrefillPool(...): of which pool would it be? "
            "Ask for each pool by itself, or make a Device with these figures."
        )
    if not isinstance(pool, PrefillPool):
        raise WrongKindError(
            f"prefill must be a PrefillPool, such as PrefillPool(hardware='HGX_H100', copies=2) "
            f"from mlsim.systems, not {pool!r}."
        )
    hardware = decode.system or decode.device
    if pool.hardware is not None:
        hardware = resolve.cluster(pool.hardware)
    on = decode.switches
    # Guesses and offload are for what decodes; what is cached, and adapters, are for both.
    prefill = service(
        model=decode.model,
        hardware=hardware,
        batch_size=pool.batch_size,
        prompt_tokens=decode.prompt_tokens,
        output_tokens=1,
        formats=decode.formats,
        parallelism=pool.parallelism,
        block_tokens=decode.block_tokens,
        chunk_tokens=decode.chunk_tokens,
        reserve=decode.reserve_share,
        estimate=decode.estimate,
        software=decode.software,
        expert_imbalance=decode.expert_imbalance if pool.expert_parallel > 1 else 1.0,
        prefix_share=on.prefix_share,
        prefix_count=on.prefix_count,
        adapters=on.adapters,
        adapter_count=on.adapter_count if on.adapters else None,
    )
    # Devices that only decode work on one token of each sequence at a time.
    most = getattr(decode.batch_size, "max", lambda: decode.batch_size)()
    decode = replace(decode, chunk_tokens=float(most))
    link, given = None, pool.link_bandwidth
    if given is not None:
        link = link_rate(given), f"given: {given} for each device"
    return pools_of(decode, prefill, pool, link)
