"""What a figure's alternative text claims holds of the numbers that the figure shows.

Each sentence of it stands in `fixtures/texts/alternative_texts.txt`, with what must then hold of
the data below the figure on its page, in the terms that are defined here; one that only says what
is drawn, or what is not among these data, stands alone. So no text changes without its check, and
no number without the text. Figures of what this machine measured are left out, drawings that have
no data, and those of `mlsim.draw`, which say themselves what they show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

import pandas as pd
from kept import text
from selectolax.lexbor import LexborHTMLParser

from mlsim import Hardware, Models, anatomy

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
Data = pd.DataFrame


def col(d: Data, name: str, **where: str) -> pd.Series:
    """Return the column whose name has these words, of rows whose others have those."""
    for key, words in where.items():
        d = d[d[key].astype(str).str.contains(words, regex=False)]
    (found,) = (each for each in d.columns if name in each)
    return d[found].dropna()


def near(value: float, wanted: float, by: float = 0.1) -> bool:
    return abs(value / wanted - 1) <= by


def rises(values: Sequence[float]) -> bool:
    return pd.Series(list(values)).is_monotonic_increasing


def by(d: Data, key: str, value: str) -> pd.Series:
    """Return a column by the words of another."""
    return pd.Series(col(d, value).to_numpy(), index=col(d, key))


def parts(values: pd.Series, low: float, high: float) -> float:
    return float(values.between(low, high).mean())


def ratios(d: Data, **where: str) -> pd.Series:
    found = d[[all(v in str(row[k]) for k, v in where.items()) for _, row in d.iterrows()]]
    measured = found.filter(like="Measured").bfill(axis=1).iloc[:, 0]
    return found.filter(like="Predicted").bfill(axis=1).iloc[:, 0] / measured


def spread(d: Data) -> bool:
    found = [ratios(d, Kind=kind) for kind in d["Kind"].unique()]
    return all(parts(r, 0.75, 1.25) > 0.5 and r.min() < 1 < r.max() for r in found)


def estimates(d: Data) -> bool:
    names = ("bound", "roofline", "calibrated")
    found = [[ratios(d, Panel=panel, Estimate=each).median() for each in names]
             for panel in d["Panel"].unique()]  # fmt: skip
    return all(bound > roof > own and near(own, 1) for bound, roof, own in found)


def length(d: Data, layer: str) -> float:
    return float(by(d, "Layer", "inputs")[layer] + by(d, "Layer", "weights")[layer]
                 + by(d, "Layer", "outputs")[layer])  # fmt: skip


def weights(d: Data, layer: str) -> float:
    return float(by(d, "Layer", "weights")[layer]) / length(d, layer)


def total(d: Data) -> pd.Series:
    return d.select_dtypes("number").sum(axis=1)


def intensity(kind: str, batch: int, *models: object) -> pd.Series:
    found = [row for model in models for row in anatomy(model, batch_size=batch).operators]
    return pd.Series([row["intensity"] for row in found if row["kind"] == kind])


def rate(d: Data, series: str) -> pd.Series:
    """Return pictures per second by batch."""
    rows = d[d["Series"].str.contains(series, regex=False)]
    return pd.Series(rows.iloc[:, 2].to_numpy(), index=rows["Batch size"].astype(int))


def reached(d: Data, copies: str, time: float) -> float:
    """Return the best rate of a size of copies within a time per token."""
    rows = d[d["Series"].str.startswith(copies) & (d["Time per token (ms)"] <= time)]
    return float(rows["Requests/s for each GPU"].max())


def slope(d: Data) -> float:
    rate, time = d.iloc[:, 2], d.iloc[:, 1]
    return float((rate.iloc[-1] - rate.iloc[0]) / (time.iloc[-1] - time.iloc[0]))


def lines(d: Data) -> list[pd.Series]:
    """Return the columns of all panels, each without those of the others."""
    return [d[name].dropna() for name in d.columns[2:]]


def slowest(d: Data) -> pd.Series:
    """Return the slowest one of a hundred over the others: 18 of the left panel, 18 of the right."""
    found = lines(d)
    over = [
        high.reset_index(drop=True) / each.reset_index(drop=True)
        for high, others in ((found[2], found[:2]), (found[5], found[3:5]))
        for each in others
    ]
    return pd.Series([part for at in (0, 2) for part in [*over[at], *over[at + 1]]])


def line(d: Data) -> pd.Series:
    """Return the least side from which on a format is faster, by rows."""
    return d[d["Predicted"] >= 1].groupby("Rows")["N = K"].min()


def dots_agree(d: Data) -> bool:
    """Measured gains lie above the line and losses below, but for a tenth, near it."""
    limit, dots = line(d), d.dropna(subset="Measured")
    sides = [side / limit.iloc[abs(limit.index - rows).argmin()]
             for rows, side in zip(dots["Rows"], dots["N = K"], strict=True)]  # fmt: skip
    odd = pd.Series(sides)[(dots["Measured"] > 1).to_numpy() != (pd.Series(sides) >= 1).to_numpy()]
    return len(odd) < len(dots) / 10 and bool(odd.between(0.3, 2).all())


def stairs(d: Data) -> bool:
    time = by(d, "Rows", "Measured")
    flat, second = time.loc[:128], time.loc[129:256]
    return (
        flat.max() / flat.min() < 1.2 and near(time[129] / flat.median(), 1.5)
        and second.max() / second.min() < 1.1 and time[257] / time[256] > 1.3
    )  # fmt: skip


def ramp(d: Data) -> bool:
    roof = by(d, "Rows", "roofline")
    first, second = (roof[b] - roof[a] for a, b in ((512, 768), (768, 1024)))
    below = (d["roofline (us)"] < d["Measured (us)"]).all()
    return near(roof[128], roof[1], 0.03) and near(first, second, 0.03) and bool(below)


def bits(d: Data, count: int) -> list[str]:
    return list(d["Format"][d[["sign", "exponent", "mantissa"]].sum(axis=1) == count])


def in_panel(d: Data, name: str) -> list[list[str]]:
    """Return the words of the cells of a systolic array in a panel, row by row."""
    rows = d[d["Panel"].str.startswith(name)]
    return rows.filter(like="Column").fillna("").to_numpy().tolist()


def blue(d: Data, name: str) -> list[tuple[int, int]]:
    """Return row and column of the cells that compute in a panel."""
    cells = in_panel(d, name)
    return [(i + 1, j + 1) for i in range(3) for j in range(3) if " " in cells[i][j]]


def grid(letter: str) -> list[list[str]]:
    return [[f"{letter}{i}{j}" for j in (1, 2, 3)] for i in (1, 2, 3)]


def yearly(d: Data, name: str, first: int, last: int) -> float:
    found = d[d["Year"].between(first, last)].dropna(subset=name)
    years = found["Year"].iloc[-1] - found["Year"].iloc[0]
    return float((found[name].iloc[-1] / found[name].iloc[0]) ** (1 / years))


def until(d: Data, year: float) -> tuple[pd.Series, pd.Series]:
    """Return the last column before a year, and from it on."""
    return d[d["Year"] < year].iloc[:, -1], d[d["Year"] >= year].iloc[:, -1]


def distance(d: Data, delay: int) -> pd.Series:
    rows = d[(d["Panel"] == "Descent") & (d["Updates old"] == delay)]
    return rows["Distance"].reset_index(drop=True)


GPUS = ("P100", "V100", "A100", "H100", "B200")


def peaks(d: Data, gpu: str) -> pd.Series:
    return by(d[d["Device"].str.contains(gpu)], "Format", "Dense peak")


def later_above(d: Data) -> bool:
    found = [peaks(d, each) for each in GPUS]
    pairs = pairwise(found)
    above = all(new[each] > old[each] for old, new in pairs for each in old.index if each in new)
    return above and [f.index[-1] for f in found] == ["fp16"] * 3 + ["fp8", "fp4"]


def panel(d: Data, name: str) -> tuple[pd.Series, Data, pd.Series]:
    """Return the ridge of a roofline, its operators, and the mark of the network."""
    rows = d[d["Panel"] == name].set_index("Point").iloc[:, -2:].set_axis(["x", "y"], axis=1)
    of_ridge = rows.index.str.startswith("ridge")
    operators = rows.index.str.contains(": ")
    return rows[of_ridge].iloc[0], rows[operators], rows[~of_ridge & ~operators].iloc[0]


def of_roof(d: Data, name: str) -> float:
    top, _, mark = panel(d, name)
    return float(mark.y / min(top.y, top.y / top.x * mark.x))


def ends(d: Data, first: Sequence[str], last: Sequence[str]) -> bool:
    names, values = d.iloc[:, 0], d.iloc[:, 1]
    sides = list(names[: len(first)]), list(names[-len(last) :])
    return rises(values) and sides == (list(first), list(last))


def hours(d: Data, name: str) -> pd.Series:
    return col(d, name)[:24]


def efficiency(d: Data, estimate: str, name: str) -> pd.Series:
    return col(d, "Measured speed", Series=estimate, Name=name)


def idle(d: Data, stage: int) -> list[tuple[float, float]]:
    """Return when a stage of the pipeline waits, from the beginning of all to their end."""
    spans = d[d["Stage"] == stage].sort_values("Start")
    starts, stops = [*spans["Start"], d["End"].max()], [0, *spans["End"]]
    return [(a, b) for a, b in zip(stops, starts, strict=True) if b > a]


def passes(d: Data, which: str) -> set[float]:
    rows = d[d["Pass"] == which]
    return set(rows["End"] - rows["Start"])


def of_makers(d: Data, value: str, lowest: int = 0, highest: int = 0) -> str:
    found = d.dropna(subset=value).sort_values(value)
    return " ".join((found[:lowest] if lowest else found[-highest:])["Device"])


def ridges(d: Data, words: str, *years: int) -> pd.Series:
    rows = d[d["Device"].str.contains(words) & (d["Year"].isin(years) if years else True)]
    return rows["Ridge point (FLOP/byte)"].dropna()


def figures(site: Path) -> Iterator[tuple[str, str, Data]]:
    """Yield page, alternative text and data of each figure that has data and wasn't timed here."""
    for page in sorted(site.rglob("*.html")):
        tree = LexborHTMLParser(page.read_text("utf-8"))
        timed = {each.attributes.get("src") for each in tree.css(".measured img")}
        for image in tree.css("main img.figure-img:not(.dark-content)"):
            source = image.attributes.get("src") or ""
            data = (page.parent / source).with_suffix(".csv")
            alt = image.attributes.get("alt") or ""
            if source in timed or not data.is_file():
                continue
            if f"<desc>{escape(alt)}</desc>" not in (page.parent / source).read_text("utf-8"):
                yield page.relative_to(site).as_posix(), alt, pd.read_csv(data)


