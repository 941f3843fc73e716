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
