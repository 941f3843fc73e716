"""Files of transformers: what they say, and those that can't be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from language_models import LANGUAGE, tiny
from told import rows

from mlsim.errors import DataFileError
from mlsim.records import DATA
from mlsim.records.references import references
from mlsim.workloads.blocks import Experts
from mlsim.workloads.language import Transformer
from mlsim.workloads.latent import LatentAttention
from mlsim.workloads.model_files import load_model
from mlsim.zoo.spaces import Models

TINY = """\
key = "Tiny"
name = "Tiny"
kind = "decoder"
architecture = "Transformer decoder"
source = "vaswani2017attention"

[transformer]
layers = 2
hidden = 4
vocabulary = 10
context = 32

[attention]
heads = 2
kv_heads = 1
head_size = 2

[feed_forward]
size = 6
gated = true
"""

LATENT = """\
[latent_attention]
heads = 2
query_rank = 0
kv_rank = 2
content_size = 2
rope_size = 1
value_size = 2
"""

EXPERTS = """
[experts]
count = 4
per_token = 2
size = 3
"""


def load(folder: Path, text: str) -> Transformer:
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    found = load_model(path)
    assert isinstance(found, Transformer)
    return found


def test_a_file_says_the_same_as_the_parts(tmp_path: Path) -> None:
    model = load(tmp_path, TINY)
    assert model.operators() == tiny().operators()
    assert (model.key, model.name, model.source) == ("Tiny", "Tiny", "vaswani2017attention")
    assert model.parameter_count == 340
    assert model.decoder
    assert model.figures == {}


def test_a_file_of_an_encoder(tmp_path: Path) -> None:
    model = load(tmp_path, TINY.replace('"decoder"', '"encoder"'))
    assert not model.decoder
    assert model.operators() == tiny(decoder=False).operators()


def test_a_file_with_latent_attention_and_experts(tmp_path: Path) -> None:
    attention = TINY[TINY.index("[attention]") : TINY.index("[feed_forward]")]
    text = TINY.replace(attention, LATENT + "\n") + EXPERTS
    model = load(tmp_path, text)
    assert model.latent
    assert model.experts == Experts(count=4, per_token=2, size=3)
    assert model.attention == LatentAttention(
        heads=2, query_rank=0, kv_rank=2, content_size=2, rope_size=1, value_size=2
    )


def test_a_count_that_has_a_default_may_be_0(tmp_path: Path) -> None:
    text = TINY.replace("head_size = 2", "head_size = 2\nwindow = 0\nfull_every = 0")
    assert load(tmp_path, text).operators() == tiny().operators()


PARTS = {
    "LATENT": LATENT,
    "EXPERTS": EXPERTS,
    "FIVE": EXPERTS.replace("per_token = 2", "per_token = 5"),
}


def test_files_that_cannot_be(tmp_path: Path) -> None:
    broken = []
    for old, new, line, words in rows("mistakes_in_transformers"):
        assert TINY.count(old) == 1
        changed = TINY.replace(old, new)
        for name, part in PARTS.items():
            changed = changed.replace(name, part)
        with pytest.raises(DataFileError) as e:
            load(tmp_path, changed)
        where = f"{tmp_path / 'tiny.toml'}:{line}".removesuffix(":")
        if not str(e.value).startswith(f"{where}: ") or words not in str(e.value):
            broken.append(f"{new!r}: {e.value}")
    assert broken == []


def test_a_file_without_attention(tmp_path: Path) -> None:
    attention = TINY[TINY.index("[attention]") : TINY.index("[feed_forward]")]
    with pytest.raises(DataFileError, match=r"has \[attention\] or \[latent_attention\], one of"):
        load(tmp_path, TINY.replace(attention, ""))


@pytest.mark.parametrize("part", ["transformer", "attention", "feed_forward"])
def test_a_part_that_is_no_table(tmp_path: Path, part: str) -> None:
    table = re.compile(rf"\[{part}\]\n(?:\w.*\n)+")
    text = f"{part} = 3\n" + table.sub("", TINY)
    with pytest.raises(DataFileError, match=rf"tiny\.toml:1: {part} must be a table, not 3\."):
        load(tmp_path, text)


def test_a_figure_needs_its_source(tmp_path: Path) -> None:
    text = TINY + '\n[figures.release_year]\nvalue = 2024\nunit = "year"\n'
    with pytest.raises(DataFileError, match=r"tiny\.toml:22: figures\.release_year lacks its kind"):
        load(tmp_path, text)


def test_every_file_of_the_zoo_is_read_once() -> None:
    paths = [
        path for path in (DATA / "workloads").glob("*.toml") if "[transformer]" in path.read_text()
    ]
    assert len(paths) == len(LANGUAGE) >= 24
    assert len({model.name for model in LANGUAGE}) == len(LANGUAGE)


# The formats in which a model was released.

RELEASED = """
[released]
weights = "fp8"
group = 128
columns = 128
scale_bits = 32
activations = "fp8"
source = "deepseek2025v3code"
where = "README_WEIGHTS.md"
quote = "natively supports FP8"
read = 2026-11-22
"""


def test_released_formats_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY + RELEASED, encoding="utf-8")
    found = load_model(path)
    assert isinstance(found, Transformer)
    assert found.released is not None
    assert found.released.weights.bits == 8 + 32 / 128**2
    assert (found.released.activations, found.released.where) == ("fp8", "deepseek2025v3code")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('weights = "fp8"\n', "", "released.weights is missing"),
        ('source = "deepseek2025v3code"\n', "", "released.source is missing"),
        ("read = 2026-11-22\n", "", "released.read is missing"),
        ('"fp8"\ngroup', '"fp7"\ngroup', "no precision is called 'fp7'"),
        ("columns = 128\n", "", "released.columns is missing"),
        ("group = 128\n", "group = 128\nnew = 1\n", "new"),
    ],
)
def test_released_formats_are_read_strictly(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "tiny.toml"
    assert old in RELEASED
    path.write_text(TINY + RELEASED.replace(old, new), encoding="utf-8")
    with pytest.raises(DataFileError) as caught:
        load_model(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")


def test_each_released_format_of_the_zoo_has_its_source() -> None:
    found = [each for each in Models if isinstance(each, Transformer) and each.released]
    assert {"DeepSeek_V3", "GPT_OSS_20B", "GPT_OSS_120B"} <= {each.key for each in found}
    for each in found:
        assert each.released is not None
        assert each.released.where in references()
