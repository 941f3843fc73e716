"""The laboratory: real times, marked; refusals instead of guesses; noise only if asked for."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import answered

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")

from mlsim import Hardware, lab  # noqa: E402
from mlsim.measured.surfaces import sample, shelf  # noqa: E402

LLAMA: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8}


def run(**change: Any) -> Any:
    """Return the times of Llama 3.1 8B on the H100, asked otherwise, by the names of their parts."""
    return lab.run(**{**LLAMA, **change}).set_index("name")


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
        if (row.engine, row.kind, row.path) == ("vllm", "product", "fp8")
    )
    m, n, k = row.shape
    found = lab.gemm(m, n, k, hardware="H100", precision="fp8", backend="vllm").iloc[0]
    assert (found.time, found.neighbours) == (row.seconds, (row.shape,))
    assert not found.interpolated
    assert row.version in found.source
    assert row.kernel in found.source
    assert found.rate == pytest.approx(2 * m * n * k / row.seconds)
    # As the first line of the device's file has it: 2.732 microseconds of 1 x 6,144 x 64.
    first = shelf("Cloud.H100")[0]
    assert (first.shape, first.fitted) == ((1, 6144, 64), False)
    assert first.seconds == pytest.approx(2.732e-6)
    # One number goes with many.
    for many in ([1, 2], range(1, 3), pd.Series([1, 2]), np.array([1.0, 2.0])):
        assert list(lab.gemm(many, 64, 128, hardware="A100").N) == [64, 64]


def test_a_sweep_grows_and_stays_below_the_peak() -> None:
    sizes = np.geomspace(64, 8192, 15).round().astype(int)
    table = lab.gemm(sizes, sizes, sizes, hardware=Hardware.Cloud.H100)
    assert list(table.M) == sizes.tolist()
    assert set(table.interpolated) == {True, False}
    assert (table.rate < 989e12).all()  # dense BF16 of the data sheet
    assert table.time.iloc[-1] > 100 * table.time.iloc[0]
    assert ((table.low <= table.time) & (table.time <= table.high)).all()


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
    table = run()
    # Hidden size 4,096, 32 heads and 8 KV heads of 128: 6,144 columns.
    assert list(table.loc["queries, keys, values", ["M", "N", "K"]]) == [8, 6144, 4096]
    alone = lab.gemm(8, 6144, 4096, hardware="H100").time.iloc[0]
    assert table.total["queries, keys, values"] == pytest.approx(32 * alone)
    assert table.status["attention output"] == "measured"
    missing = table[table.status == "not measured"]
    assert list(missing.index) == ["embedding", "norms", "attention", "output layer"]
    assert missing[["time", "low", "high", "total"]].isna().all(axis=None)
    assert missing.note.str.len().min() > 20
    assert table.attrs["not_measured"] == tuple(missing.index)
    assert table.attrs["complete"] is False
    assert table.attrs["total"] == pytest.approx(table.total.sum())
    assert table.attrs["low"] < table.attrs["total"] < table.attrs["high"]
    # A prompt has a row for each token; one of each sequence is asked for.
    rows = run(batch_size=2, prompt_tokens=512).M
    assert (rows["feed-forward, up"], rows["output layer"]) == (1024, 2)


def test_experts_are_one_kernel_of_their_own() -> None:
    """Both matrices of a layer's experts were measured together, in the first one's row."""
    table = run(model="Mixtral_8x7B", batch_size=64)
    alone = sample("Cloud.H100", "experts", "bf16").read((64, 4096, 14336, 2, 8, 1, 1, 0))
    assert table.total["experts, up"] == pytest.approx(32 * alone.seconds)
    assert table.status["experts, down"] == "not measured"
    assert "one kernel with the first" in table.note["experts, down"]
    assert "experts, down" not in table.attrs["not_measured"]
    assert table.attrs["share_of_multiply_adds"] > 0.9
    # What a format leaves in 16 bits is timed in 16.
    narrow = run(model="Mixtral_8x7B", batch_size=64, precision="fp8").time
    assert narrow["output layer"] == table.time["output layer"]
    assert narrow["attention output"] != table.time["attention output"]


def test_attention_needs_to_know_what_is_cached() -> None:
    """Latent and unmasked attention was not measured at all."""
    short, long = (run(cached_tokens=each).loc["attention"] for each in (512, 8192))
    assert short.status == long.status == "interpolated"
    assert 0 < short.low < short.time < short.high < long.time
    alone = sample("Cloud.H100", "prefill", "bf16").read((512, 8, 32, 8, 128, 0))
    assert run(prompt_tokens=512).time["attention"] == alone.seconds
    # A narrow format leaves attention in 16 bits.
    assert run(cached_tokens=512, precision="fp8").time["attention"] == short.time
    for asked, words in (
        ({}, "give cached_tokens"),
        ({"model": "DeepSeek_V3", "cached_tokens": 512}, "was not measured"),
        ({"model": "BERT_Base", "prompt_tokens": 128}, "was not measured"),
    ):
        found = run(**asked).loc["attention"]
        assert (found.status, words in found.note) == ("not measured", True), (asked, found.note)


def test_convolutions_are_marked_as_products_and_grouped_ones_are_none() -> None:
    table = run(model="ResNet50", hardware="A100", batch_size=1)
    # 14 x 14 pixels, 3 x 3 x 256 inputs of each of 256 outputs.
    assert list(table.loc["conv4.2.b", ["M", "N", "K"]]) == [196, 256, 2304]
    status = ("as a product", "interpolated", "not measured")
    assert tuple(table.status[["conv4.2.b", "fc", "maxpool"]]) == status
    rest = table.attrs["total"] - table.attrs["total_as_products"]
    assert rest == pytest.approx(table.total["fc"])
    grouped = run(model="MobileNetV2", hardware="A100", batch_size=1)
    assert (grouped.status == "not measured").sum() > 10


def test_what_was_not_measured_or_can_not_be_is_refused() -> None:
    product = {"M": 64, "N": 64, "K": 64, "hardware": "A100"}
    assert answered(lambda **change: lab.gemm(**{**product, **change}), "lab", "products") == []
    assert answered(run, "lab", "runs") == []
    # The largest that were measured, and the most runs, are answered.
    assert len(lab.gemm(8192, 64, 64, hardware="A100", repeat=1000)) == 1000
