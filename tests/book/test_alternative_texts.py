"""What a figure's alternative text claims holds of the numbers that the figure shows.

Each sentence of it is a key of `CLAIMS`, with a check on the data that stand below the figure on
its page, or a line of `fixtures/drawn_only.txt` where it only says what is drawn or what is not
among these data. So no text changes without its check, and no number without the text. Figures
of what this machine measured are left out, and drawings that have no data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from selectolax.lexbor import LexborHTMLParser

from mlsim import Engine, Hardware, Models, anatomy

DRAWN = (
    (Path(__file__).parents[1] / "fixtures" / "drawn_only.txt").read_text("utf-8").splitlines()[1:]
)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
Data = pd.DataFrame
Check = Callable[[Data], object]


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


def ridge(device: object) -> float:
    return float(device.ridge_point("fp32").magnitude)


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


def tail(d: Data, panel: int) -> pd.Series:
    rows = d[d["Panel"] == panel]
    names = ("one of a hundred", "simulated, mean")
    high, mean = (rows[rows["Series"] == each].iloc[:, 3:].sum(axis=1).to_numpy() for each in names)
    return pd.Series(high / mean)


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


def at_cycle(d: Data, cycle: int) -> list[list[str]]:
    """Return the words of the cells of a systolic array in a cycle, row by row."""
    return d[d["Cycle"] == cycle].filter(like="Column").fillna("").to_numpy().tolist()


def blue(d: Data, cycle: int) -> list[tuple[int, int]]:
    """Return row and column of the cells that compute in a cycle."""
    cells = at_cycle(d, cycle)
    return [(i + 1, j + 1) for i in range(3) for j in range(3) if " " in cells[i][j]]


def grid(letter: str, *, across: bool = False) -> list[list[str]]:
    return [[f"{letter}{j}{i}" if across else f"{letter}{i}{j}" for j in (1, 2, 3)]
            for i in (1, 2, 3)]  # fmt: skip


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


def computes(d: Data) -> list[tuple[float, float]]:
    rows = d[d["Who"] == "device"]
    return list(zip(rows["Start (s)"], rows["End (s)"], strict=True))


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


def usable() -> float:
    served = Engine.serve(model="Llama3_8B", hardware="H100", prompt_tokens=1792, output_tokens=512)
    return served.value("usable_memory") / 1e9


def order(names: pd.Series, *wanted: str) -> bool:
    return rises([list(names).index(each) for each in wanted])


def ends(d: Data, first: Sequence[str], last: Sequence[str]) -> bool:
    names, values = d.iloc[:, 0], d.iloc[:, 1]
    sides = list(names[: len(first)]), list(names[-len(last) :])
    return rises(values) and sides == (list(first), list(last))


def place(d: Data, name: str) -> float:
    return list(d["Name"]).index(name) / len(d)


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


CLAIMS: dict[str, Check] = {
    # accuracy, index
    "More than half of the marks of each kind lie within a quarter of the diagonal, and each kind "
    "has some above it and some below.": spread,
    "Four panels of predicted against measured rates on logarithmic axes.":
        lambda d: d["Panel"].nunique() == 4,
    "In each panel the hollow triangles of the bound lie highest, the hollow squares of the "
    "roofline below them and the filled circles of the calibrated estimate closest to the "
    "diagonal.": estimates,
    # math, projects, teaching
    "Two rooflines on logarithmic axes.": lambda d: d["Panel"].nunique() == 2,
    "Two rooflines side by side on logarithmic axes.": lambda d: d["Panel"].nunique() == 2,
    "Products of ViT-B/16 lie at high intensity, some below the flat roof.":
        lambda d: parts(col(d, "Intensity", Series="ViT_B16"), 300, 1e9) > 0.9,
    "Those of ResNet-50 lie further left and far below the slope, on both machines.": lambda d:
        col(d, "Intensity", Series="ResNet50").max() < col(d, "Intensity", Series="ViT").median(),
    "A roofline on logarithmic axes: a slope that ends in a flat roof, with one mark for ResNet-50.":
        lambda d: len(d) == 2,
    "Rates on logarithmic axes against M from 1 to 8,192, for A100, H100 and B200.":
        lambda d: (d["Rows M"].min(), d["Rows M"].max(), d.shape[1]) == (1, 8192, 4),
    "The marks of all three rise in proportion to M at first and flatten beyond a few hundred.":
        lambda d: all(near(d[each][4] / d[each][0], 16, 0.2) and d[each][13] / d[each][9] < 2
                      for each in d.columns[1:]),
    "Everywhere they lie below the line of the same device.": lambda d: all(
        col(d, each).max() < getattr(Hardware.Cloud, each).compute.figure("fp16").si / 1e12
        for each in ("A100", "H100", "B200")),
    # anatomy
    "The first convolution, its ReLU and the pool have short bars, nearly all activations.":
        lambda d: all(length(d, each) < length(d, "fc1") / 4 and weights(d, each) < 0.05
                      for each in ("conv1", "conv1_relu", "pool1")),
    "The bar of fc1 is far the longest, nearly all weights.": lambda d: weights(d, "fc1") > 0.95
        and sorted(length(d, each) for each in d["Layer"])[-2] < length(d, "fc1") / 3,
    "That of fc2 is a quarter as long, mostly weights.": lambda d:
        near(length(d, "fc2") / length(d, "fc1"), 0.25) and weights(d, "fc2") > 0.9,
    "Stacked areas over 42 moments.": lambda d: len(d) == 42,
    "Weights and momentum are flat at the bottom.":
        lambda d: d["weights (GiB)"].nunique() == d["states (GiB)"].nunique() == 1,
    "Outputs rise over the forward half to one and a half gibibytes and fall over the backward "
    "half.": lambda d: near(col(d, "outputs").max(), 1.5)
        and rises(col(d, "outputs", Phase="backward")[::-1]) and col(d, "outputs").argmax() < 21,
    "Gradients appear early in the backward half and stay.":
        lambda d: rises(col(d, "gradients")) and col(d, "gradients")[27] > 0.9 * d.iloc[-1, 4],
    "Errors are thin and thickest near the end.": lambda d:
        col(d, "errors").max() < 0.3 * d["outputs (GiB)"].max() and col(d, "errors").argmax() > 35,
    "The sum has a flat top and its peak is marked in the backward half.": lambda d:
        d["Phase"][total(d).argmax()] == "backward" and (total(d) > 0.85 * total(d).max()).sum() > 21,
    "Three bars for each of six stages.": lambda d: d.shape == (6, 4),
    "Parameters rise from almost nothing in the first stages to more than half in conv5.": lambda d:
        rises(col(d, "parameters")[:5]) and d.iloc[1, 1] < 1 and d.iloc[4, 1] > 50,
    "Outputs fall from over a third in conv2 to one twentieth in conv5.": lambda d:
        rises(col(d, "outputs")[4:0:-1]) and d.iloc[1, 2] > 33.4 and near(d.iloc[4, 2], 5, 0.15),
    "Operations are between one sixth and a good third in conv2 to conv5.": lambda d:
        near(d.iloc[1:5, 3].min(), 100 / 6, 0.05) and 33.4 < d.iloc[1:5, 3].max() < 37,
    "A treemap of five areas.": lambda d: (d["Share"] > 0.01).sum() == 5,
    "The smallest is conv1, then conv2, conv5 and conv3, and the largest is conv4 with over a "
    "third.": lambda d: d["Share"].max() > 1 / 3
        and list(d[:5].sort_values("Share")["Block"]) == ["conv1", "conv2", "conv5", "conv3", "conv4"],
    "At batch 1 the linear layers of AlexNet and ResNet-50 stand at one half.": lambda _: parts(
        intensity("linear", 1, Models.AlexNet, Models.ResNet50), 0.49, 0.51) == 1,
    "At batch 64 they stand at about 30, and most convolutions between 30 and 600.": lambda _: parts(
        intensity("linear", 64, Models.AlexNet, Models.ResNet50), 28, 32) == 1
        and parts(intensity("convolution", 64, Models.AlexNet, Models.ResNet50), 30, 600) > 0.7,
    "Vertical lines mark the A100 at 10, the T4 at 25, the RTX 4090 at 82 and the L4 at 101.":
        lambda _: [round(ridge(each)) for each in (Hardware.Cloud.A100, Hardware.Cloud.T4,
                   Hardware.Workstation.RTX4090, Hardware.Cloud.L4)] == [10, 25, 82, 101],
    "Two curves over the batch.": lambda d: list(d["Series"].unique()[:2])
        == ["host memory over PCIe", "SSD"],
    "Both are flat and alike up to a dotted vertical line, where memory ends.": lambda d:
        (rate(d, "SSD").loc[:988] == rate(d, "PCIe").loc[:988]).all()
        and rate(d, "SSD").loc[:988].min() > 0.98 * rate(d, "SSD")[988] > rate(d, "SSD")[989],
    "There the one with an SSD drops steeply and goes on falling, and the one over PCIe stays above "
    "it.": lambda d: rate(d, "SSD")[1100] < 0.25 * rate(d, "SSD")[988]
        and rises(rate(d, "SSD").loc[988:][::-1]) and (rate(d, "PCIe") > rate(d, "SSD")).loc[989:].all(),
    "A mark stands well below the flat part.":
        lambda d: rate(d, "measured").iloc[0] < 0.6 * rate(d, "SSD").max(),
    # capacity
    "Three rising curves that flatten.": lambda d: all(
        rises(rows.iloc[::3, 2]) and slope(rows[:9]) > 2 * slope(rows[18:])
        for _, rows in d.groupby("Series")),
    "The curve of two GPUs ends highest, that of eight lowest; at short times per token the order "
    "is reversed.": lambda d: reached(d, "2", 120) > reached(d, "4", 120) > reached(d, "8", 120)
        and reached(d, "8", 16.5) > reached(d, "4", 16.5) > reached(d, "2", 16.5),
    "Two panels over requests per second.": lambda d: d["Panel"].nunique() == 2,
    "In both, a line and dots rise slowly and bend upward just before a dashed vertical line.":
        lambda d: all(rises(rows.iloc[:, 3:].sum(axis=1))
                      for name, rows in d.groupby(["Panel", "Series"]) if name[1] == "closed form"),
    "Triangles lie several times higher in the left panel and somewhat higher in the right.":
        lambda d: tail(d, 1).min() > 3 and tail(d, 2).min() > 1.1 and tail(d, 2).max() < 2,
    "Dots and triangles for five numbers of users.":
        lambda d: len({round(each / 2) if each < 50 else 32 for each in d["Users"]}) == 5,
    "Nearly all lie inside the band around 1, from 0.75 to 1.25; a few lie outside.": lambda d: all(
        0.9 < parts(d[each].dropna(), 0.75, 1.25) < 1 for each in d.columns[1:]),
    "A falling line with a band around it, from several dollars at little use to below half a "
    "dollar at full use.": lambda d: rises(d.iloc[::-1, 1]) and 3 < d.iloc[0, 1] < 10
    and d.iloc[-1, 1] < 0.5,
    # gemm_low_precision
    "Dots form stairs: flat up to 128 rows, a jump to one and a half times at 129, flat to 256, a "
    "jump again.": stairs,
    "The calibrated line climbs in steps near the dots.": lambda d: rises(d["calibrated (us)"])
        and (d["calibrated (us)"] / d["Measured (us)"]).between(0.8, 1.25).all(),
    "The roofline is flat at first and then a straight ramp below the dots.": ramp,
    "Stacked bars of sign, exponent and mantissa: FP32 has most bits, BF16 and FP16 half as many, "
    "four formats half of that and two formats a quarter.": lambda d:
        (bits(d, 32), bits(d, 16)) == (["FP32"], ["BF16", "FP16"])
        and (len(bits(d, 8)), len(bits(d, 4))) == (4, 2),
    "Beside MXFP8, MXFP4 and NVFP4 stand the bits of a scale and the numbers that share it.":
        lambda d: list(d["Format"][d["share a scale"] > 0]) == ["MXFP8", "MXFP4", "NVFP4"],
    "Above a line between sides of 2,800 and 5,800 FP8 is faster, up to nearly twice as fast; below "
    "it is slower, down to four tenths of the speed.": lambda d: line(d).min() > 2800
        and line(d).max() < 5800 and 1.7 < d["Predicted"].max() < 2
        and near(d["Predicted"].min(), 0.4),
    "Filled dots lie above the line, empty ones below, with few exceptions near it.": dots_agree,
    "The line falls from a side of 4,096 for few rows to 1,024 for many; above it the format is up "
    "to over two and a half times as fast.": lambda d: dots_agree(d)
        and (line(d).iloc[0], line(d).iloc[-1]) == (4096, 1024) and 2.5 < d["Predicted"].max() < 3,
    "The map of FP8 in training on an H100, with four stars at 8,192 rows: the attention output "
    "lowest, near the line where FP8 equals BF16, then queries, keys and values, then down, and "
    "the up and gate product highest, where FP8 is clearly faster.":
        lambda d: near(line(d)[8192], 4096, 0.3),
    # hardware_ecosystem
    "Points that rise along a straight line on a logarithmic scale, from some thousand transistors "
    "in 1971 to tens of billions in 2021.": lambda d: 1e3 < d["Transistors"].iloc[0] < 9e3
        and 1e10 < d["Transistors"].iloc[-1] < 9e10,
    "Four curves on a logarithmic scale.": lambda d: d.shape[1] == 5,
    "The clock rises until about 2005 and is flat since.":
        lambda d: yearly(d, "clock (MHz)", 1971, 2005) > 1.2 > 1.05 > yearly(d, "clock (MHz)", 2005, 2021),
    "Power rises and flattens.":
        lambda d: yearly(d, "power (W)", 1971, 2005) > 1.1 > yearly(d, "power (W)", 2005, 2021),
    "The speed of one thread rises more slowly after 2005.":
        lambda d: yearly(d, d.columns[4], 1989, 2005) > yearly(d, d.columns[4], 2005, 2021) > 1,
    "The number of cores is one until 2003 and then rises.": lambda d:
        set(d[d["Year"] <= 2003]["logical cores"].dropna()) == {1}
        and d[d["Year"] > 2003]["logical cores"].min() > 1,
    "Four curves of speedup against processors on logarithmic axes.": lambda d: d.shape[1] == 5,
    "The one for fifty percent flattens at two, for ninety percent at ten, for ninety-nine percent "
    "at about ninety; the one for one hundred percent is a straight line.": lambda d: all(
        near(d.iloc[-1, at], end, 0.05) for at, end in ((1, 2), (2, 10), (3, 90)))
        and (d.iloc[:, 4] == d["Processors"]).all(),
    "Latencies on a logarithmic scale, from one and a half nanoseconds in the L1 cache of a CPU over "
    "75 for DRAM and some four hundred for HBM to ten milliseconds for a hard disk.": lambda d:
        [by(d, "Level", "Latency")[f"server CPU: {each}"] for each in ("L1 cache", "DRAM", "hard disk")]
        == [1.5, 75, 1e7] and near(by(d, "Level", "Latency")["NVIDIA H100: HBM"], 400),
    "The caches of the H100 are slower than those of the CPU.": lambda d: all(
        by(d, "Level", "Latency")[f"NVIDIA H100: {each}"] > 5 * by(d, "Level", "Latency")[f"server CPU: {each}"]
        for each in ("L1 cache", "L2 cache")),
    "Energies on a logarithmic scale, from three hundredths of a picojoule for an 8-bit addition "
    "over a few picojoules for an FP32 product and ten to a hundred for a read from a cache to one "
    "to three nanojoules for a read from DRAM.": lambda d:
        list(d.iloc[:, 1][[12, 4, 2]]) == [0.03, 10, 100] and 2 < by(d, "What", "Energy")["FP32 product"] < 5
        and 1000 < d.iloc[1, 1] < d.iloc[0, 1] < 3000,
    "The Ryzen has less than a tenth of a mebibyte of registers, half a mebibyte of L1, 8 of L2 and "
    "64 of L3.": lambda d: d.iloc[0, 2] < 0.1 and list(d.iloc[1:4, 2]) == [0.5, 8, 64],
    "The RTX 3090 has 20.5 of registers, 8 of shared memory and 6 of L2.":
        lambda d: [round(each, 1) for each in d.iloc[4:7, 2]] == [20.5, 8, 6],
    "In the first, one row of A and one column of B are filled for one number of C.":
        lambda d: d["Numbers of C"][0] == 1,
    "In the second, four rows and four columns for a tile of four by four.":
        lambda d: d["Numbers of C"][1] == 4 * 4,
    "Six panels of three by three cells.": lambda d: d["Panel"].nunique() == 6,
    "In cycle 3 all cells are gray and hold weights w11 to w33.": lambda d: at_cycle(d, 3) == grid("w"),
    "In cycle 4 only the top left cell is blue, with input x11.":
        lambda d: blue(d, 4) == [(1, 1)] and at_cycle(d, 4)[0][0].endswith("x11"),
    "In cycles 5 and 6 the blue region grows along diagonals to three and six cells.":
        lambda d: (len(blue(d, 5)), len(blue(d, 6))) == (3, 6),
    "In cycle 8 six cells at the lower right are blue, and in cycle 10 only the last one.":
        lambda d: len(blue(d, 8)) == 6 and min(i + j for i, j in blue(d, 8)) == 4
        and blue(d, 10) == [(3, 3)],
    "In cycle 3 the cells hold inputs x11 to x33, each column one row of the input matrix.":
        lambda d: at_cycle(d, 3) == grid("x", across=True),
    "From cycle 4 on weights w11, w12 and so on enter from the left and a diagonal of blue cells "
    "moves to the lower right.": lambda d: [at_cycle(d, each)[0][0][-3:] for each in (4, 5, 6)]
        == ["w11", "w12", "w13"] and blue(d, 4) == [(1, 1)] and blue(d, 10) == [(3, 3)],
    "Six panels of three by three cells that hold outputs y11 to y33.": lambda d:
        [[cell[:3] for cell in row] for row in at_cycle(d, 1)] == grid("y"),
    "In cycle 1 only y11 is blue, with x11 and w11.":
        lambda d: blue(d, 1) == [(1, 1)] and at_cycle(d, 1)[0][0] == "y11 x11 w11",
    "In cycles 2, 3 and 5 the blue cells move along the diagonal, each with an input and a weight.":
        lambda d: [sum(map(sum, blue(d, each))) / len(blue(d, each)) for each in (2, 3, 5)]
        == sorted(sum(map(sum, blue(d, each))) / len(blue(d, each)) for each in (2, 3, 5)),
    "In cycle 7 only y33 is blue.": lambda d: blue(d, 7) == [(3, 3)],
    "In cycle 9 the outputs have moved down and out, and the upper rows are empty.":
        lambda d: at_cycle(d, 9) == [["", "", ""], ["", "", ""], ["y11", "y12", "y13"]],
    "Two panels.": lambda d: d["Panel"].nunique() == 2,
    "Above, the distance from the minimum on a logarithmic axis over sixty steps: with no delay it "
    "falls steadily, with a delay of four it falls while it swings, with seven it grows.": lambda d:
        len(distance(d, 0)) == 61 and rises(distance(d, 0)[::-1]) and not rises(distance(d, 4)[::-1])
        and distance(d, 4)[40:].max() < 0.5 * distance(d, 4)[:20].max() and distance(d, 7).max() > 3,
    "Below, the largest stable learning rate falls from two to below one tenth as the delay rises to "
    "31; crosses of the simulation lie on the curve.": lambda d: rises(d["Limit"].dropna()[::-1])
        and d["Limit"].max() == 2 and d["Limit"].min() < 0.1 and d["Updates old"].max() == 31,
    "Three rows over time.": lambda d: d["Who"].nunique() == 3,
    "Two workers prepare batches of three seconds each, side by side.":
        lambda d: set((d["End (s)"] - d["Start (s)"])[d["Does"] == "prepares"]) == {3},
    "The device computes each batch in one second as it arrives: two batches in a row, then a gap of "
    "one second.": lambda d: computes(d)[:3] == [(3, 4), (4, 5), (6, 7)],
    "Five lines of peak rates on a logarithmic axis against number formats from FP64 to FP4.":
        lambda d: (d["Device"].nunique(), set(d["Format"]) >= {"fp64", "fp4"}) == (5, True),
    "Each later GPU lies above the earlier ones, and the last two reach further to the right, to FP8 "
    "on the H100 and FP4 on the B200.": later_above,
    "In FP32 the five are close together, in FP16 far apart.": lambda d:
        peaks(d, "B200")["fp32"] / peaks(d, "P100")["fp32"] < 10 < 100
        < peaks(d, "B200")["fp16"] / peaks(d, "P100")["fp16"],
    "Logarithmic points from 2018 to 2026.":
        lambda d: (int(d["Year"].min()), int(d["Year"].max())) == (2018, 2026),
    "They rise by a factor of ten thousand until 2021, and spread between seven billion and 1.6 "
    "trillion after it, with a nearly flat line.": lambda d:
        1e4 < until(d, 2022)[0].max() / until(d, 2022)[0].min() < 2e4
        and 7 < until(d, 2022)[1].min() < 8 and near(until(d, 2022)[1].max(), 1600, 0.03),
    "Mixtures of experts lie at the top.":
        lambda d: set(d.sort_values(d.columns[-1])["Form"][-10:]) == {"experts"},
    "At most one trillion tokens, and mostly near 0.3, until 2022, then a rise to 45 trillion in "
    "2026.": lambda d: until(d, 2022)[0].max() == 1 and near(until(d, 2022)[0].median(), 0.3)
        and until(d, 2026)[1].max() == 45,
    "Logarithmic points rising by three powers of ten and more between 2019 and 2026.":
        lambda d: d.iloc[:, -1].max() / until(d, 2020)[0].min() > 1e3 and d["Year"].min() > 2019,
    "The highest point is the largest Llama 3.1, in 2024.":
        lambda d: d["Name"][d.iloc[:, -1].argmax()] == "Llama 3.1 405B",
    # hello_world
    "At batch 1 most operators lie on the slope and the mark of the network is close to the roof.":
        lambda d: parts(panel(d, "Batch 1")[1].x, 0, panel(d, "Batch 1")[0].x) > 0.7
        and of_roof(d, "Batch 1") > 0.9,
    "At batch 256 operators lie on both sides of the ridge and the mark is below it.":
        lambda d: 0.2 < parts(panel(d, "Batch 256")[1].x, 0, panel(d, "Batch 256")[0].x) < 0.8
        and of_roof(d, "Batch 256") < 0.8,
    "Three falling curves of the memory-bound share against batch size for V100, A100 and H100.":
        lambda d: d.shape[1] == 4 and (d.iloc[-1, 1:] < d.iloc[0, 1:]).all(),
    "All level off above one half.": lambda d: (d.iloc[:, 1:] > 50).all(axis=None),
    "They rise with the batch and level off.": lambda d: all(
        rows[rows["Batch size"] >= 32].iloc[:, 2].median() > 1.5 * rows[rows["Batch size"] == 1].iloc[:, 2].median()
        for _, rows in d.groupby("Series")),
    "All stay below one.": lambda d: d.iloc[:, 2].max() < 1,
    # llm_serving
    "Prefill lies close to the flat roof, right of the ridge.":
        lambda d: d.iloc[1, 1] > d.iloc[0, 1] and d.iloc[1, 2] > 0.9 * d.iloc[0, 2],
    "Decode lies on the slope near an intensity of one, hundreds of times lower.": lambda d:
        near(d.iloc[2, 1], 1) and near(d.iloc[2, 2] / d.iloc[2, 1], d.iloc[0, 2] / d.iloc[0, 1])
        and d.iloc[1, 2] / d.iloc[2, 2] > 200,
    "Four curves of arithmetic intensity against the number of users.": lambda d: d.shape[1] == 5,
    "The one for a context of one token rises past the dashed line of the ridge point.":
        lambda d: d.iloc[-1, 1] > Hardware.Cloud.H100.ridge_point("bf16").magnitude,
    "Those for 512, 2048 and 8192 tokens level off below it, the longer the context the lower.":
        lambda d: rises(d.iloc[-1, 4:0:-1])
        and d.iloc[:, 2:].max(axis=None) < Hardware.Cloud.H100.ridge_point("bf16").magnitude,
    "Straight lines of memory against users, all starting at the weights.":
        lambda d: all(near(d.iloc[0, at], 16.06, 0.35) for at in (1, 2, 3, 4)),
    "The lines for contexts of 1,024, 2,304, 8,192 and 32,768 tokens rise ever more steeply.":
        lambda d: rises(d.iloc[-1, 1:]) and all("tokens each" in each for each in d.columns[1:]),
    "All but the first cross a horizontal line, the usable memory, before 400 users.":
        lambda d: [each > usable() for each in d.iloc[-1, 1:]] == [False, True, True, True],
    "Most lie between a fifth and four fifths; those of llama.cpp lie highest, and some of a mixture "
    "of experts lie above one.": lambda d: parts(d.iloc[:, 1], 0.2, 0.8) > 0.7
        and all("llama.cpp" in each for each in d.sort_values(d.columns[1])["Name"][-8:])
        and col(d, "Measured speed", Name="MoE").max() > 1,
    # measuring
    "A roof with three marks below its slope.": lambda d: len(d) == 3 and (d.iloc[:, 2] < d.iloc[:, 3]).all(),
    "The one with the lowest intensity is closest to the slope, at nearly half of what is allowed; "
    "the other two lie further below it.": lambda d:
        0.43 < (d.iloc[:, 2] / d.iloc[:, 3])[d.iloc[:, 1].argmin()] < 0.5
        and (d.iloc[:, 2] / d.iloc[:, 3]).argmax() == d.iloc[:, 1].argmin(),
    "A horizontal line with some twenty marks below it.": lambda d: near(len(d), 20, 0.2),
    "The squares of 3 x 3 convolutions lie close under the line.":
        lambda d: col(d, "GFLOP/s", Series="3 x 3").min() > 0.75 * d["GFLOP/s"].max(),
    "The circles of 1 x 1 convolutions begin at a quarter of its height on the left and come closer "
    "to it toward the right.": lambda d: near(d.iloc[0, 2], d["GFLOP/s"].max() / 4, 0.2)
        and d.iloc[14, 2] > 0.8 * d["GFLOP/s"].max(),
    # sustainability
    "Horizontal bars, one for each of ten countries, sorted from the smallest at the top, Sweden, to "
    "the largest at the bottom, India, which is many times as long.": lambda d: len(d) == 10
        and ends(d, ["Sweden"], ["India"]) and d.iloc[9, 1] > 10 * d.iloc[0, 1],
    "Brazil, Spain and Canada follow Sweden; the United States, Japan and Australia stand before "
    "India.": lambda d: ends(d, ["Sweden", "Brazil", "Spain", "Canada"],
                             ["United States", "Japan", "Australia", "India"]),
    "Three lines over the hours of a day in UTC.": lambda d: d.shape[1] == 4,
    "California's falls to seven tenths of its mean at its own noon, late in the day of UTC.":
        lambda d: near(hours(d, "California").min(), 0.7, 0.05)
        and hours(d, "California").argmin() in (19, 20, 21),
    "Germany's dips before noon of UTC and is highest in the evening.":
        lambda d: hours(d, "Germany").argmin() == 11 and hours(d, "Germany").argmax() in (17, 18, 19),
    "Norway's rises and falls by about a tenth.": lambda d:
        near(hours(d, "Norway").max(), 1.1, 0.02) and near(hours(d, "Norway").min(), 0.9, 0.02),
    # training_at_scale
    "Four stacked bars.": lambda d: len(d) == 4,
    "Copies need nearly twice what may be used, mostly for optimizer state.": lambda d:
        1.6 < d.iloc[0, 1:5].sum() / d.iloc[0, 5] < 2 and d.iloc[0, 3] > 0.5 * d.iloc[0, 1:5].sum(),
    "ZeRO-1 stays below the line, ZeRO-2 is lower, and ZeRO-3 is lowest.": lambda d:
        rises(d.iloc[::-1, 1:5].sum(axis=1)) and d.iloc[1, 1:5].sum() < d.iloc[1, 5],
    "Four rows, one for each stage.": lambda d: d["Stage"].nunique() == 4,
    "Numbered boxes for forward passes are short, those for backward passes twice as long.":
        lambda d: (passes(d, "forward"), passes(d, "backward")) == ({1}, {2}),
    "The first stage waits in the middle, the last stage waits at both ends; all wait equally long.":
        lambda d: all(a > 0 and b < d["End"].max() for a, b in idle(d, 1))
        and (idle(d, 4)[0][0], idle(d, 4)[-1][1]) == (0, d["End"].max())
        and len({sum(b - a for a, b in idle(d, stage)) for stage in (1, 2, 3, 4)}) == 1,
    "Seven stacked bars for 64 to 4,096 GPUs.":
        lambda d: (len(d), str(d["Run"].iloc[0]), str(d["Run"].iloc[-1])) == (7, "64", "4,096"),
    "Forward and backward pass fill some nine tenths of the first.":
        lambda d: near(d.iloc[0, 1:3].sum(), 90, 0.05),
    "Sending within a stage, the pipeline bubble and bringing gradients together grow towards the "
    "last, where passes are about seven tenths.": lambda d: near(d.iloc[6, 1:3].sum(), 70, 0.07)
        and all(d[each].iloc[6] > 1.5 * d[each].iloc[0]
                for each in ("sending within a stage (%)", "pipeline bubble (%)", "gradients and weights (%)")),
    "Calibrated marks lie to the right of roofline marks.": lambda d: all(
        efficiency(d, "calibrated", each).min() > efficiency(d, "roofline", each).min()
        and efficiency(d, "calibrated", each).max() > efficiency(d, "roofline", each).max()
        for each in d["Name"].unique()),
    "Those of Megatron on A100s are close to one, those of other programs on A100s between two thirds "
    "and just above one, most on H100s between four and nine tenths.": lambda d:
        parts(efficiency(d, "calibrated", "Megatron-LM, A100"), 0.95, 1.05) == 1
        and parts(efficiency(d, "calibrated", "MPT, FSDP, A100"), 0.66, 1.12) == 1
        and parts(efficiency(d, "calibrated", "DeepSpeed, A100"), 0.66, 1.12) == 1
        and parts(efficiency(d, "calibrated", "H100"), 0.4, 0.9) > 0.8,
    "Of BERT-large some are near eight tenths and some near one and a half.": lambda d:
        parts(efficiency(d, "calibrated", "BERT"), 0.75, 0.85) > 0.3
        and parts(efficiency(d, "calibrated", "BERT"), 1.4, 1.6) > 0.5,
    # zoo
    "The upper end is held by NVIDIA's Blackwell GPUs, AMD's MI355X and Google's TPU7x, between the "
    "middle line and the highest.": lambda d: all(
        each in of_makers(d, d.columns[4], highest=7) for each in ("B200", "GB300", "MI355X", "TPU7x")),
    "The lower left has Apple's chips, between the lowest line and the middle one.":
        lambda d: of_makers(d, d.columns[4], lowest=10).count("Apple") == 10,
    "Points of devices by year, from 2016 to 2025.":
        lambda d: (d["Year"].min(), d["Year"].max()) == (2016, 2025),
    "In the data center the ridge point rose almost fivefold from 2016 to 2017, and by less since.":
        lambda d: near(ridges(d, "V100 SXM2 16").max() / ridges(d, "P100").max(), 4.8, 0.04)
        and ridges(d, "B200|H100 SXM|MI300X|MI355X").max() / ridges(d, "V100 SXM2 16").max() < 4,
    "Apple's chips lie far below, at the height of 2016, in all years.":
        lambda d: parts(ridges(d, "Apple"), 20, 51) == 1 and near(ridges(d, "Apple").median(), ridges(d, "P100").max(), 0.2),
    "The highest points are Jetson Thor, TPU v6e, Gaudi 3, DGX Spark and cards for inference.":
        lambda d: all(each in of_makers(d, d.columns[3], highest=6)
                      for each in ("Jetson Thor", "TPU v6e", "Gaudi 3", "DGX Spark")),
    "Horizontal bars of carbon intensity, one for each grid, sorted from the cleanest at the top, "
    "Iceland, Norway and Sweden, to the dirtiest at the bottom, India, South Africa and Kazakhstan.":
        lambda d: ends(d, ["Iceland", "Norway", "Sweden"], ["India", "South Africa", "Kazakhstan"]),
    "The European Union stands in the upper half and the world in the lower half.":
        lambda d: place(d, "European Union") < 0.5 < place(d, "World"),
    "The longest bar is almost thirty times the shortest.":
        lambda d: 27 < d.iloc[-1, 1] / d.iloc[0, 1] < 30,
    "California falls by two fifths from its night to a low at its noon, late in the day of UTC.":
        lambda d: near(hours(d, "California").min() / hours(d, "California").max(), 0.6, 0.05)
        and hours(d, "California").argmin() in (19, 20, 21),
    "Germany and Spain fall around noon of UTC; Great Britain falls at night.": lambda d:
        all(hours(d, each).argmin() in (11, 12, 13) for each in ("Germany", "Spain"))
        and hours(d, "United Kingdom").argmin() < 5,
    "Brazil, France and Norway are low and change little.": lambda d: all(
        hours(d, each).max() < 100 and hours(d, each).max() / hours(d, each).min() < 1.25
        for each in ("Brazil", "France", "Norway")),
    "Horizontal bars of liters per kilowatt-hour, one for each country, sorted from the least at the "
    "top, Ireland and Taiwan, to the most at the bottom, New Zealand and Brazil, whose electricity "
    "is mostly of hydropower.": lambda d: ends(d, ["Ireland", "Taiwan"], ["New Zealand", "Brazil"]),
}  # fmt: skip


def figures(site: Path) -> Iterator[tuple[str, str, Data]]:
    """Yield page, alternative text and data of each figure that has data and wasn't timed here."""
    for page in sorted(site.rglob("*.html")):
        tree = LexborHTMLParser(page.read_text("utf-8"))
        timed = {each.attributes.get("src") for each in tree.css(".measured img")}
        for image in tree.css("main img.figure-img:not(.dark-content)"):
            source = image.attributes.get("src") or ""
            data = (page.parent / source).with_suffix(".csv")
            if source not in timed and data.is_file():
                name = page.relative_to(site).as_posix()
                yield name, image.attributes.get("alt") or "", pd.read_csv(data)


@pytest.fixture(scope="module")
def sentences(built_book: Path) -> list[tuple[str, str, Data]]:
    """Every sentence of those alternative texts, with its page and its figure's data."""
    return [
        (page, " ".join(sentence.split()), data)
        for page, text, data in figures(built_book)
        for sentence in SENTENCE.split(text)
    ]


def test_each_sentence_holds_of_its_figure(sentences: list[tuple[str, str, Data]]) -> None:
    assert len(sentences) > 150
    unchecked = [(page, each) for page, each, _ in sentences if each not in {*CLAIMS, *DRAWN}]
    assert unchecked == []
    false = [
        (page, each) for page, each, data in sentences if each in CLAIMS and not CLAIMS[each](data)
    ]
    assert false == []


def test_no_check_is_left_over(sentences: list[tuple[str, str, Data]]) -> None:
    assert {*CLAIMS, *DRAWN} - {sentence for _, sentence, _ in sentences} == set()
