"""Figures that move, as a reader uses them: by key, by finger, by address, and not at all."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe import violations
from exercise_book import PHONE

from mlsim_book.render.live_figures import names_on, styles_on

LIMIT = 50_000  # bytes, compressed: scripts and data of a page
FOCUS = "document.activeElement"


@pytest.fixture
def visit_moving(visit: Any, small_url: Callable[[str], str]) -> Any:
    """Open a page of the book with figures that move; nothing on it may complain."""

    def opened(path: str, **options: Any) -> Any:
        options = {"reduced_motion": "reduce", **options}
        return visit(f"{small_url('moving')}/{path}", **options)

    return opened


def tab_to(page: Any, name: str) -> None:
    """Press Tab until what has the name, or begins with it, has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        label = page.evaluate(
            f"{FOCUS}.getAttribute('aria-label') || {FOCUS}.labels?.[0]?.innerText || {FOCUS}.innerText"
        )
        if str(label).strip().startswith(name):
            return
    raise AssertionError(f"no Tab leads to {name!r}")


def summary(page: Any) -> str:
    return str(page.locator(".live-summary").inner_text())


def test_the_builder_starts_what_a_figure_brings_over_the_still_one(visit_moving: Any) -> None:
    page = visit_moving("index.html")
    assert page.locator(".live-box").inner_text() == "9 cups"
    assert not page.locator(".live-still").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".live-still img").first.is_visible()
    assert not page.locator(".live-box").is_visible()
    assert visit_moving("again.html").locator(".live-box").all_inner_texts() == ["3 cups"] * 2


def test_without_scripts_the_still_figure_stands(visit_moving: Any) -> None:
    page = visit_moving("arrays.html", java_script_enabled=False)
    assert page.locator(".live-still img").first.is_visible()
    assert page.locator(".scrub").inner_text() == "3"
    assert not page.locator(".live-box").count()


def test_what_fails_leaves_the_still_figure(visit: Any, small_url: Callable[[str], str]) -> None:
    page = visit(f"{small_url('moving')}/index.html", no_scripts="**/live/kettle-*.js")
    assert page.locator(".live-still img").first.is_visible()


def test_the_array_is_driven_by_the_keyboard_alone(visit_moving: Any) -> None:
    asked: list[str] = []
    page = visit_moving("arrays.html")
    page.on("request", lambda request: asked.append(request.url))
    assert summary(page).startswith("Cycle 3 of 6, numbers stream through: 1 of 4 cells multiply.")
    assert page.locator(":is(.live-gate, .live-told):visible").count() == 0  # no guess opens it
    number = page.locator(".scrub")
    tab_to(page, "Vectors")
    assert number.get_attribute("role") == "spinbutton"
    assert number.inner_text() == "2"  # the figure's own start, whatever was written
    page.keyboard.press("ArrowUp")
    assert number.inner_text() == "3"
    page.keyboard.type("12")
    page.keyboard.press("Enter")
    assert (number.inner_text(), number.get_attribute("aria-valuenow")) == ("12", "12")
    # 2 to load, 12 + 2 + 2 - 2 to stream; 12 x 4 of 16 x 4 cells' cycles
    assert "Cycle 3 of 16" in summary(page)
    assert "busy 75 %" in summary(page)
    tab_to(page, "Weights")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("radio", name="Outputs").is_checked()
    assert "3 of 4 cells" in summary(page) or "4 of 4 cells" in summary(page)
    tab_to(page, "Cycle")
    page.keyboard.press("End")
    assert "Cycle 16 of 16, the finished sums shift out at the bottom" in summary(page)
    page.locator(".live-status", has_text="Cycle 16").wait_for(state="attached")
    tab_to(page, "Previous cycle")
    page.keyboard.press("Enter")
    assert "Cycle 15 of 16" in summary(page)
    tab_to(page, "Reset")
    page.keyboard.press("Enter")
    assert "Cycle 3 of 6" in summary(page)
    assert number.inner_text() == "2"
    assert [each for each in asked if not each.endswith("icon.svg")] == []  # all is there


def test_it_plays_to_the_end_and_stops(visit_moving: Any) -> None:
    page = visit_moving("arrays.html")
    page.clock.install()
    play = page.get_by_role("button", name="Play")
    play.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="Pause").evaluate(f"each => each === {FOCUS}")
    page.clock.run_for(950)
    assert "Cycle 4 of 6" in summary(page)
    page.clock.run_for(5000)
    assert "Cycle 6 of 6" in summary(page)
    assert play.is_visible()


