"""A service in two pools: some devices read prompts, others decode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from mlsim.equations import arrivals, equations_of
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware.kernel_constants import Loan
from mlsim.solvers.answer import Form, Pairs, Row
from mlsim.solvers.calibrated import farthest
from mlsim.solvers.load import Load
from mlsim.solvers.question import Known, Origin, Question, recorded
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.steps import MEMORY, step_question
from mlsim.systems import Cluster, System
from mlsim.systems.system import PrefillPool
from mlsim.units import text
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

    def calibrated_as(self, made_by: str | None = None) -> Pools:
        """Return the calibrated question to a roofline's, of a class of software."""
        both = {each: getattr(self, each).calibrated_as(made_by) for each in ("prefill", "decode")}
        return replace(self, **both)

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

    @property
    def title(self) -> str:
        """Model, pools, formats and estimate in words."""
        service = self.decode
        return f"{service.model.name}, {self.name}, {service.formats.name}, {service.estimate}"


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


# What two pools have beside what any service has.
SPLIT = (
    *("transfer_bytes", "transfer_time", "exposed_transfer_time"),
    *("prefill_rate", "decode_rate", "transfer_rate", "split_rate"),
    *("balanced_copies", "pool_devices", "device_throughput"),
)
_ANEW = ("generation_latency", "output_throughput")


class SplitServing(Serving):
    """The answer for a service whose prompts are read by a pool of devices of their own.

    As `Serving`: times and rates are those of both pools together, memory is that of a device
    that decodes. `pool` is the answer for one copy that reads prompts.

    >>> from mlsim import Engine
    >>> from mlsim.systems import PrefillPool
    >>> split = Engine.serve(
    ...     model="Llama3_8B", hardware="HGX_H100", batch_size=64, prompt_tokens=2048,
    ...     prefill=PrefillPool(copies=2),
    ... )
    >>> f"{split.value('transfer_bytes'):,.0f} B, {split.quantity('transfer_time').to('ms'):.2f}"
    '268,435,456 B, 0.60 ms'
    """

    noun = "service in two pools"

    def __init__(self, split: Pools, *, check_memory: bool = True) -> None:
        self.split = split
        # Arrays are prompts that the first pool reads, too.
        self.pool = Serving(split.prefill, check_memory=check_memory)
        super().__init__(split.decode, check_memory=check_memory)
        self.prefill = self.pool.prefill

    def _calibrated(self) -> SplitServing:
        return SplitServing(self.split.calibrated_as(), check_memory=self._check_memory)

    @property
    def _prepared(self) -> bool:
        """Leave each pool to its own question."""
        return False

    @property
    def question(self) -> Question:
        """What is asked first: a step of the pool that decodes."""
        return self.decode.question

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name; quantities of one phase are asked of it."""
        return tuple(dict.fromkeys((*super().names, *SPLIT)))

    def _asked(self, name: str) -> tuple[Question, str]:
        if name == "time_to_first_token":
            return self.pool.question, name
        if name in SPLIT or name in _ANEW:
            return self._together, name
        if name in MEMORY:
            return self.decode.question, name
        return super()._asked(name)

    @cached_property
    def _together(self) -> Question:
        """What both pools come to."""
        known, service = self.split.known, self.service
        for name in ("batch_size", "output_tokens"):
            known.add("given", **{name: service.known[name]})
        words = "{}: explained on its own".format
        first = self.pool.prefill
        known.add(words("prefill"), time_to_first_token=self.pool._value("time_to_first_token"))
        known.add(words("prefill, a step"), latency=first._value("latency"))
        known.add("prefill", micro_batches=first._value("micro_batches"))
        stages = float(self.split.prefill.parallelism.pipeline)
        known.add("layout of the pool for prefill", pipeline_parallel=stages)
        known.add(words("decode"), time_per_output_token=self._value("time_per_output_token"))
        labels = {**service.labels, "hardware": self.split.name}
        return Question(known, self.split.equations, labels, shape=self.shape)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants that were measured on other devices, of either pool."""
        return farthest((*self.pool.loans, *super().loans))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer by a tenth, of either pool."""
        return tuple(dict.fromkeys((*self.pool.assumptions, *super().assumptions)))

    def _lasts(self, name: str) -> bool:
        if name in SPLIT:
            return name in ("transfer_bytes", "pool_devices")
        return super()._lasts(name)

    @property
    def feasible(self) -> Any:
        """Whether both pools fit in memory."""
        fits = super().feasible & self.pool.feasible
        return fits if self.shape else bool(fits)

    @property
    def limiting(self) -> str:
        """Which part of the service the others wait for: "prefill", "transfer" or "decode".

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("limiting")
        names = ("prefill", "transfer", "decode")
        return min(names, key=lambda name: float(self.value(f"{name}_rate")))

    def load(self) -> Load:
        """Refuse: the pools are two loads.

        Raises
        ------
        WrongKindError
            Saying how to ask for each.
        """
        raise WrongKindError(
            "two pools are two loads: Engine.footprint(serving.pool) is that of a batch of "
            "prompts, and Engine.serve without prefill that of one generation."
        )

    def too_large(self) -> str:
        """Say which pool does not fit, and by how much."""
        fits = bool(super().feasible)
        return f"prefill: {self.pool.too_large()}" if fits else f"decode: {super().too_large()}"

    def _point(self, pick: Any) -> SplitServing:
        decode, prefill = super()._point(pick), self.pool._point(pick)
        split = replace(self.split, decode=decode.service, prefill=prefill.service)
        return SplitServing(split, check_memory=self._check_memory)

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return self.split.title

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """The results that JSON has."""
        return (*super().reported, *SPLIT)

    @property
    def form(self) -> Form:  # type: ignore[override]
        """How it is written out: as any service, with what both pools come to."""
        return _form()

    def _both(self) -> Pairs:
        """Return the rows of what both pools come to."""

        def said(name: str) -> str:
            return text(float(self.value(name)), "B" if name == "transfer_bytes" else "s")

        how = "layer by layer" if self.split.pool.overlap else "after prefill"
        rates = ", ".join(
            f"{part} {float(self.value(f'{part}_rate')):.3g}"
            for part in ("prefill", "transfer", "decode")
        )
        sent = f"{said('transfer_bytes')} of a prompt in {said('transfer_time')}, {how}"
        balance = f"{float(self.value('balanced_copies')):.3g} copies that read prompts"
        both = (
            f"{float(self.value('output_throughput')):,.0f} token/s on "
            f"{float(self.value('pool_devices')):,.0f} devices, "
            f"{float(self.value('device_throughput')):,.1f} for each"
        )
        return [
            ("cache sent", f"{sent}: {said('exposed_transfer_time')} waited for"),
            ("requests/s", f"{rates}: the service waits for {self.limiting}"),
            ("balance", f"{balance}; now {self.split.pool.copies}"),
            ("both pools", both),
        ]


@cache
def _form() -> Form:
    from mlsim.solvers.serving.reports import SERVING

    return replace(
        SERVING,
        title=None,
        rows=(*SERVING.rows, Row("", SplitServing._both, timed=True)),
        inputs={**SERVING.inputs, "prefill": _pool},
    )


def _pool(serving: SplitServing) -> dict[str, Any]:
    pool = serving.split.pool
    return {
        "hardware": serving.split.prefill.hardware_name,
        "copies": pool.copies,
        "batch_size": pool.batch_size,
        "overlap": pool.overlap,
    }
