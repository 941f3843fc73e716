"""The command `mlsim`: the same answers as the API, as text or JSON."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlsim import Engine
from mlsim.cli.command import main

# A program that has neither arrays nor tables.
BARE = """
import importlib.util, sys
for name in ("numpy", "pandas"):
    sys.modules[name] = None
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "numpy" else find(name, *a)
from mlsim.cli.command import main
main(["train", "Llama3_8B", "H100", "--global-batch", "8", "--lora-rank", "8"])
sys.exit(main(["fit", "Llama3_8B", "L4"]))
"""


def told(capsys: pytest.CaptureFixture[str], command: str) -> str:
    assert main(shlex.split(command)) == 0, command
    return capsys.readouterr().out


def test_the_zoo_and_a_sweep_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one = json.loads(told(capsys, "zoo resnet50 --json"))
    assert one["parameters"] == {"value": 25_557_032, "unit": "parameter"}
    kinds = {"models", "devices", "systems", "clusters", "grids", "data_centres", "regions"}
    assert set(json.loads(told(capsys, "zoo --json"))) == kinds
    rows = json.loads(told(capsys, "sweep ResNet50 V100,A100 --json"))
    assert [row["formats_assumed"] for row in rows] == ["fp16, since no other was given"] * 2
    assert '"rows": 1' in told(capsys, f"sweep ResNet50 A100 --out {tmp_path / 'swept'} --json")


def test_serve_takes_every_combination_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    command = "serve Llama3_8B H100 --batch 1,8 --prompt 512,2048"
    data = json.loads(told(capsys, f"{command} --output 64 --json"))
    assert data["batch_size"]["value"] == [1, 1, 8, 8]
    assert data["prompt_tokens"]["value"] == [512, 2048, 512, 2048]
    one = Engine.serve("Llama3_8B", "H100", batch_size=8, prompt_tokens=512, output_tokens=64)
    found = data["time_to_first_token"]
    assert (found["unit"], found["value"][2]) == ("s", pytest.approx(one.time_to_first_token.si))
    text = told(capsys, command)
    assert len(text.splitlines()) == 2 + 4 + 1
    assert "formats     bf16, since no other was given" in text


def test_fit_as_json_is_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(told(capsys, "fit Llama3_8B L4 --precision bf16,w4a16 --json"))
    table = Engine.fit(model="Llama3_8B", hardware="L4", precision=["bf16", "w4a16"])
    assert [row["precision"] for row in data["rows"]] == list(table.precision)
    found = [row["time_per_output_token"] for row in data["rows"]]
    assert found == [{"value": value, "unit": "s"} for value in table.time_per_output_token]
    assert data["prompt_tokens"] == {"value": 512, "unit": "token/sample"}


def test_fit_and_train_need_no_arrays_and_no_tables() -> None:
    command = [sys.executable, "-c", BARE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "w4a16, KV fp8" in done.stdout
    assert "Training Llama 3.1 8B" in done.stdout


def test_help_and_goals_speak_of_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """Goals of a plan go by the field's letters as well."""
    for command in ("solve", "sweep", "explain", "serve", "fit", "train", "footprint"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "Engine" not in capsys.readouterr().out, command
    asked = "plan Llama3_8B --rate 5 --hardware H100"
    assert told(capsys, f"{asked} --ttft '2 s' --tpot '30 ms'") == told(
        capsys, f"{asked} --first-token '2 s' --per-token '30 ms'"
    )


def test_a_size_of_memory_that_nobody_read_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = "memory is an estimate: no list of a driver was read"
    for question in (
        "serve Llama3_8B {} --precision w4a16",
        "fit Llama3_8B {} --precision w4a16",
        "load Llama3_8B {} --precision w4a16 --rate 1 --requests 50",
        "check-claim Llama3_8B {} --precision w4a16 --batch 1 --tokens-per-second 50",
        "check-claim ResNet50 {} --precision fp16 --batch 1 --samples-per-second 50",
    ):
        for device, guessed in (("RTX4080", True), ("RTX4090", False)):
            text = " ".join(told(capsys, question.format(device)).split())
            assert (words in text) == guessed, (question, device)
