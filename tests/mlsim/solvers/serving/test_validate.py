"""Questions about a service that can't be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from services import NODE, llama

from mlsim import Engine, Hardware, Models
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    NotMeasuredError,
    UnitError,
    UnknownNameError,
    UnsupportedPrecisionError,
    WrongKindError,
)
from mlsim.hardware.device_calibration import calibrated_devices
from mlsim.values import quantity

WHOLE_NUMBER = "must be a whole number from 1 up, not "


@pytest.mark.parametrize("name", ["batch_size", "prompt_tokens", "output_tokens"])
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (0, "0."),
        (-1, "-1."),
        (1.5, "1.5."),
        (float("nan"), "nan."),
        (float("inf"), "inf."),
        (True, "True."),
        ("8", "the text '8'. Leave out the quotes."),
        ({}, "{}."),
    ],
    ids=repr,
)
def test_numbers_that_cannot_be(name: str, given: object, shown: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        llama(**{name: given})
    assert str(e.value) == f"{name} {WHOLE_NUMBER}{shown}"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": [1, 0]}, InvalidValueError, f"entry 1 of 2: batch_size {WHOLE_NUMBER}0."),
        ({"batch_size": None}, InvalidValueError, f"batch_size {WHOLE_NUMBER}None."),
        (
            {"prompt_tokens": np.array([512, 1.5])},
            InvalidValueError,
            "prompt_tokens must hold whole numbers from 1 up, but entry 1 is 1.5.",
        ),
        (
            {"batch_size": quantity(8, "token")},
            UnitError,
            (
                "batch_size: a value in token was given where sample is expected. float(...) leaves "
                "the unit out, if it is meant."
            ),
        ),
        ({"block_tokens": 0}, InvalidValueError, f"block_tokens {WHOLE_NUMBER}0."),
        ({"chunk_tokens": 2.5}, InvalidValueError, f"chunk_tokens {WHOLE_NUMBER}2.5."),
        (
            {"block_tokens": [16, 32]},
            InvalidValueError,
            "block_tokens must be one number, not an array.",
        ),
        (
            {"model": "Llama2_7B", "prompt_tokens": 4096, "output_tokens": 1},
            InvalidValueError,
            (
                "a sequence of 4,097 tokens (prompt and output) is longer than the context of Llama 2 "
                "7B, 4,096. Shorten it; if you know that the model was extended, use "
                "dataclasses.replace(model, context=...)."
            ),
        ),
        (
            {"model": "Llama2_7B", "prompt_tokens": [100, 5000]},
            InvalidValueError,
            (
                "a sequence of 5,128 tokens (prompt and output) is longer than the context of Llama 2 "
                "7B, 4,096. Shorten it; if you know that the model was extended, use "
                "dataclasses.replace(model, context=...)."
            ),
        ),
        (
            {"hardware": NODE, "tensor_parallel": 16},
            InvalidValueError,
            (
                "tensor_parallel 16 needs 16 devices; Node has 8. Use fewer, or a larger system or a "
                "cluster: one of Clusters, or Cluster('mine', node, nodes=..., "
                "link_bandwidth='400 Gb/s')."
            ),
        ),
        (
            {"hardware": NODE, "tensor_parallel": 4, "data_parallel": 3},
            InvalidValueError,
            (
                "tensor_parallel 4 x data_parallel 3 needs 12 devices; Node has 8. Use fewer, or a "
                "larger system or a cluster: one of Clusters, or Cluster('mine', node, nodes=..., "
                "link_bandwidth='400 Gb/s')."
            ),
        ),
        (
            {"tensor_parallel": 2},
            InvalidValueError,
            (
                "tensor_parallel 2 needs 2 devices; NVIDIA H100 SXM 80 GB is one device. Give a system "
                "of them, such as System('my node', device, devices=2, link_bandwidth='450 GB/s'), "
                "or one of Systems."
            ),
        ),
        (
            {"hardware": NODE, "expert_parallel": 2},
            InvalidValueError,
            "expert_parallel = 2, but Llama 3.1 8B has no experts. Leave it out.",
        ),
        (
            {"hardware": NODE, "tensor_parallel": 3},
            InvalidValueError,
            (
                "tensor_parallel = 3 does not divide the 32 attention heads of Llama 3.1 8B. "
                "Near it are 1, 2, 4, 8."
            ),
        ),
        (
            {"hardware": NODE, "pipeline_parallel": 6},
            InvalidValueError,
            (
                "pipeline_parallel = 6 does not divide the 32 layers of Llama 3.1 8B. "
                "Near it are 1, 2, 4, 8, 16."
            ),
        ),
        (
            {"model": "Mixtral_8x7B", "hardware": NODE, "data_parallel": 8, "expert_parallel": 5},
            InvalidValueError,
            (
                "expert_parallel = 5 does not divide the 8 experts of Mixtral 8x7B. "
                "Near it are 1, 2, 4, 8."
            ),
        ),
        (
            {"hardware": "A100", "precision": "fp8"},
            UnsupportedPrecisionError,
            (
                "NVIDIA A100 SXM 80 GB can't compute in fp8: no peak is on record. It has: fp64, fp32, "
                "tf32, bf16, fp16, int8, int4. Weights and KV cache may be in any format; set activations= "
                "(and with it the arithmetic) to one of these."
            ),
        ),
        (
            {"estimate": "rofline"},
            InvalidValueError,
            (
                "estimate must be one of roofline, bound, calibrated, not 'rofline'. "
                "Did you mean 'roofline'?"
            ),
        ),
        (
            {"estimate": "calibrated", "hardware": Hardware.Wafer.WSE3, "precision": "fp16"},
            NotMeasuredError,
            (
                f"estimate='calibrated' needs measurements of {Hardware.Wafer.WSE3.name} that are "
                "not on record: matrix products (its part of the peak) and streams of bytes (its "
                "part of the memory bandwidth). It has no relatives either, whose measurements "
                f"could stand in. Measured are: {', '.join(calibrated_devices())}. Use one of "
                "these, give compute_fraction, memory_fraction and kernel_overhead yourself, or "
                "use estimate='roofline' or 'bound'."
            ),
        ),
        (
            {"memory_bandwidth": "2 TB"},
            UnitError,
            "memory_bandwidth: a value in TB was given where B/s is expected.",
        ),
        (
            {"link_bandwidth": 450e9},
            UnitError,
            (
                "link_bandwidth needs a unit: 450000000000.0 could mean anything. Give text such as "
                "'2 B/s', or a quantity."
            ),
        ),
        (
            {"bytes_per_parameter": "2 B"},
            UnitError,
            "bytes_per_parameter: a value in B was given where B/parameter is expected.",
        ),
        (
            {"expert_share": 0},
            InvalidValueError,
            "expert_share must be a positive, finite number, not 0.",
        ),
        (
            {"expert_share": "0.5"},
            InvalidValueError,
            (
                "expert_share must be a positive, finite number, not the text '0.5'. Leave out the "
                "quotes."
            ),
        ),
        (
            {"model": "Mixtral_8x7B", "expert_share": 1.01},
            InvalidValueError,
            "expert_share is a share: it must be at most 1, not 1.01.",
        ),
        (
            {"model": "Mixtral_8x7B", "expert_share": [0.5, 2]},
            InvalidValueError,
            "expert_share is a share: it must be at most 1, not 2.",
        ),
        (
            {"usable_memory": "70 GB", "memory_capacity": "80 GB"},
            InvalidValueError,
            (
                "usable_memory = 65.19 GiB contradicts memory_capacity - memory_capacity * "
                "reserve_share = 67.06 GiB, which follows from memory_capacity = 74.51 GiB, reserve_share = "
                "0.1: leave usable_memory out, or change one of these."
            ),
        ),
        (
            {"flops": "1 GFLOP", "peak_flops": "1 TFLOP/s", "compute_time": "2 ms"},
            InvalidValueError,
            (
                "compute_time = 2 ms contradicts flops / peak_flops = 1 ms, which follows from "
                "flops = 1 GFLOP, peak_flops = 1 TFLOP/s: leave compute_time out, or change one "
                "of these."
            ),
        ),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_question_that_cannot_be(
    arguments: dict[str, Any], error: type[MlsimError], message: str
) -> None:
    with pytest.raises(error) as e:
        llama(**arguments)
    assert str(e.value) == message


@pytest.mark.parametrize(
    "name", ["tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel"]
)
@pytest.mark.parametrize("size", [0, -1, 1.0, 2.0, True, "2", None, [1, 2]], ids=repr)
def test_a_layout_is_of_whole_numbers(name: str, size: object) -> None:
    with pytest.raises(InvalidValueError) as e:
        llama(hardware=NODE, **{name: size})
    assert str(e.value) == f"{name} {WHOLE_NUMBER}{size!r}."


@pytest.mark.parametrize(
    "reserve", [1, 1.5, -0.1, float("nan"), True, "0.1", None, [0.1]], ids=repr
)
def test_a_reserve_is_a_share(reserve: object) -> None:
    with pytest.raises(InvalidValueError) as e:
        llama(reserve=reserve)
    assert str(e.value) == (
        f"reserve must be a share of at least 0 and below 1, such as 0.1; not {reserve!r}."
    )


@pytest.mark.parametrize(
    "name",
    [
        "memory_bandwith",
        "temperature",
        "first_token_time",
        "latency",
        "decode_throughput",
        "tokens",
    ],
)
def test_a_name_that_nobody_knows(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no argument or quantity is called '{name}'"):
        llama(**{name: "1 s"})
    with pytest.raises(UnknownNameError, match="Did you mean 'memory_bandwidth'"):
        llama(memory_bandwith="1 TB/s")


def test_things_of_another_kind() -> None:
    with pytest.raises(WrongKindError, match=r"^ResNet-50 v1\.5 is no language model: use Engine"):
        llama(model="ResNet50")
    with pytest.raises(WrongKindError, match=r"^Llama 3\.1 8B is a language model, whose work dep"):
        Engine.solve(model="Llama3_8B", hardware="H100")
    with pytest.raises(WrongKindError, match=r"^model must be a model such as Models\.\w+, not <D"):
        llama(model=Hardware.Cloud.H100)
    with pytest.raises(WrongKindError, match=r"'H100' is a device\.$"):
        llama(model="H100")
    with pytest.raises(WrongKindError, match=r"^hardware must be a device such as Hardware\.Cloud"):
        llama(hardware=Models.Llama3_8B)
    with pytest.raises(WrongKindError, match=r"'Llama3_8B' is a model\.$"):
        llama(hardware="Llama3_8B")
    with pytest.raises(WrongKindError, match=r"^model must be a model"):
        llama(model=None)


def test_names_that_are_unknown() -> None:
    with pytest.raises(UnknownNameError, match=r"no model is called 'Llama3_9B'. Did you mean 'Ll"):
        llama(model="Llama3_9B")
    with pytest.raises(
        UnknownNameError, match=r"no device, system or cluster is called 'H1000'. Did you me"
    ):
        llama(hardware="H1000")
    with pytest.raises(UnknownNameError, match=r"no precision is called 'fp7'. Did you mean"):
        llama(precision="fp7")
