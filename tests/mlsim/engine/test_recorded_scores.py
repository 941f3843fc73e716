"""Scores that the package keeps: of rivals, beside ours on exactly the same rows."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from mlsim import show
from mlsim.engine import rival_scores
from mlsim.errors import UnknownNameError

ANSWERS = Path(__file__).parents[3] / "benchmarks" / "rivals" / "answers.csv"


def test_scores_of_kinds_are_parts_of_those_of_all():
    for rival, settings in {(each.rival, each.settings) for each in rival_scores()}:
        own = [each for each in rival_scores() if (each.rival, each.settings) == (rival, settings)]
        (whole,) = (each for each in own if each.kind == "all")
        assert sum(each.rows for each in own) - whole.rows <= whole.rows
        for each in own:
            assert each.rows > 2
            assert min(each.error, each.our_error) > 0
            assert max(each.close, each.our_close) <= 1


def test_a_score_of_a_rival_is_a_value_that_says_over_how_many_rows():
    each = rival_scores()[0]
    found = show(each, "our_error")
    assert found == each.our_error
    assert f"over {each.rows:,} rows" in found.origin.brief
    with pytest.raises(UnknownNameError, match="our_error"):
        show(each, "their_error")


@pytest.mark.skipif(not ANSWERS.exists(), reason="benchmarks aren't part of the package")
def test_answers_that_were_scored_are_kept():
    with ANSWERS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counted = Counter(row["rival"] for row in rows)
    assert all(float(row["predicted"]) > 0 for row in rows)
    # mlsim may have no answer to a row of theirs, but never the other way round.
    for whole in (each for each in rival_scores() if each.kind == "all"):
        assert any(
            name.startswith(whole.rival) and count >= whole.rows for name, count in counted.items()
        )
