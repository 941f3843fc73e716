"""Exercises as readers meet them: guess, answer, feedback, hints, solution, and all guesses.

By keyboard and pointer, restored after a reload. What they are without scripts, storage or
a server, on paper and to assistive technology is in test_exercise_states.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exercise_book import EMPTY, give, press, said, task
from kept import cases


def test_a_guess_comes_first_then_the_answer_all_by_keyboard(visit_exercises: Any) -> None:
    page, keys = (page := visit_exercises()), page.keyboard
    place = task(page, "double")
    answer, solution = place.get_by_label("Your answer in s"), place.get_by_text("It takes 670 s.")
    assert not answer.is_visible()
    place.get_by_label("Your guess, before you compute in s").focus()
    keys.type("300 s")
    keys.press("Enter")
    assert answer.evaluate("each => each === document.activeElement")
    assert "Your guess: 300 s" in place.inner_text()
    assert not place.get_by_label("Your guess").is_visible()
    keys.type("335")
    keys.press("Enter")
    assert said(place) == "That is for one liter."
    keys.press("Control+a")
    keys.type("6.7e2")
    keys.press("Enter")
    assert said(place).startswith("Right. Each liter takes as much energy as the first.")
    assert "The answer is 670 s. Your guess was 2.2 times too low." in said(place)
    assert not solution.is_visible()
    for _ in range(4):  # Check, All your guesses, Hint 1 of 2, Show the solution
        keys.press("Tab")
    keys.press("Enter")
    assert solution.is_visible()
    assert page.evaluate("document.activeElement.textContent.trim()").endswith("Solution")
    page.reload()
    assert solution.is_visible()
    assert answer.input_value() == "6.7e2"
    assert "Right." in said(place)
    assert "2.2 times too low" in said(place)


def test_feedback_follows_the_mistake(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "double")
    assert place.locator(".wrong-path").count() == 1
    assert not place.locator(".wrong-path").is_visible()
    for given, words in cases("answers_in_seconds.toml"):
        assert words in give(page, "double", given), given
        invalid = place.get_by_label("Your answer").get_attribute("aria-invalid")
        assert (invalid == "true") == (given == "fast")
    assert place.locator(".exercise-feedback").get_attribute("role") == "status"
    assert place.locator(".exercise-feedback em").count() == 0
    give(page, "double", "335")
    assert place.locator(".exercise-feedback em").inner_text() == "one"


def test_after_right_nothing_older_stands(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "count")
    assert "no number" in give(page, "count", "many")
    right = ["Right.", "The answer is 2,416 cups."]  # not 2,420
    assert [*filter(None, give(page, "count", "2416").split("\n"))] == right
    assert place.get_by_label("Your answer").get_attribute("aria-invalid") is None
    assert give(page, "count", "many") == "That is no number: the answer is a number of cups."
    press(place, "Show the solution")
    assert [*filter(None, said(place).split("\n"))] == right
    give(page, "double", "670")
    assert give(page, "double", "335") == "That is for one liter."
    page.reload()
    assert said(task(page, "double")) == "That is for one liter."


def test_a_guess_that_is_no_number_or_says_no_unit_is_not_kept(visit_exercises: Any) -> None:
    """A share as an answer is taken for per cent."""
    page = visit_exercises()
    for name, given, words in (
        ("double", "", "Write a number first."),
        ("double", "slow", "no number"),
        ("double", "5 kWh", "in kWh"),
        ("share", "0.3", "Is that 30 % or 0.3 %? Write it with its sign."),
    ):
        place = task(page, name)
        place.get_by_label("Your guess").fill(given)
        press(place, "Keep my guess")
        assert words in said(place)
        assert place.get_by_label("Your guess").is_visible()
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    assert give(page, "share", "2/5", guess="30 %").startswith("Right.")
    assert "0.4 %" not in give(page, "share", "0.4")
    assert "factor of 100" in give(page, "share", "0.4 %")


def test_hints_come_one_by_one_and_the_solution_when_asked_for_twice(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "double")
    first, second = (place.locator("p", has_text=each) for each in ("Energy over", "Water takes"))
    assert not first.is_visible()
    press(place, "Hint 1 of 2")
    assert first.is_visible()
    assert not second.is_visible()
    assert "Hint: Energy over power" in place.get_by_role("status").last.inner_text()
    press(place, "Hint 2 of 2")
    assert second.is_visible()
    assert place.get_by_role("button", name="of 2").count() == 0
    spent = place.get_by_role("button", name="No more hints")
    assert spent.get_attribute("aria-disabled") == "true"
    assert spent.evaluate("each => each === document.activeElement")
    page.keyboard.press("Enter")  # once too often
    assert second.is_visible()
    anyway = place.get_by_role("button", name="Show it anyway")
    described = page.locator(f"#{anyway.get_attribute('aria-describedby')}")
    assert described.inner_text() == "You learn more if you guess first."
    anyway.click()
    assert place.get_by_text("It takes 670 s.").is_visible()
    assert "The answer is 670 s." in said(place)
    press(place, "Start again")
    assert not first.is_visible()
    # who has seen the answer isn't asked for a guess any more
    assert not place.get_by_label("Your guess").is_visible()
    assert place.get_by_label("Your answer").evaluate("each => each === document.activeElement")


def test_start_again_keeps_a_guess_once_the_answer_is_known(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "double")
    give(page, "double", "1", guess="300")
    press(place, "Start again")
    assert place.get_by_label("Your guess").is_visible()
    give(page, "double", "670", guess="400")
    press(place, "Start again")
    assert "Your guess: 400 s" in place.inner_text()
    assert said(place) == place.get_by_label("Your answer").input_value() == ""
    page.reload()
    assert "Your guess: 400 s" in place.inner_text()


def test_choices_by_keyboard_and_pointer(visit_exercises: Any) -> None:
    page = visit_exercises()
    metal, check = task(page, "metal"), page.locator(".selfcheck")
    because = page.get_by_text("Power is energy per second.")
    press(metal, "Check")
    assert said(metal) == "Choose one first."
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert metal.get_by_role("radio", name="Iron").is_checked()
    page.keyboard.press("Enter")
    assert said(metal) == "Iron takes the most."
    press(check, "Check")
    assert said(check) == "Choose one first."
    for place, name, words in (
        (metal, "Copper", "Not this one."),
        (check, "A joule", "Not this one."),
        (metal, "Lead", "Right."),
        (check, "A joule a second", "Right."),
    ):
        assert not because.is_visible()
        place.get_by_role("radio", name=name, exact=place is check).check()
        press(place, "Check")
        assert said(place) == words
    page.reload()
    assert metal.get_by_role("radio", name="Lead").is_checked()
    assert because.is_visible()
    assert not metal.locator("> ul").is_visible()


def test_an_order_by_buttons_and_arrow_keys_is_announced(visit_exercises: Any) -> None:
    page, keys = (page := visit_exercises()), page.keyboard
    place = task(page, "sort")
    names = place.locator(".exercise-order > li > span")
    lamp = place.get_by_role("button", name="Move Lamp up")
    lamp.focus()
    keys.press("Enter")
    assert names.all_inner_texts() == ["Lamp", "Kettle", "Oven"]
    assert lamp.evaluate("each => each === document.activeElement")
    assert lamp.get_attribute("aria-disabled") == "true"
    heard = place.locator(".exercise-form [role=status]")
    assert heard.inner_text() == "Lamp: now 1 of 3"
    keys.press("Enter")
    assert heard.inner_text() == "Lamp: 1 of 3"
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    assert names.all_inner_texts() == ["Kettle", "Oven", "Lamp"]
    press(place, "Move Oven up")
    press(place, "Check")
    assert said(place) == "That is the most first."
    page.reload()
    assert names.all_inner_texts() == ["Oven", "Kettle", "Lamp"]
    for moves, words in ((["Lamp up"] * 2, "Not in this order."), (["Oven down"], "Right.")):
        for move in moves:
            press(place, f"Move {move}")
        press(place, "Check")
        assert said(place) == words


def test_all_guesses_with_their_ratios_by_topic(visit_exercises: Any) -> None:
    page = visit_exercises()
    give(page, "double", "670", guess="335")  # too short a time: 2.0 optimistic
    give(page, "rate", "2", guess="16")  # too high a rate: 8.0 optimistic
    task(page, "metal").get_by_role("radio", name="Iron").check()
    press(task(page, "metal"), "Check")
    task(page, "double").get_by_role("link", name="All your guesses").click()
    page.wait_for_url("**/guesses.html")
    assert not page.get_by_text(EMPTY).is_visible()
    (said,) = (topics := page.locator(".guess-topics > li")).all_inner_texts()
    assert said == "You run 4.0 times optimistic on boiling. A typical guess is 4.0 times off."
    chart = topics.get_by_role("img").get_attribute("aria-label")
    assert "Twice the water: 2.0 times too low; Cups a minute: 8.0 times too high." in chart
    rows = page.locator("main tbody tr").all_inner_texts()
    assert [each.replace("\n\t", "\t").replace("\nBoiling\t", "\t") for each in rows] == [
        "Twice the water\t335 s\t670 s\t2.0 times too low",
        "Cups a minute\t16\t2\t8.0 times too high",
        "Which metal?\tIron\tnot seen yet\t",
    ]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("place,title,chapter,topic,kind,guess,answer")
    double = "sub/boil.html#exr-double,Twice the water,Boiling,boiling,number,335,669.76,s,"
    assert lines[1].startswith(double)
    assert "3" not in lines[3].split("choice,2,")[1].split(",")[0]  # no answer that isn't known
    page.get_by_role("link", name="Which metal?").click()
    page.wait_for_url("**/sub/boil.html#exr-metal")
    page.locator("#exr-metal.live").wait_for()
    assert 0 <= task(page, "metal").bounding_box()["y"] < 200
    page.go_back()
    for answer, left in (("Keep them", 3), ("Yes, delete", 0)):
        press(page, "Delete all")
        press(page, answer)
        assert page.locator("main tbody tr").count() == left
    assert page.get_by_text(EMPTY).is_visible()
    page.goto(page.url.replace("guesses", "sub/boil"))
    assert task(page, "double").get_by_label("Your guess").is_visible()
