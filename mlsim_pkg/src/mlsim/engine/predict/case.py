"""One row of a table of cases, read into fields that can't be wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.engine.bands import mattering
from mlsim.errors import InvalidValueError, MlsimError, UnknownNameError, nearest
from mlsim.hardware import Device
from mlsim.precision import PRECISIONS, precision as find_precision
from mlsim.software import narrower
from mlsim.systems import Cluster, System
from mlsim.zoo import resolve, spaces
from mlsim.zoo.spaces import is_hub_id, plain

if TYPE_CHECKING:
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.records import Figure
    from mlsim.solvers.answer import Answer
    from mlsim.workloads.language import Transformer
    from mlsim.workloads.model import Model

# What a row may say; the rest of its columns, the measured value above all, is dropped.
TEXTS = ("case_id", "kind", "metric_kind", "model", "device", "sw_class", "software", "assumed")
FORMATS = ("w_dtype", "a_dtype", "kv_dtype")
NUMBERS = ("batch", "input_len", "output_len", "w_bits")
SIZES = ("tp", "pp", "dp", "ep", "cp", "count")
READ = (*TEXTS, *FORMATS, *NUMBERS, *SIZES, "extra")

# No count in a case is above this: a slip, which would take long to answer.
MOST = 1e15
_LINKS = ("links.nvlink", "links.pcie")


@dataclass(frozen=True, eq=False)
class Case:
    """One case: what ran where, and what is asked.

    `models` are those that come with the table of cases, by their plain names;
    `layouts` are those that were searched for the table; `notes` gathers what was assumed,
    `lent` the borrowed constants that matter, and `kept` what was worked out for this case, since
    estimate and bound ask for it again.
    """

    cells: Mapping[str, str]
    models: Mapping[str, Any] = field(default_factory=dict)
    layouts: dict[Any, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lent: list[Loan] = field(default_factory=list)
    kept: dict[Any, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a cell without spaces around it, "" if there is none; "extra M" is in `extra`."""
        if name.startswith("extra "):
            found = self.extra.get(name.removeprefix("extra "))
            return "" if found is None else json.dumps(found).strip('"')
        return (self.cells.get(name) or "").strip()

    def number(self, name: str, usual: float | None = None, *, zero: bool = False) -> float:
        """Return a positive number.

        Raises
        ------
        InvalidValueError
            If the cell is empty and nothing is usual, or what stands there can't be.
        """
        text = self.text(name)
        if not text:
            if usual is None:
                raise InvalidValueError(f"{name} is empty: a number is needed.")
            return float(usual)
        try:
            found = float(text)
        except ValueError:
            raise InvalidValueError(
                f"{name} must be a bare number without a unit, not {text[:40]!r}."
            ) from None
        if not math.isfinite(found) or found < 0 or (found == 0 and not zero):
            raise InvalidValueError(f"{name} must be positive and finite, not {text[:40]}.")
        if found > MOST:
            raise InvalidValueError(f"{name} must be at most {MOST:g}, not {text[:40]}.")
        return found

    def whole(self, name: str, usual: int | None = None, *, zero: bool = False) -> int:
        """Return a whole number from 1 up (0 too where it may be), as `number` does."""
        found = self.number(name, usual, zero=zero)
        if not found.is_integer():
            raise InvalidValueError(f"{name} must be a whole number, not {found:g}.")
        return int(found)

    @cached_property
    def extra(self) -> Mapping[str, Any]:
        """What the column of that name says, a JSON object."""
        try:
            found = json.loads(self.text("extra") or "{}")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InvalidValueError('extra must be a JSON object, such as {"M": 4096}.')
        return found

    def more(self, name: str, usual: float | None = None, *, zero: bool = False) -> float:
        """Return a positive number out of `extra`, as `number` does."""
        return self.number(f"extra {name}", usual, zero=zero)

    def more_whole(self, name: str, usual: int | None = None, *, zero: bool = False) -> int:
        """Return a whole number out of `extra`."""
        return self.whole(f"extra {name}", usual, zero=zero)

    def precision(self, name: str, usual: str | None = None) -> str:
        """Return a number format.

        Raises
        ------
        InvalidValueError
            If there is none in the cell, or it is unknown.
        """
        text = self.text(name) or (usual or "")
        if not text:
            raise InvalidValueError(f"{name} is empty: give a number format, such as bf16.")
        try:
            return find_precision(text).name
        except UnknownNameError:
            raise InvalidValueError(
                f"{name} {text!r} is no number format.{nearest(text, PRECISIONS)}"
            ) from None

    @cached_property
    def device(self) -> Device:
        """The device of the zoo.

        Raises
        ------
        MlsimError
            If it is unknown, or none is named.
        """
        name = self.text("device")
        if not name:
            raise InvalidValueError("device is empty: no device is named.")
        if alias := spaces.find("devices", name):
            self.note(alias.note)
        try:
            return _device(alias.key if alias else name)
        except UnknownNameError:
            core = spaces.Hardware.core(name)
            near = nearest(core, [key.rpartition(".")[2] for key in spaces.Hardware.keys()])  # noqa: SIM118
            raise InvalidValueError(
                f"no device of the zoo is called {name[:60]!r}.{near} `mlsim zoo` lists them."
            ) from None

    @cached_property
    def model(self) -> Model:
        """The model of the zoo, as `device`."""
        name = self.text("model")
        if not name:
            raise InvalidValueError("model is empty: no model is named.")
        alias = spaces.find("models", name)
        try:
            found = _model(alias.key if alias else name)
        except UnknownNameError:
            return self._own_model(name)
        self.note(alias.note if alias else "")
        return found

    def _own_model(self, name: str) -> Model:
        found = self.models.get(plain(name))
        if found is None:
            near = "".join(f" Did you mean {each!r}?" for each in spaces.Models.near(name)[:1])
            raise InvalidValueError(
                f"no model of the zoo is called {name[:60]!r}.{near} `mlsim zoo` lists them; "
                "others can be described in a table of models."
            )
        if isinstance(found, str):
            raise InvalidValueError(f"{name}: {found}")
        self.note("the model is as the table of models describes it")
        return found  # type: ignore[no-any-return]

    def software(self, estimate: str, usual: str) -> dict[str, Any]:
        """Return the argument that names the class of software, of a calibrated estimate."""
        if estimate != "calibrated":
            return {}
        name = self.text("sw_class")
        found = spaces.software(name).key if name else usual
        return {"software": narrower(found, self.text("software"))}

    @property
    def count(self) -> int:
        """How many devices there were."""
        return self.whole("count", 1)

    def system(self, devices: int) -> Device | System:
        """Return the device, or so many of it joined by their link."""
        return self.device if devices == 1 else system_of(self.device, devices)

    def cluster(self, devices: int) -> Device | System | Cluster:
        """Return so many of the device, in nodes where there are more than a node has."""
        return self.device if devices == 1 else cluster_of(self.device, devices)

    def answered(self, answer: Answer, name: str) -> float:
        """Return a result of an answer; note what it assumes, and whose constants it borrows."""
        found = float(answer.value(name))
        if answer.loans:
            self.lent[:] = mattering(answer, name)
        if self.lent:
            self.note(f"borrowed: {'; '.join(each.words for each in self.lent)}")
        for words in answer.assumptions:
            self.note(words)
        return found

    @property
    def said(self) -> str:
        """All notes in a line."""
        return "; ".join(each.rstrip(".") for each in self.notes)

    def note(self, words: str) -> None:
        """Add what was assumed, once."""
        if words and words not in self.notes:
            self.notes.append(words)


