"""What answers say beside their numbers: borrowed constants, and what nobody asked for."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, anatomy
from mlsim.engine.sweep import sweep_rows, sweep_text
from mlsim.hardware.kernel_constants import Loan, Relatives
from mlsim.solvers.calibrated import farthest, that_matter
from mlsim.systems import PrefillPool

MI300X: dict[str, Any] = {"hardware": "MI300X", "estimate": "calibrated"}
NODE: dict[str, Any] = {**MI300X, "hardware": "MI300X_Platform", "tensor_parallel": 8}
GAUDI: dict[str, Any] = {"hardware": "Gaudi3_Node", "tensor_parallel": 8, "estimate": "calibrated"}


def lent(answer: Any) -> dict[str, str]:
    return {each.constant: each.kin.level for each in answer.loans}


CLASS = {"memory_fraction": "class"}
SPLIT = {"tensor_parallel": 4, "prefill": PrefillPool(copies=2, tensor_parallel=2)}
LLAMA: dict[str, Any] = {"model": "Llama3_8B", **NODE}
BORROWS: tuple[tuple[Any, dict[str, Any], dict[str, str]], ...] = (
    (Engine.solve, {"model": "ResNet50", **MI300X}, CLASS),
    (Engine.serve, LLAMA, CLASS | {"exchange": "class"}),
    (Engine.serve, {"model": "Llama3_8B", **MI300X, "hardware": "A100_40GB"},
     dict.fromkeys(("compute_fraction", "memory_fraction", "tiling"), "sibling")),
    (Engine.load, {"rate": 5, "requests": 50, **LLAMA}, CLASS | {"exchange": "class"}),
    (Engine.train, {"global_batch": 8, **LLAMA, "shard": "zero3"}, CLASS | {"exchange": "roofline"}),
    (Engine.train, {"model": "ResNet50", "global_batch": 64, **MI300X}, CLASS),
    (Engine.serve, LLAMA | SPLIT, CLASS | {"exchange": "class"}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "asked", "constants"), BORROWS, ids=lambda each: getattr(each, "__name__", None)
)
def test_an_answer_names_what_was_measured_elsewhere(
    ask: Any, asked: dict[str, Any], constants: dict[str, str]
) -> None:
    """In its text, in JSON, and as objects; and where all is its own it says nothing."""
    found = ask(**asked)
    levels = lent(found)
    assert {name: levels[name] for name in levels if name != "attention_fraction"} == constants
    told = found.to_dict()["borrowed"]
    assert {each["constant"]: each["level"] for each in told} == lent(found)
    report = " ".join(str(found).split())
    assert "borrowed " in report
    for each in told:
        assert each["words"] in report
        assert asked["hardware"] not in each["from"]
        assert bool(each["from"]) is (each["level"] != "roofline")
    own = {"H100": "H100", "A100_40GB": "A100", "MI300X": "H100"}.get(asked["hardware"], "HGX_H100")
    measured = ask(**{**asked, "hardware": own})
    assert measured.loans == ()
    assert "borrowed" not in measured.to_dict()
    assert "borrowed" not in str(measured)


def test_experts_say_whose_kernels_they_take() -> None:
    asked = {"model": "Mixtral_8x7B", "estimate": "calibrated", "check_memory": False}
    assert "experts" not in lent(Engine.serve(hardware="H100", **asked))
    assert lent(Engine.serve(hardware="H100_NVL", **asked))["experts"] == "sibling"


def test_a_missing_all_reduce_takes_the_roofline_of_the_link_alone() -> None:
    """Refused before; predict gave a roofline of all, twice as fast as was measured."""
    found = Engine.serve(model="Llama3_70B", precision="fp8", **GAUDI)
    assert lent(found)["exchange"] == "roofline"
    assert "the link's full rate, and no start (its roofline)" in " ".join(str(found).split())
    ideal = Engine.serve(model="Llama3_70B", precision="fp8", **{**GAUDI, "estimate": "roofline"})
    sent = [each.decode.value("total_network_time") for each in (found, ideal)]
    assert sent[0] == pytest.approx(sent[1])
    assert found.decode.value("latency") > 1.5 * ideal.decode.value("latency")
    # So in training.
    run = Engine.train(model="Llama3_8B", global_batch=8, devices=8, **GAUDI)
    assert lent(run)["exchange"] == "roofline"
    assert run.value("hop_latency") == 0.0


def test_of_several_loans_the_farthest_counts_and_only_where_it_matters() -> None:
    near, far = (Relatives(level, ("Cloud.A100",)) for level in ("sibling", "class"))
    found = farthest([Loan("memory_fraction", near), Loan("memory_fraction", far)])
    assert found == (Loan("memory_fraction", far),)
    several = [*found, Loan("exchange", near), Loan("experts", near)]
    kept = that_matter(several, {"memory": 0.09, "network": 0.1})
    assert [each.constant for each in kept] == ["exchange", "experts"]


def assumed(answer: Any) -> str:
    told = answer.to_dict().get("assumptions", [])
    for words in told:
        assert words in " ".join(str(answer).split())
    return "; ".join(told)


def test_a_cache_in_eight_bits_is_said_where_nobody_named_it() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "precision": "fp8"}
    for found in (Engine.serve(**asked), Engine.load(rate=2, requests=50, **asked)):
        assert "KV cache in fp8, since that was asked of all: 8 bits" in assumed(found)
    for other in (
        *({"kv_cache": name} for name in ("fp8", "bf16")),
        *({"precision": name} for name in ("w8a8", "bf16", None)),
        {"model": "BERT_Large", "precision": "int8"},
    ):
        assert "KV cache in" not in assumed(Engine.serve(**{**asked, **other}))
    planned = Engine.plan(model="Llama3_8B", rate=20, hardware="H100", precision="fp8")
    assert "KV cache in fp8" in " ".join(planned.to_dict()["assumptions"])
    assert "KV cache in fp8" in " ".join(str(planned).split())
    fitted = Engine.fit(model="Llama3_8B", hardware="H100", precision=["fp8", "w8a8"])
    (words,) = fitted.attrs["assumptions"]
    assert "KV cache in fp8, since that was asked of all" in words


def test_a_context_that_needs_yarn_is_said_beyond_what_is_configured() -> None:
    asked: dict[str, Any] = {"model": "Qwen3_32B", "hardware": "H200", "output_tokens": 1000}
    assert "YaRN" not in assumed(Engine.serve(prompt_tokens=39_960, **asked))
    long = Engine.serve(prompt_tokens=39_961, **asked)
    assert "beyond 40,960 tokens Qwen3 32B needs YaRN" in assumed(long)
    asked = {**asked, "output_tokens": 10, "rate": 0.1, "requests": 20}
    assert "YaRN" in assumed(Engine.load(prompt_tokens=50_000, **asked))
    (words,) = Engine.fit(model="Qwen3_32B", hardware="H200", precision="bf16").attrs["assumptions"]
    assert "its config.json leaves off; with it 131,072" in words
    plain = Engine.fit(model="Llama3_8B", hardware="H200", precision="bf16")
    assert plain.attrs["assumptions"] == []


def test_a_die_of_two_and_the_network_between_nodes_are_named() -> None:
    for name in ("MI250", "MI250X"):
        found = Engine.solve(model="ResNet50", hardware=name)
        assert "one of its two dies (GCD)" in assumed(found)
    asked: dict[str, Any] = {"model": "Llama3_8B", "global_batch": 32}
    two = Engine.train(hardware="GCP_A3High", devices=32, shard="zero3", **asked)
    assert "between nodes: " in assumed(two)
    assert "Gb/s for each device" in assumed(two)
    one = Engine.train(hardware="GCP_A3High", devices=8, shard="zero3", **asked)
    assert "between nodes" not in assumed(one)


def test_an_anatomy_and_a_sweep_name_whose_times_their_times_are() -> None:
    """A sweep in `attrs` and in JSON, by the name of the hardware."""
    asked = {"estimate": "calibrated", "precision": "fp16"}
    found, own = (anatomy("ResNet50", hardware=each, **asked) for each in ("MI300X", "A100"))
    assert "share of the memory bandwidth from" in str(found)
    assert [each["constant"] for each in found.to_dict()["borrowed"]] == ["memory_fraction"]
    assert "borrowed" not in str(own) + str(own.to_dict())
    for more in (
        {"model": "ResNet50", "batch_size": [1, 8]},
        {"model": "Llama3_8B", "global_batch": [8, 16], "door": "train"},
    ):
        table = Engine.sweep(hardware=["MI300X", "A100"], estimate="calibrated", **more)
        told = table.attrs["borrowed"]
        assert list(told) == ["AMD Instinct MI300X 192 GB"]
        assert "share of the memory bandwidth from" in told["AMD Instinct MI300X 192 GB"]
        assert "borrowed: AMD Instinct MI300X" in sweep_text(table)
        rows = sweep_rows(table)
        borrows = [each for each in rows if "borrowed" in each]
        assert borrows == [each for each in rows if "MI300X" in each["hardware"]]
        assert 0 < len(borrows) < len(rows)
    assert "borrowed" not in Engine.sweep(model="ResNet50", hardware="MI300X").attrs
