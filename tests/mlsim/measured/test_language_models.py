"""Language models by month: what the table says, and what it can't."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from mlsim import Hardware, Models, Transformer, language_models
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.measured.language_models import (
    FACTS,
    FILE,
    WEIGHTS,
    language_model_facts,
    load_facts,
)
from mlsim.records.references import references
from mlsim.workloads.announced_models import announced

TABLE: Any = language_models()
TEXT = FILE.read_text(encoding="utf-8")
HEAD = TEXT.splitlines()[0]
ANNOUNCED = {each.key: each for each in announced()}
# Models that were shown months before the paper by which the zoo dates them.
SHOWN_BEFORE = {"MT_NLG_530B"}


def test_chinchilla_is_dense_and_its_trillion_are_tokens() -> None:
    row = TABLE.loc["chinchilla"]
    assert (row.form, row.parameters, row.tokens) == ("dense", 70e9, 1.4e12)
    assert row.flops == 6 * 70e9 * 1.4e12


def test_the_lecture_s_thirteen_are_there() -> None:
    """Seed 002's table: what it printed wrong stands here as its sources have it."""
    thirteen = [
        "BERT_Large", "GPT3_175B", "jurassic1", "gopher", "MT_NLG_530B", "lamda", "chinchilla",
        "OPT_175B", "BLOOM_176B", "glm130b", "glam", "PaLM_540B", "meta_moe",
    ]  # fmt: skip
    rows = TABLE.loc[thirteen]
    assert rows.maker.notna().all()
    assert set(rows[rows.form == "experts"].index) == {"glam", "meta_moe"}
    months = rows.month.dt.strftime("%Y-%m")
    assert (months["glam"], months["PaLM_540B"]) == ("2021-12", "2022-04")
    assert rows.loc["glam", "accelerator"] == "Google TPU v4"
    assert rows.loc["lamda", "accelerator"] == "Google TPU v3"
    assert rows.loc["MT_NLG_530B", "weights"] == "closed"
    assert rows.loc["gopher", "maker"] == "DeepMind"


def test_sizes_of_the_zoo_are_computed() -> None:
    for key, row in TABLE.iterrows():
        if row.counted:
            assert row.parameters == Models.get(str(key)).parameter_count
        else:
            assert row.parameters == ANNOUNCED[str(key)].parameter_count
    assert TABLE.loc["GPT2_XL", "parameters"] == 1557611200
    assert TABLE.counted.sum() >= 30


def test_all_announced_models_have_a_month() -> None:
    assert set(ANNOUNCED) <= set(TABLE.index)


def test_months_agree_with_the_years_of_the_zoo() -> None:
    for key, row in TABLE.iterrows():
        model = ANNOUNCED.get(str(key)) or Models.get(str(key))
        late = str(key) in SHOWN_BEFORE
        assert model.release_year == row.month.year + late, key
    assert TABLE.month.is_monotonic_increasing


def test_what_is_not_known_is_missing() -> None:
    """No work without tokens, and none of experts without the parameters that a token meets."""
    row = TABLE.loc["pangu_sigma"]
    assert row.tokens == 329e9
    assert math.isnan(row.active_parameters)
    assert math.isnan(row.flops)
    assert math.isnan(TABLE.loc["gpt1", "flops"])
    assert TABLE.loc["GLM_5", "accelerator"] is None


def test_work_is_six_for_each_active_parameter_and_token() -> None:
    known = TABLE[TABLE.flops.notna()]
    assert len(known) > 35
    assert (known.flops == 6 * known.active_parameters * known.tokens).all()
    # As its makers printed it: 3.8e25 for 15.6e12 tokens; the card has 15e12 and more.
    assert TABLE.loc["Llama3_405B", "flops"] == pytest.approx(3.8e25, rel=0.05)
    assert TABLE.loc["GPT3_175B", "flops"] == pytest.approx(3.14e23, rel=0.01)


def test_experts_have_more_than_a_token_meets() -> None:
    experts = TABLE[(TABLE.form == "experts") & TABLE.active_parameters.notna()]
    assert (experts.active_parameters < experts.parameters).all()
    dense = TABLE[TABLE.form == "dense"]
    assert (dense.active_parameters == dense.parameters).all()


def test_structures() -> None:
    assert TABLE.loc["BERT_Large", "structure"] == "encoder"
    assert TABLE.loc["T5_11B", "structure"] == "both"
    assert TABLE.loc["Llama3_405B", "structure"] == "decoder"


def test_each_fact_has_its_source() -> None:
    for each in language_model_facts():
        assert each.fact in FACTS
        assert each.source in references()
        assert 1 <= len(each.quote.split()) <= 15
        # A year in a month's quote, or in what the note makes of it, is the month's own.
        if each.fact == "month":
            year = each.value[:4]
            assert year in each.quote or year[2:] in each.quote or year in each.note, each.id
    assert {each.value for each in language_model_facts() if each.fact == "weights"} == set(WEIGHTS)
    names = {device.name for device in Hardware}
    assert names & set(TABLE.accelerator.dropna())


def test_facts_of_one_model() -> None:
    found = {each.fact: each for each in language_model_facts("DeepSeek_V3")}
    assert found["precision"].kind == "datasheet"
    with pytest.raises(UnknownNameError, match="Did you mean 'DeepSeek_V3'"):
        language_model_facts("DeepSeek_V33")


GOOD = "A-1,dbrx,month,2024-03,secondary,epoch2026models,w,q,2026-11-22,"


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_good_row_is_read(tmp_path: Path) -> None:
    (fact,) = load_facts(write(tmp_path / "good.csv", GOOD))
    assert (fact.model, fact.value, fact.read.year) == ("dbrx", "2024-03", 2026)


def test_a_fact_stands_once(tmp_path: Path) -> None:
    path = write(tmp_path / "twice.csv", GOOD, GOOD.replace("A-1", "A-2"))
    with pytest.raises(DataFileError, match=r"A-2 says the month of dbrx again; A-1 has it"):
        load_facts(path)


def test_a_model_needs_a_month_and_one_of_the_zoo_a_maker(tmp_path: Path) -> None:
    row = GOOD.replace("month,2024-03", "weights,open")
    with pytest.raises(DataFileError, match="dbrx has no month: add a row"):
        load_facts(write(tmp_path / "a.csv", row))
    with pytest.raises(DataFileError, match="GPT3_175B has no maker: add a row"):
        load_facts(write(tmp_path / "b.csv", GOOD.replace("dbrx", "GPT3_175B")))


def test_language_models_only() -> None:
    """A picture's network has no place among them."""
    others = [each.key for each in Models if not isinstance(each, Transformer)]
    assert set(others) & set(TABLE.index) == {"T5_11B"}
