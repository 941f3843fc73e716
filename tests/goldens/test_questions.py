"""Thousands of questions to every door are answered, or refused, as they were.

`make test` asks a share of them, drawn with a fixed seed; MLSIM_JUDGE=1 asks all.
"""

from __future__ import annotations

import os
import random
from itertools import islice
from pathlib import Path

import goldens
import kept_questions
import pytest
import question_grid
from answer_digest import Digest, fingerprint
from kept_questions import REFUSED, SUM, file_of, keep, moved
from questions import Question

RENEW = "\n`make goldens` writes them anew: list in the pull request what moved, and why."
SHARE = 0.1
FEWEST = 12
KEPT = {door: kept_questions.kept(door) for door in kept_questions.doors()}


def some_of(door: str) -> list[Question]:
    """Return the questions that are asked: all, or a share of those answered and those refused."""
    kept = KEPT[door]
    if os.environ.get("MLSIM_JUDGE"):
        return list(kept)
    refused = [each for each in kept if REFUSED in kept[each]]
    answered = [each for each in kept if REFUSED not in kept[each]]
    dice = random.Random(f"33 {door}")
    return [
        each
        for kind in (answered, refused)
        for each in dice.sample(kind, min(len(kind), max(FEWEST, round(SHARE * len(kind)))))
    ]


@pytest.mark.parametrize("door", KEPT)
def test_no_answer_moved(door: str) -> None:
    asked = kept_questions.differences(some_of(door), KEPT[door])
    moved = [each for _, _, other in asked for each in other]
    assert not moved, f"{door}: {kept_questions.summary(moved, most=40)}{RENEW}"


def test_each_door_has_its_questions_and_each_kind_of_answer() -> None:
    assert sum(map(len, KEPT.values())) >= 5000
    for door in ("solve", "serve", "load", "plan", "train", "gemm", "fit", "footprint"):
        assert len(KEPT[door]) >= 100
    for door in ("anatomy", "predict", "profile", "check_claim"):
        assert len(KEPT[door]) >= 100
    for door in ("solve", "serve", "train", "gemm", "load", "plan"):
        text = " ".join(each.text for each in some_of(door))
        for estimate in ("roofline", "bound", "calibrated"):
            assert f'"estimate": "{estimate}"' in text, f"{door}: none of the sample asks for it"
        assert any(REFUSED in KEPT[door][each] for each in some_of(door))


def test_each_door_can_be_asked_ever_more_which_are_the_same_in_each_run() -> None:
    for door, many in question_grid.COUNTS.items():
        first, again = (list(islice(question_grid.drawn(door), 9)) for _ in range(2))
        assert first == again
        assert many >= len(first) == len({each.text for each in first})
        assert all(each.asked and each.door == door for each in first)
    refused = iter([True, False] * 20)
    assert len(list(question_grid.grid("gemm", 10, lambda _: next(refused)))) == 10


ASKED = Question.of("solve", {"model": "ResNet50", "hardware": "A100"})
TIMES = {"a": 2.0, "b": 3.0, "c": 0.0, "d": -5.0}


def told(old: dict[str, str], new: dict[str, str], **numbers: dict[str, float]) -> list[str]:
    """Return what is said to have moved, without the question."""
    found = moved(ASKED, old, Digest(new, numbers))
    assert all(str(each) == f"solve ResNet50 A100: {each.words}" for each in found)
    return [each.words for each in found]


def test_a_number_that_moved_is_said_with_its_unit_and_by_how_much() -> None:
    assert told({"latency [s]": "0.0123"}, {"latency [s]": "0.0125"}) == [
        "latency 0.0123 s -> 0.0125 s (+1.63 %)"
    ]
    assert told({"t [s]": "[1.0, 2.0]"}, {"t [s]": "[1.0, 1.5]"}) == ["t[1] 2 s -> 1.5 s (-25 %)"]
    assert told({"n [1]": "7"}, {"n [1]": "7.000000000001"}) == []
    assert len(told({"n [1]": "7"}, {"n [1]": "7.00000000002"})) == 1
    assert told({"bottleneck": "Memory"}, {"bottleneck": "Network"}) == [
        "bottleneck Memory -> Network"
    ]


def test_a_refusal_that_changed_and_an_answer_that_became_one_are_said() -> None:
    old, new = "InvalidValueError: 3 of 4", "InvalidValueError: 3 of 5"
    assert told({REFUSED: old}, {REFUSED: new}) == [f"refused {old} -> {new}"]
    assert told({"latency [s]": "1.5"}, {REFUSED: new}) == [
        "latency [s]: 1.5 -> nothing",
        f"refused: nothing -> {new}",
    ]


def test_one_number_behind_a_sum_is_known_again_by_its_name() -> None:
    name, before = f"{SUM}rest", fingerprint(TIMES)

    def after(**other: float) -> list[str]:
        new = TIMES | other
        return told({name: before}, {name: fingerprint(new)}, rest=new)

    assert after() == []
    assert after(b=3.3) == ["rest b 3 -> 3.3 (+10 %)"]
    assert after(d=-5.5) == ["rest d -5 -> -5.5 (+10 %)"]
    # Both by a tenth: of the mean of four, half of that in logarithms.
    assert after(a=2.2, b=3.3) == ["rest: several of 4 numbers moved, by +4.88 % in the mean"]
    for one in ({"c": 1e-300}, {"d": 5.0}, {"a": float("nan")}, {"a": 0.0}):
        assert after(**one) == ["rest: another number is zero, negative or none"]
    assert after(e=1.0) == ["rest: 4 numbers -> 5"]
    # However small beside the others, and whatever else there is.
    assert after(a=2 * (1 + 1e-11)) != []
    assert after(a=2 * (1 + 1e-14)) == []


def test_what_is_written_is_read_again_and_one_more_question_shifts_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept_questions, "FOLDER", tmp_path)
    other = Question.of("solve", {"model": "LeNet5", "hardware": "H1000"})
    answers = {each: kept_questions.asked(each).cells for each in (ASKED, other)}
    assert answers[other][REFUSED].startswith("UnknownNameError: ")
    keep("solve", answers)
    before = file_of("solve").read_text("utf-8").splitlines()
    assert kept_questions.kept("solve") == answers
    assert goldens.renew_questions() == 0
    more = Question.of("solve", {"model": "ResNet50", "hardware": "A100", "batch_size": 7})
    keep("solve", answers | {more: kept_questions.asked(more).cells})
    lines = file_of("solve").read_text("utf-8").splitlines()
    assert [each for each in lines if each in before] == before
    # A number of the file that is another is said, and written anew.
    text = file_of("solve").read_text("utf-8")
    latency = answers[ASKED]["latency [s]"]
    file_of("solve").write_text(text.replace(latency, "1e-05"), encoding="utf-8")
    capsys.readouterr()
    assert goldens.renew_questions() == 1
    said = capsys.readouterr().out
    assert said.startswith("solve: 1 answers moved, the farthest by ")
    told = f"latency 1e-05 s -> {float(latency):.6g} s (+{100 * (float(latency) / 1e-5 - 1):.3g} %)"
    assert f"solve ResNet50 A100: {told}" in said
    assert file_of("solve").read_text("utf-8") == text
