"""Claims: hand-worked bounds, what would make them true, and published results never refused."""

from __future__ import annotations

import csv
import math
from functools import partial
from pathlib import Path
from typing import Any

import kept
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine
from mlsim.errors import InvalidValueError
from mlsim.measured import measurements, serving_measurements, training_measurements
from mlsim.solvers.claims.checked import CACHE, CAPACITY, IMPOSSIBLE, WEIGHTS, Checked, Remedies

ROWS = Path(__file__).parents[3] / "fixtures" / "silicon_rows.csv"
PRINTED = kept.blocks("verdicts.txt")
ZOO = {"Llama-3.1-70B": "Llama3_70B", "MiniMax-M2.5": "MiniMax_M2"}
ZOO |= {"Qwen3-32B": "Qwen3_32B", "gpt-oss-120b": "GPT_OSS_120B"}
FORMATS = {"": {"precision": "bf16"}, "fp8": {"precision": "fp8", "kv_cache": "fp8"}}
FORMATS["fp4"] = {"precision": "nvfp4", "kv_cache": "fp8"}


def famous(**changed: Any) -> Checked:
    """Return the verdict on 314 tokens per second of a 70B model in FP16 on one MI300X."""
    asked: dict[str, Any] = {"model": "Llama2_70B", "hardware": "MI300X", "precision": "fp16"}
    asked |= {"batch_size": 1, "prompt_tokens": 256, "output_tokens": 256}
    asked |= {"tokens_per_second": 314}
    return Engine.check_claim(**(asked | changed))


huge = partial(
    Engine.check_claim, model="Llama3_405B", hardware="H200", precision="fp8", tokens_per_second=506
)
fast_images = partial(
    Engine.check_claim, model="ResNet50", hardware="A100", batch_size=32, samples_per_second=1e5
)


def test_314_tokens_per_second_by_hand_whose_numbers_know_how_they_were_computed() -> None:
    # 68.98 billion parameters less the embedding table, 2 B each, at 5.3 TB/s: 25.9 ms a token.
    read = (68_976_648_192 - 32_000 * 8192) * 2
    checked = famous()
    assert (checked.verdict, checked.term) == (IMPOSSIBLE, WEIGHTS)
    assert checked.excess == pytest.approx(314 * read / 5.3e12, rel=2e-3)
    assert (checked.excess.name, checked.bound.base) == ("claim over bound", "token/s")
    assert checked.excess == pytest.approx(314 / checked.bound.si)
    assert checked.estimate is None
    for each in (checked.excess, checked.bound):
        assert "time per output token = " in each.origin.how
    held = famous(hardware="H100", tokens_per_second=85)
    assert held.excess.name == "memory needed over memory there is"
    assert (held.bound.name, held.bound.to("GiB").magnitude) == ("bound on memory", 79.6474609375)
    trained = Engine.check_claim(model="MPT_3B", hardware="A100", devices=8, mfu=0.72)
    named = "calibrated estimate of model FLOPs utilization of training"
    assert trained.estimate.name == named
    assert trained.estimate.origin.brief.startswith(f"{named}, nothing sent (MPT 3B")


def test_what_would_make_314_true() -> None:
    """Nine sequences or nine devices, of which each step is 8.15 times too slow; eight don't."""
    found = famous().remedies
    assert (found.smallest, found.batch, found.devices, found.format) == (True, 9, 9, None)
    assert found.formats_tried == ("fp8", "int8", "w8a16", "w4a16")
    assert found.tokens_per_step == pytest.approx(8.15, abs=0.01)
    for name in ("batch_size", "devices"):
        assert [famous(**{name: count}).impossible for count in (8, 9)] == [True, False]


def test_a_format_is_found_where_one_does_it() -> None:
    checked = famous(tokens_per_second=60)
    assert checked.impossible
    assert checked.remedies.format == "fp8"
    assert not famous(tokens_per_second=60, precision="fp8").impossible
    # Half the weights' bits would be 77 tokens per second; 60 need 16 * 38.5 / 60.
    assert checked.remedies.bits_per_weight == pytest.approx(16 * 38.53 / 60, rel=5e-3)


def test_what_each_user_gets_has_a_largest_batch_and_without_one_the_best_is_taken() -> None:
    best = famous(batch_size=None)
    assert not best.impossible
    assert best.findings[1].batch == best.fitting == 541
    asked: dict[str, Any] = {"tokens_per_second": None, "time_per_output_token": "28 ms"}
    checked = famous(**asked, batch_size=200)
    assert (checked.verdict, checked.term) == (IMPOSSIBLE, WEIGHTS)
    assert (checked.remedies.smallest, checked.remedies.batch) == (False, 87)
    assert "at most 87 sequences run together" in str(checked)
    assert [famous(**asked, batch_size=batch).impossible for batch in (87, 88)] == [False, True]
    # A rate for each user and a time per token are one claim.
    rate = famous(tokens_per_second=None, tokens_per_second_per_user=1000 / 28, batch_size=200)
    for each in (rate, checked):
        assert each.remedies.tokens_per_step == each.excess == pytest.approx(checked.excess)


