"""A service as text and as data, what does not fit, and encoders."""

from __future__ import annotations

import json
import re

import pytest
from services import CHIP, MEMORY, PAIR, TINY, by_hand, llama

from mlsim import Engine, Models, show
from mlsim.errors import DoesNotFitError, UnknownNameError, WrongKindError

# As text and as data.


def test_a_service_as_text() -> None:
    shown = str(by_hand()).splitlines()
    assert shown == [
        "Tiny on Slow chip, fp16, roofline",
        "  batch size    2 x (3 prompt + 3 output) tokens",
        "  prefill       67.52 s to the first token (Memory Bound, 83%)",
        "  decode        36 s per token (Memory Bound, 100%)",
        "  in all        139.5 s to the last token",
        "  throughput    0 token/s while decoding, 0.0 for each user",
        "  memory        1.188 KiB of 1.758 KiB (10% of 1.953 KiB reserved)",
        "                weights 680 B, cache 256 B, activations 280 B",
        "  room for      4 such sequences, or a context of 11 tokens at this batch",
    ]


def test_what_does_not_fit_as_text() -> None:
    serving = by_hand(batch_size=20)
    shown = str(serving)
    assert "feasible      no: " in shown
    assert "per token" not in shown
    assert "per token" in str(by_hand(batch_size=20, check_memory=False))
    assert serving.bottleneck == {"prefill": "Does Not Fit", "decode": "Does Not Fit"}


def test_many_points_as_text() -> None:
    shown = str(by_hand(batch_size=[1, 2, 20])).splitlines()
    assert len(shown) == 2 + 3
    assert " ".join(shown[1].split()) == "batch prompt output first token per token token/s"
    assert shown[3].split()[:5] == ["2", "3", "3", "67.52", "s"]
    assert shown[4].split() == ["20", "3", "3", "-", "-", "-"]
    # A long one is shown by its ends.
    long = str(llama(batch_size=range(1, 101))).splitlines()
    assert len(long) == 2 + 21 + 1
    assert long[-1] == "  formats     bf16, since no other was given"
    assert long[12].strip() == "..."
    assert [row.split()[0] for row in (long[2], long[-2])] == ["1", "100"]


def test_a_service_as_data() -> None:
    data = by_hand().to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["model"], data["hardware"], data["estimate"]) == ("Tiny", "Slow chip", "roofline")
    layout = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
    assert data["layout"] == dict.fromkeys(layout, 1)
    assert data["formats"] == {"weights": "fp16", "activations": "fp16", "kv_cache": "fp16"}
    assert data["batch_size"] == {"value": 2, "unit": "sample"}
    assert data["prompt_tokens"] == {"value": 3.0, "unit": "token/sample"}
    assert data["time_per_output_token"]["value"] == pytest.approx(36.0)
    assert data["time_per_output_token"]["unit"] == "s"
    assert data["longest_context"] == {"value": 11, "unit": "token"}
    assert data["largest_batch"] == {"value": 4, "unit": "sample"}
    assert data["feasible"] is True
    assert data["bottleneck"] == {"prefill": MEMORY, "decode": MEMORY}


def test_results_by_name() -> None:
    serving = by_hand()
    assert show(serving, "generation_latency").to("s").magnitude == pytest.approx(139.52)
    assert serving.cache_memory.to("B").magnitude == 256
    assert serving.decode.total_flops.to("FLOP").magnitude == 2 * TINY.flop_count(1, 3) + 32
    assert serving.value("batch_size") == 2
    assert serving.value("reserve_share") == 0.1
    assert (serving.model, serving.hardware) == (TINY, CHIP)
    assert (serving.batch_size, type(serving.batch_size)) == (2, int)
    assert repr(serving) == "<Serving Tiny on Slow chip, 2 x 3 + 3 tokens, fp16, roofline>"
    assert repr(serving.decode).startswith("<StepProfile decode of Tiny on Slow chip, 2 x 1 new")
    node = by_hand(hardware=PAIR, tensor_parallel=2)
    assert repr(node).startswith("<Serving Tiny on 2 x Slow chip of Slow pair (TP2), 2 x 3 +")


