"""The measured peaks are read strictly, and what is counted from the zoo is what was counted then."""

from __future__ import annotations

import pytest

from mlsim import anatomy
from mlsim.measured.memory_peaks import training_memory


def test_every_count_is_within_a_hundredth_of_its_measurement() -> None:
    rows = training_memory()
    assert {row.network for row in rows} == {"LeNet", "ResNet-18", "small transformer"}
    for row in rows:
        assert row.counted == pytest.approx(row.measured, rel=0.01)


def test_the_zoo_has_the_same_count() -> None:
    for row in training_memory():
        if row.model:
            asked = {"batch_size": row.batch_size, "optimizer": row.optimizer}
            found = anatomy(row.model, **asked, training=True)
            assert found.peak.total.si == pytest.approx(row.counted, rel=1e-9), row.id
