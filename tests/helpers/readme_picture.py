"""The picture of the README: published results, predicted against measured. Run it to draw anew."""

from __future__ import annotations

import math
from pathlib import Path

from mlsim.engine import KINDS, score, shelf
from mlsim.engine.accuracy import CLOSE, Scored
from mlsim.plots import COLOURS

FILE = Path(__file__).parents[2] / "README.svg"
SIDE, LEFT, TOP = 340, 84, 20  # of the square that holds the marks, in pixels
LEAST = 0.002  # of the bound: the lower left corner
# One mark for each kind, around the point to which the pen was moved.
SHAPES = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    "m-3-3h6v6h-6z",
    "m0-4l4 7h-8z",
    "m0-4l4 4l-4 4l-4-4z",
)
WORDS = ("Image networks", "Prompts and encoders", "Generating tokens", "Training")
STYLE = """text{font:14px system-ui,sans-serif;fill:#333}line,rect{stroke:#888;fill:none}
@media(prefers-color-scheme:dark){text{fill:#ddd}}"""


def _at(share: float) -> float:
    """Return how far a share of the bound lies from the corner."""
    return SIDE * (1 - math.log(share) / math.log(LEAST))


def _marks(rows: tuple[Scored, ...], shape: str) -> str:
    found = (
        (LEFT + _at(row.measured / row.bound), TOP + SIDE - _at(row.best / row.bound))
        for row in rows
    )
    return "".join(f"M{x:.1f} {y:.1f}{shape}" for x, y in found)


def picture() -> str:
    """Return the picture as SVG, with all its numbers computed."""
    every = [row for kind in KINDS for row in shelf(kind)]
    scored = score(every)
    assert scored
    over, under = (
        SIDE * math.log(off) / math.log(1 / LEAST) for off in (1 + CLOSE, 1 / (1 - CLOSE))
    )
    right, bottom = LEFT + SIDE, TOP + SIDE
    gray = (
        f'<path d="M{LEFT} {bottom - over:.1f}L{right - over:.1f} {TOP}H{right}v{under:.1f}'
        f'L{LEFT + under:.1f} {bottom}H{LEFT}z" fill="#888" opacity=".2"/>'
    )
    drawn = [
        gray,
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"/>',
        f'<line x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{TOP}"/>',
    ]
    for share in (0.01, 0.1, 1):
        at = _at(share)
        drawn.append(
            f'<text x="{LEFT + at:.0f}" y="{bottom + 18}" text-anchor="middle">{share * 100:.0f} %</text>'
            f'<text x="{LEFT - 6}" y="{bottom - at + 5:.0f}" text-anchor="end">{share * 100:.0f} %</text>'
        )
    for row, (kind, shape) in enumerate(zip(KINDS, SHAPES, strict=True)):
        color, x, y = COLOURS[row], right + 24, TOP + 20 + 26 * row
        drawn.append(
            f'<path d="{_marks(shelf(kind), shape)}M{x} {y - 5}{shape}" fill="{color}"'
            f' opacity=".75"/><text x="{x + 12}" y="{y}">{WORDS[row]}</text>'
        )
    said = (
        f"{len(every)} published results",
        f"median error {scored.error}",
        f"{scored.close} within a quarter",
    )
    for row, words in enumerate(said):
        drawn.append(f'<text x="{right + 20}" y="{TOP + 160 + 22 * row}">{words}</text>')
    middle = TOP + SIDE / 2
    drawn.append(
        f'<text x="{LEFT + SIDE / 2:.0f}" y="{bottom + 42}" text-anchor="middle">'
        "Measured speed, as a share of the physical limit</text>"
        f'<text transform="translate(24 {middle:.0f})rotate(-90)" text-anchor="middle">'
        "Predicted speed, as a share of it</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {bottom + 54}" width="640">'
        f"<title>Predicted against measured speed</title><style>{STYLE}</style>\n"
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
