"""Prefill and decode on separate devices: rates and the cache's way by hand, and what can't be."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import answered

from mlsim import Clusters, Engine, Systems
from mlsim.errors import DoesNotFitError, InvalidValueError, WrongKindError
from mlsim.solvers.serving.split import SplitServing
from mlsim.systems import PrefillPool

NODE = Systems.HGX_H100
ASKED = {"model": "Llama3_8B", "hardware": NODE, "precision": "bf16"}
ASKED |= {"batch_size": 64, "prompt_tokens": 2048, "output_tokens": 101}


def split(pool: Any = None, **arguments: Any) -> SplitServing:
    found = Engine.serve(**{**ASKED, **arguments}, prefill=pool or PrefillPool())
    assert isinstance(found, SplitServing)
    return found


def alone(**arguments: Any) -> Any:
    return Engine.serve(**{**ASKED, **arguments})


def test_the_cache_of_a_prompt_by_hand() -> None:
    found = split()
    # 32 layers, 8 heads of 128, keys and values, 2 bytes.
    size = 2048 * 32 * 8 * 128 * 2 * 2
    assert found.value("transfer_bytes") == size
    odd = split(prompt_tokens=2047, estimate="calibrated")
    assert odd.value("transfer_bytes") == size / 2048 * 2047
    assert found.value("transfer_time") == pytest.approx(size / 450e9)
    wide = split(PrefillPool(tensor_parallel=4), tensor_parallel=2)
    assert wide.value("transfer_time") == pytest.approx(size / 2 / 450e9)
    # Pools in a cluster, or of which one is, send between nodes.
    pod = "DGX_H100_SuperPOD"
    far = split(PrefillPool(copies=16), hardware=pod), split(PrefillPool(hardware=pod))
    far += (split(PrefillPool(hardware=NODE), hardware=pod),)
    for each, where, rate in (
        *((one, Clusters.DGX_H100_SuperPOD, 50e9) for one in far),
        (found, NODE, 450e9),
    ):
        assert each.value("transfer_time") == pytest.approx(size / rate)
        inputs = each.explain("transfer_time").to_dict()["inputs"]
        origins = {known["quantity"]: known["origin"] for known in inputs}
        assert origins["transfer_bandwidth"] == f"{where.name}: {where.figure.origin()}"


def test_each_pool_is_a_service_of_its_own() -> None:
    found, prefill, decode = split(), alone(batch_size=1, output_tokens=1), alone()
    assert found.value("time_to_first_token") == prefill.value("time_to_first_token")
    assert found.value("time_per_output_token") == decode.value("time_per_output_token")
    assert found.value("cache_memory") == decode.value("cache_memory")
    assert found.pool.value("cache_memory") == prefill.value("cache_memory")
    # What decodes has no prompts' activations.
    assert found.value("activation_memory") < decode.value("activation_memory")


def test_the_whole_by_hand() -> None:
    found = split(PrefillPool(copies=3))
    first, each = found.value("time_to_first_token"), found.value("time_per_output_token")
    way = found.value("transfer_time")
    assert found.value("exposed_transfer_time") == way
    assert found.value("generation_latency") == pytest.approx(first + way + 100 * each)
    assert found.value("prefill_rate") == pytest.approx(3 / first)
    assert found.value("decode_rate") == pytest.approx(64 / (100 * each))
    least = min(3 / first, 64 / (100 * each))
    assert found.value("split_rate") == pytest.approx(least)
    assert found.value("output_throughput") == pytest.approx(101 * least)
    assert found.value("device_throughput") == pytest.approx(101 * least / 4)
    assert found.value("balanced_copies") == pytest.approx(first * 64 / (100 * each))


def test_layers_that_are_sent_meanwhile_are_not_waited_for() -> None:
    link = {"link_bandwidth": "1 GB/s", "hardware": "H100"}
    after, meanwhile = (split(PrefillPool(overlap=each, **link)) for each in (False, True))
    whole, first = after.value("transfer_time"), after.value("time_to_first_token")
    assert after.value("exposed_transfer_time") == whole
    # Slower than reading: all but what 31 of 32 layers hide.
    assert meanwhile.value("exposed_transfer_time") == pytest.approx(whole - first * 31 / 32)
    quick = split(PrefillPool(overlap=True))
    assert quick.value("exposed_transfer_time") == quick.value("transfer_time") / 32


def test_stages_read_several_prompts_at_a_time() -> None:
    one, two = (split(PrefillPool(pipeline_parallel=stages), estimate="bound") for stages in (1, 2))
    # A prompt takes as long through both stages; the next follows when the first stage is free.
    assert two.value("prefill_rate") == pytest.approx(2 * one.value("prefill_rate"), rel=0.02)


def test_many_points_are_those_one_by_one() -> None:
    batches = [1, 16, 64]
    many = split(batch_size=batches)
    for index, batch in enumerate(batches):
        for name in ("split_rate", "generation_latency", "transfer_time", "decode_rate"):
            one = split(batch_size=batch).value(name)
            assert many[index].value(name) == pytest.approx(one)
            if name == "decode_rate":
                assert many.value(name)[index] == pytest.approx(one)


def test_it_is_written_out_and_explained() -> None:
    found = split()
    text = str(found)
    assert "the service waits for" in text
    assert "copies that read prompts" in text
    data = found.to_dict()
    assert data["prefill"]["copies"] == 1
    assert data["split_rate"]["unit"] == "sample/s"
    assert "balanced_copies" in str(found.explain("balanced_copies"))
    assert "explained on its own" in str(found.explain("generation_latency"))
    with pytest.raises(WrongKindError, match="two loads"):
        found.load()
    assert found.pool.load().devices == 1


def test_pools_that_cannot_be() -> None:
    def asked(pool: dict[str, Any], **given: Any) -> Any:
        return split(PrefillPool(**pool), **{"prompt_tokens": 128} | given)

    assert answered(asked, "serving", "pools") == []
    with pytest.raises(WrongKindError, match="prefill must be a PrefillPool"):
        split({"hardware": "HGX_H100"})
    for name in ("copies", "batch_size", "tensor_parallel", "context_parallel"):
        for size in (0, 1.5, True):
            with pytest.raises(InvalidValueError, match=f"{name} of a PrefillPool must be a whole"):
                PrefillPool(**{name: size})


def test_it_says_which_pool_does_not_fit() -> None:
    wide = PrefillPool(hardware=NODE, tensor_parallel=8, link_bandwidth="50 GB/s")
    large = {"model": "Llama3_70B", "hardware": "H100"}
    with pytest.raises(DoesNotFitError, match=r"^decode: "):
        split(wide, **large).value("generation_latency")
    small = PrefillPool(hardware="H100", link_bandwidth="50 GB/s")
    with pytest.raises(DoesNotFitError, match=r"^prefill: "):
        split(small, model="Llama3_70B", tensor_parallel=8).value("split_rate")
    assert not split(small, model="Llama3_70B", tensor_parallel=8).feasible
