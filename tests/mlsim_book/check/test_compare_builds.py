"""`mlsim-book moved`: what two builds of a book say differently."""

from __future__ import annotations

import json
from pathlib import Path

import kept
import pytest

from mlsim_book.check.compare_builds import as_text, moved, read_out
from mlsim_book.cli import main
from mlsim_book.errors import SourceError

PAGE = kept.text("compared_page.md")


@pytest.fixture
def books(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("old", "new"):
        folder = tmp_path / name / "part"
        folder.mkdir(parents=True)
        (folder / "tea.html").write_text(PAGE, encoding="utf-8")
        (folder / "tea.svg").write_text("<svg/>", encoding="utf-8")
    return tmp_path / "old", tmp_path / "new"


def edit(book: Path, *pairs: tuple[str, str]) -> None:
    path = book / "part" / "tea.html"
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def test_a_page_is_read_out_piece_by_piece(books) -> None:
    pieces = read_out(books[0] / "part" / "tea.html")
    said = [(each.kind, each.text) for each in pieces]
    assert ("sentence", "It takes 3 min at 95 degrees.") in said
    assert ("sentence", "Then it is ready.") in said
    assert ("sentence", "It costs 2.5 a cup.") in said  # once, though KaTeX writes it twice
    assert ("row", "Assam | 12") in said
    assert ("output", "42") in said
    assert not any("Navigation" in text or "print" in text for _, text in said)
    (figure,) = [each for each in pieces if each.kind == "figure"]
    assert (figure.text, figure.section) == ("A curve that falls", "Steeping")
    (solution,) = [each for each in pieces if "7 cups" in each.text]
    assert (solution.section, solution.exercise) == ("Exercises", "exr-cups")


def test_a_number_in_a_sentence_a_row_an_output_and_a_solution(books) -> None:
    assert moved(*books) == []
    assert as_text([]) == "nothing moved"
    edit(books[1], ("3&nbsp;min", "4&nbsp;min"), ("<td>12</td>", "<td>13</td>"),
         ("<code>42</code>", "<code>43</code>"), ("7 cups", "9 cups"))  # fmt: skip
    found = moved(*books)
    assert [each.piece.kind for each in found] == ["sentence", "row", "output", "sentence"]
    assert all(each.only_numbers for each in found)
    lines = as_text(found).splitlines()
    assert lines[:4] == [
        "part/tea.html",
        "  Steeping",
        "    ~ It takes [3 -> 4] min at 95 degrees.",
        "    ~ Assam | [12 -> 13]",
    ]
    assert "  Exercises, exr-cups" in lines
    assert lines[-1] == "2 sentences, 1 table row, 1 output moved on 1 page; exercises touched: 1"


def test_figures_words_and_pages_that_came_and_went(books) -> None:
    """Of a figure in both looks the light one counts."""
    new = books[1]
    light = '<img src="tea.svg" alt="A curve that falls">'
    for book in books:
        edit(book, (light, f'{light}<img class="dark-content" src="dark.svg" alt="A curve">'))
        (book / "part" / "dark.svg").write_text(f"<svg>{book}</svg>", encoding="utf-8")
    assert moved(*books) == []
    (new / "part" / "tea.svg").write_text("<svg><path/></svg>", encoding="utf-8")
    (found,) = moved(*books)
    assert (found.piece.kind, found.only_numbers) == ("figure", False)
    edit(new, ("Then it is ready.", ""), ("<tr><td>Sencha</td><td>8</td></tr>",
         "<tr><td>Matcha</td><td>8</td></tr>"))  # fmt: skip
    assert {str(each) for each in moved(*books)} == {
        "- Then it is ready.",
        "~ drawn anew: A curve that falls",
        "+ Matcha | 8",
        "- Sencha | 8",
    }
    (new / "part" / "tea.html").rename(new / "coffee.html")
    went = moved(*books)
    assert {each.page for each in went if each.old is None} == {"coffee.html"}
    assert {each.page for each in went if each.new is None} == {"part/tea.html"}


def test_what_is_long_is_shown_around_what_changed(books) -> None:
    """A row begins with its first cell."""
    words = " ".join(f"w{number}" for number in range(40))
    cells = "".join(f"<td>{number}</td>" for number in range(20))
    for book, number, cups in zip(books, (5, 6), (12, 13), strict=True):
        edit(
            book,
            ("Then it is ready.", f"Then {words} are {number} of {words}."),
            ("<td>Assam</td><td>12</td>", f"<td>Assam</td>{cells}<td>{cups}</td>"),
        )
    assert [str(each) for each in moved(*books)] == [
        "~ … w35 w36 w37 w38 w39 are [5 -> 6] of w0 w1 w2 w3 w4 …",
        "~ Assam | … 17 | 18 | 19 | [12 -> 13]",
    ]


def test_the_command_prints_text_or_data(books, capsys) -> None:
    edit(books[1], ("7 cups", "9 cups"))
    assert main(["moved", *map(str, books)]) == 0
    assert "~ There are [7 -> 9] cups." in capsys.readouterr().out
    assert main(["moved", *map(str, books), "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert data["exercise"] == "exr-cups"
    assert (data["old"], data["new"]) == ("There are 7 cups.", "There are 9 cups.")
    assert data["only_numbers"] is True


def test_what_is_no_page_is_refused_and_broken_html_read_as_far_as_it_goes(
    books, tmp_path, capsys
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="there is no built page in"):
        moved(books[0], tmp_path / "empty")
    assert main(["moved", str(books[0]), str(tmp_path / "nowhere")]) == 1
    assert "To compare two builds, keep a copy of the first" in capsys.readouterr().err
    path = books[1] / "part" / "tea.html"
    path.write_text("<main><p>One.</p></div></section><p>Two</main><p>Outside", encoding="utf-8")
    assert [each.text for each in read_out(path)] == ["One.", "Two"]


def test_what_was_measured_is_passed_over(books) -> None:
    """Its words too: a machine may print another line, and nobody edited it."""
    for book, said in zip(books, ("3.1 GB/s", "noisy, 2.9 GB/s"), strict=True):
        cell = f'<div class="cell measured"><pre><code>{said}</code></pre><p>{said}</p></div>'
        edit(book, ('<section id="b">', f'{cell}<p>Well <b>read</b>.</p><section id="b">'))
    assert moved(*books) == []
    edit(books[1], ("Well <b>read</b>.", "Well <b>done</b>."))
    assert {each.piece.text for each in moved(*books)} == {"Well read.", "Well done."}
