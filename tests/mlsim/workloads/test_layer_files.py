"""Layers of several kinds in a data file: what is read, and what can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim import Models
from mlsim.errors import DataFileError
from mlsim.records import DATA
from mlsim.workloads.model_files import load_model

FOLDER = DATA / "workloads"
NEMOTRON = (FOLDER / "nemotron_h_56b.toml").read_text(encoding="utf-8")
DEEPSEEK = (FOLDER / "deepseek_v3_2.toml").read_text(encoding="utf-8")
GEMMA = (FOLDER / "gemma4_31b.toml").read_text(encoding="utf-8")


def test_nemotron_h_by_hand() -> None:
    """54 layers with a state, 10 with attention, 54 networks; a norm in front of each."""
    h, inner = 8192, 256 * 64
    channels = inner + 2 * 8 * 256
    state = h * (inner + channels + 256) + inner * h + channels * 5 + 3 * 256 + inner
    attention = 2 * h * h + 2 * h * 8 * 128
    network = 2 * h * 32_768
    tables, norms = 2 * 131_072 * h, (118 + 1) * h
    model = Models.Nemotron_H_56B
    assert model.parameter_count == 54 * (state + network) + 10 * attention + tables + norms
    # Only attention keeps something of each token: 10 layers x 2 x 8 heads x 128.
    assert model.model_cached_elements == 10 * 2 * 8 * 128


def test_an_indexer_by_hand() -> None:
    """61 layers: queries from the compressed vector, a key with its norm, and weights."""
    indexer = 1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128
    more = Models.DeepSeek_V3_2.parameter_count - Models.DeepSeek_V3.parameter_count
    assert more == 61 * indexer


def test_gemma_4_keeps_most_tokens_in_few_layers() -> None:
    model = Models.Gemma4_31B
    near, far = (part for _, part in model.mixers)
    assert (near.window, far.window) == (1024, 0)
    assert model.model_cached_elements == 50 * 2 * 16 * 256 + 10 * 2 * 4 * 512


@pytest.mark.parametrize(
    ("key", "count", "billions"),
    [
        ("Qwen3_Next_80B_A3B", 79_674_391_296, 3),
        ("Nemotron_3_Nano_30B_A3B", 31_577_940_288, 3),
        ("GLM_5", 743_911_218_432, 41),
        ("Gemma4_26B_A4B", 25_233_141_760, 3),
        ("DeepSeek_V3_2", 671_877_944_064, 38),
    ],
)
def test_counts(key: str, count: int, billions: int) -> None:
    model = Models.get(key)
    assert model.parameter_count == count
    assert model.active_parameter_count // 10**9 == billions


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        (NEMOTRON, 'kind = "state_space"', 'kind = "state_spaces"', "one of .*Did you mean"),
        (NEMOTRON, 'kind = "state_space"', "kind = 3", "needs a kind, one of .*, not 3"),
        (NEMOTRON, "layers = 54\nheads", "heads", "layers is missing"),
        (NEMOTRON, "layers = 54\nheads", "layers = 0\nheads", "must be 1 or more, not 0"),
        (
            NEMOTRON,
            "layers = 54\nheads",
            "layers = 199\nheads",
            "of the 118 layers|more than the 118 layers",
        ),
        (NEMOTRON, "state_size = 256", "state_sizes = 256", "unknown key 'state_sizes'"),
        (NEMOTRON, "state_size = 256", "state_size = 0", "state_size must be 1 or more, not 0"),
        (NEMOTRON, "[feed_forward]\nsize = 32768\n", "", r"the file has no \[feed_forward\]"),
        (GEMMA, "kv_heads = 16", "kv_heads = 15", "must divide heads = 32"),
        (DEEPSEEK, "size = 128\n\n[feed", "width = 128\n\n[feed", "unknown key 'width'"),
    ],
)
def test_a_file_that_cannot_be_is_refused(
    tmp_path: Path, text: str, old: str, new: str, words: str
) -> None:
    path = tmp_path / "model.toml"
    changed = text.replace(old, new, 1)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(DataFileError, match=words) as refused:
        load_model(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ('kind = "attention"', 'kind = "attentions"', 'kind = "attentions"'),
        ("layers = 10\n", "layers = 0\n", "layers = 0"),
        ("layers = 10\n", "layers = true\n", "layers = true"),
        ("layers = 10\n", "layers = 10\nhead = 3 # of the second\n", "head = 3 # of the second"),
        ("state_size = 256", 'state_size = "256"', 'state_size = "256"'),
    ],
)
def test_an_error_names_the_line_of_its_entry(
    tmp_path: Path, old: str, new: str, marked: str
) -> None:
    """The second entry has keys of the names that the first one has."""
    path = tmp_path / "model.toml"
    text = NEMOTRON.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    line = text.splitlines().index(marked) + 1
    with pytest.raises(DataFileError) as refused:
        load_model(path)
    assert str(refused.value).startswith(f"{path}:{line}: ")


def test_a_list_in_one_line_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    entries = (
        'mixers = [{kind = "attention", layers = 10}, {kind = "state_space", layers = 54, '
        "heads = 256, head_size = 64, state_size = 256, groups = 8}]\n"
    )
    first, last = NEMOTRON.index("[[mixers]]"), NEMOTRON.index("[[feeds]]")
    text = (NEMOTRON[:first] + NEMOTRON[last:]).replace("[transformer]", entries + "[transformer]")
    path.write_text(text, encoding="utf-8")
    found = load_model(path)
    assert found.parameter_count == Models.Nemotron_H_56B.parameter_count


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    text = NEMOTRON[: NEMOTRON.index("[[mixers]]")] + NEMOTRON[NEMOTRON.index("[figures") :]
    path.write_text(text.replace("[transformer]", "mixers = []\n\n[transformer]"), "utf-8")
    with pytest.raises(DataFileError, match="mixers is empty"):
        load_model(path)
