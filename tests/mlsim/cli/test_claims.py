"""`mlsim check-claim` prints the verdict, tells it by its exit status, and refuses nonsense."""

from __future__ import annotations

import json

import pytest

from mlsim import Engine
from mlsim.cli import main

CLAIM = ["check-claim", "Llama2_70B", "MI300X", "--precision", "fp16", "--batch", "1"]


def test_an_impossible_claim_has_its_own_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLAIM, "--tokens-per-second", "314"]) == 4
    assert "impossible: 8.1" in capsys.readouterr().out
    assert main([*CLAIM, "--tokens-per-second", "30"]) == 0
    assert "impossible" not in capsys.readouterr().out


def test_json_has_the_numbers_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLAIM, "--time-per-output-token", "3.2 ms", "--json"]) == 4
    found = Engine.check_claim(
        model="Llama2_70B",
        hardware="MI300X",
        precision="fp16",
        batch_size=1,
        time_per_output_token="3.2 ms",
    )
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))


def test_explain_shows_equations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLAIM, "--tokens-per-second", "314", "--explain"]) == 4
    assert "Equations" in capsys.readouterr().out


def test_utilization_as_share_or_percent(capsys: pytest.CaptureFixture[str]) -> None:
    for mfu in ("0.4", "40%"):
        assert main(["check-claim", "Llama3_8B", "H100", "--mfu", mfu]) == 0
        assert "MFU 40.0%" in capsys.readouterr().out


def test_nonsense_is_refused_in_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(CLAIM) == 1
    assert "--tokens-per-second" in capsys.readouterr().err
    assert main([*CLAIM, "--tokens-per-second", "-5"]) == 1
    assert "positive" in capsys.readouterr().err
