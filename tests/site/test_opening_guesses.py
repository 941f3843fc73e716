"""Guesses that open a chapter, as readers meet them: kept, settled by the page, and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe import NEXT_FRAME, axe_script
from exercise_book import PHONE, WIDE

NONE = "There is no guess here yet."


@pytest.fixture
def visit_coffee(visit: Any, small_url: Callable[[str], str]) -> Any:
    """Open a page of the book with opening guesses; it may not complain."""

    def opened(path: str = "coffee.html", **options: Any) -> Any:
        return visit(f"{small_url('coffee')}/{path}", reduced_motion="reduce", **options)

    return opened


def settled(page: Any) -> list[str]:
    return [str(each) for each in page.locator(".guess-settled:visible").all_inner_texts()]


def faults(page: Any) -> list[str]:
    page.evaluate(NEXT_FRAME)
    page.evaluate(axe_script())
    found = page.evaluate("axe.run()")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]


def press_until(page: Any, wanted: str) -> None:
    """Go on by Tab until what is focused says something."""
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent"
        )
        if wanted in name:
            return
    raise AssertionError(f"no Tab reaches {wanted}")


def test_guesses_by_keyboard_alone_are_settled_and_counted(visit_coffee: Any) -> None:
    """Five minutes for 150 s, then 78 % for 80 %; the wrong place, and the right order."""
    page = visit_coffee()
    keys = page.keyboard
    assert settled(page) == []
    page.locator("h2", has_text="Guess first").evaluate(
        "each => { each.tabIndex = -1; each.focus(); }"
    )
    press_until(page, "Your guess")
    keys.type("soon")
    keys.press("Enter")
    assert (
        "That is no number: the answer is a number in s." in page.locator("#gss-time").inner_text()
    )
    keys.press("Control+a")
    keys.type("5 min")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Your guess: 300 s"
    press_until(page, "Your guess")  # of the second
    keys.type("0.78")
    keys.press("Enter")
    assert "Is that 78 % or 0.78 %?" in page.locator("#gss-share").inner_text()
    keys.press("Control+a")
    keys.type("150 %")
    keys.press("Enter")
    assert "at most 100 %" in page.locator("#gss-share").inner_text()
    keys.press("Control+a")
    keys.type("78%")
    keys.press("Enter")
    press_until(page, "the kettle")
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("Enter")
    press_until(page, "↓")  # the cup: below the spoon, then below the water
    keys.press("Enter")
    keys.press("ArrowDown")
    press_until(page, "↓")
    page.locator("#gss-order").get_by_role("button", name="Move the water up").focus()
    keys.press("Enter")
    press_until(page, "Keep my guess")
    keys.press("Enter")
    assert settled(page) == [
        "You guessed 300 s: 2.0 times too high. Measured: 3 minutes on a stove.",
        "You guessed 78 %: right, within 10 %.",
        "You guessed the room. It is the kettle’s lid.",
        "You guessed the water, the spoon, the cup. It is the water, the cup, the spoon.",
    ]
    assert faults(page) == []
    last = page.locator(".guess-settled").last
    last.scroll_into_view_if_needed()
    page.get_by_role("button", name="Change it").first.wait_for(state="hidden")
    page.reload()
    assert len(settled(page)) == 4
    page.goto(page.url.replace("coffee.html", "guesses.html"))
    rows = [each.inner_text().split("\t") for each in page.locator("tbody tr").all()]
    assert [[row[0].split("\n")[0].strip(), *row[1:]] for row in rows] == [
        ["How long does the water take?", "300 s", "150 s", "2.0 times too high"],
        ["What part of the heat stays in the water?", "78 %", "80 %", "right"],
        ["Where does the rest go?", "the room", "the kettle’s lid", "wrong"],
        ["Which is hotter? The hottest first.", "the water, the spoon, the cup", "the water, the cup, the spoon", "wrong"],
    ]  # fmt: skip
    assert (
        "Choices and orders: 0 of 2 right at the first answer." in page.locator("main").inner_text()
    )
    assert faults(page) == []
    page.locator("tbody a").first.click()
    assert page.url.endswith("coffee.html#gss-time")


def test_a_guess_can_be_skipped_changed_or_made_after_all(visit_coffee: Any) -> None:
    """Until the page has told how far it was; one that nobody made is not counted."""
    page = visit_coffee(viewport={"width": 1280, "height": 300})
    first, third = page.locator("#gss-time"), page.locator("#gss-where")
    first.get_by_role("button", name="Skip this guess").click()
    assert not first.get_by_label("Your guess").is_visible()
    assert "Skipped." in first.inner_text()
    assert settled(page) == []
    page.reload()
    first.get_by_role("button", name="Guess after all").click()
    first.get_by_label("Your guess").fill("150")
    page.keyboard.press("Enter")
    assert settled(page)[0].startswith("You guessed 150 s: right. Measured")
    first.get_by_role("button", name="Change it").click()
    assert settled(page) == []
    assert first.get_by_label("Your guess").input_value() == "150"
    third.get_by_role("button", name="Keep my guess").click()
    assert "Choose one first." in third.inner_text()
    kept = json.loads(page.evaluate("Object.values(localStorage)[0] ?? '{}'"))
    assert [each for each in kept.values() if "guess" in each] == []
    page.goto(page.url.replace("coffee.html", "guesses.html"))
    assert page.get_by_text(NONE).is_visible()


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_each_box_is_accessible_and_fits(visit_coffee: Any, viewport: Any, look: Any) -> None:
    page = visit_coffee(viewport=viewport, color_scheme=look)
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_and_on_paper_stands_the_question_alone(visit_coffee: Any) -> None:
    bare = visit_coffee(java_script_enabled=False)
    asked = bare.locator("main .guess")
    assert [each.inner_text() for each in asked.all()][:2] == [
        "How long does the water take?",
        "What part of the heat stays in the water?",
    ]
    starts = bare.locator("main .guess > ol")
    assert [each.get_attribute("start") for each in starts.all()] == [None, "2", "3", "4"]
    assert bare.locator("main .guess li li").count() == 6
    assert bare.locator("main input, main form, main .guess-settled").count() == 0
    page = visit_coffee()
    page.locator("#gss-time").get_by_label("Your guess").fill("300")
    page.keyboard.press("Enter")
    page.emulate_media(media="print")
    assert settled(page) == []
    assert page.locator("#gss-time").inner_text().strip() == "How long does the water take?"
    assert page.locator("#gss-where li li").first.is_visible()


@pytest.mark.parametrize("right", [True, False])
def test_each_guess_of_the_book_is_settled(
    visit: Any, built_book: Path, book_url: str, right: bool
) -> None:
    """By keyboard: the answer, or a third or three times of it, or the choice after the right one."""
    pages = sorted(built_book.rglob("*.html"))
    asks = [each for each in pages if 'class="guess"' in each.read_text("utf-8")]
    assert asks
    for path in asks:
        page = visit(f"{book_url}/{path.relative_to(built_book)}", reduced_motion="reduce")
        boxes, far = page.locator("main .guess").all(), 0
        for box in boxes:
            kind, unit, answer = (
                box.get_attribute(f"data-{each}") for each in ("kind", "unit", "answer")
            )
            box.locator("input").first.focus()
            if kind == "number":
                percent = " %" if unit == "%" else ""
                wrong = 3 if not percent or float(answer) <= 33 else 1 / 3  # no share is over 100 %
                page.keyboard.type(f"{float(answer) * (1 if right else wrong):.12g}{percent}")
                far += not right
            else:
                page.keyboard.press("Space")
                for _ in range((int(answer) - right) % box.locator("input").count()):
                    page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
        said = settled(page)
        assert [": right" in each for each in said] == [right] * len(boxes), said
        assert sum(": 3.0 times too " in each for each in said) == far, said
        measured = page.locator("main .guess[data-measured]").count()
        assert sum("Measured: " in each for each in said) == measured
        page.context.close()