def test_a_name_that_is_no_result() -> None:
    with pytest.raises(UnknownNameError, match=r"'cache_memry'. Did you mean 'cache_memory'"):
        show(llama(), "cache_memry")
    # A quantity of one phase is asked of the phase.
    with pytest.raises(UnknownNameError, match="no result of a service is called 'total_flops'"):
        llama().value("total_flops")
    with pytest.raises(UnknownNameError, match="no quantity is called 'total_flop'"):
        llama().decode.value("total_flop")


# What does not fit.


def test_what_does_not_fit_says_so() -> None:
    serving = llama(batch_size=1000, prompt_tokens=8192)
    for ask in ("latency", "time_to_first_token", "time_per_output_token", "decode_throughput"):
        with pytest.raises(DoesNotFitError) as e:
            getattr(serving, ask)
    message = str(e.value)
    assert message.startswith(
        "Llama 3.1 8B with 1,000 sequence(s) of 8,192 + 128 tokens (bf16) needs 1.007 TiB on each "
        "device of NVIDIA H100 SXM 80 GB, which has 79.65 GiB, 10% of it reserved: "
    )
    assert f"The largest batch of these lengths is {serving.largest_batch:,}." in message
    assert "check_memory=False gives the time it would take." in message
    assert serving.value("memory_required") > 1e12
    assert llama(batch_size=1000, prompt_tokens=8192, check_memory=False).latency.magnitude > 0


def test_weights_that_leave_no_room() -> None:
    serving = llama(model="Llama3_70B")
    assert (serving.largest_batch, serving.longest_context) == (0, 0)
    with pytest.raises(DoesNotFitError, match="leave no room for one sequence: use fewer bits"):
        serving.latency  # noqa: B018


# Encoders.


def test_an_encoder_has_one_pass() -> None:
    serving = Engine.serve(model=Models.BERT_Base, hardware="A100", prompt_tokens=384)
    assert serving.latency == serving.time_to_first_token
    assert serving.bottleneck.keys() == {"prefill"}
    assert serving.prefill.value("total_flops") == Models.BERT_Base.flop_count(384)
    assert "per token" not in str(serving)
    assert "pass" in str(serving)
    assert serving.value("cache_memory") == serving.value("cache_bytes_per_token") == 0
    many = Engine.serve(model="BERT_Base", hardware="A100", batch_size=[1, 8], prompt_tokens=384)
    assert many.latency.shape == (2,)
    assert str(many).splitlines()[1].split() == ["batch", "prompt", "output", "first", "token"]


def test_an_encoder_does_not_decode() -> None:
    serving = Engine.serve(model="BERT_Base", hardware="A100")
    message = "BERT-Base is an encoder: it reads a text at once and generates nothing."
    for ask in ("decode", "time_per_output_token", "decode_throughput"):
        with pytest.raises(WrongKindError, match=re.escape(message)):
            getattr(serving, ask)
    with pytest.raises(WrongKindError, match=re.escape(message)):
        serving.decode_at(10)
    with pytest.raises(WrongKindError, match="it keeps no cache that could grow"):
        serving.longest_context  # noqa: B018
    with pytest.raises(WrongKindError) as e:
        Engine.serve(model="BERT_Base", hardware="A100", output_tokens=8)
    assert str(e.value) == f"{message} Leave output_tokens out."
    assert Engine.serve(model="BERT_Base", hardware="A100", output_tokens=0).feasible


def test_what_does_not_fit_says_what_would_help() -> None:
    shown = str(Engine.serve(model="Llama3_70B", hardware="H100"))
    assert "feasible      no: " in shown
    assert "room for      no such sequence: use fewer bits or more devices" in shown
