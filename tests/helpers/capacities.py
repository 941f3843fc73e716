"""Services on devices with much memory, for tests of what fits."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from language_models import DECODERS

from mlsim import Engine, Hardware
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import System

# Those of which at least the weights fit on one device, in 4 bits.
SMALL = tuple(each for each in DECODERS if each.parameter_count < 50e9)
WINDOWED = tuple(each for each in SMALL if each.attention.window)
NODE = System("Node", Hardware.Cloud.H200, devices=16, link_bandwidth="450 GB/s")

decoders = st.sampled_from(SMALL)
lengths = st.integers(1, 500)
blocks = st.sampled_from([1, 16, 100, 256])
chunks = st.sampled_from([128, 8192, 10**7])


def serve(**changes: Any) -> Serving:
    arguments = {"hardware": Hardware.Cloud.H200, "weights": "int4", "prompt_tokens": 100}
    return Engine.serve(**{**arguments, **changes})
