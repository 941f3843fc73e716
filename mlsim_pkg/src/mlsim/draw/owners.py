"""From the watts of a chip to carbon: what is multiplied, and who decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.draw.canvas import ACCENT, DEEP, HEAD, QUIET, WIDTH, Canvas, Drawing

if TYPE_CHECKING:
    from mlsim.solvers.footprint.footprint import Footprint

# Who decides a step, what they decide, and the result that follows.
_STEPS = (
    ("Who runs the model", "power and hours", "device_energy"),
    ("Who builds servers", "processors and fans", "it_energy"),
    ("Data center", "cooling: PUE", "facility_energy"),
    ("Grid", "carbon of a kWh", "operational_carbon"),
)


def carbon(footprint: Footprint) -> Drawing:
    """Draw the way from watt to carbon: each step, its result, and who decides it.

    Of a footprint that is a range, the upper end is drawn.

    Parameters
    ----------
    footprint
        An answer of `Engine.footprint`.

    >>> from mlsim import Engine
    >>> account = Engine.footprint(hardware="HGX_A100", device_hours=8, grid="Germany", pue=1.2)
    >>> print(carbon(account).alt.partition(". ")[0])
    Four steps from watt to carbon, at most
    """
    end = footprint.high
    sheet = Canvas("From watt to carbon")
    told = ["Four steps from watt to carbon, at most."]
    energies = [float(end.value(name)) for *_, name in _STEPS[:3]]
    left, top = 158.0, 0.0
    for place, (owner, what, name) in enumerate(_STEPS):
        written = sheet.fact(owner, name.replace("_", " "), end.by_name(name))
        sheet.text(0, top + 9, owner, bold=True)
        sheet.text(0, top + 25, what, color=QUIET)
        if place < 3:
            wide = (WIDTH - left - 80) * energies[place] / energies[2]
            sheet.rect(left, top + 3, wide, 24, fill=ACCENT, radius=1)
            sheet.text(left + wide + 8, top + 15, written)
        else:
            sheet.rect(left, top, WIDTH - left, 30, fill=DEEP)
            sheet.text((left + WIDTH) / 2, top + 15, written, "middle", bold=True, size=HEAD,
                       ground=DEEP)  # fmt: skip
        told.append(f"{owner} ({what}): {written}.")
        top += 48
    told.append("Bars are as long as the energy.")
    return sheet.finish(" ".join(told), height=top - 14)
