"""Figures of number formats: their bits, the peaks of devices, and where a format pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.measured.surfaces import MeasuredProduct
from mlsim.plots.drawing import COLOURS, attach, axes_for, legend_above, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Bits of sign, exponent and mantissa; of numbers that share a scale, how many, and its bits.
BITS: Mapping[str, tuple[tuple[int, int, int], tuple[int, int]]] = {
    "FP32": ((1, 8, 23), (0, 0)),
    "BF16": ((1, 8, 7), (0, 0)),
    "FP16": ((1, 5, 10), (0, 0)),
    "FP8 E4M3": ((1, 4, 3), (0, 0)),
    "FP8 E5M2": ((1, 5, 2), (0, 0)),
    "MXFP8": ((1, 4, 3), (32, 8)),
    "MXFP4": ((1, 2, 1), (32, 8)),
    "NVFP4": ((1, 2, 1), (16, 8)),
    "INT8": ((1, 0, 7), (0, 0)),
}
_PARTS = ("sign", "exponent", "mantissa")

# Of a map: times as fast, and the shades between, blue where a format loses.
_LEVELS = (0.0, 0.5, 0.8, 1.0, 1.25, 1.6, 2.0, 4.0)
_SHADES = ("#4a6a96", "#7390b8", "#9db3cf", "#e8b98a", "#df9550", "#cc7128", "#a8541a")


def plot_bits() -> tuple[Figure, Axes]:
    """Draw what the bits of a number stand for, format by format, and what shares a scale.

    >>> plot_bits()[1].get_xlabel()
    'Bits of one number'
    """
    ax = axes_for(None, 3.7, 3.0)
    rows: list[dict[str, str | float]] = []
    for place, (name, (parts, (block, scale))) in enumerate(BITS.items()):
        left = 0
        for part, bits, colour in zip(_PARTS, parts, COLOURS, strict=False):
            label = part if not place else None
            ax.barh(place, bits, left=left, color=colour, label=label, height=0.7)
            left += bits
        shared = f"+ {scale} for {block}" if block else ""
        ax.text(left + 0.4, place, shared, va="center", fontsize=8)
        rows.append(
            {"Format": name, **dict(zip(_PARTS, parts, strict=True)), "share a scale": block}
        )
    ax.set_yticks(range(len(BITS)), list(BITS))
    ax.invert_yaxis()
    ax.set(xlabel="Bits of one number", xlim=(0, 33))
    ax.legend(loc="lower right", frameon=False, fontsize=8)
    return attach(ax, rows)


def plot_stairs(
    rows: Sequence[MeasuredProduct], predicted: Mapping[str, Sequence[float]], *, at: Sequence[int]
) -> tuple[Figure, Axes]:
    """Draw measured times of one product with ever more rows, and predictions beside them.

    Parameters
    ----------
    rows
        Measured, of one N and K.
    predicted
        Times in s by the name of an estimate, each at the rows of `at`.

    >>> from mlsim.measured import measured_stairs
    >>> rows = [row for row in measured_stairs() if row.outputs == 7168]
    >>> plot_stairs(rows, {}, at=[])[1].get_ylabel()
    'Time (µs)'
    """
    ax = axes_for(None, 3.7, 2.9)
    for (name, times), style in zip(predicted.items(), ("-", "--", ":"), strict=False):
        ax.plot(at, [time * 1e6 for time in times], style, label=name)
    across, up = [row.rows for row in rows], [row.seconds["bf16"] * 1e6 for row in rows]
    ax.plot(across, up, "o", markersize=3.5, color=COLOURS[3], label="measured")
    ax.set(xlabel="Rows M", ylabel="Time (µs)", ylim=(0, None))
    ax.legend(frameon=False, fontsize=8)
    shown = []
    for m, time in zip(across, up, strict=True):
        place = list(at).index(m) if m in at else None  # there may be no prediction
        beside = {} if place is None else {name: row[place] for name, row in predicted.items()}
        known = {f"{name} (us)": round(each * 1e6, 1) for name, each in beside.items()}
        shown.append({"Rows": m, "Measured (us)": round(time, 1), **known})
    return attach(ax, shown)


def plot_format_map(
    rows: Sequence[int],
    sizes: Sequence[int],
    speedup: Any,
    *,
    measured: Sequence[MeasuredProduct] = (),
    name: str = "",
    layers: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[Figure, Axes]:
    """Draw over rows and the side of square weights how many times as fast a format is.

    Parameters
    ----------
    rows, sizes
        M, and N = K.
    speedup
        Of shape (sizes, rows).
    measured
        Points: filled where the format was faster, empty where it was not.
    name
        The format that the points are of.
    layers
        Rows and side of layers to mark, by their names.

    >>> plot_format_map([1, 2], [128, 256], [[0.5, 1.0], [1.0, 1.5]])[1].get_xlabel()
    'Rows M'
    """
    ax = axes_for(None, 3.7, 3.3)
    filled = ax.contourf(rows, sizes, speedup, levels=_LEVELS, colors=_SHADES)
    ax.contour(rows, sizes, speedup, levels=[1.0], colors="#1f2730", linewidths=2)
    for each in measured:
        faster = each.speedup(name) > 1
        face = "#1f2730" if faster else "white"
        ax.plot(each.rows, each.outputs, "o", ms=3.6, mfc=face, mec="#1f2730", mew=0.7)
    for said, (m, side) in (layers or {}).items():
        ax.plot(m, side, "*", ms=9, mfc="#1f2730", mec="#1f2730")
        note(ax, said, (m, side), (6, -3), fontsize=8, color="#1f2730")
    ax.set(xlabel="Rows M", ylabel="Weights N = K")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.margins(0.03)
    ax.figure.colorbar(filled, ax=ax, label="Times as fast as BF16", format="%g")
    data: list[dict[str, str | float]] = [
        {"Rows": m, "N = K": side, "Predicted": round(float(speedup[y][x]), 3)}
        for y, side in enumerate(sizes)
        for x, m in enumerate(rows)
    ]
    data += [
        {"Rows": each.rows, "N = K": each.outputs, "Measured": round(each.speedup(name), 3)}
        for each in measured
    ]
    return attach(ax, data)


# Widest first.
FORMATS = ("fp64", "fp32", "tf32", "fp16", "fp8", "fp4")


def plot_formats(devices: Sequence[Device], *, ax: Axes | None = None) -> tuple[Figure, Axes]:
    """Draw the dense peak of devices by number format, from the widest to the narrowest.

    Raises
    ------
    InvalidValueError
        If there is no device, or there are more than marks.

    >>> from mlsim import Hardware
    >>> plot_formats([Hardware.Cloud.A100])[1].get_ylabel()
    'Dense peak (TFLOP/s)'
    """
    marks = "osD^vPX"
    if not 1 <= len(devices) <= len(marks):
        raise InvalidValueError(f"give one to {len(marks)} devices, not {len(devices)}.")
    ax = axes_for(ax, 3.7, 3.6)
    rows: list[dict[str, str | float]] = []
    for device, mark in zip(devices, marks, strict=False):
        known = [name for name in FORMATS if name in device.compute.precisions]
        peaks = [device.compute.figure(name).si / 1e12 for name in known]
        ax.plot([FORMATS.index(name) for name in known], peaks, marker=mark, label=device.name)
        rows += [
            {"Device": device.name, "Format": name, "Dense peak (TFLOP/s)": peak}
            for name, peak in zip(known, peaks, strict=True)
        ]
    ax.set(yscale="log", ylabel="Dense peak (TFLOP/s)", xlabel="Number format")
    ax.set_xticks(range(len(FORMATS)), [name.upper() for name in FORMATS])
    legend_above(ax, fontsize=7)
    return attach(ax, rows)