TERMS = {**globals(), "Hardware": Hardware, "Models": Models}


def claims() -> dict[str, str]:
    """Return what each sentence claims, as an expression; it is empty where nothing is checked."""
    blocks = [block.splitlines() for block in text("alternative_texts.txt").strip().split("\n\n")]
    return {
        first: " ".join(line.strip() for line in lines)
        for first, *lines in blocks
        if not first.startswith("#")
    }


def test_each_sentence_holds_of_its_figure_and_no_check_is_left_over(built_book: Path) -> None:
    wanted, met, wrong = claims(), set(), []
    for page, told, data in figures(built_book):
        for sentence in (" ".join(each.split()) for each in SENTENCE.split(told)):
            met.add(sentence)
            if sentence not in wanted:
                wrong.append(f"{page}: nothing checks: {sentence}")
                continue
            try:
                holds = not wanted[sentence] or eval(wanted[sentence], TERMS | {"d": data})
            except Exception as error:  # noqa: BLE001 - a check may be written wrong in any way
                holds = False
                wrong.append(f"{error!r}; the columns of d are {list(data.columns)}")
            if not holds:
                wrong.append(f"{page}: does not hold: {sentence}")
    assert wrong == [], "the checks stand in tests/fixtures/texts/alternative_texts.txt"
    assert wanted.keys() - met == set(), "no figure says these any more"
    assert len(met) > 150
