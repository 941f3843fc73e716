"""The roof itself: slope, flat and ridge, for figures of predicted and of measured points."""

from __future__ import annotations

from typing import Any

from mlsim.equations import roofline
from mlsim.errors import need
from mlsim.hardware import Device
from mlsim.units import scale_for, text

# Okabe and Ito's colors, which people with any color vision can distinguish; the
# markers differ too, so a print in gray can be read.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
# Inches. Text of 10 points in so narrow a figure can still be read on a phone.
SIZE = (5.2, 3.9)
X_LABEL, Y_LABEL = "Arithmetic intensity (FLOP/byte)", "Rate (TFLOP/s)"


def draw_roof(ax: Any, device: Device, peak: float, intensities: list[float]) -> None:
    """Draw slope, flat and ridge, three decades about the ridge or as points need."""
    ticker = need("matplotlib.ticker", "a figure", "plots")
    bandwidth = device.bandwidth_si
    ridge = roofline.ridge_point(peak, bandwidth)
    low = min([ridge / 300, *(each / 3 for each in intensities)])
    high = max([ridge * 10, *(each * 3 for each in intensities)])
    roof = [roofline.attainable_flops(each, bandwidth, peak) / 1e12 for each in (low, ridge, high)]
    ax.plot([low, ridge, high], roof, color="#555555", linewidth=2, zorder=1)
    # Room above the roof for the legend and the name of the peak.
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(roof[0], 6 * roof[-1]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel(X_LABEL)
    ax.set_ylabel(Y_LABEL)
    ax.axvline(ridge, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    peak_scale, peak_unit = scale_for(peak, "FLOP/s")
    ax.annotate(
        f"peak {peak / peak_scale:g} {peak_unit}",
        (ridge, roof[-1]),
        xytext=(4, 9),
        textcoords="offset points",
    )
    ax.annotate(
        f"ridge {ridge:.0f} FLOP/byte",
        (ridge, roof[0]),
        xytext=(5, 6),
        textcoords="offset points",
        color="#555555",
    )
    left = low * 4
    ax.annotate(
        text(bandwidth, "B/s"),
        (left, roofline.attainable_flops(left, bandwidth, peak) / 1e12),
        xytext=(8, -4),
        textcoords="offset points",
        va="top",
    )


def draw_ceilings(ax: Any, ceilings: dict[str, float], bandwidth: float) -> None:
    """Draw ceilings below the flat, each from where the slope meets it, with its name."""
    _, high = ax.get_xlim()
    for name, rate in ceilings.items():
        left = roofline.ridge_point(rate, bandwidth)
        ax.plot([left, high], [rate / 1e12] * 2, color="#777777", linewidth=1, linestyle="--")
        ax.annotate(
            name,
            (high, rate / 1e12),
            xytext=(-3, 2),
            textcoords="offset points",
            ha="right",
            fontsize="small",
            color="#555555",
        )
    low, top = ax.get_ylim()
    ax.set_ylim(min([low, *(rate / 2e12 for rate in ceilings.values())]), top)
