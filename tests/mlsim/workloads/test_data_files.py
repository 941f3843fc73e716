"""Data files of models: what they say, and what can't be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept import text
from language_models import tiny
from told import rows

from mlsim import Models
from mlsim.errors import DataFileError
from mlsim.records import DATA
from mlsim.records.references import references
from mlsim.workloads.announced_models import FILE, FORMS, announced, load_announced
from mlsim.workloads.blocks import Experts, LatentAttention
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.model_files import load_model
from mlsim.workloads.recipes import load_recipe

TINY = text("tiny_model.toml")
ATTENTION = TINY[TINY.index("[attention]") : TINY.index("[feed_forward]")]
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return what reads a text as a file, by default as one of a model."""

    def read(content: str, reader: Load = load_model) -> Any:
        path = tmp_path / "mine.toml"
        path.write_text(content, encoding="utf-8")
        return reader(path)

    return read


def test_a_file_says_the_same_as_the_parts(load: Load) -> None:
    model = load(TINY)
    assert model.operators() == tiny().operators()
    assert (model.key, model.name, model.source) == ("Tiny", "Tiny", "vaswani2017attention")
    assert (model.decoder, model.figures) == (True, {})
    # A format with a scale of 32 bits for each block, as it was released.
    assert model.released.weights.bits == 8 + 32 / 128**2
    assert (model.released.activations, model.released.where) == ("fp8", "deepseek2025v3code")
    encoder = load(TINY.replace('"decoder"', '"encoder"'))
    assert encoder.operators() == tiny(decoder=False).operators()
    # A count that has a default may be 0.
    zeros = TINY.replace("head_size = 2", "head_size = 2\nwindow = 0\nfull_every = 0")
    assert load(zeros).operators() == tiny().operators()
    latent = {"query_rank": 0, "kv_rank": 2, "content_size": 2, "rope_size": 1, "value_size": 3}
    part = "[latent_attention]\nheads = 2\n" + "".join(f"{k} = {v}\n" for k, v in latent.items())
    experts = "\n[experts]\ncount = 4\nper_token = 2\nsize = 3\n"
    found = load(TINY.replace(ATTENTION, part + "\n") + experts)
    assert found.attention == LatentAttention(heads=2, **latent)
    assert found.experts == Experts(count=4, per_token=2, size=3)


def test_a_list_in_one_line_is_read_as_well_and_a_switch_may_be_off(load: Load) -> None:
    content = (DATA / "workloads" / "nemotron_h_56b.toml").read_text("utf-8")
    entries = (
        'mixers = [{kind = "attention", layers = 10}, {kind = "state_space", layers = 54, '
        "heads = 256, head_size = 64, state_size = 256, groups = 8}]\n"
    )
    first, last = content.index("[[mixers]]"), content.index("[[feeds]]")
    without = content[:first] + content[last:]
    found = load(without.replace("[transformer]", entries + "[transformer]"))
    assert found.parameter_count == Models.Nemotron_H_56B.parameter_count
    with pytest.raises(DataFileError, match="mixers is empty"):
        load(without.replace("[transformer]", "mixers = []\n\n[transformer]"))
    vit = (DATA / "workloads" / "vit_b_16.toml").read_text("utf-8")
    off = load(vit.replace("heads = 12", "heads = 12\nrelative_positions = 0"))
    assert off.parameter_count == Models.ViT_B16.parameter_count


def test_layers_of_several_kinds_by_hand() -> None:
    """54 layers with a state, 10 with attention, 54 networks; a norm in front of each."""
    h, inner = 8192, 256 * 64
    channels = inner + 2 * 8 * 256
    state = h * (inner + channels + 256) + inner * h + channels * 5 + 3 * 256 + inner
    attention = 2 * h * h + 2 * h * 8 * 128
    tables, norms = 2 * 131_072 * h, (118 + 1) * h
    model = Models.Nemotron_H_56B
    layers = 54 * (state + 2 * h * 32_768) + 10 * attention
    assert model.parameter_count == layers + tables + norms
    # Only attention keeps something of each token: 10 layers x 2 x 8 heads x 128.
    assert model.model_cached_elements == 10 * 2 * 8 * 128
    # Most layers of Gemma 4 see 1,024 tokens, with more and smaller heads.
    assert [part.window for _, part in Models.Gemma4_31B.mixers] == [1024, 0]
    assert Models.Gemma4_31B.model_cached_elements == 50 * 2 * 16 * 256 + 10 * 2 * 4 * 512


def source_of(name: str) -> tuple[str, Load]:
    """Return the text of a file, and what reads such a file."""
    if name == "tiny":
        return TINY, load_model
    if name == "announced":
        return FILE.read_text("utf-8"), load_announced
    recipe = name.startswith("recipes/")
    path = DATA / ("" if recipe else "workloads") / f"{name}.toml"
    return path.read_text("utf-8"), load_recipe if recipe else load_model


def test_files_that_cannot_be(load: Load, tmp_path: Path) -> None:
    broken = []
    for name, old, new, line, words in rows("mistakes_in_models"):
        content, reader = source_of(name)
        assert old in content, (name, old)
        with pytest.raises(DataFileError) as e:
            load(content.replace(old, new, 1), reader)
        said, where = str(e.value), f"{tmp_path / 'mine.toml'}:" + (f"{line}: " if line else "")
        if not said.startswith(where) or not re.search(words, said):
            broken.append(f"{name}: {new!r}: {said}")
    assert broken == []


def test_released_formats_of_the_zoo_have_their_sources() -> None:
    found: dict[str, Model] = {
        each.key: each for each in Models if isinstance(each, Transformer) and each.released
    }
    assert {"DeepSeek_V3", "GPT_OSS_20B", "GPT_OSS_120B"} <= set(found)
    assert {each.released.where for each in found.values()} <= set(references())


def test_announced_models_are_in_order_and_none_repeats_the_zoo() -> None:
    models = announced()
    years = [(each.release_year, each.parameter_count) for each in models]
    assert years == sorted(years)
    names = {each.name.casefold() for each in Models}
    broken = []
    for model in models:
        active = model.figures.get("active_parameters")
        wrong = {
            "form": model.form not in FORMS,
            "in the zoo, too": model.name.casefold() in names,
            "source": not {each.source for each in model.figures.values()} <= set(references()),
            "more active than there are": active and active.si >= model.parameter_count,
        }
        broken += [f"{model.key}: {why}" for why in wrong if wrong[why]]
    assert broken == []


def test_chinchilla_is_dense_and_its_trillion_are_tokens() -> None:
    by_name = {each.name: each for each in announced()}
    # With those that the zoo counts, all that the lecture's table lists.
    assert set(by_name) >= {"GLM-130B", "Gopher", "Jurassic-1", "LaMDA", "MoE 1.1T"}
    chinchilla, glam = by_name["Chinchilla"], by_name["GLaM"]
    assert (chinchilla.form, chinchilla.parameter_count) == ("dense", 70e9)
    each = chinchilla.training_tokens / chinchilla.parameters
    assert each.name == "Chinchilla training tokens / Chinchilla parameters"
    assert each.si == pytest.approx(20)
    assert f"[@{chinchilla.figures['parameters'].source}]" in each.origin.how
    assert chinchilla.active_parameters is None
    assert glam.active_parameters < glam.parameters
