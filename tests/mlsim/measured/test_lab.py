"""The laboratory: real times, marked; refusals instead of guesses; noise only if asked for."""

from __future__ import annotations

from typing import Any

import pytest

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")

from mlsim import Hardware, lab  # noqa: E402
from mlsim.errors import InvalidValueError, NotMeasuredError, UnknownNameError  # noqa: E402
from mlsim.measured.sampled import sample  # noqa: E402
from mlsim.measured.shelf import shelf  # noqa: E402


def test_devices_are_those_of_the_shelf() -> None:
    table = lab.devices()
    assert table.hardware.nunique() == 9
    for key, rows in table.groupby("hardware"):
        there = [row for row in shelf(key) if row.kind == "product"]
        assert rows["rows"].sum() == len(there)
        assert (rows.low <= 1).all()
        assert (rows.high >= 1).all()
    assert not table.duplicated(["hardware", "precision", "backend"]).any()


def test_a_measured_product_is_the_row_of_the_shelf() -> None:
    row = next(
        row
        for row in shelf("Cloud.H100")
        if row.engine == "vllm" and row.kind == "product" and row.path == "fp8"
    )
    found = lab.gemm(*row.shape, hardware="H100", precision="fp8", backend="vllm").iloc[0]
    assert found.time == row.seconds
    assert not found.interpolated
    assert found.neighbours == (row.shape,)
    assert row.version in found.source
    assert row.kernel in found.source
    m, n, k = row.shape
    assert found.rate == pytest.approx(2 * m * n * k / row.seconds)


def test_a_sweep_grows_and_stays_below_the_peak() -> None:
    sizes = np.geomspace(64, 8192, 15).round().astype(int)
    table = lab.gemm(sizes, sizes, sizes, hardware=Hardware.Cloud.H100)
    assert list(table.M) == sizes.tolist()
    assert set(table.interpolated) == {True, False}
    assert (table.rate < 989e12).all()  # dense BF16 of the data sheet
    assert table.time.iloc[-1] > 100 * table.time.iloc[0]
    assert ((table.low <= table.time) & (table.time <= table.high)).all()


def test_one_number_goes_with_many() -> None:
    for many in ([1, 2], range(1, 3), pd.Series([1, 2]), np.array([1.0, 2.0])):
        assert list(lab.gemm(many, 64, 128, hardware="A100").N) == [64, 64]


def test_noise_is_repeatable_and_within_the_measured_limits() -> None:
    once = lab.gemm(1024, [1024, 2048], 1024, hardware="H100")
    runs = lab.gemm(1024, [1024, 2048], 1024, hardware="H100", repeat=200, seed=3)
    assert "run" not in once
    assert len(runs) == 400
    assert ((runs.low <= runs.time) & (runs.time <= runs.high)).all()
    assert runs.time.nunique() > 390
    assert runs.rate.iloc[0] == pytest.approx(2 * 1024**3 / runs.time.iloc[0])
    again = lab.gemm(1024, 2048, 1024, hardware="H100", repeat=200, seed=3)
    assert list(again.time) == list(runs.time[runs.N == 2048])
    other = lab.gemm(1024, 2048, 1024, hardware="H100", repeat=200, seed=4)
    assert list(other.time) != list(again.time)


def test_a_language_model_is_timed_product_by_product() -> None:
    table = lab.run("Llama3_8B", hardware="H100", batch_size=8).set_index("name")
    # Hidden size 4,096, 32 heads and 8 KV heads of 128: 6,144 columns.
    assert list(table.loc["queries, keys, values", ["M", "N", "K"]]) == [8, 6144, 4096]
    alone = lab.gemm(8, 6144, 4096, hardware="H100").time.iloc[0]
    assert table.loc["queries, keys, values", "total"] == pytest.approx(32 * alone)
    assert table.loc["attention output", "status"] == "measured"
    missing = table[table.status == "not measured"]
    assert list(missing.index) == ["embedding", "norms", "attention", "output layer"]
    assert missing[["time", "low", "high", "total"]].isna().all(axis=None)
    assert missing.note.str.len().min() > 20
    assert table.attrs["not_measured"] == tuple(missing.index)
    assert table.attrs["complete"] is False
    assert table.attrs["total"] == pytest.approx(table.total.sum())
    assert table.attrs["low"] < table.attrs["total"] < table.attrs["high"]


def test_a_prompt_has_a_row_for_each_token() -> None:
    table = lab.run("Llama3_8B", hardware="H100", batch_size=2, prompt_tokens=512)
    rows = table.set_index("name").M
    assert rows["feed-forward, up"] == 1024
    assert rows["output layer"] == 2  # one token of each sequence is asked for


def test_experts_are_one_kernel_of_their_own() -> None:
    """Both matrices of a layer's experts were measured together, in the first one's row."""
    table = lab.run("Mixtral_8x7B", hardware="H100", batch_size=64).set_index("name")
    alone = sample("Cloud.H100", "experts", "bf16").read((64, 4096, 14336, 2, 8, 1, 1, 0))
    assert table.loc["experts, up", "total"] == pytest.approx(32 * alone.seconds)
    assert table.loc["experts, down", "status"] == "not measured"
    assert "one kernel with the first" in table.loc["experts, down", "note"]
    assert "experts, down" not in table.attrs["not_measured"]
    assert table.attrs["share_of_multiply_adds"] > 0.9


