"""The real configurations of a wheel, if it is installed: which load, and with what count.

    pip download --no-deps aiconfigurator-core==0.12.0

and unpack it; `MLSIM_CONFIGS` may name its folder `model_configs`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mlsim.workloads.graph.language import language_graph

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import configs  # noqa: E402

sys.path.remove(str(BENCHMARKS))

FOLDER = (
    Path(os.environ["MLSIM_CONFIGS"])
    if "MLSIM_CONFIGS" in os.environ
    else (configs.folder_of_wheel())
)

pytestmark = pytest.mark.skipif(
    FOLDER is None or not FOLDER.is_dir(), reason="aiconfigurator-core is not installed"
)


@pytest.fixture(scope="module")
def checked() -> list:
    return configs.check(FOLDER)


def test_most_load_and_the_others_say_why(checked: list) -> None:
    assert len(checked) >= 89
    loaded = [each for each in checked if each.model]
    assert len(loaded) >= 80
    for each in checked:
        assert each.model or "can't be told here: " in each.reason, each.name


def test_counts_are_those_of_the_library(checked: list) -> None:
    loaded = [each for each in checked if each.model]
    assert {each.name: each.difference for each in loaded if each.difference} == {}
    assert sum(each.difference == 0 for each in loaded) >= 77


def test_billions_are_those_of_the_name(checked: list) -> None:
    """Within 5 %: names round, and some count layers that draft tokens."""
    for each in checked:
        total = each.named.partition("B")[0]
        if each.model and total:
            count = each.model.parameter_count / 1e9
            # A Qwen3-VL is named with its eyes, and a 1.7B is called 2B with them.
            assert count == pytest.approx(float(total), rel=0.15 if "VL" in each.name else 0.1)


def test_what_is_named_for_its_format_was_released_in_it(checked: list) -> None:
    for each in checked:
        if each.model and "NVFP4" in each.name:
            assert each.model.released is not None, each.name
            formats = {each.model.released.weights.name}
            formats |= {one.name for _, one in each.model.released.operators}
            assert "nvfp4" in formats, each.name
        if each.model and "-FP8" in each.name:
            assert each.model.released is not None, each.name
            assert each.model.released.weights.computes_as == "fp8"


def test_their_graphs_count_the_same(checked: list) -> None:
    for each in checked:
        if each.model:
            found = language_graph(each.model, 300, all_logits=True)
            assert found.parameters == each.model.parameter_count, each.name
            told = each.model.flop_count(300, all_logits=True)
            assert 2 * found.multiply_adds == told, each.name
