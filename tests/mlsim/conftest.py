"""Helpers shared by the tests of the solver."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from mlsim import Device, Engine, Hardware, Model, Models, Profile
from mlsim.workloads.model import Convolution, Linear, Network, Shape

# The same examples on every run, and no time limit that a busy machine would miss.
settings.register_profile("mlsim", deadline=None, max_examples=40, derandomize=True, database=None)
settings.load_profile("mlsim")

Solve = Callable[..., Profile]


@pytest.fixture(scope="session")
def resnet() -> Model:
    return Models.ResNet50


@pytest.fixture(scope="session")
def a100() -> Device:
    return Hardware.Cloud.A100


@pytest.fixture
def solve(resnet: Model, a100: Device) -> Solve:
    """Return `Engine.solve` with ResNet-50 on the A100 unless told otherwise."""

    def call(**arguments: Any) -> Profile:
        return Engine.solve(**{"model": resnet, "hardware": a100, **arguments})

    return call


@pytest.fixture(scope="session")
def tiny() -> Model:
    """Return a network of two layers, small enough to work out by hand.

    A 3x3 convolution from 1 to 2 channels on 4x4 pixels, padded to keep the size:

        multiply-adds  16 pixels x 2 x 9 x 1 = 288
        parameters     9 x 1 x 2 = 18 (no bias)
        reads 16 elements, writes 2 x 16 = 32, alive 48

    A linear layer from those 32 to 3, with bias:

        multiply-adds  32 x 3 = 96
        parameters     96 + 3 = 99
        reads 32, writes 3, alive 35
    """
    return Network(
        key="Tiny",
        name="Tiny",
        architecture="CNN",
        input=Shape(channels=1, size=4),
        layers=(
            Convolution(name="conv", out_channels=2, kernel=3, padding=1),
            Linear(name="fc", out_features=3),
        ),
        source="he2016resnet",
    )


@pytest.fixture(scope="session")
def slow_chip() -> Device:
    """Return a device with round, small figures: 100 FLOP/s, 40 B/s, 1000 B."""
    return Device(
        "Slow chip",
        peak_flops={"fp16": "100 FLOP/s", "fp32": "50 FLOP/s"},
        memory_bandwidth="40 B/s",
        memory_capacity="1 kB",
    )


@pytest.fixture(scope="session")
def reference() -> Path:
    """Return the folder of reference data; skips where there is none."""
    given = os.environ.get("MLSIM_REFERENCE")
    if not given or not Path(given).is_dir():
        pytest.skip("MLSIM_REFERENCE names no reference folder")
    return Path(given).resolve()
