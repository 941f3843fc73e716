"""The book itself is in order, and what its pages tell is what the package does.

What we ask of our own book, and what `make course` asks of no changed one: no entry of the
bibliography unused, no topic of one exercise alone.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from mlsim.measured import network_steps
from mlsim.profiling import Spread
from mlsim.software import classes, software
from mlsim_book.check.book import check_book
from mlsim_book.site.shared_files import with_cards
from mlsim_course import bank
from mlsim_exercises.evaluation import evaluate, variants

ROOT = Path(__file__).parents[2]
# Where a page says what the calibrated estimate is.
TOLD = re.compile(
    r'(?:(?<=[Tt]he )|(?<=is the ))\*\*calibrated\*\* estimate|`estimate="calibrated"` takes'
)


def test_the_book_passes_its_own_check(built_book: Path) -> None:
    problems = check_book(ROOT, out=built_book)
    assert [each.text() for each in problems.found] == []
    assert [each.text() for each in problems.advice if "cited nowhere" in each.message] == []


def test_topics_are_shared() -> None:
    """A topic is what readers learn about themselves: one question alone says little."""
    topics = Counter(each.topic for each in bank.exercises.values())
    lonely = [topic for topic, count in topics.items() if count < 2]
    assert not lonely, f"one exercise alone has these topics; use one of {sorted(topics)}"
    assert len(topics) <= 15, f"merge some of these topics: {sorted(topics)}"


def test_inline_numbers_of_the_first_chapter_open_and_none_is_given(built_book: Path) -> None:
    path = built_book / "tutorials" / "where_time_goes.html"
    page = with_cards(path.read_text(encoding="utf-8"), path)
    opened = re.findall(r'class="opens" data-opens="([\w-]+)"', page)
    assert len(opened) > 40
    assert all(f'<template id="{each}"' in page for each in opened)
    chapter = (ROOT / "tutorials" / "where_time_goes.qmd").read_text(encoding="utf-8")
    assert re.findall(r"\.given kind=[\"'](\w+)", chapter) == ["definition"]


def fitted(name: str) -> list[str]:
    """Return the terms of a class of software that are fitted to published results."""
    return [key for key, term in software(name).terms.items() if "fitted" in term.note]


def test_whoever_tells_what_calibrated_is_says_that_software_is_fitted() -> None:
    """Of the defaults, some terms are; only lone kernels have none."""
    assert fitted("engine")
    assert fitted("framework")
    assert not fitted("kernels")
    assert {"framework", "kernels"} < set(classes())
    told, silent = 0, []
    for path in [ROOT / "README.md", *ROOT.glob("*.qmd"), *ROOT.glob("tutorials/*.qmd")]:
        text = path.read_text(encoding="utf-8")
        for found in TOLD.finditer(text):
            told += 1
            if "fitted to" not in text[found.start() : found.start() + 900]:
                silent.append((path.stem, text[: found.start()].count("\n") + 1))
    assert told >= 4
    assert silent == []


def test_versions_are_compared_by_their_ratio_and_not_by_whether_intervals_overlap() -> None:
    exercise = bank.exercises["runs-for-a-change"]
    answers = set()
    for given in variants(exercise):
        a, b, ratios = given["a"], given["b"], given["ratios"]
        assert b + 3 > a - 3  # the intervals of the two medians overlap
        ratio = Spread.of(ratios)
        assert ratio.confidence == pytest.approx(0.961, abs=1e-3)
        assert (ratio.low, ratio.high) == (ratios[1], ratios[-2])
        answer = evaluate(exercise, given).answer
        assert answer == ("B is faster" if ratio.high < 1 else "These runs don't tell")
        answers.add(answer)
    assert len(answers) == 2


def test_the_chapter_on_networks_trains_in_the_format_that_is_run() -> None:
    """In plain FP32 the roofline is slower than what was measured on the same card."""
    wanted = ("Cloud.A100", "tf32", 1)
    [row] = [
        each for each in network_steps() if (each.device, each.precision, each.devices) == wanted
    ]
    assert row.train("roofline", precision="fp32").throughput < row.value
    assert row.value < row.train("roofline").throughput
    page = (ROOT / "tutorials/anatomy.qmd").read_text(encoding="utf-8")
    cliff = page[page.index("## Where memory ends") : page.index("### Cliff, or just")]
    assert 'precision="tf32"' in cliff
    assert "FP32 on an A100" not in cliff
    assert row.source in cliff
