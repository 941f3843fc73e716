"""Published results: complete, and never faster than the bound."""

from __future__ import annotations

from mlsim import Hardware, measurements

ROWS = measurements()


def test_the_devices_of_the_chapter_were_measured() -> None:
    measured = {row.hardware for row in ROWS}
    assert {"Cloud.V100", "Cloud.A100", "Cloud.A100_40GB", "Cloud.T4"} <= measured


def test_rows_are_selected() -> None:
    some = measurements(model="ResNet50", hardware=Hardware.Cloud.T4, precision="fp32")
    assert some
    assert {(row.hardware, row.precision) for row in some} == {("Cloud.T4", "fp32")}
    assert all(row.software.startswith("PyTorch") for row in measurements(software="PyTorch"))
    assert measurements(software="nothing") == []
