"""`Engine.serve` against published measurements, and against four other tools.

The reference data are no part of the repository: set MLSIM_REFERENCE to their
folder. The benchmarks that are used here print the same in full.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
# Open cases that can be asked, of 257: more devices in the zoo only add to them.
ASKED = 250
# Part of the other tools' answers that mlsim gives with their assumptions, to 3 %.
EXPLAINED = 0.99


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Any]:
    """Return a function that imports a benchmark by its name."""
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def accuracy(benchmark: Any) -> ModuleType:
    return benchmark("accuracy_serving")


@pytest.fixture(scope="module")
def peers(benchmark: Any) -> ModuleType:
    return benchmark("peers_llm")


def test_no_measurement_beats_the_bound(accuracy: ModuleType, reference: Path) -> None:
    rows = accuracy.cases(reference)
    bounds, refused = accuracy.predict_all(rows, reference, "bound")
    assert len(bounds) >= ASKED, refused
    beaten = accuracy.violations(accuracy.scored(rows, bounds))
    assert not [(case["case_id"], ratio) for case, _, _, ratio in beaten]


def test_what_is_faster_is_estimated_to_be_faster(accuracy: ModuleType, reference: Path) -> None:
    rows = accuracy.cases(reference)
    predictions, refused = accuracy.predict_all(rows, reference)
    assert len(predictions) >= ASKED, refused
    found = accuracy.load_score(reference).metrics(accuracy.scored(rows, predictions))
    assert found["rho"] >= accuracy.RANKED


def test_each_refusal_names_what_the_zoo_lacks(accuracy: ModuleType, reference: Path) -> None:
    _, refused = accuracy.predict_all(accuracy.cases(reference), reference)
    assert all("is not in the zoo" in reason for reason in refused.values()), refused


def test_estimate_is_never_faster_than_the_bound(accuracy: ModuleType, reference: Path) -> None:
    rows = accuracy.cases(reference)
    bounds, _ = accuracy.predict_all(rows, reference, "bound")
    predictions, _ = accuracy.predict_all(rows, reference)
    for case in rows:
        name = case["case_id"]
        if name in bounds:
            ratio = bounds[name] / predictions[name]
            assert (ratio if case["higher_better"] == "1" else 1 / ratio) >= 1 - 1e-9, name


def test_other_tools_differ_by_their_assumptions(peers: ModuleType, reference: Path) -> None:
    compared = peers.compare(peers.read(reference))
    groups = peers.groups(compared)
    assert len(groups) == 4 * len(peers.ANSWERS)
    for group, each in groups.items():
        assert peers.share(each, "after", peers.NEAR) >= EXPLAINED, group
    unlike = [each for each in compared if peers.far(each.after, each.theirs)]
    assert not [(each.row.fields, each.answer) for each in unlike]


def test_kv_cache_agrees_with_every_tool_as_it_is(peers: ModuleType, reference: Path) -> None:
    compared = peers.compare(peers.read(reference), [peers.CACHE])
    assert {round(each.theirs / each.before, 9) for each in compared} == {1.0}


@pytest.mark.parametrize("tool", ["genz-llm", "LLM-Viewer", "llm-analysis", "mlsysim"])
def test_each_assumption_matters_somewhere(peers: ModuleType, reference: Path, tool: str) -> None:
    rows = [row for row in peers.read(reference) if row.tool == tool]
    causes = peers.CAUSES[tool]

    def matters(row: Any, answer: str, cause: Any) -> bool:
        """Say whether it changes an answer alone, or when it is left out."""
        others = [other for other in causes if other is not cause]
        pairs = (([cause], []), (others, causes))
        answers = ([peers.predict(row, answer, each) for each in pair] for pair in pairs)
        return any(peers.far(*pair, 0.001) for pair in answers)

    for cause in causes:
        assert any(matters(row, answer, cause) for row in rows for answer in cause.answers), cause
