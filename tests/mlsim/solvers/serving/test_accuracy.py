"""`Engine.serve` against published measurements, and against four other tools.

A plain run asks about a seeded part of both, kept in `fixtures/measured`. `MLSIM_JUDGE=1` with
MLSIM_REFERENCE, the folder of all reference data, asks about all. The benchmarks that are used here
print the same in full.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mlsim import Engine, Models

ROOT = Path(__file__).parents[4]
# Part of the other tools' answers that mlsim gives with their assumptions, to 3 %.
EXPLAINED = 0.99


@pytest.fixture(scope="module")
def measured() -> Path:
    given = os.environ.get("MLSIM_REFERENCE")
    if given and os.environ.get("MLSIM_JUDGE"):
        return Path(given).resolve()
    return ROOT / "tests" / "fixtures" / "measured"


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Any]:
    """Return a function that imports a benchmark by its name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def scored(benchmark: Any, measured: Path) -> dict[str, list[Any]]:
    """Return case, prediction, measurement and ratio of speeds of all cases, by estimate."""
    accuracy = benchmark("accuracy_serving")
    rows = accuracy.cases(measured)
    found = {}
    for estimate in ("bound", "roofline"):
        predictions, refused = accuracy.predict_all(rows, measured, estimate)
        assert all("is not in the zoo" in reason for reason in refused.values()), refused
        assert len(predictions) >= 0.95 * len(rows)
        found[estimate] = accuracy.scored(rows, predictions)
    return found


def test_no_measurement_beats_the_bound(benchmark: Any, scored: dict[str, list[Any]]) -> None:
    beaten = benchmark("accuracy_serving").violations(scored["bound"])
    assert not [(case["case_id"], ratio) for case, _, _, ratio in beaten]
    # Nor is it far from them: three in four of the sample are within a factor of 3; of all, of 4.
    ratios = sorted(each[3] for each in scored["bound"])
    assert ratios[len(ratios) * 3 // 4] < (4 if os.environ.get("MLSIM_JUDGE") else 3)


def test_what_is_faster_is_estimated_to_be_faster(scored: dict[str, list[Any]]) -> None:
    """Of two cases of a series that differ by a tenth, the estimate knows which is the slower."""
    pairs = [
        (one[1] > other[1]) == (one[2] > other[2])
        for one, other in itertools.combinations(scored["roofline"], 2)
        if one[0]["series"] == other[0]["series"]
        and one[0]["unit"] == other[0]["unit"]
        and abs(one[2] / other[2] - 1) > 0.1
    ]
    assert len(pairs) > 60
    assert sum(pairs) / len(pairs) > 0.9


def test_estimate_is_never_faster_than_the_bound(scored: dict[str, list[Any]]) -> None:
    for bound, estimate in zip(scored["bound"], scored["roofline"], strict=True):
        # The ratio is that of the predicted speed over the measured one.
        assert bound[3] >= estimate[3] * (1 - 1e-9), bound[0]["case_id"]


@pytest.fixture(scope="module")
def peers(benchmark: Any) -> ModuleType:
    return benchmark("peers_llm")


def test_other_tools_differ_by_their_assumptions(peers: ModuleType, measured: Path) -> None:
    compared = peers.compare(peers.read(measured))
    groups = peers.groups(compared)
    assert len(groups) == 4 * len(peers.ANSWERS)
    for group, each in groups.items():
        assert peers.share(each, "after", peers.NEAR) >= EXPLAINED, group
    unlike = [each for each in compared if peers.far(each.after, each.theirs)]
    assert not [(each.row.fields, each.answer) for each in unlike]
    # The cache of a token is that of every tool as it is.
    cache = peers.compare(peers.read(measured), [peers.CACHE])
    assert {round(each.theirs / each.before, 9) for each in cache} == {1.0}


# Services in many nodes beside what was published of them; nothing is fitted to these. What programs
# hide behind computing (both of the DeepSeek services do) is not modeled, so predictions that wait
# for the network are late where these are not.
WIDE: dict[str, Any] = {"model": "DeepSeek_V3", "hardware": "DeepSeek_H800"}
WIDE |= {"estimate": "calibrated", "check_memory": False}


@pytest.mark.parametrize("imbalance", [1.0, "uniform"])
def test_reading_prompts_with_experts_over_four_nodes(imbalance: float | str) -> None:
    # Two requests of 4K tokens for each of 32 GPUs take 1.5 s [rtpllm2025deepseek].
    asked = WIDE | {"batch_size": 64, "prompt_tokens": 4096, "output_tokens": 1}
    asked |= {"data_parallel": 32, "expert_parallel": 32}
    found = Engine.serve(**asked, expert_imbalance=imbalance)
    assert found.value("time_to_first_token") / 1.5 == pytest.approx(2.05, abs=0.08)
    # DeepSeek's service read 73.7k tokens a second on each node, of which 43.7 % were not in its
    # cache [deepseek2025inference].
    rate = 64 * 4096 / found.value("time_to_first_token") / 4
    assert rate / (73_700 * 0.437) == pytest.approx(0.66, abs=0.05)


def test_decoding_with_experts_over_eighteen_nodes() -> None:
    # 13,200 requests of 4K + 2K tokens on 144 GPUs, of which 128 hold each expert once: 20
    # tokens/s for each user [rtpllm2025deepseek]. DeepSeek's own has 14.8k tokens/s on each node at
    # 20 to 22 tokens/s for each user [deepseek2025inference].
    asked = WIDE | {"batch_size": 128 * 92, "prompt_tokens": 4096, "output_tokens": 2048}
    found = Engine.serve(**asked, data_parallel=128, expert_parallel=128)
    assert found.value("time_per_output_token") / 0.05 == pytest.approx(1.38, abs=0.1)
    assert found.decode_throughput / 16 / 14_800 == pytest.approx(0.72, abs=0.08)


@pytest.mark.parametrize(("tokens", "measured", "ratio"), [(2**17, 3.8, 0.65), (2**20, 77.0, 1.1)])
def test_a_million_tokens_on_sixteen_nodes(tokens: int, measured: float, ratio: float) -> None:
    # Llama 3 405B on 128 H100: 128K tokens in 3.8 s, a million in 77 s [yang2025context]. The
    # context of the model is 128K; the authors measured beyond it. Its weights don't fit in 16 bits,
    # so they are taken in 8, and so are the products; attention is in 16.
    model = replace(Models.Llama3_405B, context=2**20 + 1024)
    asked: dict[str, Any] = {"model": model, "hardware": "DGX_H100_SuperPOD"}
    asked |= {"prompt_tokens": tokens, "output_tokens": 2, "precision": "w8a8kv16"}
    asked |= {"tensor_parallel": 8, "context_parallel": 16}
    bound, calibrated = (
        Engine.serve(**asked, estimate=each).value("time_to_first_token")
        for each in ("bound", "calibrated")
    )
    assert bound < measured
    assert calibrated / measured == pytest.approx(ratio, abs=0.05)