def test_the_address_keeps_what_was_set_and_gives_it_back(visit_moving: Any) -> None:
    page = visit_moving("arrays.html?q=x#sec-arrays")
    page.get_by_role("radio", name="Inputs").check()
    page.get_by_role("slider", name="Vectors").fill("9")
    page.wait_for_url(re.compile(r"\?q=x&array\.vectors=9&array\.rest=inputs#sec-arrays$"))
    page.get_by_role("slider", name="Vectors").press("ArrowRight")
    page.evaluate("document.activeElement.blur()")
    assert "array.vectors=10" in page.url  # who leaves a control need not wait
    page.get_by_role("slider", name="Vectors").press("ArrowLeft")
    page.get_by_role("slider", name="Vectors").blur()
    other = visit_moving(page.url.rsplit("/", 1)[1])
    assert other.get_by_role("radio", name="Inputs").is_checked()
    assert "of 13" in summary(other)
    assert other.locator(".scrub").inner_text() == "9"
    page.get_by_role("button", name="Reset").click()
    page.wait_for_url(re.compile(r"arrays\.html\?q=x#sec-arrays$"))
    wrong = visit_moving("arrays.html?array.vectors=many&array.rest=none&array.cycle=99")
    assert "Cycle 6 of 6" in summary(wrong)


def test_fingers_and_pointers_drag(visit_moving: Any) -> None:
    page = visit_moving("arrays.html", viewport=PHONE, has_touch=True)
    bars = page.locator(".systolic-bars")
    box = bars.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 5, middle)
    page.mouse.down()
    assert "Cycle 1 of 6" in summary(page)
    page.mouse.move(box["x"] + box["width"] * 0.99, middle, steps=3)
    assert "Cycle 6 of 6" in summary(page)
    page.mouse.up()
    page.touchscreen.tap(box["x"] + box["width"] / 2 - 5, middle)
    assert "Cycle 3 of 6" in summary(page)
    number = page.locator(".scrub")
    at = number.bounding_box()
    page.mouse.move(at["x"] + 2, at["y"] + 4)
    page.mouse.down()
    page.mouse.move(at["x"] + 62, at["y"] + 4, steps=4)
    page.mouse.up()
    assert int(number.inner_text()) == pytest.approx(2 + 23 * 60 / 240, abs=1)


@pytest.mark.parametrize(
    ("figure", "handle", "files"), [("arrays", "Cycle", 8), ("runs", "Prompt", 6)]
)
def test_only_the_sites_own_files_are_requested(
    visit: Any, small_url: Callable[[str], str], figure: str, handle: str, files: int
) -> None:
    page = visit("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{small_url('moving')}/{figure}.html")
    page.get_by_role("slider", name=handle).press("ArrowRight")
    assert all(each.startswith((small_url("moving"), "data:")) for each in asked)
    live = [each for each in asked if "/live" in each]
    assert len(live) == files


def test_what_moves_the_figures_of_a_page_is_light(built_book: Path) -> None:
    pages = {path.name: path.read_text("utf-8") for path in built_book.rglob("*.html")}
    weights = {
        name: sum(
            len(gzip.compress(each.encode()))
            for each in (
                *re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text),
                *(
                    (built_book / "site_libs/live" / f"{script}.js").read_text("utf-8")
                    for script in names_on(text)
                ),
                *(
                    (built_book / "site_libs/live" / f"{sheet}.css").read_text("utf-8")
                    for sheet in styles_on(text)
                ),
            )
        )
        for name, text in pages.items()
        if names_on(text)
    }
    assert {"capacity.html", "reuse.html"} <= weights.keys()
    assert {page: n for page, n in weights.items() if n > LIMIT} == {}


def test_the_knee_is_driven_by_the_keyboard_alone(visit_moving: Any) -> None:
    page = visit_moving("knees.html")
    row = page.locator(".knee-table tbody tr")
    assert summary(page).startswith("10 requests per second on 1 copy: ")
    slow, first = summary(page), row.nth(2).inner_text()
    number = page.locator(".scrub")
    tab_to(page, "Arrivals")
    assert number.inner_text() == "10 requests/s"
    page.keyboard.type("30.2")
    page.keyboard.press("Enter")
    assert number.inner_text() == "30 requests/s"
    assert row.nth(2).inner_text() != first
    tab_to(page, "All equal")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("radio", name="As people write").is_checked()
    tab_to(page, "Copies")
    page.keyboard.press("ArrowRight")
    assert "30 requests per second on 2 copies: " in summary(page)
    one, two = (int(re.search(r"(\d+) % of the load", each)[1]) for each in (slow, summary(page)))
    assert two == pytest.approx(1.5 * one, abs=2)
    page.keyboard.press("ArrowLeft")
    tab_to(page, "Arrivals")
    page.keyboard.press("End")
    assert "The queue grows without end" in summary(page)
    assert row.all_inner_texts() == [each for each in row.all_inner_texts() if "–" in each]
    page.wait_for_url(re.compile(r"\?knee\.rate=114&knee\.lengths=As\+people\+write$"))
    other = visit_moving(page.url.rsplit("/", 1)[1])
    assert summary(other) == summary(page)
    tab_to(page, "Reset")
    page.keyboard.press("Enter")
    assert summary(page) == slow
    page.wait_for_url(re.compile(r"knees\.html$"))


