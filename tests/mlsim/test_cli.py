"""The command `mlsim`: the same answers as the API, as text or JSON."""

from __future__ import annotations

import json

import pytest

from mlsim import Engine, Hardware, Models
from mlsim.cli import main


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_solve_prints_the_profile(capsys) -> None:
    code, out, _ = run(capsys, "solve", "ResNet50", "A100", "--batch", "32")
    profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=32)
    assert (code, out) == (0, f"{profile}\n")


def test_solve_takes_several_batches(capsys) -> None:
    _, out, _ = run(capsys, "solve", "ResNet50", "A100", "--batch", "1,256")
    assert len(out.splitlines()) == 4


@pytest.mark.parametrize("estimate", ["roofline", "bound"])
def test_solve_as_json_has_values_with_units(capsys, estimate: str) -> None:
    code, out, _ = run(capsys, "solve", "ResNet50", "T4", "--json", "--estimate", estimate)
    data = json.loads(out)
    profile = Engine.solve(model="ResNet50", hardware="T4", estimate=estimate)
    assert code == 0
    assert data["latency"] == {"value": profile.value("latency"), "unit": "s"}
    assert data == json.loads(json.dumps(profile.to_dict()))


def test_sweep_gives_every_combination(capsys) -> None:
    arguments = ("sweep", "ResNet50", "V100,A100", "--batch", "1,256", "--precision", "fp16,bf16")
    code, out, _ = run(capsys, *arguments, "--json")
    rows = json.loads(out)
    assert code == 0
    assert len(rows) == 8
    _, out, _ = run(capsys, *arguments)
    assert "no bf16 peak on record" in out


def test_explain_prints_the_derivation(capsys) -> None:
    code, out, _ = run(capsys, "explain", "ResNet50", "A100")
    assert code == 0
    assert out.startswith("latency = 55.48 µs\n")
    _, out, _ = run(capsys, "explain", "ResNet50", "A100", "--quantity", "ridge_point", "--json")
    assert json.loads(out)["quantity"] == "ridge_point"


def test_zoo_lists_all_and_shows_one(capsys) -> None:
    code, out, _ = run(capsys, "zoo")
    assert code == 0
    assert "Cloud.A100" in out
    assert "25,557,032 parameters" in out
    _, out, _ = run(capsys, "zoo", "a100")
    assert "2,039 GB/s" in out
    assert "[nvidia2022a100] NVIDIA" in out
    _, out, _ = run(capsys, "zoo", "resnet50", "--json")
    assert json.loads(out)["parameters"] == {"value": 25_557_032, "unit": "parameter"}
    _, out, _ = run(capsys, "zoo", "--json")
    assert {"models", "devices"} <= set(json.loads(out))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "ResNet50", "H1000"), "no device is called 'H1000'. Did you mean 'H100'?"),
        (("solve", "A100", "ResNet50"), "no model is called 'A100'."),
        (("solve", "ResNet50", "A100", "--batch", "0"), "batch_size must be a whole number"),
        (("solve", "ResNet50", "A100", "--batch", "1.5"), "not 1.5"),
        (("solve", "ResNet50", "A100", "--batch", "nan"), "not nan"),
        (("solve", "ResNet50", "A100", "--batch", "many"), "--batch must be whole numbers, not"),
        (("solve", "ResNet50", "A100", "--batch", "1,0"), "entry 1 of 2"),
        (("solve", "ResNet50", "A100", "--batch", ""), "--batch must be whole numbers"),
        (("solve", "ResNet50", "A100", "--precision", "fp8"), "has no fp8 peak on record"),
        (("solve", "ResNet50", "A100", "--precision", "fp7"), "Did you mean 'fp8'?"),
        (("solve", "ResNet50", "A100", "--estimate", "calibrated"), "needs measurements"),
        (("explain", "ResNet50", "A100", "--quantity", "latensy"), "Did you mean 'latency'?"),
        (("explain", "ResNet50", "A100", "--batch", "1,2"), "pick one"),
        (("explain", "ResNet50", "A100", "--batch", "1000000"), "3.533 TB too much"),
        (("zoo", "H1000"), "no model or device is called 'H1000'. Did you mean 'H100'?"),
        (("solve", "nowhere.toml", "A100"), "nowhere.toml: can't be read"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(capsys, arguments, words: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 1
    assert out == ""
    assert err.startswith("mlsim: ")
    assert words in err
    assert err.count("\n") == 1
