"""Services measured with a fixed number of users: mean times to the first token and per token.

They come from the package that `hardware.kernel_constants` names, chosen by `benchmarks/atlas`.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import NotMeasuredError, unknown_name
from mlsim.hardware.kernel_constants import FOLDER
from mlsim.measured import cells
from mlsim.quantities import term
from mlsim.records.tables import read
from mlsim.systems import System
from mlsim.systems.schedulers import scheduler, schedulers
from mlsim.values import Origin, literal
from mlsim.values.attributes import result
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Systems

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

LOADED_SERVICES = FOLDER / "services.csv"
# Shortest length that the benchmark's client draws, as a share of the stated, longest one.
SHORTEST = 0.8
OLDER = "vllm"
DRAWN_BY = "semianalysis2025inferencemax"


@dataclass(frozen=True)
class MeasuredLoad:
    """A service with so many users, each of whom waits for an answer before asking again.

    Attributes
    ----------
    id, model, device
        A name of its own; keys of the zoo.
    scheduler, precision, tensor_parallel
        Of which engine; in which format; how many devices share the model.
    users, prompt_tokens, output_tokens
        How many wait; the stated lengths.
    first_token, per_token
        Mean times, in s.
    measured, source
        When; key of the document.
    """

    id: str
    model: str
    device: str
    scheduler: str
    precision: str
    tensor_parallel: int
    users: int
    prompt_tokens: int
    output_tokens: int
    first_token: float
    per_token: float
    measured: datetime.date
    source: str

    time_to_first_token = result("Mean time to the first token that was measured.")
    time_per_output_token = result("Mean time per further token that was measured.")

    def quantity(self, name: str) -> Quantity:
        """Return a measured time by its name in the vocabulary, as a value with its origin.

        Raises
        ------
        UnknownNameError
            If it is none of the two.

        >>> print(measured_loads("H100")[0].time_to_first_token)
        121 ms
        """
        times = {"time_to_first_token": self.first_token, "time_per_output_token": self.per_token}
        if name not in times:
            raise unknown_name("measured time of a service", name, times)
        return term(name).scaled(times[name], partial(self._origin_of, name))

    by_name = quantity

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        words = f"measured {name.replace('_', ' ')}"
        service = (
            f"{self.model} on {self.tensor_parallel} x {self.device}, {self.precision}, "
            f"{self.scheduler}, {self.users} users, {self.prompt_tokens:,} + "
            f"{self.output_tokens:,} tokens, {self.measured}"
        )
        brief = f"{words} = {value.in_full}, {literal(service)} [@{self.source}]"
        return Origin(words, brief, brief)

    @property
    def asked(self) -> dict[str, Any]:
        """What `Engine.load` is asked for the same service.

        Lengths are those of the benchmark's client, uniform from 0.8 of the stated ones. The
        KV cache has 16 bits, as the published command for the H200 leaves it.

        >>> measured_loads("H100")[0].asked["prompt_tokens"]
        'uniform 819 1024'
        """
        return {
            "model": self.model,
            "hardware": _node(self.device),
            "users": self.users,
            "prompt_tokens": _drawn(self.prompt_tokens),
            "output_tokens": _drawn(self.output_tokens),
            "tensor_parallel": self.tensor_parallel,
            "precision": self.precision,
            "kv_cache": "bf16",
            "scheduler": self.scheduler,
            # All are from before vLLM's release 0.14.
            **({"software": OLDER} if self.scheduler == "vllm" else {}),
        }


def measured_loads(device: str | None = None) -> tuple[MeasuredLoad, ...]:
    """Return the services, all or of one device.

    Raises
    ------
    NotMeasuredError
        If there are none of the device; lists those that there are.
    UnknownNameError
        If there is no such device.

    >>> {row.users for row in measured_loads("H100")} == {4, 8, 16, 32, 64}
    True
    """
    rows = load_services(LOADED_SERVICES)
    if device is None:
        return rows
    key = resolve.device(device).key
    found = tuple(row for row in rows if row.device == key)
    if not found:
        there = ", ".join(dict.fromkeys(row.device for row in rows))
        raise NotMeasuredError(f"no such service on {key} is on record. There are: {there}.")
    return found


@cache
def load_services(path: Path) -> tuple[MeasuredLoad, ...]:
    """Read a file of such services.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, or a cell can't be; names file and line.
    """
    names = {"first_token": "first_token_ms", "per_token": "per_token_ms"}
    fields = tuple(names.get(name, name) for name in MeasuredLoad.__dataclass_fields__)
    return read(path, fields, _service)


def _service(record: dict[str, str]) -> MeasuredLoad:
    counts = ("tensor_parallel", "users", "prompt_tokens", "output_tokens")
    times = ("first_token", "per_token")
    found: dict[str, Any] = {
        **{name: cell for name, cell in record.items() if not name.endswith("_ms")},
        "model": cells.model(record),
        "device": cells.device(record),
        "scheduler": scheduler(cells.choice(record, "scheduler", schedulers())).key,
        **{name: cells.count(record, name) for name in counts},
        **{name: cells.positive(record, f"{name}_ms") * 1e-3 for name in times},
        "measured": datetime.date.fromisoformat(record["measured"]),
    }
    return MeasuredLoad(**found)


def _drawn(tokens: int) -> str:
    return f"uniform {int(SHORTEST * tokens)} {tokens}"


@cache
def _node(device: str) -> System:
    """Return the largest node that has this device."""
    nodes: list[System] = [each for each in Systems if each.device.key == device]
    return max(nodes, key=lambda each: each.devices)
