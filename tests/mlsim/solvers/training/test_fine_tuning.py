"""Fine-tuning with adapters: by hand, as published, and what must hold of any layout."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from refusals import answered

from mlsim import Engine, LoRA, Models, QLoRA
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers.training.training import Training

LORA, QLORA = LoRA(rank=16), QLoRA(rank=16)
LLAMA = Models.Llama3_8B


def train(**arguments: Any) -> Training:
    asked: dict[str, Any] = {"model": LLAMA, "hardware": "A100", "global_batch": 1}
    asked |= {"sequence_tokens": 2048, "check_memory": False}
    return Engine.train(**asked | arguments)


# By hand.


def test_memory_by_hand() -> None:
    found, trained = train(adapters=LORA), 41_943_040
    assert found.value("trained_parameters") == trained
    assert found.value("weight_memory") == 2 * (LLAMA.parameter_count + trained)
    assert found.value("gradient_memory") == 2 * trained
    assert found.value("optimizer_memory") == 12 * trained
    assert found.value("checkpoint_bytes") == 14 * trained
    assert found.value("trained_share") == trained / LLAMA.parameter_count
    assert train().value("trained_share") == 1


def test_nf4_by_hand() -> None:
    """4 bits, 8 for each block of 64, and 32 for each 256 blocks: 0.127 bits more."""
    bits = 4 + 8 / 64 + 32 / (64 * 256)
    assert EQUATIONS["bytes_per_quantized"](0.5, 1.0, 64, 4.0, 256) == bits / 8
    assert bits - 4 == pytest.approx(0.127, abs=0.0005)
    found = train(adapters=QLORA)
    matrices = 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336)
    assert found.value("quantized_parameters") == matrices
    frozen = matrices * bits / 8 + 2 * (LLAMA.parameter_count - matrices)
    assert found.value("weight_memory") == pytest.approx(frozen + 2 * 41_943_040)
    assert found.value("dequantized_at_once") == 4096 * 14336


def test_work_is_four_operations_in_place_of_six() -> None:
    found, full = train(adapters=LORA, attention="standard"), train(attention="standard")
    layers, output = 6_979_321_856, 128256 * 4096
    scores = 2 * 2048**2 * 32 * 2 * 4096
    own = 2 * 41_943_040 * 2048
    first = 2 * 2048 * (4096 * (4096 + 2 * 1024) + 3 * 16 * 4096)
    assert full.value("model_flops") == 3 * (2 * (layers + output) * 2048 + scores)
    expected = 4 * (layers + output) * 2048 + 3 * scores + 3 * own - first
    assert found.value("model_flops") == expected
    assert found.value("flops_per_parameter_token") == 4
    # Of a causal mask flash attention skips 2,047 of 4,096 pairs.
    flash = train(adapters=LORA, attention="flash").value("model_flops")
    assert expected - flash == pytest.approx(3 * scores * 2047 / 4096)


def test_kernels_do_the_work_that_is_counted() -> None:
    """The kernels' own sum is that of the whole model, but for what the first layer is spared."""
    for model, recompute, adapters in product(
        ("Llama3_8B", "DeepSeek_V3"), ("none", "full"), (QLORA, LoRA(rank=4, targets="down_proj"))
    ):
        asked = {"model": model, "recompute": recompute, "attention": "standard"}
        found = train(adapters=adapters, **asked)
        kernels = zip(found.value("flops"), found.run.table, strict=True)
        done = sum(flops * row.all_repeats for flops, row in kernels)
        counted = found.value("hardware_flops") + 2 * found.value("spared_multiply_adds")
        assert done == pytest.approx(counted, rel=1e-9), asked


def test_copies_exchange_only_gradients_of_adapters() -> None:
    found = train(hardware="HGX_A100", devices=8, global_batch=8, adapters=LORA)
    rate = found.value("node_bandwidth")
    assert found.value("gradient_time") == pytest.approx(4 * 41_943_040 * 7 / 8 / rate)
    full = train(hardware="HGX_A100", devices=8, global_batch=8)
    share = found.value("gradient_time") / full.value("gradient_time")
    assert share == pytest.approx(found.value("trained_share"))


def test_zero3_gathers_frozen_weights_in_their_format() -> None:
    found = train(hardware="HGX_A100", devices=8, global_batch=8, adapters=QLORA, shard="zero3")
    rate, count = found.value("node_bandwidth"), LLAMA.parameter_count
    frozen = 2 * found.value("frozen_bytes") * count
    own = (2 * 2 + 2) * 41_943_040
    assert found.value("gradient_time") == pytest.approx((frozen + own) * 7 / 8 / rate)
    whole = found.value("frozen_bytes") * count + 2 * 41_943_040
    assert found.value("weight_memory") == pytest.approx(whole / 8)


# As published.


def test_gpt3_needs_350_gb() -> None:
    """Hu et al., 2021, section 4.2: "from 1.2TB to 350GB", which are the frozen weights."""
    found = train(model="GPT3_175B", adapters=LoRA(rank=4, targets=("q_proj", "v_proj")))
    assert found.value("state_memory") == pytest.approx(350e9, rel=0.005)


# What must hold of any layout.

