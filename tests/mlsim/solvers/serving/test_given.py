"""What is given takes the place of what the data or the equations say."""

from __future__ import annotations

import pytest
from services import NODE, llama

from mlsim import Hardware, Models
from mlsim.errors import DoesNotFitError
from mlsim.solvers.serving.result_names import RESULTS


def test_figures_given_as_they_are_change_nothing() -> None:
    h100 = Hardware.Cloud.H100
    same = llama(
        memory_bandwidth=h100.memory.bandwidth,
        memory_capacity=h100.memory.capacity,
        peak_flops=h100.compute.peak("bf16"),
        bytes_per_parameter="2 B/parameter",
        bytes_per_element="2 B/element",
        bytes_per_cached_element="2 B/element",
    )
    plain = llama()
    for name in RESULTS:
        assert same.value(name) == pytest.approx(plain.value(name), rel=1e-12)


def test_bytes_that_are_given() -> None:
    plain, half = llama(), llama(bytes_per_parameter="1 B/parameter")
    assert half.value("weight_memory") == plain.value("weight_memory") / 2
    assert half.value("cache_memory") == plain.value("cache_memory")
    half = llama(bytes_per_cached_element="1 B/element")
    assert half.value("cache_memory") == plain.value("cache_memory") / 2
    assert half.value("cache_bytes_per_token") == 65_536
    assert half.longest_context >= plain.longest_context
    half = llama(bytes_per_element="1 B/element")
    assert half.value("activation_memory") == plain.value("activation_memory") / 2
    assert half.value("weight_memory") == plain.value("weight_memory")


def test_an_expert_share_that_is_given() -> None:
    arguments = {"model": Models.Mixtral_8x7B, "hardware": "B200"}
    experts = 32 * 3 * 8 * 4096 * 14336
    rows = llama(**arguments).decode
    few, all_ = llama(**arguments, expert_share=0.25), llama(**arguments, expert_share=1)
    assert few.decode.value("total_bytes") == pytest.approx(rows.value("total_bytes"), rel=1e-12)
    more = all_.decode.value("total_bytes") - few.decode.value("total_bytes")
    assert more == pytest.approx(2 * experts * 0.75, rel=1e-12)
    # The router's choice is no weight: memory is as it was.
    assert all_.value("memory_required") == few.value("memory_required")


def test_links_that_are_given() -> None:
    plain = llama(hardware=NODE, tensor_parallel=4)
    slow = llama(hardware=NODE, tensor_parallel=4, link_bandwidth="45 GB/s")
    for phase in ("prefill", "decode"):
        was, is_ = getattr(plain, phase), getattr(slow, phase)
        assert is_.value("total_network_time") == pytest.approx(
            10 * was.value("total_network_time"), rel=1e-12
        )
        assert is_.value("latency") - was.value("latency") == pytest.approx(
            9 * was.value("total_network_time"), rel=1e-9
        )


def test_a_capacity_that_is_given() -> None:
    assert not llama(memory_capacity="16 GiB", check_memory=False).feasible
    with pytest.raises(DoesNotFitError, match=r"which has 16 GiB, 10% of it reserved"):
        llama(memory_capacity="16 GiB").latency  # noqa: B018


def test_an_override_is_said_to_be_given() -> None:
    prefill = {"memory_bandwidth": "1 TB/s", "peak_flops": "500 TFLOP/s"}
    decode = {"bytes_per_parameter": "1 B/parameter", "expert_share": 0.5, "bytes_moved": "1 GB"}
    decode |= {"link_bandwidth": "100 GB/s", "bytes_per_cached_element": "1 B/element"}
    asked = {"model": Models.Mixtral_8x7B, "hardware": NODE, "tensor_parallel": 4}
    for where, given in (("prefill", prefill), ("decode", decode)):
        for name, value in given.items():
            step = getattr(llama(**asked, **{name: value}), where)
            data = step.explain().to_dict()
            origins = {known["quantity"]: known["origin"] for known in data["inputs"]}
            assert origins[name] == "given"
            assert name not in {each["quantity"] for each in data["steps"]}
            assert data["value"] == pytest.approx(step.value("latency"), rel=1e-12), name


@pytest.mark.parametrize("given", [{"roofline_time": "1 us"}, {"memory_free": "1 GB"}])
def test_a_quantity_that_all_steps_share(given: dict[str, str]) -> None:
    serving = llama(**given)
    assert serving.latency.magnitude > 0
    if "roofline_time" in given:
        # An embedding, 65 norms, an output layer, and five operators in 32 layers.
        assert serving.value("time_per_output_token") == pytest.approx(227e-6, rel=1e-12)
        assert serving.value("time_to_first_token") == pytest.approx(227e-6, rel=1e-12)
    else:
        assert serving.value("memory_free") == 1e9
        assert llama(**given, batch_size=10**6).feasible
