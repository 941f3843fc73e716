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


@pytest.mark.skipif(FOLDER is None or not FOLDER.is_dir(), reason="that wheel is not installed")
def test_most_load_with_the_librarys_count_and_the_others_say_why() -> None:
    """An extra: what is held everywhere are the files and configurations in `tests/fixtures`."""
    checked = configs.check(FOLDER)
    loaded = [each for each in checked if each.model]
    assert len(checked) >= 89
    assert len(loaded) >= 80
    assert sum(each.difference == 0 for each in loaded) >= 77
    assert {each.name: each.difference for each in loaded if each.difference} == {}
    assert [e.name for e in checked if not e.model and "can't be told here: " not in e.reason] == []
    for each in loaded:
        formats = (
            {one.name for _, one in each.model.released.operators} if each.model.released else set()
        )
        if "NVFP4" in each.name:
            assert "nvfp4" in {each.model.released.weights.name} | formats, each.name
        if "-FP8" in each.name:
            assert each.model.released.weights.computes_as == "fp8", each.name
        graph = language_graph(each.model, 300, all_logits=True)
        assert graph.parameters == each.model.parameter_count, each.name
        assert 2 * graph.multiply_adds == each.model.flop_count(300, all_logits=True), each.name