def test_weights_that_do_not_fit_decide() -> None:
    checked = huge()
    assert (checked.verdict, checked.term, checked.fitting) == (IMPOSSIBLE, CAPACITY, 0)
    # 405.9 GB of weights, 150.8 GB on each device.
    assert checked.remedies.devices == math.ceil(405.9 / 150.8)
    assert not huge(devices=8).impossible
    # A network is whole on each device: 2 B of 138,357,544 parameters, so that none helps.
    small = chip(capacity="200 MB", fp16="1 TFLOP/s")
    whole = Engine.check_claim(model="VGG16", hardware=small, samples_per_second=1)
    assert (whole.term, whole.fitting, whole.remedies) == (CAPACITY, 0, Remedies())
    assert whole.explain().value == 2 * 138_357_544


def test_the_first_token_of_a_prompt_alone() -> None:
    # 2 FLOP for each of 8 billion parameters and 8,000 tokens at 989 TFLOP/s: some 0.12 s.
    def at(time: str) -> Checked:
        return Engine.check_claim(
            model="Llama3_8B", hardware="H100", prompt_tokens=8000, batch_size=64,
            time_to_first_token=time,
        )  # fmt: skip

    assert at("100 ms").impossible
    assert at("100 ms").term == "arithmetic"
    # 32 x 2 x 8 x 128 numbers of two bytes a token: 8,000 of the prompt, and half of two.
    assert at("100 ms").machine.cache_each == 8001 * 131_072
    assert not at("150 ms").impossible


def test_utilization_of_training() -> None:
    def at(mfu: Any) -> Checked:
        return Engine.check_claim(model="Llama3_8B", hardware="H100", devices=8, mfu=mfu)

    assert at(1.2).impossible
    assert at("120%").excess == pytest.approx(1.2)
    assert at(1.2).remedies == Remedies(smallest=True)
    assert at(0.95).verdict == "possible"
    assert at("40%").verdict == "plausible"


def test_images_per_second() -> None:
    fast = fast_images()
    # 8.18 GFLOP an image at 312 TFLOP/s.
    assert fast.excess == pytest.approx(1e5 * 8.178e9 / 312e12, rel=2e-3)
    assert fast.remedies.devices == math.ceil(fast.excess)
    assert famous().machine.cache_each > 0
    assert fast.machine.cache_each == 0


def row_claim(row: dict[str, str]) -> Checked:
    """Judge a row with a cache in 8 bits, which is in its favor, or in the 16 of its weights."""
    formats: dict[str, Any] = FORMATS[row["precision"]]
    if "gpt-oss" in row["model_path"]:
        formats = {"weights": "mxfp4", "activations": "bf16", "kv_cache": "fp8"}
    return Engine.check_claim(
        model=ZOO[row["model_path"].partition("/")[2]],
        hardware=row["system"].removesuffix("_sxm").upper(),
        devices=int(row["tp_size"]),
        batch_size=int(row["batch_size"]),
        prompt_tokens=int(row["isl"]),
        output_tokens=int(row["osl"]),
        time_per_output_token=f"{row['silicon_tpot_ms']} ms",
        time_to_first_token=f"{row['silicon_ttft_ms']} ms",
        **formats,
    )


def test_rows_whose_concurrency_can_not_have_run() -> None:
    rows = list(csv.DictReader(ROWS.read_text("utf-8").splitlines()))
    judged = [row_claim(row) for row in rows]
    assert [each.term for each in judged[:6]] == [CAPACITY] * 4 + [CACHE] * 2
    # Rows of the same series with fewer requests could run.
    assert [each.impossible for each in judged] == [True] * 6 + [False] * 2
    # The running batch that is true is smaller, and above that of the honest row.
    assert judged[0].remedies.batch is not None
    assert 32 < judged[0].remedies.batch < 128


OF_A_ROW = ("model", "hardware", "devices", "batch_size", "prompt_tokens", "output_tokens")
OF_A_ROW += ("weights", "activations", "kv_cache")


def serving_claims() -> list[Checked]:
    names = {
        "decode_throughput": "tokens_per_second",
        "output_throughput": "tokens_per_second",
        "time_to_first_token": "time_to_first_token",
        "pass_throughput": "samples_per_second",
    }
    found = []
    for row in serving_measurements():
        total = row.value * (row.devices if row.per_device else 1)
        asked: dict[str, Any] = {name: getattr(row, name) for name in OF_A_ROW}
        asked[names[row.metric]] = f"{row.value} s" if row.unit == "s" else total
        found.append(Engine.check_claim(**asked))
    return found


def network_claims() -> list[Checked]:
    names = ("model", "hardware", "batch_size", "precision")
    return [
        Engine.check_claim(
            **{name: getattr(row, name) for name in names}, samples_per_second=row.value
        )
        for row in measurements()
        if row.metric == "throughput"
    ]


