"""Models of which only a size was announced: what is read, and what can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim import Models
from mlsim.errors import DataFileError
from mlsim.records.references import references
from mlsim.workloads.announced_models import FILE, FORMS, announced, load_announced
from mlsim.zoo.review.rules import FIGURE_CHECKS

ALL = announced()
TEXT = FILE.read_text(encoding="utf-8")


def test_the_lecture_s_table_is_there() -> None:
    """With those that the zoo counts, all that seed 002's table lists."""
    assert {each.name for each in ALL} >= {
        "Chinchilla",
        "GLM-130B",
        "GLaM",
        "Gopher",
        "Jurassic-1",
        "LaMDA",
        "MoE 1.1T",
    }
    for key in ("BERT_Large", "GPT3_175B", "MT_NLG_530B", "OPT_175B", "BLOOM_176B", "PaLM_540B"):
        assert Models.get(key).parameter_count > 0


def test_chinchilla_is_dense_and_its_trillion_are_tokens() -> None:
    chinchilla = next(each for each in ALL if each.name == "Chinchilla")
    assert chinchilla.form == "dense"
    assert chinchilla.parameter_count == 70e9
    assert chinchilla.training_tokens.si == 1.4e12
    each = chinchilla.training_tokens / chinchilla.parameters
    assert each.name == "Chinchilla training tokens / Chinchilla parameters"
    assert each.si == pytest.approx(20)
    assert f"[@{chinchilla.figures['parameters'].source}]" in each.origin.how
    assert chinchilla.active_parameters is None
    glam = next(each for each in ALL if each.name == "GLaM")
    assert glam.active_parameters < glam.parameters


def test_they_are_in_order() -> None:
    years = [(each.release_year, each.parameter_count) for each in ALL]
    assert years == sorted(years)


def test_each_figure_holds_what_figures_hold_and_none_repeats_the_zoo() -> None:
    names = {each.name.casefold() for each in Models}
    broken = []
    for model in ALL:
        found = [each.message for check in FIGURE_CHECKS for each in check(model) if each.error]  # type: ignore[arg-type]
        active = model.figures.get("active_parameters")
        wrong = {
            "form": model.form not in FORMS,
            "in the zoo, too": model.name.casefold() in names,
            "source": not {each.source for each in model.figures.values()} <= set(references()),
            "more active than there are": active and active.si >= model.parameter_count,
        }
        broken += [(model.key, each) for each in (*found, *(why for why in wrong if wrong[why]))]
    assert broken == []


def test_a_model_needs_a_size(tmp_path: Path) -> None:
    path = tmp_path / "announced.toml"
    path.write_text('[x]\nname = "X"\nmaker = "Y"\nform = "dense"\n', encoding="utf-8")
    with pytest.raises(DataFileError, match=r"announced.toml:1: x.release_year is missing"):
        load_announced(path)
