"""Services for tests of what must hold of each: any model, on devices of any balance."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from language_models import DECODERS, LANGUAGE

from mlsim import Device, Engine, Hardware
from mlsim.errors import InvalidValueError
from mlsim.solvers.serving.serving import Serving, StepProfile
from mlsim.systems import System
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

# Devices of very different balance; each computes in fp16.
DEVICES = (
    Hardware.Cloud.A100,
    Hardware.Cloud.H100,
    Hardware.Cloud.H200,
    Hardware.Cloud.B200,
    Hardware.Cloud.L4,
    Hardware.Cloud.T4,
    Hardware.Workstation.RTX4090,
    Hardware.Workstation.DGXSpark,
)

languages = st.sampled_from(LANGUAGE)
decoders = st.sampled_from(DECODERS)
devices = st.sampled_from(DEVICES)
batches = st.one_of(st.just(1), st.integers(1, 2048))
lengths = st.integers(1, 400)

NEARLY = 1 + 1e-12


def serve(**changes: Any) -> Serving:
    """Serve in fp16, whether it fits or not."""
    arguments = {
        "hardware": Hardware.Cloud.H100,
        "precision": "fp16",
        "prompt_tokens": 128,
        "check_memory": False,
    }
    if "output_tokens" in changes and not changes["model"].decoder:
        changes["output_tokens"] = None
    return Engine.serve(**{**arguments, **changes})


def times(serving: Serving) -> list[float]:
    """Return the times of both phases, in seconds."""
    names = ["time_to_first_token"]
    if serving.model.decoder:
        names += ["first_token_time", "time_per_output_token", "generation_latency"]
    return [serving.value(name) for name in names]


def empty(serving: Serving) -> StepProfile:
    """Return the decode step with nothing cached."""
    return serving.decode_at(0)


def divides(model: Transformer, layout: Parallelism) -> bool:
    """Tell whether a layout divides a model; some have an odd number of heads or layers."""
    try:
        model.check_layout(layout)
    except InvalidValueError:
        return False
    return True


def node(device: Device, **changes: Any) -> System:
    return System("Node", device, **{"devices": 16, "link_bandwidth": "400 GB/s", **changes})
