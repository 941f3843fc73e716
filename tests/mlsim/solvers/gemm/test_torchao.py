"""PyTorch's roofline of low precision, reproduced: all recipes, fused or not, in every column."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine
from mlsim.hardware.named_constants import constants

SAME = 1e-9
DEVICES = {
    each.called: each.device
    for name in ("torchao-0.18.0", "torchao-early")
    for each in constants(name).devices.values()
}
COLUMNS = {
    "bf16_gemm_s": "baseline_time",
    "lowp_gemm_s": "products_time",
    "cast_overhead_s": "casts_time",
    "predicted_speedup_vs_bf16": "format_speedup",
}
FORMATS = {"bfloat16": "bf16", "float8_e4m3fn": "fp8", "float4_e2m1fn_x2": "fp4"}

# Worked by hand, in case the folder of references is not there: M = K = N = 4096 on the H100
# of PyTorch, 2.4 TB/s x 0.92 and 1,979 TFLOP/s x 0.78, rowwise, training.
ELEMENTS, BYTES_A_SECOND, FLOPS_A_SECOND = 4096**2, 2.4e12 * 0.92, 1979e12 * 0.78


def groups(path: Path, *names: str) -> Iterator[tuple[tuple[str, ...], list[dict[str, str]]]]:
    """Yield the rows that differ in their shape alone."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[tuple(row.get(name, "") for name in names)].append(row)
    yield from found.items()


def sides(rows: list[dict[str, str]]) -> list[list[int]]:
    return [[int(row[name]) for row in rows] for name in ("M", "N", "K")]


@pytest.mark.parametrize(
    ("file", "name", "count"),
    [("torchao-open.csv", "torchao-0.18.0", 4059), ("torchao-seed-open.csv", "torchao-early", 990)],
)
def test_every_answer_of_pytorch_comes_out(
    reference: Path, file: str, name: str, count: int
) -> None:
    compared = 0
    path = reference / "data" / file
    for key, rows in groups(path, "gpu", "recipe", "fuse_with_prev", "pass"):
        gpu, recipe, fused, phase = key
        found = Engine.gemm(
            *sides(rows),
            hardware=DEVICES[gpu],
            recipe=recipe,
            training=phase != "inference_fwd",
            fused=fused == "1",
            constants=name,
        )
        for column, quantity in COLUMNS.items():
            expected = [float(row[column]) for row in rows]
            assert found.value(quantity) == pytest.approx(expected, rel=SAME), (key, column)
        compared += len(rows)
    assert compared == count


def test_every_product_of_pytorch_comes_out(reference: Path) -> None:
    for (gpu, dtype, mx), rows in groups(
        reference / "data" / "torchao-gemm-open.csv", "gpu", "dtype", "mx_recipe"
    ):
        asked: dict[str, Any] = {"recipe": mx.removesuffix("_cutlass")} if mx else {}
        found = Engine.gemm(
            *sides(rows),
            hardware=DEVICES[gpu],
            precision=None if mx else FORMATS[dtype],
            constants="torchao-0.18.0",
            **asked,
        )
        expected = [float(row["gemm_s"]) for row in rows]
        assert found.value("products_time") == pytest.approx(expected, rel=SAME), (gpu, mx)


def test_a_layer_worked_by_hand() -> None:
    """Bytes an element: input and gradient 5 + 3, weights 3 + 4 + 3; three products."""
    found = Engine.gemm(
        4096, 4096, 4096, hardware="H100", recipe="rowwise", training=True,
        constants="torchao-0.18.0",
    )  # fmt: skip
    casts = (2 * (5 + 3) + 3 + 4 + 3) * ELEMENTS / BYTES_A_SECOND
    products = 3 * 2 * 4096**3 / FLOPS_A_SECOND
    assert found.value("casts_time") == pytest.approx(casts)
    assert found.value("products_time") == pytest.approx(products)
    assert found.value("latency") == pytest.approx(casts + products)


def test_a_pass_that_moves_nothing_still_is_launched() -> None:
    """Tensorwise: ten passes, three of which move nothing; of one element, all are launches."""
    found = Engine.gemm(
        1, 1, 1, hardware="H100", recipe="tensorwise", training=True, constants="torchao-0.18.0"
    )
    assert found.value("casts_time") == pytest.approx(10 * 2e-6)
    assert found.bottleneck == "Overhead Bound"


def test_fusing_saves_reads_of_activations_and_no_launch() -> None:
    asked: dict[str, Any] = {
        "hardware": "H100", "recipe": "rowwise", "training": True, "constants": "torchao-0.18.0"
    }  # fmt: skip
    apart, fused = (Engine.gemm(8192, 4096, 2048, fused=each, **asked) for each in (False, True))
    saved = 2 * (8192 * 2048 + 8192 * 4096) / BYTES_A_SECOND
    assert apart.value("latency") - fused.value("latency") == pytest.approx(saved)
    tiny, none = (Engine.gemm(1, 1, 1, fused=each, **asked) for each in (False, True))
    assert tiny.value("latency") == none.value("latency")


def test_the_early_constants_of_the_mi300x_are_measured_ones() -> None:
    early, late = (
        Engine.gemm(8192, 8192, 8192, hardware="MI300X", constants=name).value("latency")
        for name in ("torchao-early", "torchao-0.18.0")
    )
    assert early / late == pytest.approx(0.78 / 0.47)


def test_a_constant_is_a_value_with_its_note_and_its_document() -> None:
    share = constants("torchao-0.18.0").of("Cloud.MI300X").by_name("compute_fraction")
    assert share == 0.78
    assert "copied from the H100, not measured" in share.origin.brief
    assert "[@pytorch2026torchao]" in share.origin.brief
