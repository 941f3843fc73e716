"""A service in two pools: some devices read prompts, others decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from mlsim.errors import WrongKindError
from mlsim.hardware.kernel_constants import Loan
from mlsim.solvers.answer import Report
from mlsim.solvers.calibrated import farthest
from mlsim.solvers.load import Load
from mlsim.solvers.question import Question
from mlsim.solvers.serving.pools import Pools
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.steps import MEMORY
from mlsim.units import text

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
        service = self.service
        return (
            f"{service.model.name}, {self.split.name}, {service.formats.name}, {service.estimate}"
        )

    def _reported(self) -> tuple[str, ...]:
        return (*super()._reported(), *SPLIT)

    def _inputs(self) -> Mapping[str, Any]:
        pool = self.split.pool
        return {
            **super()._inputs(),
            "prefill": {
                "hardware": self.split.prefill.hardware_name,
                "copies": pool.copies,
                "batch_size": pool.batch_size,
                "overlap": pool.overlap,
            },
        }

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        found = super().report()
        if self.shape:
            return replace(found, title=self.about)
        rows = list(found.rows)
        if self.shows_times:
            rows += self._rows()
        return replace(found, title=self.about, rows=rows)

    def _rows(self) -> list[tuple[str, str]]:
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
