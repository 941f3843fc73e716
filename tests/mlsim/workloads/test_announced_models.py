"""Models of which only a size was announced: what is read, and what can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim import Models
from mlsim.errors import DataFileError
from mlsim.records.references import references
from mlsim.workloads.announced_models import FILE, FORMS, Announced, announced, load_announced
from mlsim.zoo.review.rules import FIGURE_CHECKS

ALL = announced()
TEXT = FILE.read_text(encoding="utf-8")

each_model = pytest.mark.parametrize("model", ALL, ids=[each.key for each in ALL])


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


@each_model
def test_each_figure_holds_what_figures_hold(model: Announced) -> None:
    assert model.form in FORMS
    assert not [found for check in FIGURE_CHECKS for found in check(model) if found.error]  # type: ignore[arg-type]
    assert {figure.source for figure in model.figures.values()} <= set(references())
    active = model.figures.get("active_parameters")
    assert active is None or active.si < model.parameter_count


@each_model
def test_nothing_of_the_zoo_is_repeated(model: Announced) -> None:
    names = {each.name.casefold() for each in Models}
    assert model.name.casefold() not in names


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('form = "dense"', 'form = "sparse"', "form must be one of dense, experts, not 'sparse'"),
        ('form = "dense"', "", "jurassic1.form is missing"),
        ('maker = "AI21 Labs"', "maker = 3", "jurassic1.maker must be text in quotes, not 3"),
        ("[jurassic1.parameters]", "[jurassic1.size]", "unknown key 'size'"),
        ("[glam]", "glam = 3\n[other]", "."),
        ('form = "experts"', 'form = "dense"', "of a dense model a token meets all parameters"),
        ('quote = "Jurassic', 'quotes = "Jurassic', "unknown key 'quotes'"),
        ("value = 178", "value = -178", "value must be positive"),
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "announced.toml"
    changed = TEXT.replace(old, new, 1)
    assert changed != TEXT
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(DataFileError, match=words) as refused:
        load_announced(path)
    assert str(path) in str(refused.value)


def test_a_model_needs_a_size(tmp_path: Path) -> None:
    path = tmp_path / "announced.toml"
    path.write_text('[x]\nname = "X"\nmaker = "Y"\nform = "dense"\n', encoding="utf-8")
    with pytest.raises(DataFileError, match=r"announced.toml:1: x.release_year is missing"):
        load_announced(path)
