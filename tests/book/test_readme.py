"""The READMEs tell the truth: what they show is what is printed."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = [ROOT / "README.md", ROOT / "mlsim_pkg" / "README.md"]


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sessions_print_what_they_show(path):
    text = path.read_text(encoding="utf-8")
    # A fence is no part of the output that it closes.
    session = re.sub(r"^```\w*$", "", text, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(session, {}, path.name, str(path), 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_first_screen_has_the_two_commands():
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:25]
    assert {"make book", "make test"} <= {line.partition("  ")[0] for line in first_screen}


def test_commands_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    from mlsim_book import cli

    for command in re.findall(r"^mlsim-book (\w+)", text, flags=re.MULTILINE):
        with pytest.raises(SystemExit) as stopped:
            cli.main([command, "--help"])
        assert stopped.value.code == 0


def test_shell_examples_run(capsys, monkeypatch, tmp_path):
    from mlsim import cli

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^mlsim (.+)$", text, flags=re.MULTILINE)
    assert len(commands) == 12
    monkeypatch.chdir(tmp_path)  # one writes a folder
    for command in commands:
        assert cli.main(command.split()) == 0
        device = re.search(r"[AH][12]00", command)
        assert device
        said = capsys.readouterr().out
        assert (str(tmp_path) if "--out " in command else device[0]) in said