@lru_cache(maxsize=512)
def _device(name: str) -> Device:
    # A path is no name: a table must not open files.
    _refuse_path("device", name)
    return resolve.device(name)


@lru_cache(maxsize=512)
def _model(name: str) -> Model:
    if not is_hub_id(name):
        _refuse_path("model", name)
    return spaces.Models.find(name)  # type: ignore[no-any-return]


def _refuse_path(what: str, name: str) -> None:
    if any(each in name for each in ("/", "\\", ".toml", ".json")):
        raise InvalidValueError(f"{what} must be a name, not a path: {name[:60]!r}.")


@lru_cache(maxsize=1024)
def system_of(device: Device, devices: int) -> System:
    """Return so many of a device, joined as in a system of the zoo, else by its own link.

    Raises
    ------
    InvalidValueError
        If no link of it is on record.

    >>> from mlsim import Hardware
    >>> system_of(Hardware.Cloud.H100, 4).devices
    4
    """
    known = [each for each in spaces.Systems if each.device.key == device.key]
    exact = [each for each in known if each.devices == devices]
    if exact:
        return exact[0]  # type: ignore[no-any-return]
    larger = [each for each in known if each.devices > devices]
    if larger:
        near = min(larger, key=lambda each: each.devices)
        if near.topology != "switch":
            return near  # type: ignore[no-any-return]
        return _joined(device, devices, near.figure)
    for name in _LINKS:
        if name in device.figures:
            return _joined(device, devices, device.figures[name])
    raise InvalidValueError(f"no link of {device.name} is on record to join {devices} of it.")