def test_the_rate_of_a_knee_is_dragged_in_its_picture(visit_moving: Any) -> None:
    page = visit_moving("knees.html", viewport=PHONE, has_touch=True)
    box = page.locator(".live-picture > svg").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 90)
    page.mouse.down()
    low = summary(page)
    page.mouse.move(box["x"] + 120, box["y"] + 90, steps=3)
    page.mouse.up()
    assert float(summary(page).split()[0]) > float(low.split()[0])


def test_the_roof_is_driven_by_the_keyboard_alone(visit_moving: Any) -> None:
    page = visit_moving("roofs.html")
    first = summary(page)
    assert first.startswith("Batch 1: 517\u00a0µs, 1,930 samples a second.")
    assert "kernel launches: 67\u00a0%. Band: 334\u00a0µs to 888\u00a0µs." in first
    tab_to(page, "Batch")
    page.keyboard.press("End")
    assert page.locator(".scrub").inner_text() == "256"
    assert "Batch 256: 17\u00a0ms" in summary(page)
    assert "The largest part is arithmetic: 67\u00a0%." in summary(page)
    page.keyboard.press("Home")
    tab_to(page, "Hidden")
    page.keyboard.press("ArrowRight")
    assert "Measured: 2.13\u00a0ms (ONNX Runtime" in summary(page)
    assert page.locator(".roof-measured:visible").count() == 5 + 1  # under the roof, and at the bar
    # A rate that the reader sets has no band, and the figure says why.
    tab_to(page, "Kernel launch")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    assert page.locator(".roof-band:visible").count() == 0
    assert "as fast as the device as it is. No band: you set the launch time" in summary(page)
    page.wait_for_url(re.compile(r"\?roof\.kernel_overhead=3\.07\d&roof\.measured=on$"))
    other = visit_moving(page.url.rsplit("/", 1)[1])
    assert summary(other) == summary(page)
    tab_to(page, "Reset")
    page.keyboard.press("Enter")
    assert summary(page) == first
    assert page.locator(".roof-band:visible").count() == 1
    page.wait_for_url(re.compile(r"roofs\.html$"))


def test_a_question_is_asked_by_keyboard_alone_and_stands_in_the_address(visit_moving: Any) -> None:
    page = visit_moving("runs.html")
    assert summary(page).startswith("Yes, it fits")
    tab_to(page, "Model")
    page.keyboard.type("Llama 3.1 70B")
    page.locator(".live-status", has_text="No:").wait_for(state="attached")
    assert page.url.endswith("?runs.model=Llama3_70B")
    page.locator(".run-verdict", has_text="too much").wait_for()
    assert "4 bits" in page.locator(".run-why").inner_text()
    tab_to(page, "As released")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.locator(".run-verdict", has_text="Yes, it fits").wait_for()
    assert 'weights="int4"' in page.locator(".run-code").inner_text()
    assert "--weights int4" in page.locator(".run-code").inner_text()
    users = page.get_by_role("slider", name="Users at once")
    for key, wanted in [
        ("ArrowRight", "9"),
        ("ArrowLeft", "8"),
        ("Home", "1"),
        ("ArrowRight", "2"),
    ]:
        users.press(key)
        assert str(users.get_attribute("aria-valuetext")).split()[0] == wanted


def test_an_address_asks_its_question(visit_moving: Any) -> None:
    page = visit_moving("runs.html?runs.model=Phi_4&runs.hardware=Cloud.L4&runs.batch_size=3")
    assert summary(page).startswith("No:")
    text = page.locator(".run-code").inner_text()
    assert "mlsim serve Phi_4 Cloud.L4" in text
    assert "--batch 3" in text


