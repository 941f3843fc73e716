"""A load: devices that are held for a time, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import answered

from mlsim import Systems
from mlsim.errors import InvalidValueError
from mlsim.solvers.load import Load
from mlsim.zoo import resolve


def test_a_load_by_hand() -> None:
    """720 device-hours on three devices are 240 hours each; in 1.5 times the time they do less."""
    load = Load.of(hardware=resolve.device("H100"), device_hours="30 d", devices=3,
                   compute_utilisation=0.6, memory_utilisation=0.9, tokens=5e9)  # fmt: skip
    assert (load.time, load.devices, load.tokens) == (864_000, 3, 5e9)
    assert load.label == "720 device-hours"
    assert load.labels["hardware"] == "3 x NVIDIA H100 SXM 80 GB"
    slower = load.within("15 d")
    assert slower.compute_utilisation == pytest.approx(0.4)
    assert slower.memory_utilisation == pytest.approx(0.6)
    assert load.within("9 d").memory_utilisation == pytest.approx(1.0)
    one = Load.of(hardware=Systems.HGX_H100, device_hours=12.5)
    assert (one.time, one.label) == (45_000, "12.5 device-hours")
    assert (one.system, one.device.key) == (Systems.HGX_H100, "Cloud.H100")
    assert one.labels["hardware"] == "NVIDIA H100 SXM 80 GB"
    assert (one.within("2 s").compute_utilisation, one.tokens) == (None, 0)
    for hours, words in ((99.96, "99.96"), (100.5, "100"), (1234.5, "1,234")):
        assert Load.of(hardware=one.device, device_hours=hours).label == f"{words} device-hours"
    bare = Load(one.device, None, 2, 10.0, 1 + 0.9e-9, None)
    assert (bare.label, bare.tokens, bare.labels, bare.load()) == ("a load", 0, {}, bare)
    assert "labels" not in repr(bare)
    assert one.labels["precision"] == "device-hours given"
    assert one.labels["model"] == "12.5 device-hours"
    asked: dict[str, Any] = {"hardware": one.device, "device_hours": 1.0}
    assert answered(lambda **given: Load.of(**asked | given), "held_devices") == []
    with pytest.raises(InvalidValueError, match="memory_utilisation must be a share"):
        load.within("8 d")
    with pytest.raises(InvalidValueError, match="one time, not an array"):
        load.within(["8 d", "9 d"])
