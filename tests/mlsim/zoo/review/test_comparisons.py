"""Other people's tables beside ours: every difference has its reason, and none is left over."""

from __future__ import annotations

import re

import pytest
from told import rows

from mlsim.errors import DataFileError, UnknownNameError
from mlsim.records.references import references
from mlsim.zoo.review import comparisons
from mlsim.zoo.review.comparisons import table, tables


def test_every_difference_has_a_reason_and_every_reason_a_difference() -> None:
    for each in tables().values():
        differing = {(one.device.key, one.figure.name): one for one in each.differences()}
        assert [key for key, one in differing.items() if one.reason != each.reasons[key]] == []
        # A reason names groups of devices and figures; each must be of use somewhere.
        for reason in set(each.reasons.values()):
            pairs = {pair for pair, said in each.reasons.items() if said == reason}
            used = pairs & set(differing)
            assert used, reason
            assert {device for device, _ in pairs} == {device for device, _ in used}


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
    assert (worst.ratio, worst.text) == (pytest.approx(1000), "1.792 PB/s")
    with pytest.raises(UnknownNameError, match="epoch"):
        table("epok")


def test_what_is_wrong_in_a_table_is_refused_with_its_line(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(comparisons, "FOLDER", tmp_path)
    columns = ",".join(comparisons.COLUMNS)
    for text, words in [
        ("device,figure", ":1: the columns must be device, figure, name"),
        *((f"{columns}\n{row}", words) for row, words in rows("wrong_comparisons")),
    ]:
        (tmp_path / "epoch.csv").write_text(f"{text}\n", encoding="utf-8")
        with pytest.raises(DataFileError, match=re.escape(f"epoch.csv{words}")):
            table("epoch").compare()
    for text, words in {
        "[mine]\ntitel = 'x'": ":2: unknown key 'titel'. Did you mean 'title'",
        "[mine]\ntitle = 3": ":2: mine.title must be text in quotes, not 3",
        "[mine]\ntitle = 'x'": ":1: mine.source is missing",
    }.items():
        (tmp_path / "tables.toml").write_text(text, encoding="utf-8")
        with pytest.raises(DataFileError, match=words):
            tables.__wrapped__(tmp_path)
