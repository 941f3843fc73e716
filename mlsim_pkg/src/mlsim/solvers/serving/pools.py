"""Two pools of devices: what is known of them, how they are joined, and what they can't be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mlsim.equations import arrivals, equations_of
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers.question import Known, Origin, recorded
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.steps import step_question
from mlsim.systems import Cluster, System
from mlsim.systems.system import PrefillPool
from mlsim.workloads.steps import Parallelism


@dataclass(frozen=True, eq=False)
class Pools:
    """Two pools that answer requests together.

    Attributes
    ----------
    prefill, decode
        One copy that reads prompts, and all that decode.
    pool
        How many read prompts, and how their cache is sent.
    link_bandwidth
        What one device sends to the other pool, in B/s, and where that comes from.
    """

    prefill: Service
    decode: Service
    pool: PrefillPool
    link_bandwidth: float
    link_origin: Origin

    @property
    def known(self) -> Known:
        """What is known of both pools, whatever is asked."""
        found = Known()
        prefill, decode = self.prefill.parallelism, self.decode.parallelism
        one = replace(decode, data=1)
        found.add(
            "layout of the pool for prefill",
            prefill_copies=float(self.pool.copies),
            prefill_devices=float(prefill.devices),
        )
        found.add("given", prefill_batch=self.prefill.batch_size)
        found.add(
            "layout of the pool that decodes",
            decode_copies=float(decode.data),
            decode_devices=float(one.devices),
        )
        found.add(self.link_origin, transfer_bandwidth=self.link_bandwidth)
        found.add(f"{self.decode.model.name}, its layers", layers=float(self.decode.model.layers))
        return found.add(
            "the cache of one prompt, all layers", transfer_bytes=transfer_bytes(self.decode)
        )

    @property
    def equations(self) -> tuple[Any, ...]:
        """One equation for each quantity."""
        left = "serial_transfer_time" if self.pool.overlap else "layered_transfer_time"
        return tuple(each for each in equations_of(arrivals.POOLS) if each.name != left)

    @property
    def name(self) -> str:
        """Both pools in words."""
        copies = f"{self.pool.copies} x " if self.pool.copies > 1 else ""
        reading, decoding = self.prefill.hardware_name, self.decode.hardware_name
        return f"prefill on {copies}{reading}, decode on {decoding}"


def transfer_bytes(service: Service) -> Any:
    """Return the cache of one prompt in all layers, in bytes, in the format of a service."""
    whole = replace(
        service,
        parallelism=Parallelism(),
        expert_imbalance=1.0,
        system=None,
        estimate="roofline",
        software=None,
        given={},
        output_tokens=0.0,
        # What is sent is what is filled.
        block_tokens=1.0,
    )
    return step_question(whole, "cache", 1.0, 0.0).evaluate("cache_per_sequence")[
        "cache_per_sequence"
    ]


def pools_of(
    decode: Service, prefill: Service, pool: PrefillPool, link: tuple[float, Origin] | None
) -> Pools:
    """Put two pools together, with the link between them.

    Parameters
    ----------
    link
        Rate and origin where they were given; else the cluster's or the shared system's.

    Raises
    ------
    WrongKindError
        If the model is an encoder.
    InvalidValueError
        If an answer has no token to decode, the pools share a system that is too small, or
        nobody says how they are joined.
    """
    if not decode.model.decoder:
        raise WrongKindError(
            f"{decode.model.name} is an encoder: it decodes nothing, so there is nothing to split. "
            "Leave prefill out."
        )
    fewest = getattr(decode.output_tokens, "min", lambda: decode.output_tokens)()
    if fewest < 2:
        raise InvalidValueError(
            "output_tokens must be 2 or more with prefill=PrefillPool(...): the first token comes "
            "from the devices that read the prompt, so one alone leaves nothing to decode."
        )
    _check_room(decode, pool)
    rate, origin = link or _link(decode, prefill, shared=pool.hardware is None)
    return Pools(prefill, decode, pool, rate, origin)


def _check_room(decode: Service, pool: PrefillPool) -> None:
    """Refuse two pools on one system that has not so many devices."""
    where = decode.system
    if pool.hardware is not None:
        return
    needed = int(
        arrivals.pool_devices(pool.copies, pool.parallelism.devices, 1, decode.parallelism.devices)
    )
    there = where.devices if where else 1
    if needed > there:
        name = where.name if where else decode.device.name
        raise InvalidValueError(
            f"both pools share {name}, which has {there:,} device(s), and need {needed:,}: "
            f"{pool.copies} x {pool.parallelism.devices} to read prompts and "
            f"{decode.parallelism.devices} to decode. Use fewer, a larger system, or give "
            "PrefillPool(hardware=...) for a pool elsewhere."
        )


def _link(decode: Service, prefill: Service, *, shared: bool) -> tuple[float, Origin]:
    """Return the rate between the pools where nobody gave it."""
    here, there = decode.system, prefill.system
    if isinstance(here, Cluster):
        return here.fabric_bandwidth, recorded(here, here.figure)
    if isinstance(there, Cluster):
        return there.fabric_bandwidth, recorded(there, there.figure)
    if isinstance(here, System) and shared:
        return here.link_bandwidth(here.devices), recorded(here, here.figure)
    raise InvalidValueError(
        "no link between the two pools is on record: give PrefillPool(link_bandwidth='400 Gb/s'), "
        "what one device sends to the other pool, or a cluster as hardware."
    )
