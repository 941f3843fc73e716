"""The number check: which numbers are bare, where texts come from, lines, counts, exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kept
import pytest
import yaml

from mlsim_book.build import build
from mlsim_book.check.numbers import Check, Counts, Rules, check_numbers, read_rules
from mlsim_book.check.prose import passages
from mlsim_book.cli import main
from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import parse_pages

MakeBook = Callable[..., Path]
TEA = Path(__file__).parents[1] / "books" / "tea"


def rules(numbers: object) -> Rules | None:
    return read_rules({"mlsim-book": {"numbers": numbers}})


def judged(markdown: str) -> tuple[list[tuple[int, str]], Counts]:
    """Return the bare numbers of a text with their lines, and the counts."""
    units = ["FLOP", "FLOP/byte", "TFLOP/s", "images", "images/s"]
    known = rules({"units": units, "names": ["A100 80 GB", "Pot 2"]})
    assert known
    check = Check(known, Problems())
    for passage in passages(split_lines(markdown, file="a.qmd")):
        check.passage(passage)
    found = [(each.line or 0, each.message.split("'")[1]) for each in check.problems.found]
    return found, check.counts


def test_bare_numbers_and_others() -> None:
    """`not_covered`: a citation or a mark elsewhere covers no number."""
    cases = yaml.safe_load((kept.FIXTURES / "bare_numbers.yml").read_text("utf-8"))
    wanted = dict(cases["bare"])
    wanted |= {text: [] for text in cases["not_bare"]}
    wanted |= {text: ["5 ms"] for text in cases["not_covered"]}
    assert {text: [number for _, number in judged(text)[0]] for text in wanted} == wanted
    text = (
        "# A\n\nIn 5 ms\nand in\n6 ms [@a]. In 7 ms.\n\n"
        '- x\n- [8 ms]{.given kind="example"}, 9 ms\n\n| 10 ms |\n| 11 ms |\n'
    )
    found, counts = judged(text)
    assert found == [(5, "7 ms"), (8, "9 ms"), (10, "10 ms"), (11, "11 ms")]
    assert counts == Counts(cited=2, given=1, bare=4)
    assert counts.text() == "0 computed, 2 cited, 1 given, 4 bare"


def test_results_can_not_be_marked() -> None:
    for mark, kind in {
        'kind="result"': ", of kind 'result'", 'kind="guess"': " with kind 'guess', which is none",
        "": " with no kind", 'kind=""': " with no kind",
    }.items():  # fmt: skip
        check = Check(Rules(), Problems())
        (passage,) = passages(split_lines(f"Of [5 ms]{{.given {mark}}}.", file="a.qmd"))
        check.passage(passage)
        (found,) = check.problems.found
        assert found.message.startswith(f"'5 ms' is marked as given{kind}")
        assert check.counts == Counts(bare=1)


def test_settings() -> None:
    """Units add to those known, kinds replace them."""
    for wrong, said in kept.cases("wrong_rules.toml", "numbers"):
        with pytest.raises(SourceError, match=said):
            rules(wrong)
    assert rules(False) is None
    found = rules({"units": ["pots"], "given-kinds": ["menu"]})
    assert found
    assert {"pots", "GB"} <= set(found.units)
    assert found.kinds == ("menu",)


# ----------------------------------------------------------------------------- whole books
def told(book: Path) -> tuple[list[tuple[str, int | None, str]], dict[str, str]]:
    problems = Problems()
    project = load_project(book, problems)
    counts = check_numbers(project, parse_pages(project, problems), problems)
    found = [(each.file, each.line, each.message) for each in problems.found]
    return found, {name: each.text() for name, each in counts.items()}


def test_prose_front_matter_captions_and_included_files(make_book: MakeBook) -> None:
    text = (
        "---\nsubtitle: In 5 ms\ndescription: |\n  Text.\n  In 6 ms.\n---\n\n# A\n\n"
        "```{python}\n#| label: fig-a\n#| fig-cap: In 7 ms\n#| fig-alt: In 8 ms\n"
        "# 9 ms\n1\n```\n\nIn `{python} 1` ms,\nnot 10 ms.\n\n{{< include _more.qmd >}}\n\n"
        "```{python}\n#| fig-cap: In 7 ms [@a]\n#| fig-alt: In 8 ms\n1\n```\n"  # covers its figure
    )
    more = {"_more.qmd": "Text.\n\nIn 5 ms.\n"}
    found, counts = told(make_book("  subtitle: In 3 ms\n", index_qmd=text, **more))
    assert found == [
        ("index.qmd", 2, "bare number '5 ms'"),
        ("index.qmd", 3, "bare number '6 ms'"),
        ("index.qmd", 12, "bare number '7 ms' in fig-cap"),
        ("index.qmd", 13, "bare number '8 ms' in fig-alt"),
        ("index.qmd", 19, "bare number '10 ms'"),
        ("_more.qmd", 3, "bare number '5 ms'"),
        ("_quarto.yml", 7, "bare number '3 ms'"),
    ]
    assert counts == {
        "index.qmd": "1 computed, 2 cited, 0 given, 6 bare",
        "_quarto.yml": "0 computed, 0 cited, 0 given, 1 bare",
    }


def test_exercises_beside_a_chapter(make_book: MakeBook) -> None:
    exercises = {"part/b.exercises.toml": kept.text("counted.exercises.toml")}
    found, counts = told(make_book(index_qmd="# A\n", part__b_qmd="# B\n", **exercises))
    assert found == [
        ("part/b.exercises.toml", line, f"bare number '{number} ms'")
        for line, number in [(3, 1), (7, 2), (14, 5), (17, 6), (23, 9), (27, 10)]
    ]
    assert counts["part/b.exercises.toml"] == "1 computed, 0 cited, 2 given, 6 bare"
    found, counts = told(TEA)
    assert found == []
    assert counts["steep.qmd"] == "16 computed, 0 cited, 0 given, 0 bare"


@pytest.mark.usefixtures("with_assets")
def test_the_command(make_book: MakeBook, capsys: pytest.CaptureFixture[str]) -> None:
    book = make_book(index_qmd="# A\n\nIn 5 ms.\n")
    build(book, progress=str)  # a bare number is no reason not to build
    assert main(["check", str(book)]) == 1
    said = capsys.readouterr()
    assert "index.qmd: 0 computed, 0 cited, 0 given, 1 bare" in said.out
    assert "index.qmd:3: bare number '5 ms'" in said.err
    for way in ("`{python} ...`", "[@key]", '[5 ms]{.given kind="assumption"}', "example"):
        assert way in said.err
    for kind, code, words in (("result", 1, "a result can't be given"), ("example", 0, "")):
        (book / "index.qmd").write_text(f"# A\n\nIn [5 ms]{{.given kind='{kind}'}}.\n")
        assert main(["check", str(book)]) == code
        assert words in capsys.readouterr().err
    without = "mlsim-book:\n  numbers: false\n"
    assert told(make_book(without, index_qmd="# A\n\nIn 5 ms.\n")) == ([], {})
