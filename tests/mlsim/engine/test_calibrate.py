"""`Engine.calibrate`: rows in, a correction out, and nothing changed behind it."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine
from mlsim.errors import InvalidValueError, NotMeasuredError, UnknownNameError

ASKED = {"model": "ResNet50", "hardware": "A100"}


def slower(factor: float, batches: tuple[int, ...], **other: Any) -> list[dict[str, Any]]:
    """Return rows whose times are a factor above the calibrated predictions."""
    asked = {**ASKED, **other}
    return [
        {
            "kind": "solve",
            **asked,
            "batch_size": batch,
            "measured": factor * value,
            "unit": "s",
        }
        for batch in batches
        for value in [
            Engine.solve(**asked, batch_size=batch, estimate="calibrated").value("latency")
        ]
    ]


def test_rows_three_tenths_slower_are_a_factor_of_1_3() -> None:
    found = Engine.calibrate(slower(1.3, (1, 8, 32))).factors["solve"]
    assert found.factor == pytest.approx(1.3)
    assert found.low < 1.3 < found.high
    assert found.before == pytest.approx(0.3)
    assert found.after == pytest.approx(0, abs=1e-9)
    assert found.rows == 3


def test_no_constant_of_the_package_changes() -> None:
    before = slower(1, (8,))
    Engine.calibrate(slower(2, (1, 8, 32)))
    assert slower(1, (8,)) == before


def test_one_device_only() -> None:
    rows = slower(1.3, (1,)) + slower(1.3, (1,), hardware="H100")
    with pytest.raises(InvalidValueError, match=r"2 devices: NVIDIA A100.*NVIDIA H100"):
        Engine.calibrate(rows)


def test_a_wrong_name_in_a_row_is_told_with_the_row() -> None:
    row = {"kind": "solve", **ASKED, "batch": 8, "measured": "2 ms"}
    with pytest.raises(UnknownNameError, match="row 1: solve takes batch_size"):
        Engine.calibrate([row])


@pytest.mark.parametrize("measured", [[], ()])
def test_no_rows(measured: Any) -> None:
    with pytest.raises(InvalidValueError, match="no rows"):
        Engine.calibrate(measured)


def test_the_bound_is_no_prediction_to_correct() -> None:
    with pytest.raises(UnknownNameError, match="calibrated, roofline"):
        Engine.calibrate(slower(1.3, (1,)), estimate="bound")


def test_a_device_without_constants_has_a_roofline() -> None:
    row = {"kind": "solve", "model": "ResNet50", "hardware": "P100", "measured": "9 ms"}
    with pytest.raises(NotMeasuredError, match=r"^row 1: "):
        Engine.calibrate([row])
    assert Engine.calibrate([row], estimate="roofline").factors["solve"].rows == 1
