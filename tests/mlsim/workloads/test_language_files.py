"""Files of transformers: what they say, and those that can't be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from language_models import LANGUAGE, tiny

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


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('kind = "decoder"', 'kind = "coder"', 3, "kind must be one of decoder, encoder, not 'co"),
        ('kind = "decoder"\n', "", 1, "kind must be one of decoder, encoder, not None."),
        ('name = "Tiny"\n', "", 1, "name is missing."),
        ('source = "v', "source = 3 #", 5, "source must be text in quotes, not 3."),
        ('source = "v', 'sauce = "v', 5, "unknown key 'sauce'. Did you mean 'source'?"),
        ("[feed_forward]", "[feedforward]", 18, "'feedforward'. Did you mean 'feed_forward'?"),
        ("layers = 2\n", "", 7, "transformer.layers is missing."),
        ("layers = 2", "layers = 0", 8, "transformer.layers must be 1 or more, not 0."),
        ("layers = 2", "layers = -1", 8, "transformer.layers must be 1 or more, not -1."),
        ("layers = 2", "layers = 2.0", 8, "transformer.layers must be a whole number, not 2.0."),
        ("layers = 2", "layers = true", 8, "transformer.layers must be a whole number, not True."),
        ("layers = 2", 'layers = "2"', 8, "transformer.layers must be a whole number, not '2'."),
        ("hidden = 4", "width = 4", 9, "unknown key 'width'."),
        ("hidden = 4", "hiden = 4", 9, "unknown key 'hiden'. Did you mean 'hidden'? Allowed here:"),
        ("context = 32", "context = 32\ndecoder = true", 12, "unknown key 'decoder'."),
        ("context = 32", "context = 32\nname = 'x'", 12, "unknown key 'name'."),
        (
            "context = 32",
            "context = 32\npositions = -1",
            12,
            "transformer.positions must be 0 or more, not -1.",
        ),
        (
            "context = 32",
            "context = 32\ntied_embeddings = 1",
            12,
            "transformer.tied_embeddings must be true or false, not 1.",
        ),
        ("kv_heads = 1\n", "", 13, "attention.kv_heads is missing."),
        ("heads = 2\nkv", "heads = 0\nkv", 14, "attention.heads must be 1 or more, not 0."),
        ("kv_heads = 1", "kv_heads = 3", 13, "kv_heads = 3 must divide heads = 2, since each"),
        ("head_size = 2", "head_size = 2\nwindow = -3", 17, "attention.window must be 0 or more"),
        (
            "gated = true",
            "gated = 'yes'",
            20,
            "feed_forward.gated must be true or false, not 'yes'.",
        ),
        ("[attention]", "[attentions]", 13, "'attentions'. Did you mean 'attention'?"),
        (
            "[attention]",
            LATENT + "\n[attention]",
            1,
            "a transformer has [attention] or [latent_attention], one of the two.",
        ),
        (
            "gated = true",
            "gated = true\n" + EXPERTS.replace("per_token = 2", "per_token = 5"),
            22,
            "per_token = 5 experts can't be chosen from 4.",
        ),
        ("hidden = 4", "hidden = 4\nhidden = 4", 10, ""),
    ],
    ids=lambda each: str(each)[:30].replace("\n", " "),
)
def test_a_file_that_cannot_be(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert TINY.count(old) == 1
    with pytest.raises(DataFileError) as e:
        load(tmp_path, TINY.replace(old, new))
    assert str(e.value).startswith(f"{tmp_path / 'tiny.toml'}:{line}: ")
    assert words in str(e.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("context = 32", "context = 32\nnorm = 'batch'", "norm must be one of rms, layer, plain"),
        (
            "[feed_forward]\nsize = 6\ngated = true\n",
            "",
            "Tiny: 2 layers have no experts, so feed_forward must say what they have.",
        ),
        (
            "gated = true\n",
            "gated = true\n" + EXPERTS + "dense_layers = 3\n",
            "Tiny: dense_layers = 3 is more than the 2 layers there are.",
        ),
    ],
    ids=["norm", "feed-forward", "dense layers"],
)
def test_a_file_whose_parts_do_not_fit_together(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    with pytest.raises(DataFileError, match=re.escape(words)) as e:
        load(tmp_path, TINY.replace(old, new))
    assert str(e.value).startswith(str(tmp_path / "tiny.toml"))


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
