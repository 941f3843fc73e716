"""Recipes as data: read strictly, a reader's file as well as ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim import Engine
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.workloads.recipes import FOLDER, load_recipe, recipe, recipes

OURS = {
    *("fp8_tensorwise", "fp8_rowwise", "fp8_rowwise_gw_hp", "fp8_block128", "mxfp8", "mxfp4"),
    *("nvfp4", "int8", "int8_weights", "int4_weights"),
}
TEXT = (FOLDER / "fp8_rowwise.toml").read_text(encoding="utf-8")


def test_all_that_are_owed_are_there() -> None:
    assert set(recipes()) == OURS
    assert len(recipes("torchao")) == 15


def test_bytes_of_a_recipe_worked_by_hand() -> None:
    """Weights in int4, groups of 128: half a byte, and two and a half for each group."""
    (kernel,) = recipe("int4_weights").kernels("inference")
    assert kernel.computes == "bf16"
    assert (kernel.input_element_bytes, kernel.weight_element_bytes) == (2.0, 0.5)
    assert kernel.weight_scale_bytes == 2.5 / 128
    products = recipe("fp8_rowwise_gw_hp").kernels("training")[:3]
    assert [each.computes for each in products] == ["fp8", "fp8", "bf16"]


def test_a_readers_recipe_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace('key = "fp8_rowwise"', 'key = "mine"'), encoding="utf-8")
    mine, ours = (
        Engine.gemm(512, 1024, 2048, hardware="H100", recipe=each, training=True).value("latency")
        for each in (path, "fp8_rowwise")
    )
    assert mine == ours


def test_a_recipe_needs_a_phase_and_all_its_products(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    head = TEXT.partition("[inference")[0]
    path.write_text(head, encoding="utf-8")
    with pytest.raises(DataFileError, match="needs a phase"):
        load_recipe(path)
    forward = '[training.products.forward]\nleft = "fp8"\nright = "fp8"\ncomputes = "fp8"\n'
    path.write_text(head + forward, encoding="utf-8")
    with pytest.raises(DataFileError, match=r"input_gradient.* is missing"):
        load_recipe(path)


def test_an_unknown_recipe_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'fp8_rowwise'"):
        recipe("fp8_rowwis")
