"""Does it fit: rows by number format, what they promise, and what they say where it doesn't."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine, Hardware, Models, System
from mlsim.engine.serve import fit_rows
from mlsim.errors import MissingLibraryError
from mlsim.solvers.serving.fit import COLUMNS, as_dict, as_text
from mlsim.units import held, text
from mlsim.workloads.steps import Parallelism

H100 = Hardware.Cloud.H100


def board(devices: int) -> System:
    return System("Board", H100, devices=devices, link_bandwidth="450 GB/s")


def rows_of(**given):
    table = Engine.fit(**{"model": "Llama3_8B", "hardware": "H100", **given})
    assert list(table.columns) == list(COLUMNS)
    return {row.precision: row for row in table.itertuples()}


@pytest.mark.parametrize(
    ("model", "hardware", "prompt"),
    [("Llama3_8B", "H100", 512), ("Llama3_8B", "L4", 4096), ("Mixtral_8x7B", "H200", 512)],
)
def test_a_row_is_what_serve_says(model: str, hardware: str, prompt: int) -> None:
    asked = {"model": model, "hardware": hardware, "prompt_tokens": prompt}
    for row in rows_of(**asked).values():
        layout = ("weights", "activations", "kv_cache", "tensor_parallel")
        serve = partial(Engine.serve, **asked, **{name: getattr(row, name) for name in layout})
        one = serve()
        assert row.feasible == one.feasible
        assert row.weight_memory == one.value("weight_memory")
        assert (row.largest_batch, row.longest_context) == (one.largest_batch, one.longest_context)
        if not row.feasible:
            assert math.isnan(row.time_to_first_token)
            assert math.isnan(row.tokens_per_second)
            continue
        assert row.reason == ""
        for name in ("time_to_first_token", "time_per_output_token"):
            assert getattr(row, name) == pytest.approx(one.value(name))
        full = serve(batch_size=row.largest_batch)
        assert full.feasible
        assert row.tokens_per_second == pytest.approx(full.decode_throughput)


def test_formats_are_those_that_the_device_computes_in() -> None:
    assert list(rows_of()) == ["bf16", "fp8, KV bf16", "w8a8", "w8a16", "w4a16"]
    assert list(rows_of(hardware="A100"))[:2] == ["bf16", "w8a8"]
    # Without bf16, fp16; without int8, weights in it nevertheless.
    assert list(rows_of(hardware="V100")) == ["fp16", "w8a16", "w8a16kv8", "w4a16", "w4a16kv8"]
    assert "nvfp4, KV bf16" in rows_of(hardware="B200")
    assert {row.activations for row in rows_of(hardware="T4").values()} == {"fp16", "int8"}


def test_a_cache_of_8_bits_is_tried_where_it_is_the_cache_that_limits() -> None:
    assert not [name for name in rows_of() if "KV fp8" in name]
    small = rows_of(hardware="L4")
    assert {"bf16, KV fp8", "fp8", "w8a8kv8", "w4a16, KV fp8"} <= set(small)
    assert small["bf16"].longest_context < Models.Llama3_8B.context
    assert small["bf16, KV fp8"].longest_context > 1.9 * small["bf16"].longest_context
    # Weights that leave no room are not helped by it.
    assert not [name for name in rows_of(model="Llama3_70B") if name.startswith("bf16,")]


def test_a_model_released_in_mxfp4_is_tried_in_it() -> None:
    found = rows_of(model="GPT_OSS_20B", hardware="RTX4090")
    assert next(iter(found)) == "mxfp4, as released"
    assert found["mxfp4, as released"].feasible
    # No second row says the same, nor does one of int4.
    assert not {"mxfp4 weights", "w4a16"} & set(found)


def test_what_is_too_large_says_by_how_much_and_what_would_do() -> None:
    """More devices, a shorter sequence, or nothing; and what would do does."""
    row = rows_of(model="Llama3_70B")["bf16"]
    assert not row.feasible
    assert (row.largest_batch, row.longest_context) == (0, 0)
    assert row.reason == "60 GiB too much; it would fit with 2 devices (tensor_parallel=2)"
    assert rows_of(model="Llama3_70B", hardware=board(2))["bf16"].feasible
    row = rows_of(hardware="L4", prompt_tokens=100_000)["bf16"]
    assert "it would fit with a sequence of 38,688 tokens instead of 100,128 or 2 dev" in row.reason
    shorter = {"hardware": "L4", "prompt_tokens": 38_688 - 128, "precision": "bf16"}
    assert rows_of(**shorter)["bf16"].feasible
    small = chip(capacity="1 MB", bf16="10 TFLOP/s")
    assert rows_of(hardware=small)["bf16"].reason.endswith("GiB too much")


def test_a_system_is_used_whole_unless_told_otherwise() -> None:
    node = board(8)
    found = rows_of(model="Llama3_70B", hardware=node)
    assert {row.tensor_parallel for row in found.values()} == {8}
    assert found["bf16"].weight_memory == pytest.approx(141.1e9 / 8, rel=2e-3)
    found = rows_of(model="Llama3_70B", hardware=node, tensor_parallel=2)
    assert {row.tensor_parallel for row in found.values()} == {2}
    staged = rows_of(model="Llama3_70B", hardware=node, pipeline_parallel=2, precision="bf16")
    assert staged["bf16"].tensor_parallel == 4
    # Seven don't divide the heads; four do.
    assert rows_of(hardware=board(7), precision="bf16")["bf16"].tensor_parallel == 4


def test_formats_that_are_given_are_rows_even_if_they_can_t_run() -> None:
    found = rows_of(hardware="T4", precision=["bf16", "fp16", "int8"])
    assert list(found) == ["bf16", "fp16", "int8"]
    assert "can't compute in bf16" in found["bf16"].reason
    assert found["bf16"].weights == "bf16"
    assert math.isnan(found["bf16"].weight_memory)
    assert found["int8"].feasible
    assert list(rows_of(precision="w4a16")) == ["w4a16"]


def test_an_encoder_has_one_pass_and_no_batch_that_would_be_too_large() -> None:
    import pandas as pd

    row = rows_of(model="BERT_Large", hardware="T4")["fp16"]
    assert row.feasible
    assert row.time_to_first_token > 0
    assert math.isnan(row.time_per_output_token)
    assert row.longest_context is pd.NA


def table(model: Any, hardware: Any, precision: Any = None) -> tuple[Any, list[Any]]:
    asked = {"parallelism": Parallelism(), "widest": True, "precision": precision}
    return fit_rows(model, hardware, output_tokens=128 if model.decoder else None, **asked)


def told(*asked: Any) -> list[str]:
    return as_text(*table(*asked)).splitlines()


def test_a_table_as_data() -> None:
    """8,030,261,248 parameters of a byte, and another for embeddings, output layer and norms."""
    data = as_dict(*table(Models.Llama3_8B, H100, "fp8"))
    (row,) = data["rows"]
    wide = 2 * 128_256 * 4096 + 65 * 4096
    assert row["weight_memory"] == {"value": 8_030_261_248 + wide, "unit": "B"}
    assert (row["feasible"], data["prompt_tokens"]["value"]) == (True, 512)
    assert data["assumptions"][0].startswith("KV cache in fp8, since that was asked of all")
    assert "assumptions" not in as_dict(*table(Models.Llama3_8B, H100, "bf16"))


def test_a_table_as_text() -> None:
    """70,553,706,496 parameters of 2 B are 131.4 GiB; of 79.65 GiB a tenth is reserved."""
    lines = told(Models.Llama3_70B, H100, ["bf16", "w4a16"])
    assert lines[0] == (
        "Llama 3.1 70B on NVIDIA H100 SXM 80 GB, 512 prompt + 128 output tokens, "
        "10% of memory reserved"
    )
    heads = ["precision", "weights", "batch", "context", "first token", "per token", "token/s"]
    assert re.split(r"  +", lines[1].strip()) == heads
    assert lines[2] == (
        "  bf16       131.4 GiB  no: 60 GiB too much; it would fit with 2 devices "
        "(tensor_parallel=2)"
    )
    row = rows_of(model="Llama3_70B", precision="w4a16", prompt_tokens=512)["w4a16"]
    times = (text(each, "s") for each in (row.time_to_first_token, row.time_per_output_token))
    counts = (f"{each:,.0f}" for each in (row.largest_batch, row.longest_context))
    shown = ["w4a16", held(row.weight_memory), *counts, *times, f"{row.tokens_per_second:,.0f}"]
    assert re.split(r"  +", lines[3].strip()) == shown
    # Columns end where their heads do.
    assert len(lines[1]) == len(lines[3])
    assert lines[4:] == [
        "Times are those of one sequence, token/s that of the largest batch.",
        "It fits in w4a16.",
    ]
    released = told(Models.GPT_OSS_20B, Hardware.Workstation.RTX4090, ["mxfp4"])
    assert "As released: mxfp4 in the experts, 16 bits elsewhere (openai2026gptoss)." in released
    # A cache in the format of all is told where no wider one stands beside it.
    for precision, said in ("fp8", True), (["fp8", "bf16"], True), (None, False):
        lines = told(Models.Llama3_8B, Hardware.Cloud.L4, precision)
        assert any("KV cache in fp8, since that was asked" in each for each in lines) == said
    half = told(Models.Llama3_8B, Hardware.Cloud.MI250X, "bf16")
    assert half[4].startswith("AMD Instinct MI250X: one of its two dies (GCD)")
    assert half[4].endswith("; a module has two.")
    encoder = told(Models.BERT_Large, Hardware.Cloud.T4, ["fp16"])
    assert encoder[1].split() == ["precision", "weights", "one", "pass"]
    assert encoder[-2:] == ["The time is that of one text.", "It fits in each."]
    assert told(Models.Llama3_405B, Hardware.Cloud.L4, ["bf16"])[-1] == "It fits in none of these."


def test_bad_input_is_refused() -> None:
    assert answered(rows_of, "serving", "fit") == []


def test_without_pandas_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingLibraryError, match="needs pandas"):
        Engine.fit(model="Llama3_8B", hardware="H100")
