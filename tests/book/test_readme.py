"""The READMEs and CONTRIBUTING tell the truth: what they show is what is printed, and runs."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import page_numbers
import pytest
import readme_picture

from mlsim import cli
from mlsim.records import KINDS
from mlsim_book import cli as book_cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = re.compile(
    r"^\*\*([^*\n]+)\.\*\*(?:(?!^\*\*).)*?^````markdown\n(.*?)^````$", re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("name", ["README.md", "mlsim_pkg/README.md"])
def test_sessions_print_what_they_show(name: str) -> None:
    # A fence is no part of the output that it closes.
    session = re.sub(r"^```\w*$", "", (ROOT / name).read_text("utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(session, {}, name, name, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_commands_exist_and_shell_examples_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The two commands stand on the first screen; the manuals' commands are what there is."""
    first_screen = README.splitlines()[:25]
    assert {"make book", "make test"} <= {line.partition("  ")[0] for line in first_screen}
    manual, guide = ((ROOT / name).read_text("utf-8") for name in ("builder.qmd", "package.qmd"))
    for command in set(re.findall(r"^mlsim-book (\w+)", manual, flags=re.MULTILINE)):
        with pytest.raises(SystemExit) as stopped:
            book_cli.main([command, "--help"])
        assert stopped.value.code == 0
    capsys.readouterr()
    commands = re.findall(r"^mlsim (.+)$", README + guide, flags=re.MULTILINE)
    assert len(commands) == 13
    monkeypatch.chdir(tmp_path)  # one writes a folder
    for command in commands:
        assert cli.main(shlex.split(command)) == 0
        device = re.search(r"[AH][12]00", command)
        assert device
        said = capsys.readouterr().out
        assert (str(tmp_path) if "--out " in command else device[0]) in said


def test_the_picture_of_the_readme_shows_the_predictions_of_today() -> None:
    """`python tests/helpers/readme_picture.py` draws it anew."""
    assert readme_picture.FILE.read_text("utf-8") == readme_picture.picture()


def test_each_recipe_of_a_chapter_runs_as_it_stands(tmp_path: Path) -> None:
    """Each is a page of its own, so none leans on what another has imported."""
    recipes = dict(RECIPE.findall(CONTRIBUTING))
    names = [
        "A sentence with a number, in one line",
        "A table",
        "A figure",
        "A guess",
        "An exercise",
    ]
    assert list(recipes) == names
    pages = [f"{name.split()[1]}.qmd" for name in names]
    (tmp_path / "_quarto.yml").write_text(
        f"project: {{type: book}}\nbook: {{title: New, chapters: [{', '.join(pages)}]}}\n"
    )
    for page, text in zip(pages, recipes.values(), strict=True):
        (tmp_path / page).write_text(f"# New\n\n{text}", encoding="utf-8")
    sentence, table, figure, guess, exercise = (
        page_numbers.entries_of(page, tmp_path) for page in page_numbers.pages(tmp_path).values()
    )
    assert len(sentence) == 4
    assert all(each.name and each.origin for each in sentence)
    numbers = [each.text for each in table if each.text[0].isdigit()]
    assert numbers == ["55.5", "84 %", "32.3", "98 %"]
    assert [each.text for each in guess] == ["18,024", "469"]
    assert figure == exercise == []


def test_contributing_names_each_kind_of_figure_and_each_device_table_that_is_needed() -> None:
    tables = {"[memory.capacity]", "[memory.bandwidth]", "[memory.printed]", "families.toml"}
    wanted = {f"`{kind}`" for kind in KINDS} - {"`given`"} | tables
    assert [each for each in sorted(wanted) if each not in CONTRIBUTING] == []
