"""The systolic array in JavaScript against that in Python, cell by cell and cycle by cycle."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import Any

import pytest

from mlsim.hardware.systolic import DATAFLOWS, Cell, multiply
from mlsim.live.figure import _modules

PROGRAM = """
import { readFileSync } from "node:fs";
import { multiply } from "./systolic_array.js";
import { matrices, places } from "./systolic.js";
const asked = JSON.parse(readFileSync(0, "utf-8"));
const runs = asked.products.map((each) => multiply(...each));
const seen = asked.views.map(([data, rest, vectors]) => {
  const side = data.inputs.length;
  const run = multiply(...matrices(data, rest, vectors), side, side, rest);
  return { run, drawn: run.trace.map((_, at) => places(rest, side, vectors, at + 1, run.product)) };
});
console.log(JSON.stringify({ runs, seen }));
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that gives products and views to the scripts, as a page has them."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no node")
    folder = tmp_path_factory.mktemp("scripts")
    for name, text in {**_modules("systolic", {}), "program.mjs": PROGRAM}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")

    def ask(products: list[Any], views: list[Any]) -> Any:
        run = subprocess.run(
            [found, "program.mjs"], cwd=folder, capture_output=True, text=True, check=True,
            input=json.dumps({"products": products, "views": views}),
        )  # fmt: skip
        return json.loads(run.stdout)

    return ask


def matrix(rows: int, columns: int, seed: random.Random) -> list[list[int]]:
    return [[seed.randint(-9, 9) for _ in range(columns)] for _ in range(rows)]


def cell(each: Cell) -> dict[str, Any]:
    places = {name: getattr(each, name) for name in ("rests", "west", "north")}
    return {name: list(at) if at else None for name, at in places.items()} | {"busy": each.busy}


def test_random_products(node: Any) -> None:
    """Sizes from 1 to 6 on 1 to 4 rows and columns of cells: smaller, larger, cut into tiles."""
    seed = random.Random(35)
    asked = []
    for rest in DATAFLOWS * 40:
        m, k, n = (seed.randint(1, 6) for _ in range(3))
        rows, columns = seed.randint(1, 4), seed.randint(1, 4)
        asked.append([matrix(m, k, seed), matrix(k, n, seed), rows, columns, rest])
    for given, run in zip(asked, node(asked, [])["runs"], strict=True):
        inputs, weights, rows, columns, rest = given
        truth = multiply(inputs, weights, rows=rows, columns=columns, rest=rest, trace=True)
        assert run["product"] == truth.product
        counts = ("cycles", "multiplyAdds", "weightReads", "inputReads", "outputMoves")
        assert [run[each] for each in counts] == [
            truth.cycles, truth.multiply_adds, truth.weight_reads, truth.input_reads,
            truth.output_moves,
        ]  # fmt: skip
        assert run["use"] == pytest.approx(truth.use, rel=1e-15)
        for ours, theirs in zip(run["trace"], truth.trace, strict=True):
            assert (ours["number"], ours["phase"]) == (theirs.number, theirs.phase)
            assert ours["busy"] == theirs.busy
            for got in (each for row in ours["cells"] for each in row):
                got.pop("sum")
            assert ours["cells"] == [[cell(each) for each in row] for row in theirs.cells]


@pytest.mark.parametrize("side", [2, 3])
def test_what_is_drawn_in_a_cell_is_what_is_in_it(node: Any, side: int) -> None:
    """In each cycle the names that lie over the cells are those of the elements in them."""
    seed = random.Random(side)
    data = {"inputs": matrix(side, side, seed), "weights": matrix(side, side, seed)}
    views = [[data, rest, vectors] for rest in DATAFLOWS for vectors in (1, 3, 7)]
    for (_, rest, _), seen in zip(views, node([], views)["seen"], strict=True):
        letters = dict(
            zip(
                ("rests", "west", "north"),
                {"weights": "wx ", "inputs": "xw ", "outputs": "yxw"}[rest],
                strict=True,
            )
        )
        for cycle, drawn in zip(seen["run"]["trace"], seen["drawn"], strict=True):
            inside = sorted(
                (each["kind"], each["text"], each["row"], each["column"])
                for each in drawn
                if 0 <= each["row"] < side and 0 <= each["column"] < side
            )
            assert inside == sorted(
                (kind, f"{letter}{got[kind][0] + 1}{got[kind][1] + 1}", row, column)
                for row, cells in enumerate(cycle["cells"])
                for column, got in enumerate(cells)
                for kind, letter in letters.items()
                if got[kind]
            )


def test_what_leaves_is_the_product(node: Any) -> None:
    data = {"inputs": [[1, 2], [3, 4]], "weights": [[5, 6], [7, 8]]}
    (seen,) = node([], [[data, "weights", 2]])["seen"]
    assert seen["run"]["product"] == [[19, 22], [43, 50]]
    last = {each["text"]: each["value"] for each in seen["drawn"][-1] if each["kind"] == "out"}
    assert last == {"y11": 19, "y12": 22, "y21": 43, "y22": 50}
    first = [each["text"] for each in seen["drawn"][2] if each["kind"] == "out"]
    assert first == []
    # two cycles of loading, two until the first sum has come down, then it leaves
    assert [each["text"] for each in seen["drawn"][3] if each["kind"] == "out"] == ["y11"]
