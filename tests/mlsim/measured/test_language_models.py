"""Language models by month: what the table says, and what it can't."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from kept import cases

from mlsim import Hardware, Models, Transformer
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.measured import language_models
from mlsim.measured.growth import FACTS, FILE, WEIGHTS, language_model_facts, load_facts
from mlsim.records.references import references
from mlsim.workloads.announced_models import announced

ANNOUNCED = {each.key: each for each in announced()}
# Models that were shown months before the paper by which the zoo dates them.
SHOWN_BEFORE = {"MT_NLG_530B"}


def test_what_the_lecture_printed_wrong_stands_as_its_sources_have_it() -> None:
    table: Any = language_models()
    for key, column, value in cases("lecture_models.toml"):
        assert table.loc[key, column] == value, (key, column)
    months = table.month.dt.strftime("%Y-%m")
    assert (months["glam"], months["PaLM_540B"]) == ("2021-12", "2022-04")


def test_sizes_of_the_zoo_are_computed_and_months_agree_with_its_years() -> None:
    table: Any = language_models()
    assert set(ANNOUNCED) <= set(table.index)
    for key, row in table.iterrows():
        model = ANNOUNCED.get(str(key)) or Models.get(str(key))
        assert row.counted == (str(key) not in ANNOUNCED), key
        assert row.parameters == model.parameter_count, key
        assert model.release_year == row.month.year + (str(key) in SHOWN_BEFORE), key
    assert table.loc["GPT2_XL", "parameters"] == 1557611200
    assert table.counted.sum() >= 30
    assert table.month.is_monotonic_increasing
    # A picture's network has no place among them.
    others = {each.key for each in Models if not isinstance(each, Transformer)}
    assert others & set(table.index) == {"T5_11B"}


def test_what_is_not_known_is_missing() -> None:
    """No work without tokens, and none of experts without the parameters that a token meets."""
    table: Any = language_models()
    row = table.loc["pangu_sigma"]
    assert row.tokens == 329e9
    assert math.isnan(row.active_parameters)
    assert math.isnan(row.flops)
    assert math.isnan(table.loc["gpt1", "flops"])
    assert table.loc["GLM_5", "accelerator"] is None


def test_work_is_six_for_each_active_parameter_and_token() -> None:
    table: Any = language_models()
    known = table[table.flops.notna()]
    assert len(known) > 35
    assert (known.flops == 6 * known.active_parameters * known.tokens).all()
    # As its makers printed it: 3.8e25 for 15.6e12 tokens; the card has 15e12 and more.
    assert table.loc["Llama3_405B", "flops"] == pytest.approx(3.8e25, rel=0.05)
    assert table.loc["GPT3_175B", "flops"] == pytest.approx(3.14e23, rel=0.01)
    experts = table[(table.form == "experts") & table.active_parameters.notna()]
    assert (experts.active_parameters < experts.parameters).all()
    dense = table[table.form == "dense"]
    assert (dense.active_parameters == dense.parameters).all()


def test_each_fact_has_its_source() -> None:
    table: Any = language_models()
    for each in language_model_facts():
        assert each.fact in FACTS
        assert each.source in references()
        assert 1 <= len(each.quote.split()) <= 15
        # A year in a month's quote, or in what the note makes of it, is the month's own.
        if each.fact == "month":
            year = each.value[:4]
            assert year in each.quote or year[2:] in each.quote or year in each.note, each.id
    assert {each.value for each in language_model_facts() if each.fact == "weights"} == set(WEIGHTS)
    assert {device.name for device in Hardware} & set(table.accelerator.dropna())
    (precision,) = (
        each for each in language_model_facts("DeepSeek_V3") if each.fact == "precision"
    )
    assert precision.kind == "datasheet"
    with pytest.raises(UnknownNameError, match="Did you mean 'DeepSeek_V3'"):
        language_model_facts("DeepSeek_V33")


GOOD = "A-1,dbrx,month,2024-03,secondary,epoch2026models,w,q,2026-11-22,"


def test_a_fact_stands_once_and_a_model_needs_a_month_and_one_of_the_zoo_a_maker(
    tmp_path: Path,
) -> None:
    def read(*rows: str) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.csv"
        head = FILE.read_text(encoding="utf-8").splitlines()[0]
        path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
        return load_facts(path)

    (fact,) = read(GOOD)
    assert (fact.model, fact.value, fact.read.year) == ("dbrx", "2024-03", 2026)
    for rows, words in (
        ((GOOD, GOOD.replace("A-1", "A-2")), r"A-2 says the month of dbrx again; A-1 has it"),
        ((GOOD.replace("month,2024-03", "weights,open"),), "dbrx has no month: add a row"),
        ((GOOD.replace("dbrx", "GPT3_175B"),), "GPT3_175B has no maker: add a row"),
    ):
        with pytest.raises(DataFileError, match=words):
            read(*rows)
