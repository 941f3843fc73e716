"""The book itself is in order: links, labels, alternative texts, numbers, notebooks.

What we ask of our own book, and what `make course` asks of no changed one: no entry of the
bibliography unused, no topic of one exercise alone.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from mlsim_book.check.book import check_book
from mlsim_book.site.cards import with_cards
from mlsim_course import bank

ROOT = Path(__file__).parents[2]


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


def test_no_result_of_the_first_chapter_is_marked_as_given() -> None:
    chapter = (ROOT / "tutorials" / "hello_world.qmd").read_text(encoding="utf-8")
    kinds = re.findall(r"\.given kind=[\"'](\w+)", chapter)
    assert kinds == ["definition"]


def test_inline_numbers_of_the_first_chapter_open(built_book: Path) -> None:
    path = built_book / "tutorials" / "hello_world.html"
    page = with_cards(path.read_text(encoding="utf-8"), path)
    opened = re.findall(r'class="opens" data-opens="([\w-]+)"', page)
    assert len(opened) > 40
    assert all(f'<template id="{each}"' in page for each in opened)
