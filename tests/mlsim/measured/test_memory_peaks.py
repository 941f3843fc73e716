"""The measured peaks are read strictly, and what is counted from the zoo is what was counted then."""

from __future__ import annotations

import pytest

from mlsim import anatomy
from mlsim.errors import DataFileError
from mlsim.measured import memory_peaks as room
from mlsim.measured.memory_peaks import training_memory


def test_every_count_is_within_a_hundredth_of_its_measurement() -> None:
    rows = training_memory()
    assert {row.network for row in rows} == {"LeNet", "ResNet-18", "small transformer"}
    for row in rows:
        assert row.counted == pytest.approx(row.measured, rel=0.01)


@pytest.mark.parametrize("row", [row for row in training_memory() if row.model], ids=lambda r: r.id)
def test_the_zoo_has_the_same_count(row: room.TrainingMemory) -> None:
    found = anatomy(row.model, batch_size=row.batch_size, training=True, optimizer=row.optimizer)
    assert found.peak.total.si == pytest.approx(row.counted, rel=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",momentum,", ",momentun,", "Did you mean 'momentum'"),
        (",B,", ",MB,", "unit must be B"),
        (",128,", ",0,", "batch_size must be a whole number"),
        ("LeNet5_Variant", "LeNet6", "MEM-001|LeNet6"),
    ],
)
def test_a_wrong_cell_is_refused(tmp_path, monkeypatch, old: str, new: str, words: str) -> None:
    path = tmp_path / "training_steps.csv"
    path.write_text(room.FILE.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(room, "FILE", path)
    with pytest.raises(DataFileError, match=words):
        room.training_memory.__wrapped__()