def training_claims() -> list[Checked]:
    return [
        Engine.check_claim(
            model=row.transformer,
            hardware=row.device,
            devices=min(row.devices, 4096),
            precision=row.precision,
            prompt_tokens=row.sequence_tokens - 2,
            mfu=row.base_value,
        )
        for row in training_measurements()
        if row.metric == "mfu"
    ]


@pytest.mark.parametrize("made", [serving_claims, network_claims, training_claims])
def test_no_published_result_is_called_impossible(made: Any) -> None:
    checked = made()
    assert len(checked) > 30
    assert [str(each) for each in checked if each.impossible] == []


def test_nonsense_is_refused() -> None:
    assert answered(famous, "claims") == []
    with pytest.raises(InvalidValueError, match="fixed input, so its speed is samples_per_second"):
        Engine.check_claim(model="ResNet50", hardware="A100", tokens_per_second=5)


def lines(shown: object) -> list[str]:
    """Return the lines of a text, words with one space between them."""
    return [" ".join(line.split()) for line in str(shown).splitlines()]


def test_verdicts_in_words() -> None:
    """Each number by hand where it is not above: a cache of 80 x 2 x 8 x 128 numbers a token.

    With 256 tokens and half of 256, 384 x 327,680 B are 120 MiB, of which (192 - 128.48) GiB
    hold 541. Of one device to an image, 16 of 32 take 8.178 GFLOP each: 2 x 38,150 a second.
    """
    assert lines(famous()) == PRINTED["tokens"]
    assert lines(fast_images(devices=2))[1:] == PRINTED["images"]
    trained = Engine.check_claim(model="Llama3_8B", hardware="H100", devices=8, mfu=0.72)
    assert trained.estimate is not None
    assert 0.4 < trained.estimate < 0.6
    over, shown = 0.72 / float(trained.estimate), f"{float(trained.estimate):.1%}"
    assert lines(trained) == [
        "Llama 3.1 8B on 8 x NVIDIA H100 SXM 80 GB, bf16: MFU 72.0%",
        f"verdict possible, but {over:.2f} times as fast as the calibrated estimate: ask",
        "how it was measured",
        "memory weights 14.96 GiB of 637.2 GiB",
        "bound 100% of the peak of the arithmetic",
        f"estimate {shown} (calibrated, nothing sent); claimed is {over:.2g} times as fast",
        "assumed sequences of 2,048 tokens; only the weights are held, once",
    ]
    more = Engine.check_claim(model="Llama3_8B", hardware="H100", devices=8, mfu="120%")
    assert "true if nothing that was tried: no batch, format or number of devices" in lines(more)
    slow = famous(tokens_per_second=30, devices=2)
    assert lines(slow)[1] == "verdict plausible: no more than 25% above the estimate"
    user = Engine.check_claim(model="Llama3_8B", hardware="H100", tokens_per_second_per_user=1000)
    assert lines(user)[0].endswith("bf16: 1,000 token/s for each user")
    assert "the best batch, 1 + 2 tokens each" in " ".join(lines(user))
    said = " ".join(lines(huge()))
    for words in (
        "verdict impossible: it needs 2.69 times the memory there is",
        "of 140.4 GiB: the weights don't fit",
        "with any number together, by arithmetic; claimed is 0.21 times as fast",
    ):
        assert words in said


def test_explained_and_written() -> None:
    checked = famous()
    assert "decode_throughput" in str(checked.explain())
    found = checked.to_dict()
    asked = {"devices": 1, "batch_size": 1, "prompt_tokens": 256, "output_tokens": 256}
    told = {"verdict": IMPOSSIBLE, "term": WEIGHTS, "fitting": 541, "tolerance": 0.25}
    assert found.items() >= {**asked, **told, "precision": "fp16"}.items()
    remedies = found["remedies"]
    assert (remedies["batch"], remedies["devices"], remedies["smallest"]) == (9, 9, True)
    memory, rate = found["findings"]
    needed = 68_976_648_192 * 2 + 120 * 2**20
    assert memory["excess"] == pytest.approx(needed / (192 * 2**30), rel=1e-3)
    assert (memory["claimed"], memory["value"], memory["bound"]["unit"]) == ("memory", None, "B")
    assert rate["value"] == {"value": 314, "unit": "token/s"}
    assert rate["bound"]["unit"] == "token/s"
    assert rate["estimate"] is rate["estimated_by"] is None
    fine = famous(tokens_per_second=30).to_dict()
    assert (fine["remedies"], fine["findings"][1]["estimated_by"]) == (None, "calibrated")
    assert fine["over_estimate"] == fine["findings"][1]["over_estimate"]
    for other in (
        Engine.check_claim(model="ResNet50", hardware="A100", samples_per_second=5e5),
        Engine.check_claim(model="Llama3_405B", hardware="H200", tokens_per_second=5),
        Engine.check_claim(model="Llama3_8B", hardware="H100", mfu=0.9),
    ):
        assert len(str(other.explain())) > 200
