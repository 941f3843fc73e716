"""A service of a model with states: memory and traffic that don't grow with the context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from real_configs import REAL

from mlsim import Engine, load_config
from mlsim.solvers.serving.serving import Serving
from mlsim.workloads.language import Transformer

NANO, SPARSE = "Nemotron-3-Nano-30B-A3B", "GLM-5.2"


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> Transformer:
    return made(tmp_path_factory.mktemp("nano"), NANO)


def made(folder: Path, name: str) -> Transformer:
    path = folder / "config.json"
    path.write_text(json.dumps(REAL[name][0]), encoding="utf-8")
    return load_config(path)


def serve(model: Transformer, **asked: Any) -> Serving:
    asked = {"hardware": "H200", "prompt_tokens": 1600, "output_tokens": 16} | asked
    return Engine.serve(model=model, **asked)


def test_a_sequence_keeps_its_states_and_each_step_reads_and_writes_them(nano: Transformer) -> None:
    """6 layers cache 2 heads of 128 twice, in 2 B; 23 keep a state, whatever the length."""
    per_token = 6 * 2 * 2 * 128 * 2
    state = next(each for each in nano.operators() if each.name == "state")
    traffic = 2 * state.sequence_state * 8 + 2 * state.parameters + 2 * state.token_elements * 8
    read = []
    for tokens in (160, 1600, 16_000):
        found = serve(nano, prompt_tokens=tokens - 16, batch_size=8)
        expected = 8 * (tokens * per_token + nano.state_bytes_per_sequence)
        assert found.value("cache_memory") == expected
        rows = {each["name"]: each["bytes_moved"] for each in found.decode.operators}
        assert rows["state"] == traffic
        read.append(rows["attention"])
    assert found.value("cache_bytes_per_token") == per_token
    assert read == sorted(set(read))
    # A prompt writes a state and reads none.
    first = {each["name"]: each for each in serve(nano, prompt_tokens=1).prefill.operators}
    second = {each["name"]: each for each in serve(nano).decode_at(1).operators}
    gap = second["state"]["bytes_moved"] - first["state"]["bytes_moved"]
    assert gap == state.sequence_state


def test_chosen_tokens_are_read_and_all_are_kept(tmp_path: Path) -> None:
    """GLM-5.2: beyond 2,048 tokens a step reads no more of the latent cache, but all index keys."""
    model = made(tmp_path, SPARSE)
    served = serve(model, precision="fp8", check_memory=False)
    steps = {at: served.decode_at(at) for at in (4000, 8000)}
    rows = {at: {each["name"]: each for each in step.operators} for at, step in steps.items()}
    assert rows[4000]["attention"]["bytes_moved"] == rows[8000]["attention"]["bytes_moved"]
    assert rows[4000]["attention"]["flops"] == rows[8000]["attention"]["flops"]
    assert rows[8000]["index scores"]["bytes_moved"] > rows[4000]["index scores"]["bytes_moved"]
    per_token = 78 * 576 + 21 * 128
    assert served.value("cache_memory") == 1616 * per_token
