"""No page decides by a roofline what the calibrated estimate reverses: the list is `decisions.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import page_numbers
import pytest

from mlsim import Engine, LoRA, QLoRA
from mlsim.workloads import Offload, Speculation

ROOT = Path(__file__).parents[2]
LISTED = tomllib.loads((ROOT / "decisions.toml").read_text(encoding="utf-8"))
DECISIONS, QUIET = LISTED["decision"], LISTED["decides-nothing"]
# Options that are called even lie within this share of the best one; the named one may tie exactly.
EVEN, TIE = 0.1, 1e-9
ADAPTERS = {"LoRA": LoRA, "QLoRA": QLoRA}
MADE = {
    "speculation": lambda given: Speculation(**given),
    "offload": lambda given: Offload(**given),
    "adapters": lambda given: ADAPTERS[given["kind"]](rank=given["rank"]),
}


@cache
def words_of(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def answer(row: Mapping[str, Any], option: str, estimate: str) -> Any:
    """Ask the door of a decision about one of its options."""
    asked = {**row["about"], **row["options"][option], "estimate": estimate}
    asked = {name: MADE[name](given) if name in MADE else given for name, given in asked.items()}
    if estimate == "calibrated" and "program" in row:
        asked["software"] = row["program"]
    door = getattr(Engine, row.get("of", row["ask"]))
    if asked.get("batch_size") == "largest":
        one = door(**asked | {"batch_size": asked.get("data_parallel", 1)})
        asked["batch_size"] = int(one.value("largest_batch"))
    found = door(**asked)
    if row["ask"] == "footprint":
        return Engine.footprint(found.load(), **row["place"])
    return found


def winners(row: Mapping[str, Any], estimate: str) -> dict[str, float]:
    """Return how far each option is from the best, as a share; of a label, what it is."""
    if "label" in row:
        (option,) = row["options"]
        return {str(attrgetter(row["label"])(answer(row, option, estimate))): 0.0}
    name = row.get("most") or row["least"]
    values = {each: float(answer(row, each, estimate).value(name)) for each in row["options"]}
    if "most" in row:
        return {each: max(values.values()) / value - 1 for each, value in values.items()}
    return {each: value / min(values.values()) - 1 for each, value in values.items()}


def named(row: Mapping[str, Any], estimate: str) -> bool:
    """Tell whether an estimate names what the page names."""
    wins = row["wins"] if isinstance(row["wins"], list) else [row["wins"]]
    off = winners(row, estimate)
    best, most = min(off, key=lambda each: off[each]), EVEN if len(wins) > 1 else TIE
    if not set(wins) <= off.keys() | {row["wins"] if "label" in row else ""}:
        raise AssertionError(f"{row['page']}: {wins} are not among the options {[*off]}")
    return (best in wins or off.get(wins[0], 1.0) <= TIE) and all(
        off.get(each, 1.0) <= most for each in wins
    )


@pytest.mark.parametrize("row", DECISIONS, ids=lambda row: f"{row['page']}: {row['says']}")
def test_a_conclusion_survives_the_better_estimate(row: dict[str, Any]) -> None:
    """The words stand on the page, and where the roofline disagrees the page says so."""
    assert ("label" in row) + ("most" in row) + ("least" in row) == 1
    words = words_of(row["page"])
    for each in (row["says"], row.get("unless", "")):
        assert " ".join(each.split()) in words, f"{row['page']} no longer says {each!r}"
    survives, agreed = named(row, "calibrated"), named(row, "roofline")
    if "exempt" in row:
        assert not survives or not agreed, "the exemption is not needed: delete it"
        return
    assert survives, f"calibrated: {winners(row, 'calibrated')}"
    if "unless" in row:
        assert not agreed, "both estimates agree: delete `unless`"
    else:
        assert agreed, f"`unless` must say why not: by the roofline {winners(row, 'roofline')}"


def test_every_page_that_asks_the_solver_is_listed() -> None:
    """With its decisions, or with a reason why it has none; and no page with both."""
    asks = re.compile(r"^[^`\n]*\bEngine\.\w+\(", re.MULTILINE)
    pages = set(page_numbers.pages(ROOT))
    asking = {page for page in pages if asks.search((ROOT / page).read_text(encoding="utf-8"))}
    deciding = {row["page"] for row in DECISIONS}
    assert deciding | QUIET.keys() <= pages
    assert not deciding & QUIET.keys()
    assert asking - deciding - QUIET.keys() == set()
    assert all(QUIET.values())
    assert QUIET.keys() <= asking, f"{QUIET.keys() - asking} ask nothing: delete their lines"


def test_a_reversed_decision_is_noticed() -> None:
    """The first purchase that chapter 2 once advised: more bandwidth for one image."""
    doubled = {
        "bandwidth": {"memory_bandwidth": "4.078 TB/s"},
        "peak": {"peak_flops": "624 TFLOP/s"},
    }
    row = {"page": "a.qmd", "ask": "solve", "about": {"model": "ResNet50", "hardware": "A100"},
           "options": doubled, "least": "latency", "wins": "bandwidth"}  # fmt: skip
    assert (named(row, "roofline"), named(row, "calibrated")) == (True, False)
    assert not named(row | {"wins": "peak"}, "roofline")
    # Within a tenth nobody wins; here the roofline sees more between them.
    even = row | {"wins": ["bandwidth", "peak"]}
    assert (named(even, "roofline"), named(even, "calibrated")) == (False, False)
    large = {"about": {**row["about"], "batch_size": 256}}
    assert named(even | large, "roofline")
    label = {"options": {"one": {}}, "label": "bottleneck", "wins": "Memory Bound"}
    assert (named(row | label, "roofline"), named(row | label, "calibrated")) == (True, False)
