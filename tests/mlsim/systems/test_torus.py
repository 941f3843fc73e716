"""Tori: which links a group uses, what can't be, and one slice worked by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mlsim import Engine, Hardware, Models, System
from mlsim.equations.collective import ring_pass_rate
from mlsim.errors import InvalidValueError
from mlsim.systems.torus import links_within


def torus(*shape: int, rate: str = "400 GB/s", **changes: object) -> System:
    arguments = {"devices": math.prod(shape), "topology": "torus", "shape": shape, **changes}
    return System("My slice", Hardware.Cloud.TPUv5e, link_bandwidth=rate, **arguments)


def test_a_group_uses_the_links_that_lead_within_it() -> None:
    """4 x 4 with four links of 100 GB/s.

    A pair has one link between them; four devices of a row form a ring, with two; eight are
    two rows, with one more; all sixteen use all four.
    """
    system = torus(4, 4)
    rates = [system.link_bandwidth(group) for group in (2, 3, 4, 8, 16)]
    assert rates == pytest.approx([100e9, 100e9, 200e9, 300e9, 400e9], rel=1e-12)


def test_an_axis_of_two_has_one_link() -> None:
    assert links_within((2, 2), 4) == 2
    assert torus(2, 2).link_bandwidth(2) == pytest.approx(200e9)
    assert torus(4, 4, 2).link_bandwidth(16) == pytest.approx(400e9 * 4 / 5)


def test_a_slice_worked_by_hand() -> None:
    """An all-reduce of 4 GB over 64 chips, six links of 45 GB/s each.

    It is a reduction that scatters, and a gather: twice 4 GB x 63/64 at 270 GB/s. The book
    that the equation is from leaves out the 63/64: 2 x 4 / (3 axes x 90 GB/s) = 29.6 ms.
    """
    system = torus(4, 4, 4, rate="270 GB/s")
    seconds = 2 * 4e9 * float(ring_pass_rate(64, system.link_bandwidth(64)))
    assert seconds == pytest.approx(2 * 4e9 * 63 / 64 / 270e9, rel=1e-12)
    assert seconds == pytest.approx(29.6e-3 * 63 / 64, rel=2e-3)


@given(st.lists(st.integers(2, 8), min_size=1, max_size=3), st.floats(1e6, 1e12))
def test_a_larger_group_is_never_slower(shape: list[int], rate: float) -> None:
    system = torus(*shape, rate=f"{rate} B/s")
    rates = [system.link_bandwidth(group) for group in range(2, system.devices + 1)]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": ()}, "shape must be the devices along each axis"),
        ({"shape": (16, 1)}, "not (16, 1): a torus needs one."),
        ({"shape": (4.0, 4)}, "whole numbers from 2 up such as (4, 4)"),
        ({"shape": "4x4"}, "not '4x4'"),
        ({"shape": (4, 8)}, "shape 4 x 8 is 32 devices, but devices is 16."),
        ({"topology": "mesh"}, "shape is of a torus, not of a mesh: leave (4, 4) out"),
    ],
)
def test_a_torus_that_cannot_be(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        torus(4, 4, **changes)
    assert words in str(e.value)


def test_tokens_are_not_sent_to_experts_across_a_torus() -> None:
    """Bytes would pass through the devices between: the rate of a ring promises too much."""
    asked: dict[str, Any] = {"model": Models.Mixtral_8x7B, "hardware": torus(4, 4)}
    spread = {"tensor_parallel": 4, "expert_parallel": 8}
    with pytest.raises(InvalidValueError, match=r"above tensor_parallel 4, .* not modeled"):
        Engine.serve(**asked, prompt_tokens=128, output_tokens=16, data_parallel=2, **spread)
    with pytest.raises(InvalidValueError, match=r"Take expert_parallel=4, or a system with a"):
        Engine.train(**asked, global_batch=16, devices=16, **spread)
    run = Engine.train(**asked, global_batch=16, devices=16, tensor_parallel=4, expert_parallel=4)
    assert run.devices == 16
