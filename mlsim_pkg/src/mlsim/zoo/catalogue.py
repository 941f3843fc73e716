"""The zoo as text and as plain data: every figure with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, UnknownNameError, unknown_name
from mlsim.hardware import Device
from mlsim.infrastructure import CloudRegion, DataCentre, Grid
from mlsim.records import Figure, load
from mlsim.records.references import Reference, reference, references
from mlsim.systems import Cluster, System
from mlsim.units import held, text
from mlsim.workloads.blocks import LatentAttention
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model, Network
from mlsim.zoo.resolve import model
from mlsim.zoo.spaces import (
    SPACES,
    Clusters,
    DataCentres,
    Grids,
    Hardware,
    Models,
    Namespace,
    Regions,
    Systems,
)

Place = Grid | DataCentre | CloudRegion
Record = Model | Device | System | Cluster | Place


def find(name: str) -> Record:
    """Return the record of a name, whatever it is, or the model of a `config.json`.

    Raises
    ------
    UnknownNameError
        If there is none; suggests the nearest of all.
    """
    if name.endswith(".json"):
        return model(name)
    for space in SPACES:
        try:
            found: Record = space.find(name)
        except UnknownNameError:
            continue
        return found
    keys = list(chain.from_iterable(space.keys() for space in SPACES))
    raise unknown_name(
        "model, device, system or place",
        name,
        [key.rpartition(".")[2] for key in keys],
        see="`mlsim zoo` lists them all.",
        like=Hardware.core(name),
    )


def figure_as_dict(figure: Figure) -> dict[str, Any]:
    """Return a figure with its unit and origin as plain data."""
    fields: dict[str, Any] = {"value": figure.value, "unit": figure.unit, "kind": figure.kind}
    for name in ("sparsity", "unit_used", "direction", "per", "where", "quote", "note"):
        value = getattr(figure, name)
        if value:
            fields[name] = value
    if figure.source:
        # A file of a user may cite what is in no bibliography.
        source = references().get(figure.source) or Reference(figure.source, "misc", {})
        fields["source"] = {"key": source.key, "title": source.title, "url": source.url}
        fields["read"] = figure.read.isoformat() if figure.read else None
    return fields


def as_dict(record: Record) -> dict[str, Any]:
    """Return a model, a device, a system or a place as plain data."""
    match record:
        case System():
            kind, own = "system", _system(record)
        case Cluster():
            kind = "cluster"
            own = {
                "node": record.node.key,
                "nodes": record.nodes,
                "devices": record.devices,
                "source": record.source,
                "fabric_bandwidth_one_way": {"value": record.fabric_bandwidth, "unit": "B/s"},
            }
        case DataCentre():
            kind, own = "data center", {"scope": record.scope}
        case Grid():
            kind, own = "grid", {"basis": record.basis, "source": record.source}
        case CloudRegion():
            where = {"provider": record.provider, "place": record.place, "grid": record.grid.key}
            kind, own = "region", where | {"basis": record.basis, "source": record.source}
        case Device():
            names = ("architecture", "vendor", "form")
            kind, own = "device", {name: getattr(record, name) for name in names}
        case _:
            kind = "model"
            own = {
                "architecture": record.architecture,
                "source": record.source,
                "parameters": {"value": record.parameter_count, "unit": "parameter"},
                **(_transformer(record) if isinstance(record, Transformer) else {}),
                **(_network(record) if isinstance(record, Network) else {}),
            }
    figures = {name: figure_as_dict(figure) for name, figure in record.figures.items()}
    return {"kind": kind, "key": record.key, "name": record.name, **own, "figures": figures}


def _system(record: System) -> dict[str, Any]:
    return {
        "device": record.device.key,
        "devices": record.devices,
        "topology": record.topology,
        **({"shape": list(record.shape)} if record.shape else {}),
        "source": record.source,
        "device_bandwidth_one_way": {"value": record.device_bandwidth_si, "unit": "B/s"},
    }


def _network(record: Network) -> dict[str, Any]:
    fields: dict[str, Any] = {"sample": record.sample} if record.sample else {}
    return {
        **fields,
        "inference_flops": {"value": record.flop_count, "unit": "FLOP"},
        "operators": len(record.operators),
    }


def _transformer(record: Transformer) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if record.active_parameter_count < record.parameter_count:
        fields["active_parameters"] = {"value": record.active_parameter_count, "unit": "parameter"}
    fields |= {
        "decoder": record.decoder,
        "layers": record.layers,
        "hidden": record.hidden,
        "vocabulary": record.vocabulary,
        "heads": record.attention.heads,
    }
    if not isinstance(record.attention, LatentAttention):
        fields["kv_heads"] = record.attention.kv_heads
    if record.windowed_layers:
        fields["window"] = {"value": record.window, "unit": "token"}
    if record.attention.chosen:
        fields["chosen"] = {"value": record.attention.chosen, "unit": "token"}
    fields["context"] = {"value": record.context, "unit": "token"}
    if record.decoder:
        fields["cache_bytes_per_token_bf16"] = {"value": _cache(record), "unit": "B/token"}
    if record.state_bytes_per_sequence:
        state = {"value": record.state_bytes_per_sequence, "unit": "B/sample"}
        fields["state_bytes_per_sequence"] = state
    if record.released:
        fields["released"] = str(record.released)
    return fields


def _cache(record: Transformer) -> float:
    return float(record.cache_bytes_per_token("bf16").to("B").magnitude)


def as_text(record: Record) -> str:
    """Write a record for a terminal."""
    lines = [f"{record.name}  ({record.key})"]
    if isinstance(record, Device):
        lines.append(f"  {record.vendor}, {record.architecture}, {record.form}")
    else:
        lines += [f"  {name:<13} {value}" for name, value in _rows(record)]
    width = max((len(name) for name in record.figures), default=0)
    for name, figure in record.figures.items():
        qualifiers = "".join(f", {each}" for each in (figure.sparsity, figure.direction) if each)
        lines.append(f"  {name:<{width}}  {figure.text}{qualifiers}")
        lines.append(f"  {'':<{width}}    {figure.origin()}")
    sources = sorted({figure.source for figure in record.figures.values() if figure.source})
    lines += [f"  [{key}] {reference(key).text()}" for key in sources if key in references()]
    return "\n".join(lines)


def _rows(record: Model | System | Cluster | Place) -> list[tuple[str, str]]:
    match record:
        case System():
            rows = [
                ("devices", f"{record.devices} x {record.device.name} ({record.device.key})"),
                ("topology", f"{record.topology} {' x '.join(map(str, record.shape))}".strip()),
                ("link", f"{text(record.device_bandwidth_si, 'B/s')} from each device, one way"),
            ]
        case Cluster():
            rows = [
                ("nodes", f"up to {record.nodes:,} x {record.node.name} ({record.node.key})"),
                ("devices", f"up to {record.devices:,} x {record.device.name}"),
                ("fabric", f"{text(record.fabric_bandwidth, 'B/s')} from each device, one way"),
            ]
        case DataCentre():
            return [("scope", record.scope)]
        case Grid() | CloudRegion():
            rows = [("basis", f"{record.basis}, location-based")] if record.basis else []
            if isinstance(record, CloudRegion):
                carbon = record.grid.figure("carbon_intensity").text
                where = [("provider", record.provider), ("place", record.place)]
                rows = [*where, ("grid", f"{record.grid.name}: {carbon}"), *rows]
        case _:
            rows = [("architecture", record.architecture)]
            parameters = f"{record.parameter_count:,} (derived from the layers)"
            if isinstance(record, Network):
                work = f"{record.flop_count:,} (derived from the layers)"
                operators = f"{record.architecture}, {len(record.operators)} operators"
                rows = [("architecture", operators), ("parameters", parameters)]
                rows += [("one sample", record.sample)] if record.sample else []
                rows.append(("FLOP/sample", work))
            elif isinstance(record, Transformer):
                rows += [("parameters", parameters), *_transformer_rows(record)]
    # A document is written out; anything else (such as a file on disk) stays as it is.
    source = record.source
    said = reference(source).text() if source in references() else source or "given"
    return [*rows, ("source", said)]


def _transformer_rows(record: Transformer) -> list[tuple[str, str]]:
    rows, attention = [], record.attention
    if record.active_parameter_count < record.parameter_count:
        rows.append(("active", f"{record.active_parameter_count:,} (met by one token)"))
    heads = f"{attention.heads}"
    if isinstance(attention, LatentAttention):
        heads += ", which share one compressed vector"
    elif attention.kv_heads < attention.heads:
        heads += f", with {attention.kv_heads} of keys and values"
    rows += [("layers", f"{record.layers}, of width {record.hidden:,}"), ("heads", heads)]
    if record.windowed_layers:
        rows.append(("window", f"{record.window:,} tokens in {record.windowed_layers} layers"))
    if attention.chosen:
        rows.append(("sparsity", f"a query looks at {attention.chosen:,} tokens, which are chosen"))
    rows.append(("context", f"{record.context:,} tokens"))
    if record.decoder:
        rows.append(("KV cache", f"{_cache(record):,.0f} B/token in bf16"))
    if record.state_bytes_per_sequence:
        rows.append(("states", f"{record.state_bytes_per_sequence:,.0f} B for each sequence"))
    if record.released:
        rows.append(("released in", str(record.released)))
    return rows


# Everything in the zoo: what JSON calls it, and what a list does.
_SECTIONS: dict[str, tuple[str, Namespace]] = {
    "models": ("Models", Models),
    "devices": ("Devices", Hardware),
    "systems": ("Systems", Systems),
    "clusters": ("Clusters", Clusters),
    "grids": ("Grids", Grids),
    "data_centres": ("Data centers", DataCentres),
    "regions": ("Regions", Regions),
}


def all_as_dict() -> dict[str, Any]:
    """Return everything in the zoo as plain data."""
    return {name: [as_dict(each) for each in space] for name, (_, space) in _SECTIONS.items()}


def all_as_text() -> str:
    """List everything in the zoo, a line each."""
    lines = []
    for title, space in _SECTIONS.values():
        lines.append(title)
        key, name = (32, 36) if space in (Grids, DataCentres, Regions) else (24, 32)
        lines += [f"  {each.key:<{key}}{each.name:<{name}}{_line(each)}" for each in space]
    return "\n".join(lines)


def _line(record: Record) -> str:
    """Say of a record in a line what tells it from others."""
    match record:
        case System():
            rate = text(record.device_bandwidth_si, "B/s")
            return f"{record.devices} x {record.device.name}, {record.topology}, {rate} one way"
        case Cluster():
            rate = text(record.fabric_bandwidth, "B/s")
            return f"up to {record.nodes:,} x {record.node.name}, {rate} one way"
        case CloudRegion():
            return f"{record.place}, {record.grid.name}"
        case Grid() | DataCentre():
            names = {"pue": "PUE ", "wue": "WUE "}
            latest = [(each, record.figure(each)) for each in record.quantities]
            return ", ".join(
                f"{names.get(each, '')}{figure.text} ({record.years(each)[-1]})"
                for each, figure in latest
            )
        case Device():
            peaks, bandwidth = record.compute.figures, record.memory.figures["bandwidth"]
            usual = record.compute.usual_precision
            memory = held(record.capacity_si)
            return f"{peaks[usual].text} {usual}, {bandwidth.text}, {memory}"
        case Network():
            work = text(record.flop_count, "FLOP")
            return f"{record.parameter_count:,} parameters, {work}/sample"
        case Transformer():
            met = record.active_parameter_count
            active = f" ({met:,} active)" if met < record.parameter_count else ""
            return f"{record.parameter_count:,} parameters{active}, context {record.context:,}"
    return f"{record.parameter_count:,} parameters"


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}

# A figure's fields, or the plain value of a key that is no figure.
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure or key that was added, removed or changed.

    `old` and `new` are the entry's fields before and after; None where there
    was none.
    """

    record: str
    entry: str
    old: Entry | None
    new: Entry | None

    @property
    def kind(self) -> str:
        """Whether it was added, removed or changed."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that differ, if it was changed."""
        if self.old is None or self.new is None:
            return ()
        names = {**self.old, **self.new}
        return tuple(name for name in names if self.old.get(name) != self.new.get(name))

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as plain data."""
        names = ("record", "entry", "kind", "old", "new")
        return {name: getattr(self, name) for name in names} | {"fields": list(self.fields)}

    def __str__(self) -> str:
        head = f"{_SIGNS[self.kind]} {self.entry}:"
        if self.old is None or self.new is None:
            return f"{head} {_text(self.new or self.old or {})}"
        names, parts = list(self.fields), []
        if {"value", "unit"} & set(names):
            parts.append(f"{_amount(self.old)} -> {_amount(self.new)}")
            names = [name for name in names if name not in ("value", "unit")]
        parts += [
            f"{name} {self.old.get(name, 'none')} -> {self.new.get(name, 'none')}" for name in names
        ]
        return f"{head} {', '.join(parts)}"


def differences(old: str | Path, new: str | Path) -> list[Difference]:
    """List what differs between two folders of data files, by record and entry.

    All data files below a folder count, as those of the package's `data` do. A
    record is identified by its kind and its key, wherever its file lies.

    Raises
    ------
    DataFileError
        If a folder or a file can't be read.
    """
    before, after = _records(Path(old)), _records(Path(new))
    found = []
    for record in sorted(before.keys() | after.keys()):
        first, second = before.get(record, {}), after.get(record, {})
        for entry in dict.fromkeys((*first, *second)):
            was, now = first.get(entry), second.get(entry)
            if was != now:
                found.append(Difference(record, entry, was, now))
    return found


def differences_as_text(found: list[Difference]) -> str:
    """Write differences for a terminal, by record, with a last line that counts them."""
    lines: list[str] = []
    for record, of_record in groupby(found, key=lambda each: each.record):
        lines += [record, *(f"  {each}" for each in of_record)]
    counts = {kind: sum(each.kind == kind for each in found) for kind in _SIGNS}
    said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return "\n".join([*lines, said or "no differences"])


def _records(folder: Path) -> dict[str, dict[str, Entry]]:
    """Read every data file of a folder: its entries by record."""
    paths = sorted(folder.rglob("*.toml"))
    if not paths:
        raise DataFileError(f"{folder}: there are no data files (*.toml) in this folder.")
    found: dict[str, dict[str, Entry]] = {}
    for path in paths:
        data = load(path).data
        # A file without a key, such as one of many grids, is identified by its name.
        # What the folder itself is called doesn't count: it may be a copy.
        place = path.parent.name if path.parent != folder else "data"
        # So is a machine somebody measured: each is called Local.CPU there.
        key = str(data.get("key", path.stem))
        name = f"{_kind(data) or place} {path.stem if key.startswith('Local.') else key}"
        if name in found:
            raise DataFileError(f"{path}:1: there is another file of {name} in {folder}.")
        found[name] = dict(_entries(data, ""))
    return found


def _kind(data: Mapping[str, Any]) -> str:
    """Identify a kind by its keys; empty for what surrounds machines, which goes by its folder."""
    if "device" in data:
        return "system"
    if "compute" in data:
        return "device"
    return "model" if "layers" in data or "transformer" in data else ""


def _entries(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Entry]]:
    """Yield figures whole, and every other key with its value."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and "value" not in value:
            yield from _entries(value, f"{name}.")
        elif isinstance(value, Mapping):
            yield name, value
        elif name == "layers" and isinstance(value, list):
            for number, layer in enumerate(value, start=1):
                fields = layer if isinstance(layer, Mapping) else {"value": layer}
                yield f"layers.{fields.get('name', number)}", fields
        else:
            yield name, {"value": value}


def _amount(entry: Entry) -> str:
    """Write a value with its unit: "2,039 GB/s"."""
    value = entry.get("value")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    unit = entry.get("unit", "")
    # A year is no amount.
    shown = f"{value:,}" if number and unit != "year" else f"{value}"
    return f"{shown} {unit}".strip()


def _text(entry: Entry) -> str:
    """Write a whole entry: its amount and source, or all its fields."""
    if "value" not in entry:
        fields = [f"{name} {value}" for name, value in entry.items() if name != "name"]
        return ", ".join(fields) or "nothing"
    source = f" [{entry['source']}]" if "source" in entry else ""
    return f"{_amount(entry)}{source}"