LAYOUTS = (
    {"devices": 1},
    {"devices": 8, "shard": "zero2"},
    {"devices": 8, "shard": "zero3"},
    {"devices": 8, "tensor_parallel": 8, "sequence_parallel": True},
    {"devices": 8, "context_parallel": 2, "pipeline_parallel": 4, "interleaved": 2},
    {"model": "Mixtral_8x7B", "devices": 8, "expert_parallel": 2, "tensor_parallel": 4},
    {"model": "BERT_Large", "devices": 2, "sequence_tokens": 512},
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_adapters_save_and_cost_and_nothing_beats_the_bound(layout: dict[str, Any]) -> None:
    asked = {"hardware": "HGX_A100", "global_batch": 32, **layout}
    for adapters in (LORA, QLORA, LoRA(rank=1, targets="down_proj")):
        times = [
            train(**asked, adapters=adapters, estimate=estimate).value("step_time")
            for estimate in ("bound", "roofline", "calibrated")
        ]
        assert times == sorted(times)
    for recompute in ("none", "full"):
        full, lora, qlora = (
            train(**asked, recompute=recompute, adapters=each) for each in (None, LORA, QLORA)
        )
        for name in ("gradient_memory", "optimizer_memory", "step_time"):
            assert lora.value(name) < full.value(name), name
        # An adapter keeps a narrow vector more, where each matrix has one.
        assert lora.value("activation_memory") < 1.03 * full.value("activation_memory")
        assert qlora.value("weight_memory") < lora.value("weight_memory")
        # To turn weights into 16 bits takes time; to gather them in 4 bits saves some.
        gathered = layout.get("shard") == "zero3"
        assert qlora.value("kernel_step_time") > lora.value("kernel_step_time")
        assert (qlora.value("gradient_time") < lora.value("gradient_time")) is gathered
        assert qlora.value("model_flops") == lora.value("model_flops")
        for each in (lora, qlora):
            kinds = ("weight", "gradient", "optimizer", "activation")
            parts = sum(each.value(f"{kind}_memory") for kind in kinds)
            assert each.value("memory_required") == pytest.approx(parts)


def test_inputs_are_kept_for_adapters_only() -> None:
    def kept(targets: str | tuple[str, ...], **more: Any) -> float:
        lora = LoRA(rank=8, targets=targets)
        return float(train(adapters=lora, recompute="none", **more).value("saved_memory"))

    tokens = 2 * 2048 * 32
    alone = kept("q_proj")
    # Queries, keys and values read the same vector, which is kept once.
    assert kept(("q_proj", "v_proj")) == alone + 8 * tokens
    # Another one is that of the feed-forward, whose gate and up share it.
    assert kept(("q_proj", "up_proj")) == alone + (8 + 4096) * tokens
    assert kept(("q_proj", "down_proj")) == alone + (8 + 14336) * tokens
    # Flash attention keeps its output itself; standard attention does not.
    assert kept(("q_proj", "o_proj")) == alone + 8 * tokens
    standard = kept(("q_proj", "o_proj"), attention="standard")
    assert standard == kept("q_proj", attention="standard") + (8 + 4096) * tokens


def test_the_search_knows_adapters_and_a_refusal_names_them_as_the_way_out() -> None:
    asked: dict[str, Any] = {"model": "Llama3_70B", "hardware": "HGX_A100", "global_batch": 16}
    found = train(**asked, search=True, adapters=QLORA)
    assert (found.feasible, found.devices, found.run.recipe.adapters) == (True, 8, QLORA)
    large = train(model="Llama3_70B", adapters=LORA)
    assert not large.feasible
    assert "adapters=QLoRA(rank=16), which keeps the model in 4 bits" in large.too_large()
    assert "QLoRA" not in train(model="Llama3_70B").too_large()


# What is said.


def test_it_says_what_is_trained() -> None:
    found = train(adapters=LoRA(rank=8, targets=("q_proj", "v_proj")))
    assert "LoRA of rank 8 on q_proj, v_proj: 3,407,872 parameters, 0.04% of" in str(found)
    assert "LoRA of rank 8" in repr(found)
    told = json.loads(json.dumps(found.to_dict()))["adapters"]
    expected = {"kind": "LoRA", "rank": 8, "targets": ["q_proj", "v_proj"]}
    assert told.items() >= {**expected, "trained_parameters": 3_407_872}.items()
    words = " ".join(str(train(adapters=QLORA).explain("weight_memory")).split())
    assert "frozen_bytes" in words
    assert "NF4 with double quantization" in words
    assert "QLoRA of rank 16 on all-linear, from the architecture of Llama 3.1 8B" in words
    # No published row is like it.
    plain = {"estimate": "calibrated", "recompute": "full"}
    assert train(**plain).band() is not None
    assert train(**plain, adapters=LORA).band() is None


# What is refused.


def test_what_can_not_be_is_refused() -> None:
    assert answered(train, "training", "adapters") == []
    asked: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"model": "ResNet50", "sequence_tokens": None}, WrongKindError, "a network of layers"),
        ({"precision": "fp8", "hardware": "H100", "adapters": QLORA}, InvalidValueError,
         "QLoRA turns its 4 bits into 16"),
        ({"model": "GPT2", "sequence_tokens": 512, "adapters": LoRA(rank=4, targets="gate_proj")},
         InvalidValueError, r"GPT-2 .* has no such matrix"),
        ({"model": "Gemma3n_E2B"}, WrongKindError, "layers of several kinds"),
    )  # fmt: skip
    for given, error, words in asked:
        with pytest.raises(error, match=words):
            train(**{"adapters": LORA, **given})
    assert train(hardware="H100", precision="fp8", adapters=LORA).feasible
    for name in ("adapter_parameters", "exchanged_frozen_parameters"):
        with pytest.raises(InvalidValueError, match=r"give adapters=LoRA\(rank=16\)"):
            train().value(name)


def test_another_format_can_be_given() -> None:
    """Matrices in 1.03 bytes each, in place of 4.127 bits."""
    found = train(adapters=QLORA, bytes_per_quantized="1.03 B/parameter")
    more = found.value("weight_memory") - train(adapters=QLORA).value("weight_memory")
    bits = 4 + 8 / 64 + 32 / (64 * 256)
    assert more == pytest.approx(found.value("quantized_parameters") * (1.03 - bits / 8))