def test_attention_needs_to_know_what_is_cached() -> None:
    asked = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8}
    without = lab.run(**asked).set_index("name")
    assert "give cached_tokens" in without.loc["attention", "note"]
    short, long = (
        lab.run(**asked, cached_tokens=each).set_index("name").loc["attention"]
        for each in (512, 8192)
    )
    assert short.status == long.status == "interpolated"
    assert 0 < short.low < short.time < short.high < long.time
    prompt = lab.run(**asked, prompt_tokens=512).set_index("name")
    alone = sample("Cloud.H100", "prefill", "bf16").read((512, 8, 32, 8, 128, 0))
    assert prompt.loc["attention", "time"] == alone.seconds
    # A narrow format leaves attention in 16 bits.
    narrow = lab.run(**asked, cached_tokens=512, precision="fp8").set_index("name")
    assert narrow.loc["attention", "time"] == short.time


def test_latent_and_unmasked_attention_are_not_measured() -> None:
    latent = lab.run("DeepSeek_V3", hardware="H100", cached_tokens=512).set_index("name")
    assert "was not measured" in latent.loc["attention", "note"]
    encoder = lab.run("BERT_Base", hardware="H100", prompt_tokens=128).set_index("name")
    assert encoder.loc["attention", "status"] == "not measured"


def test_what_a_format_leaves_in_16_bits_is_timed_in_16() -> None:
    wide = lab.run("Mixtral_8x7B", hardware="H100").set_index("name")
    narrow = lab.run("Mixtral_8x7B", hardware="H100", precision="fp8").set_index("name")
    assert narrow.time["output layer"] == wide.time["output layer"]
    assert narrow.time["attention output"] != wide.time["attention output"]


def test_convolutions_are_marked_as_products() -> None:
    table = lab.run("ResNet50", hardware="A100", batch_size=1).set_index("name")
    # 14 x 14 pixels, 3 x 3 x 256 inputs of each of 256 outputs.
    assert list(table.loc["conv4.2.b", ["M", "N", "K"]]) == [196, 256, 2304]
    assert table.loc["conv4.2.b", "status"] == "as a product"
    assert table.loc["fc", "status"] == "interpolated"
    assert table.loc["maxpool", "status"] == "not measured"
    rest = table.attrs["total"] - table.attrs["total_as_products"]
    assert rest == pytest.approx(table.total["fc"])


def test_grouped_convolutions_are_no_product() -> None:
    table = lab.run("MobileNetV2", hardware="A100", batch_size=1)
    assert (table.status == "not measured").sum() > 10


PRODUCT = {"M": 64, "N": 64, "K": 64, "hardware": "A100"}
LLAMA = {"model": "Llama3_8B", "hardware": "H100"}
WHOLE = "N must be whole numbers from 1 up"
REFUSED: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    *(
        (lab.gemm, {**PRODUCT, "N": [64, wrong]}, InvalidValueError, WHOLE)
        for wrong in (0, -1, 1.5, "64", None, True, float("nan"), float("inf"))
    ),
    *(
        (lab.gemm, {**PRODUCT, "repeat": wrong}, InvalidValueError, "from 0 to 1,000")
        for wrong in (-1, 1.5, True, 1001)
    ),
    (
        lab.gemm,
        {**PRODUCT, "M": [1, 2], "N": [64] * 3},
        InvalidValueError,
        "2 of M, 3 of N, 1 of K",
    ),
    (lab.gemm, {**PRODUCT, "M": []}, InvalidValueError, "0 of M"),
    (lab.gemm, {**PRODUCT, "M": [64, 8193]}, NotMeasuredError, "M from 1 to 8,192"),
    (lab.gemm, {**PRODUCT, "hardware": "H1000"}, UnknownNameError, "H1000"),
    (lab.run, {**LLAMA, "cached_tokens": 0}, InvalidValueError, "cached_tokens must be a whole"),
    (lab.run, {**LLAMA, "cached_tokens": 8, "prompt_tokens": 8}, InvalidValueError, "leave it out"),
    (
        lab.run,
        {**LLAMA, "model": "ResNet50", "cached_tokens": 8},
        InvalidValueError,
        "leave it out",
    ),
    (
        lab.run,
        {**LLAMA, "model": "BERT_Base", "cached_tokens": 8},
        InvalidValueError,
        "leave it out",
    ),
    (lab.run, {**LLAMA, "cached_tokens": 131_072}, InvalidValueError, "fewer than that are cached"),
    (lab.run, {**LLAMA, "batch_size": 0}, InvalidValueError, "batch_size"),
    (lab.run, {**LLAMA, "model": "ResNet50", "prompt_tokens": 5}, InvalidValueError, "fixed size"),
    (lab.run, {**LLAMA, "prompt_tokens": 131_073}, InvalidValueError, "context of 131,072"),
    (lab.run, {"model": "ResNet50", "hardware": "T4"}, NotMeasuredError, "predict"),
]


def test_what_was_not_measured_or_can_not_be_is_refused() -> None:
    for ask, asked, error, words in REFUSED:
        with pytest.raises(error, match=words):
            ask(**asked)
    # The largest that were measured, and the most runs, are answered.
    assert len(lab.gemm(8192, 64, 64, hardware="A100", repeat=1000)) == 1000
