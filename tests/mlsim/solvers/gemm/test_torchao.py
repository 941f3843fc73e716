"""PyTorch's roofline of low precision, reproduced: all recipes, fused or not, in every column."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine
from mlsim.hardware.named_constants import constants

ROWS = Path(__file__).parents[3] / "fixtures" / "torchao_rows.csv"
NAMES = ("torchao-0.18.0", "torchao-early")
DEVICES = {each.called: each.device for name in NAMES for each in constants(name).devices.values()}
COLUMNS = ("baseline_time", "products_time", "casts_time", "format_speedup")
FORMATS = {"bfloat16": "bf16", "float8_e4m3fn": "fp8", "float4_e2m1fn_x2": "fp4"}
# PyTorch's H100: 2.4 TB/s x 0.92 and 1,979 TFLOP/s x 0.78.
BYTES_A_SECOND, FLOPS_A_SECOND = 2.4e12 * 0.92, 1979e12 * 0.78


def layer(*sides: Any, hardware: str = "H100", **asked: Any) -> Any:
    return Engine.gemm(*sides, hardware=hardware, **{"constants": NAMES[0], **asked})


def test_every_answer_of_pytorch_comes_out() -> None:
    """Two shapes of each device, recipe and pass, to nine digits, in every column there is."""
    groups = defaultdict(list)
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            groups[tuple(row.values())[:6]].append(row)
    assert len(groups) > 170
    for (name, gpu, recipe, dtype, fused, phase), rows in groups.items():
        found = layer(
            *([int(row[side]) for row in rows] for side in "MNK"),
            hardware=DEVICES[gpu],
            recipe=recipe or None,
            precision=None if recipe else FORMATS[dtype],
            training=phase == "training",
            fused=fused == "1",
            constants=name,
        )
        for column in COLUMNS:
            if rows[0][column]:
                expected = [float(row[column]) for row in rows]
                said = found.value(column)
                assert said == pytest.approx(expected, rel=1e-9), (gpu, recipe, column)


def test_a_layer_worked_by_hand() -> None:
    """Bytes an element: input and gradient 5 + 3, weights 3 + 4 + 3; three products."""
    found = layer(4096, 4096, 4096, recipe="rowwise", training=True)
    casts = (2 * (5 + 3) + 3 + 4 + 3) * 4096**2 / BYTES_A_SECOND
    products = 3 * 2 * 4096**3 / FLOPS_A_SECOND
    assert found.value("casts_time") == pytest.approx(casts)
    assert found.value("products_time") == pytest.approx(products)
    assert found.value("latency") == pytest.approx(casts + products)
    # The constants of the MI300X were measured, and later copied from the H100.
    early, late = (
        layer(8192, 8192, 8192, hardware="MI300X", constants=name).value("latency")
        for name in ("torchao-early", "torchao-0.18.0")
    )
    assert early / late == pytest.approx(0.78 / 0.47)
    share = constants(NAMES[0]).of("Cloud.MI300X").by_name("compute_fraction")
    assert share == 0.78
    assert "copied from the H100, not measured" in share.origin.brief
    assert "[@pytorch2026torchao]" in share.origin.brief


def test_fusing_saves_reads_of_activations_and_no_launch() -> None:
    asked: dict[str, Any] = {"recipe": "rowwise", "training": True}
    apart, fused = (layer(8192, 4096, 2048, fused=each, **asked) for each in (False, True))
    saved = 2 * (8192 * 2048 + 8192 * 4096) / BYTES_A_SECOND
    assert apart.value("latency") - fused.value("latency") == pytest.approx(saved)
    tiny, none = (layer(1, 1, 1, fused=each, **asked) for each in (False, True))
    assert tiny.value("latency") == none.value("latency")
    # Tensorwise: ten passes, three of which move nothing; of one element, all are launches.
    launched = layer(1, 1, 1, recipe="tensorwise", training=True)
    assert launched.value("casts_time") == pytest.approx(10 * 2e-6)
    assert launched.bottleneck == "Overhead Bound"