def _joined(device: Device, devices: int, figure: Figure) -> System:
    return System.of_figures(
        key=f"{devices} x {device.key}",
        name=f"{devices} x {device.name}",
        device=device,
        devices=devices,
        topology="switch",
        source=figure.source,
        figures={"link.bandwidth": figure},
    )


@lru_cache(maxsize=1024)
def cluster_of(device: Device, devices: int) -> System | Cluster:
    """Return so many of a device: one system if one is so large, else nodes of a cluster.

    Raises
    ------
    InvalidValueError
        If no system or cluster of it is on record that could be made so large.

    >>> from mlsim import Hardware
    >>> cluster_of(Hardware.Cloud.A100, 1024).devices >= 1024
    True
    """
    systems: list[System] = [s for s in spaces.Systems if s.device.key == device.key]
    if any(each.devices >= devices for each in systems):
        return min((s for s in systems if s.devices >= devices), key=lambda s: s.devices)
    clusters = [each for each in spaces.Clusters if each.device.key == device.key]
    if not clusters:
        if devices <= 8:
            return system_of(device, devices)
        raise InvalidValueError(
            f"no cluster of {device.name} is on record, so what joins {devices:,} of them is not "
            "known."
        )
    largest = max(clusters, key=lambda each: (each.devices, each.key))
    if largest.devices >= devices:
        return largest  # type: ignore[no-any-return]
    return Cluster.of_figures(
        key=f"{devices} of {largest.key}",
        name=f"{largest.name}, made larger",
        node=largest.node,
        nodes=-(-devices // largest.node.devices),
        source=largest.source,
        figures=largest.figures,
    )


def lengthened(model: Transformer, tokens: int) -> Transformer:
    """Return a model with a context that holds so many tokens, as whoever ran it had it.

    Of a model without an embedding of positions the context is a power of two: nothing else
    hangs on it, and cases of many lengths share one model, and with it its kernels.

    >>> from mlsim import Models
    >>> lengthened(Models.Llama3_8B, 200_000).context
    262144
    """
    if not model.positions:
        if tokens <= model.context:
            return model
        tokens = 2 ** (tokens - 1).bit_length()
    return _lengthened(model, tokens)


@lru_cache(maxsize=1024)
def _lengthened(model: Transformer, tokens: int) -> Transformer:
    return replace(
        model,
        context=max(tokens, model.context),
        positions=model.positions and max(tokens, model.positions),
    )


def reason(error: BaseException) -> str:
    """Return an error in one line of at most 300 characters."""
    words = " ".join(str(error).split()) or type(error).__name__
    kind = "" if isinstance(error, MlsimError) else f"{type(error).__name__}: "
    return (kind + words)[:300]
