"""Exercises as readers meet them: guess, answer, feedback, hints, solution, and all guesses.

By keyboard and pointer, restored after a reload. What they are without scripts, storage or
a server, on paper and to assistive technology is in test_exercise_states.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exercise_book import EMPTY, give, press, said, task


def test_a_guess_comes_first_then_the_answer_all_by_keyboard(visit_exercises: Any) -> None:
    page, keys = (page := visit_exercises()), page.keyboard
    place = task(page, "double")
    answer, solution = place.get_by_label("Your answer in s"), place.get_by_text("It takes 670 s.")
    assert not answer.is_visible()
    place.get_by_label("Your guess, before you compute in s").focus()
    keys.type("300 s")
    keys.press("Enter")
    assert answer.is_visible()
    assert answer.evaluate("each => each === document.activeElement")
    assert "Your guess: 300 s" in place.inner_text()
    assert not place.get_by_label("Your guess").is_visible()
    keys.type("335")
    keys.press("Enter")
    assert said(place) == "That is for one litre."
    keys.press("Control+a")
    keys.type("6.7e2")
    keys.press("Enter")
    assert said(place).startswith("Right. Each litre takes as much energy as the first.")
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


def test_feedback_follows_the_mistake_and_no_list_of_mistakes_is_shown(
    visit_exercises: Any,
) -> None:
    page = visit_exercises()
    place = task(page, "double")
    assert place.locator(".wrong-path").count() == 1
    assert not place.locator(".wrong-path").is_visible()
    expected = {
        "": "Not attempted yet.",
        "fast": "That is no number: the answer is a number in s.",
        "11.2 kWh": "That is in kWh: the answer is a number in s.",
        "334 s": "That is for one litre.",
        "0.67": "a factor of 1,000. The answer is in s.",
        "690": "Nearly: a little too high.",
        "1,234.5": "Too high, by less than a factor of two.",
        "1": "Too low, by about 3 powers of ten.",
        "670 seconds": "Right.",
        "11.2 min": "Right.",
    }
    for given, words in expected.items():
        assert words in give(page, "double", given), given
        invalid = place.get_by_label("Your answer").get_attribute("aria-invalid")
        assert (invalid == "true") == (given == "fast")
    assert place.locator(".exercise-feedback").get_attribute("role") == "status"
    assert place.locator(".exercise-feedback em").count() == 0
    give(page, "double", "335")
    assert place.locator(".exercise-feedback em").inner_text() == "one"


def test_after_right_nothing_older_stands_and_another_answer_hears_of_itself_alone(
    visit_exercises: Any,
) -> None:
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
    assert give(page, "double", "335") == "That is for one litre."
    page.reload()
    assert said(task(page, "double")) == "That is for one litre."


def test_a_share_is_taken_for_per_cent_but_a_guess_must_say_which(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "share")
    place.get_by_label("Your guess").fill("0.3")
    press(place, "Keep my guess")
    assert said(place) == "Is that 30 % or 0.3 %? Write it with its sign."
    assert give(page, "share", "2/5", guess="30 %").startswith("Right.")
    assert "0.4 %" not in give(page, "share", "0.4")
    assert "factor of 100" in give(page, "share", "0.4 %")


def test_a_guess_that_is_no_number_is_not_kept(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "double")
    for given, words in {
        "": "Write a number first.",
        "slow": "no number",
        "5 kWh": "in kWh",
    }.items():
        place.get_by_label("Your guess").fill(given)
        press(place, "Keep my guess")
        assert words in said(place)
        assert place.get_by_label("Your guess").is_visible()
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"


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
    described = anyway.get_attribute("aria-describedby")
    words = page.locator(f"#{described}").inner_text()
    assert words == "You learn more if you guess first."
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
    assert said(place) == ""
    assert place.get_by_label("Your answer").input_value() == ""
    page.reload()
    assert "Your guess: 400 s" in place.inner_text()


def test_a_choice_by_keyboard(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = task(page, "metal")
    press(place, "Check")
    assert said(place) == "Choose one first."
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert place.get_by_role("radio", name="Iron").is_checked()
    page.keyboard.press("Enter")
    assert said(place) == "Iron takes the most."
    place.get_by_role("radio", name="Copper").check()
    press(place, "Check")
    assert said(place) == "Not this one."
    page.reload()
    assert place.get_by_role("radio", name="Copper").is_checked()
    place.get_by_role("radio", name="Lead").check()
    press(place, "Check")
    assert said(place) == "Right."
    assert not place.locator("> ul").is_visible()


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
    press(place, "Move Lamp up")
    press(place, "Move Lamp up")
    press(place, "Check")
    assert said(place) == "Not in this order."
    press(place, "Move Oven down")
    press(place, "Check")
    assert said(place) == "Right."


def test_a_self_check(visit_exercises: Any) -> None:
    page = visit_exercises()
    place = page.locator(".selfcheck")
    because = page.get_by_text("Power is energy per second.")
    press(place, "Check")
    assert said(place) == "Choose one first."
    place.get_by_role("radio", name="A joule", exact=True).check()
    press(place, "Check")
    assert said(place) == "Not this one."
    assert not because.is_visible()
    place.get_by_role("radio", name="A joule a second").check()
    press(place, "Check")
    assert said(place) == "Right."
    assert because.is_visible()
    page.reload()
    assert because.is_visible()


def test_all_guesses_with_their_ratios_by_topic(visit_exercises: Any) -> None:
    page = visit_exercises()
    give(page, "double", "670", guess="335")  # too short a time: 2.0 optimistic
    give(page, "rate", "2", guess="16")  # too high a rate: 8.0 optimistic
    task(page, "metal").get_by_role("radio", name="Iron").check()
    press(task(page, "metal"), "Check")
    task(page, "double").get_by_role("link", name="All your guesses").click()
    page.wait_for_url("**/guesses.html")
    assert not page.get_by_text(EMPTY).is_visible()
    topics = page.locator(".guess-topics > li")
    assert topics.all_inner_texts() == [
        "You run 4.0 times optimistic on boiling. A typical guess is 4.0 times off."
    ]
    chart = topics.get_by_role("img").get_attribute("aria-label")
    assert "Twice the water: 2.0 times too low; Cups a minute: 8.0 times too high." in chart
    rows = [
        each.replace("\n\t", "\t").split("\t")
        for each in page.locator("main tbody tr").all_inner_texts()
    ]
    assert rows == [
        ["Twice the water\nBoiling", "335 s", "670 s", "2.0 times too low"],
        ["Cups a minute\nBoiling", "16", "2", "8.0 times too high"],
        ["Which metal?\nBoiling", "Iron", "not seen yet", ""],
    ]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0].startswith("place,title,chapter,topic,kind,guess,answer")
    assert lines[1].startswith(
        "sub/boil.html#exr-double,Twice the water,Boiling,boiling,number,335,669.76,s,"
    )
    assert "3" not in lines[3].split("choice,2,")[1].split(",")[0]  # no answer that isn't known
    page.get_by_role("link", name="Which metal?").click()
    page.wait_for_url("**/sub/boil.html#exr-metal")
    page.locator("#exr-metal.live").wait_for()
    assert 0 <= task(page, "metal").bounding_box()["y"] < 200
    page.go_back()
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("button", name="Keep them").click()
    assert page.locator("main tbody tr").count() == 3
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("button", name="Yes, delete").click()
    assert page.get_by_text(EMPTY).is_visible()
    assert page.locator("main tbody tr").count() == 0
    page.goto(page.url.replace("guesses", "sub/boil"))
    assert task(page, "double").get_by_label("Your guess").is_visible()
