"""The zoo as text and as plain data: every figure with its source."""

from __future__ import annotations

from typing import Any

from mlsim.errors import UnknownNameError, unknown_name
from mlsim.hardware import Device
from mlsim.records import Figure
from mlsim.references import reference
from mlsim.units import text
from mlsim.workloads import Model
from mlsim.zoo import Hardware, Models


def find(name: str) -> Model | Device:
    """Return the model or device of a name.

    Raises
    ------
    UnknownNameError
        If there is neither; suggests the nearest of both.
    """
    for space in (Models, Hardware):
        try:
            found: Model | Device = space.find(name)
        except UnknownNameError:
            continue
        return found
    names = [key.rpartition(".")[2] for key in (*Models.keys(), *Hardware.keys())]
    raise unknown_name("model or device", name, names)


def figure_as_dict(figure: Figure) -> dict[str, Any]:
    """Return a figure with its unit and origin as plain data."""
    fields: dict[str, Any] = {"value": figure.value, "unit": figure.unit, "kind": figure.kind}
    for name in ("sparsity", "unit_used", "direction", "per", "where", "quote", "note"):
        value = getattr(figure, name)
        if value:
            fields[name] = value
    if figure.source:
        source = reference(figure.source)
        fields["source"] = {"key": source.key, "title": source.title, "url": source.url}
        fields["read"] = figure.read.isoformat() if figure.read else None
    return fields


def as_dict(record: Model | Device) -> dict[str, Any]:
    """Return a model or a device as plain data."""
    figures = {name: figure_as_dict(figure) for name, figure in record.figures.items()}
    common = {"key": record.key, "name": record.name, "architecture": record.architecture}
    if isinstance(record, Device):
        return {
            "kind": "device",
            **common,
            "vendor": record.vendor,
            "form": record.form,
            "figures": figures,
        }
    return {
        "kind": "model",
        **common,
        "source": record.source,
        "parameters": {"value": record.parameter_count, "unit": "parameter"},
        "inference_flops": {"value": record.flop_count, "unit": "FLOP"},
        "operators": len(record.operators),
        "figures": figures,
    }


def as_text(record: Model | Device) -> str:
    """Write a record for a terminal."""
    lines = [f"{record.name}  ({record.key})"]
    if isinstance(record, Model):
        source = reference(record.source)
        lines += [
            f"  architecture  {record.architecture}, {len(record.operators)} operators",
            f"  parameters    {record.parameter_count:,} (derived from the layers)",
            f"  FLOP/sample   {record.flop_count:,} (derived from the layers)",
            f"  source        {source.text()}",
        ]
    else:
        lines.append(f"  {record.vendor}, {record.architecture}, {record.form}")
    width = max((len(name) for name in record.figures), default=0)
    for name, figure in record.figures.items():
        qualifier = f", {figure.sparsity}" if figure.sparsity else ""
        lines.append(f"  {name:<{width}}  {figure.text}{qualifier}")
        lines.append(f"  {'':<{width}}    {figure.origin()}")
    sources = sorted({figure.source for figure in record.figures.values() if figure.source})
    lines += [f"  [{key}] {reference(key).text()}" for key in sources]
    return "\n".join(lines)


def all_as_dict() -> dict[str, Any]:
    """Return every model and device as plain data."""
    return {
        "models": [as_dict(model) for model in Models],
        "devices": [as_dict(device) for device in Hardware],
    }


def all_as_text() -> str:
    """List every model and device, a line each."""
    lines = ["Models"]
    lines += [
        f"  {model.key:<22}{model.name:<26}{model.parameter_count:,} parameters, "
        f"{text(model.flop_count, 'FLOP')}/sample"
        for model in Models
    ]
    lines.append("Devices")
    for device in Hardware:
        bandwidth, capacity = (device.memory.figures[name] for name in ("bandwidth", "capacity"))
        peaks = device.compute.figures
        name, peak = next(iter(peaks.items()))
        for preferred in ("fp16", "fp32"):
            if preferred in peaks:
                name, peak = preferred, peaks[preferred]
                break
        lines.append(
            f"  {device.key:<22}{device.name:<26}{peak.text} {name}, "
            f"{bandwidth.text}, {capacity.text}"
        )
    return "\n".join(lines)
