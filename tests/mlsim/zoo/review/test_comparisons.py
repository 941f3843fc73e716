"""Other people's tables beside ours: every difference has its reason, and none is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim.errors import DataFileError, UnknownNameError
from mlsim.records.references import references
from mlsim.zoo.review import comparisons
from mlsim.zoo.review.comparisons import OpenTable, table, tables

each_table = pytest.mark.parametrize("each", list(tables().values()), ids=list(tables()))


@each_table
def test_every_difference_has_a_reason_and_every_reason_a_difference(each: OpenTable) -> None:
    differing = {(one.device.key, one.figure.name): one for one in each.differences()}
    assert [key for key, one in differing.items() if not one.reason] == []
    # A reason names groups of devices and figures; each must be of use somewhere.
    for reason in set(each.reasons.values()):
        pairs = {pair for pair, said in each.reasons.items() if said == reason}
        assert pairs & set(differing), reason
        assert {device for device, _ in pairs} == {device for device, _ in pairs & set(differing)}


def test_every_table_says_where_it_was_read_and_what_differs_most() -> None:
    for each in tables().values():
        assert each.source in references()
        assert len(each.commit) == 40
        assert each.url.endswith(each.path)
        assert each.licence
        compared = each.compare()
        assert len(compared) > 5
        # It is not compared with its own copy.
        assert {one.figure.source for one in compared}.isdisjoint(each.copied)
        for one in compared:
            assert one.ratio == one.theirs / one.figure.si
            assert bool(one.reason) is not one.agrees
        # Ours may be too large, or theirs: a half is as far off as a double.
        factors = [max(one.ratio, 1 / one.ratio) for one in each.differences()]
        assert factors == sorted(factors, reverse=True)


def test_epochs_table_agrees_with_most_of_ours() -> None:
    compared = table("epoch").compare()
    assert len(compared) > 200
    assert sum(each.agrees for each in compared) > 0.75 * len(compared)


def test_torchaos_bandwidth_of_the_rtx_5090_is_a_thousand_times_too_large() -> None:
    worst = table("torchao").differences()[0]
    assert (worst.device.key, worst.figure.name) == ("Workstation.RTX5090", "memory.bandwidth")
    assert worst.ratio == pytest.approx(1000)
    assert worst.text == "1.792 PB/s"


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="epoch"):
        table("epok")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("Cloud.H1000,compute.fp16,X,c,1e12,FLOP/s", "2: there is no device 'Cloud.H1000'. Did"),
        ("Cloud.H100,compute.fp61,X,c,1e12,FLOP/s", "has no figure 'compute.fp61'. Did you mean"),
        ("Cloud.H100,compute.fp16,X,c,fast,FLOP/s", "2: could not convert"),
        ("Cloud.H100,compute.fp16,X,c,989,TFLOP/s", "the unit must be FLOP/s, not 'TFLOP/s'"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(monkeypatch, tmp_path, row: str, words: str) -> None:
    (tmp_path / "epoch.csv").write_text(f"{','.join(comparisons.COLUMNS)}\n{row}\n")
    monkeypatch.setattr(comparisons, "FOLDER", tmp_path)
    with pytest.raises(DataFileError, match=r"epoch\.csv:2") as caught:
        table("epoch").compare()
    assert words in f"2: {str(caught.value).partition(':2: ')[2]}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mine]\ntitel = 'x'", r"\[mine\] titel is unknown. Did you mean 'title'"),
        ("[mine]\ntitle = 3", r"\[mine\] needs title, a str"),
        ("[mine]\ntitle = 'x'", r"\[mine\] needs source"),
    ],
)
def test_a_bad_table_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "tables.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=words):
        tables(tmp_path)


def test_wrong_columns_are_refused(monkeypatch, tmp_path) -> None:
    (tmp_path / "epoch.csv").write_text("device,figure\n", encoding="utf-8")
    monkeypatch.setattr(comparisons, "FOLDER", tmp_path)
    with pytest.raises(DataFileError, match="the columns must be device, figure, name"):
        table("epoch").compare()
