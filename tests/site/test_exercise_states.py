"""Exercises in all states and places: no violation of axe-core in any of them.

Also without scripts, without storage, on paper, from disk; and every exercise of the book.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from axe import violations
from exercise_book import EMPTY, give, press, task
from kept import script

# The right answer and each wrong path of every exercise: how each is answered.
ANSWER_ALL = script("answer_all.js")


DAMAGED = [
    "{", "[7]", '{"sub/boil.html#exr-double":{"guess":"x","hints":"y","given":{}}}',
    '{"sub/boil.html#exr-sort":{"given":9,"tries":1},"a":null,"b":{"guess":1,"title":2}}',
]  # fmt: skip


def test_exercises_work_where_storage_is_damaged_or_refused(visit_exercises: Any) -> None:
    for stored in DAMAGED:
        init = f"localStorage.setItem('exercises /', {json.dumps(stored)})"
        page = visit_exercises(init=init)
        assert give(page, "rate", "2", guess="3").startswith("Right.")
        assert page.locator(".exercise.live").count() == 7
        assert task(page, "rate").get_by_text("Your guess was 1.5 times too high").is_visible()
        assert visit_exercises("guesses.html", init=init).locator(".calibration").is_visible()
    refuse = "Storage.prototype.setItem = Storage.prototype.getItem = () => { throw new Error() }"
    page = visit_exercises(init=refuse)
    assert "2.0 times too low" in give(page, "double", "670", guess="335")


def test_without_scripts_there_are_prompt_and_folds(visit_exercises: Any) -> None:
    page = visit_exercises(java_script_enabled=False)
    assert page.locator("input[type=radio], form.exercise-form").count() == 0
    for words in ("Energy over power", "That is for", "It takes 670 s.", "Power is energy"):
        assert page.get_by_text(words).is_visible()
    assert task(page, "sort").locator("li").all_inner_texts() == ["Kettle", "Lamp", "Oven"]
    page = visit_exercises("guesses.html", java_script_enabled=False)
    assert page.get_by_text(EMPTY).is_visible()


def test_on_paper_stands_the_plain_exercise(visit_exercises: Any) -> None:
    page = visit_exercises()
    give(page, "double", "670", guess="335")
    press(task(page, "double"), "Show the solution")
    page.emulate_media(media="print")
    for words in ("Your guess: 335 s", "Energy over", "It takes 670 s.", "Power is energy"):
        assert not page.get_by_text(words).is_visible()
    assert not page.locator("main button:visible, main input:visible").count()
    assert page.get_by_text("How long does a kettle").is_visible()
    assert task(page, "sort").locator("> ul").is_visible()


def test_only_its_page_loads_it_and_it_works_from_disk(
    visit: Any, exercise_site: Path, tmp_path: Path
) -> None:
    assert "exercises-" not in (exercise_site / "index.html").read_text("utf-8")
    boil = (exercise_site / "sub/boil.html").read_text("utf-8")
    assert boil.count("site_libs/exercises-") == 2
    assert 'data-guesses="../guesses.html"' in boil
    with zipfile.ZipFile(exercise_site / "Kettles.zip") as archive:
        archive.extractall(tmp_path)
    page = visit((tmp_path / "Kettles" / "sub" / "boil.html").as_uri())
    assert "2.0 times too low" in give(page, "double", "670", guess="335")
    page.reload()
    task(page, "double").get_by_role("link", name="All your guesses").click()
    page.wait_for_url("**/guesses.html")
    assert page.locator("main tbody tr").count() == 1


def stops_unseen(page: Any) -> list[str]:
    """Return which tab stops of exercises, from here on, don't show that they have the focus."""
    unseen, stops = [], 0
    while page.evaluate("document.activeElement.closest('.live') !== null"):
        stops += 1
        _, html, is_seen = page.evaluate(script("focus_shown.js"))
        unseen += [] if is_seen else [html]
        page.keyboard.press("Tab")
    assert stops > 15
    return unseen


def look_at(page: Any, state: str) -> list[str]:
    """Return what is wrong with a page as it is: each width, and each colours, are seen."""
    return [f"{state}, {each}" for each in violations(page)]


@pytest.mark.slow
def test_no_state_of_an_exercise_has_a_violation(visit_exercises: Any) -> None:
    # axe is put into the page, whose policy forbids strangers
    page = visit_exercises(bypass_csp=True)
    double, metal, sort = (task(page, name) for name in ("double", "metal", "sort"))
    check = page.locator(".selfcheck")
    found = look_at(page, "untouched")
    double.get_by_label("Your guess").fill("slow")
    press(double, "Keep my guess")
    give(page, "rate", "3.4", guess="1")
    press(metal, "Show it anyway")
    press(sort, "Check")
    found += look_at(page, "unreadable, guessed, order of magnitude, revealed, wrong order")
    give(page, "double", "335", guess="300")
    press(double, "Hint 1 of 2")
    give(page, "rate", "2e3")
    metal.get_by_role("radio", name="Iron").check()
    press(metal, "Check")
    check.get_by_role("radio").first.check()
    press(check, "Check")
    found += look_at(page, "wrong path, hint, slip of the unit, wrong choice")
    give(page, "double", "670")
    press(double, "Show the solution")
    give(page, "rate", "2")
    press(check, "Show the answer")
    found += look_at(page, "right and revealed")
    double.get_by_label("Your answer").focus()
    assert stops_unseen(page) == []
    page.goto(page.url.replace("sub/boil", "guesses"))
    # what was answered after its solution was no guess
    assert page.locator("main tbody tr").count() == 3
    found += look_at(page, "all guesses")
    press(page, "Delete all")
    press(page, "Yes, delete")
    found += look_at(page, "no guesses")
    assert found == [], "\n".join(found[:20])


@pytest.mark.slow
def test_every_exercise_of_the_book_answers(
    built_book: Path, looked_at: list[str], book_url: str, browser: Any
) -> None:
    marked = 'class="theorem exercise checked"'
    pages = [each for each in looked_at if marked in (built_book / each).read_text("utf-8")]
    if not pages:
        pytest.skip("this book has no exercises that answer")
    dead, seen = [], 0
    for path in pages:
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(f"{book_url}/{path}")
            for name, tones, wanted in page.evaluate(ANSWER_ALL):
                seen += 1
                if tones != wanted:
                    dead.append(f"{path}#{name}: {tones}")
    assert seen > 0
    assert dead == []