def test_numbers_of_devices_that_no_node_has_are_closed_and_the_page_says_why(
    visit_moving: Any,
) -> None:
    page = visit_moving("runs.html")
    eight, why = page.get_by_role("radio", name="8", exact=True), page.locator(".live-why")
    assert (eight.is_disabled(), why.is_visible()) == (False, False)
    page.get_by_label("Device", exact=True).select_option("Workstation.RTX4090")
    assert (eight.is_disabled(), why.inner_text()) == (True, "Only single ones are on record.")
    assert summary(page).startswith("Yes, it fits")


def test_what_the_model_cannot_read_is_refused(visit_moving: Any) -> None:
    page = visit_moving("runs.html?runs.model=GPT2&runs.prompt_tokens=2000")
    assert "GPT-2 (124M) reads at most 1,024 tokens" in page.locator(".run-why").inner_text()
    assert not page.locator(".run-memory").is_visible()


def test_the_tank_is_opened_by_a_guess_and_driven_by_the_keyboard_alone(visit_moving: Any) -> None:
    page = visit_moving("tanks.html")
    gate, picture = page.locator(".live-gate"), page.locator(".tank-picture")
    users = page.get_by_role("slider", name="Users")
    assert page.locator(".live-still img").first.is_visible()
    assert (picture.is_visible(), users.is_disabled()) == (False, True)
    number = page.locator(".scrub")
    tab_to(page, "Users")
    page.keyboard.press("ArrowUp")
    assert number.inner_text() == "64"
    tab_to(page, "Guess first")
    page.keyboard.press("Enter")
    assert page.url.endswith("#gss-fit")
    tab_to(page, "Your guess")
    page.keyboard.type("80")
    page.keyboard.press("Enter")
    assert not gate.is_visible()
    told = page.locator(".live-told")
    assert told.inner_text() == "You guessed 80 users: 2.5 times too low. Computed: 199 users."
    assert "your guess: 80" in picture.text_content()
    first = summary(page)
    assert first.startswith(
        "64 users with 2,304 tokens each fit: 38.1\u00a0GiB stay free. At most 199"
    )
    tab_to(page, "Users")
    page.keyboard.type("199")
    page.keyboard.press("Enter")
    assert "199 users with 2,304 tokens each fit:" in summary(page)
    page.keyboard.press("ArrowUp")  # over the rim
    assert "200 users with 2,304 tokens each do not fit: 0.135\u00a0GiB too much." in summary(page)
    assert "200 users: does not fit in memory" in picture.text_content()
    assert page.locator(".tank-rates td.tank-calibrated").all_inner_texts() == ["–"] * 4
    tab_to(page, "16 bits")  # of the weights
    page.keyboard.press("ArrowRight")
    assert "200 users with 2,304 tokens each fit:" in summary(page)
    tab_to(page, "64 users")
    page.keyboard.press("Enter")
    assert "Measured: 5,147 tokens a second." in summary(page)
    assert page.locator("td.tank-measured").last.inner_text() == "5,150"
    page.wait_for_url(re.compile(r"\?tank\.prompt_tokens=200&tank\.output_tokens=396#gss-fit$"))
    other = visit_moving(page.url.rsplit("/", 1)[1])
    other.get_by_role("button", name="Skip the guess").press("Enter")
    assert summary(other) == summary(page)
    assert (other.locator(".live-told").is_visible(), gate.is_visible()) == (False, False)
    assert "Skipped." in other.locator("#gss-fit").inner_text()
    tab_to(page, "Reset")
    page.keyboard.press("Enter")
    assert summary(page) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "moves"),
    [
        ("arrays.html", [("radio", "Outputs"), ("radio", "Inputs")]),
        ("knees.html", [("slider", "Arrivals")]),
        ("roofs.html", [("radio", "Shown"), ("slider", "Memory bandwidth"), ("slider", "Batch")]),
        ("tanks.html", [("button", "Skip the guess"), ("slider", "Users"), ("button", "16 users")]),
        ("runs.html", []),
        ("runs.html?runs.model=Llama3_70B", []),
        ("runs.html?runs.hardware=Cloud.L4", []),
    ],
)
def test_no_state_of_a_figure_has_a_violation(
    visit_moving: Any, path: str, moves: list[tuple[str, str]]
) -> None:
    page = visit_moving(path, bypass_csp=True)
    found = violations(page)
    for role, name in moves:
        control = page.get_by_role(role, name=name)
        key = {"slider": "End", "radio": "Space", "button": "Enter"}[role]
        control.press(key)
        found += violations(page)
    assert found == []
