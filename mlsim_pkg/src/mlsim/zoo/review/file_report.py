"""A user's file, checked: what it is, and what every check says of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import DataFileError, MlsimError
from mlsim.hardware import Device
from mlsim.hardware.device import load_device
from mlsim.infrastructure import CloudOperator, DataCentre, EmbodiedCarbon
from mlsim.infrastructure.accounts import load_embodied, load_operator
from mlsim.infrastructure.places import load_data_centre
from mlsim.systems import Cluster, System
from mlsim.units import text
from mlsim.workloads.model import Model, Network
from mlsim.workloads.model_files import load_model
from mlsim.zoo import spaces
from mlsim.zoo.review.rules import MODEL_CHECKS, Record, checks_of, rule
from mlsim.zoo.spaces import Hardware, twin


@dataclass(frozen=True, slots=True)
class Remark:
    """One line of a report: an error, a note, or a rule that holds ("ok")."""

    level: str
    message: str
    line: int | None = None


@dataclass(frozen=True)
class Report:
    """What a file is, and what the checks say."""

    path: Path
    title: str
    remarks: tuple[Remark, ...]

    @property
    def errors(self) -> int:
        """How many errors there are."""
        return sum(remark.level == "error" for remark in self.remarks)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "file": str(self.path),
            "is": self.title,
            "errors": self.errors,
            "remarks": [asdict(each) for each in self.remarks],
        }

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.title}"]
        for each in self.remarks:
            place = f"{self.path}:{each.line}: " if each.line else ""
            lines.append(f"  {each.level:<6}{place}{each.message}")
        count = {0: "no error", 1: "1 error"}.get(self.errors, f"{self.errors} errors")
        return "\n".join([*lines, f"  {count}"])


def validate_file(path: str | Path) -> Report:
    """Read a file strictly and apply every check to what it describes.

    A file is a device, a system, a cluster, a model, a data center, an operator or
    embodied carbon as TOML, or the `config.json` of a language model, or the folder that
    holds one. What can't be read is an error of the report; nothing is raised.

    >>> from mlsim.records import DATA
    >>> validate_file(DATA / "hardware" / "t4.toml").errors
    0
    """
    path = Path(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            record, file = _read(path)
        except MlsimError as error:
            return Report(path, "can't be read", (_raised(path, str(error)),))
    remarks = [Remark("note", str(each.message)) for each in caught]
    if file and path.resolve().is_relative_to(records.DATA) and (other := twin(path)):
        said = f"key: {record.key!r} is the key of {other.name}, too. Give this one its own."
        return Report(path, _title(record), (*remarks, Remark("error", said, file.line("key"))))
    # A config.json has no figures and cites nothing.
    for each in checks_of(record) if file else MODEL_CHECKS:
        found = list(each(record))
        for finding in found:
            level = "error" if finding.error else "note"
            line = _line(file, record, finding.figure)
            remarks.append(Remark(level, f"{finding.figure}: {finding.message}", line))
        if not found:
            remarks.append(Remark("ok", rule(each)))
    return Report(path, _title(record), tuple(remarks))


def _line(file: records.DataFile | None, record: Record, figure: str) -> int | None:
    """Return the line on which a figure stands; a model's stand below `[figures]`."""
    if file is None:
        return None
    keys = figure.split(".")
    below = isinstance(record, Model) and figure in record.figures
    return file.line("figures", *keys) if below else file.line(*keys)


def _raised(path: Path, message: str) -> Remark:
    """Take the line out of a message that begins with file and line."""
    rest = message.removeprefix(f"{path}:")
    number, colon, said = rest.partition(":")
    if rest != message and colon and number.strip().isdigit():
        return Remark("error", said.strip(), int(number))
    return Remark("error", rest.strip())


def _read(path: Path) -> tuple[Record, records.DataFile | None]:
    """Load a file as what its keys say that it is."""
    if path.is_dir() or path.suffix == ".json":
        from mlsim.workloads.huggingface import load_config

        return load_config(path), None
    file = records.load(path)
    for keys, read in _READERS.items():
        if file.data.keys() & set(keys.split()):
            return read(path), file
    raise DataFileError(
        f"{path}:1: this is no device ([compute.fp16], [memory.bandwidth], ...), no system "
        "(device = ..., [link.bandwidth]), no cluster (node = ...), no model ([[layers]] or "
        "[transformer]), no data center ([pue.2024]), no operator ([scope2_location.2024]) and no "
        "embodied carbon ([carbon])."
    )


# What reads a file that has one of these keys; embodied carbon names its device too.
_READERS: dict[str, Callable[[Path], Any]] = {
    "compute memory vendor": load_device,
    "carbon lifetime utilisation": lambda path: load_embodied(path, Hardware.keys()),
    "node nodes": spaces.load_cluster,
    "device devices link": spaces.load_system,
    "layers transformer input": load_model,
    "scope pue": load_data_centre,
    "electricity scope2_location scope2_market": load_operator,
}


def _title(record: Record) -> str:
    """Say what a record is, in one line."""
    figures = len(record.figures)
    head = f"{record.name} ({record.key})"
    match record:
        case Device():
            said = f"device {head}, {record.vendor}, {record.form}"
        case System():
            said = f"system {head}, {record.devices} x {record.device.name}"
        case Cluster():
            said = f"cluster {head}, up to {record.nodes:,} x {record.node.name}"
        case DataCentre():
            said = f"data center {head}, {record.scope}"
        case CloudOperator():
            said = f"operator {head}"
        case EmbodiedCarbon():
            said = f"embodied carbon {head}, {record.covers}"
        case _:
            said = f"model {head}, {record.parameter_count:,} parameters"
            if isinstance(record, Network):
                said += f", {text(record.flop_count, 'FLOP')}/sample"
    return f"{said}; {figures} figure{'' if figures == 1 else 's'}"
