"""Each example of the command line that people read answers with the JSON that it gave."""

from __future__ import annotations

import goldens
import pytest
import shell_examples
from what_moved import other_leaves

EXAMPLES = shell_examples.examples(goldens.ROOT)
RENEW = "\n`make goldens` writes it anew: list in the pull request what moved, and why."


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_answer_is_what_it_was(example: str) -> None:
    new = {"example": example, **shell_examples.answer(example)}
    other = list(other_leaves(goldens.kept_answer(goldens.example_file(example)), new))
    assert other == [], f"{example}\n" + "\n".join(other) + RENEW


def test_each_file_has_its_example() -> None:
    assert len(EXAMPLES) > 20
    files = [goldens.example_file(each) for each in EXAMPLES]
    assert len(set(files)) == len(files)
    assert set(goldens.FOLDER.glob("cli/*.json")) <= set(files), RENEW


def test_commands_of_all_kinds_are_asked_and_none_that_needs_a_file_of_its_reader() -> None:
    asked = {each.split()[1] for each in EXAMPLES}
    assert asked >= {"solve", "sweep", "serve", "load", "plan", "train", "footprint", "zoo", "fit"}
    assert not asked & {"measure", "time", "profile", "predict", "calibrate"}


def test_an_example_that_is_not_understood_is_said() -> None:
    with pytest.raises(ValueError, match=r"--bach 1 --json gave no JSON: (.|\n)*--batch"):
        shell_examples.answer("mlsim solve ResNet50 A100 --bach 1")
