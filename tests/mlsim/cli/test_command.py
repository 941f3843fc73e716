"""The command `mlsim`: the same answers as the API, as text or JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlsim import Engine
from mlsim.cli.command import main
from mlsim.records import DATA

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_files_of_ones_own_are_checked_and_folders_compared(capsys, tmp_path) -> None:
    """Each file has its report; one with an error is an exit status of 1."""
    good, bad = CONFIGS / "llama3-8b.json", tmp_path / "chip.toml"
    bad.write_text('key = "Chip"\n')
    first = run(capsys, "zoo", "check", str(good))
    second = run(capsys, "zoo", "check", str(bad))
    assert (first[0], second[0]) == (0, 1)
    both = run(capsys, "zoo", "check", str(good), str(bad))
    assert both[:2] == (1, first[1] + second[1])
    _, out, _ = run(capsys, "zoo", "check", str(good), str(bad), "--json")
    assert len(json.loads(out)) == 2
    code, out, _ = run(capsys, "zoo", "diff", str(DATA), str(DATA), "--json")
    assert (code, json.loads(out)) == (0, [])


def test_the_zoo_as_json(capsys) -> None:
    _, out, _ = run(capsys, "zoo", "resnet50", "--json")
    assert json.loads(out)["parameters"] == {"value": 25_557_032, "unit": "parameter"}
    _, out, _ = run(capsys, "zoo", "--json")
    kinds = {"models", "devices", "systems", "clusters", "grids", "data_centres", "regions"}
    assert set(json.loads(out)) == kinds
    _, out, _ = run(capsys, "sweep", "ResNet50", "V100,A100", "--json")
    assumed = [row["formats_assumed"] for row in json.loads(out)]
    assert assumed == ["fp16, since no other was given"] * 2


def test_serve_takes_every_combination_of_several(capsys) -> None:
    arguments = ("serve", "Llama3_8B", "H100", "--batch", "1,8", "--prompt", "512,2048")
    _, out, _ = run(capsys, *arguments, "--output", "64", "--json")
    data = json.loads(out)
    assert data["batch_size"]["value"] == [1, 1, 8, 8]
    assert data["prompt_tokens"]["value"] == [512, 2048, 512, 2048]
    one = Engine.serve(
        model="Llama3_8B", hardware="H100", batch_size=8, prompt_tokens=512, output_tokens=64
    )
    found = data["time_to_first_token"]
    assert found["unit"] == "s"
    assert found["value"][2] == pytest.approx(one.value("time_to_first_token"))
    _, out, _ = run(capsys, *arguments)
    assert len(out.splitlines()) == 2 + 4 + 1
    assert "formats     bf16, since no other was given" in out


def test_a_model_may_be_a_config_file(capsys) -> None:
    code, out, _ = run(capsys, "serve", str(CONFIGS / "llama3-8b.json"), "H100", "--json")
    assert code == 0
    assert json.loads(out)["weight_memory"]["value"] == 2 * 8_030_261_248


def test_what_is_left_out_of_a_config_is_a_line_on_stderr(capsys, tmp_path) -> None:
    config = json.loads((CONFIGS / "llama3-8b.json").read_text(encoding="utf-8"))
    path = tmp_path / "config.json"
    last = {"architectures": ["LlamaForSequenceClassification"]}
    path.write_text(json.dumps({**config, **last}), encoding="utf-8")
    code, out, err = run(capsys, "fit", str(tmp_path), "H100", "--precision", "bf16")
    assert code == 0
    assert "It fits in each." in out
    assert err.startswith("mlsim: ")
    assert "LlamaForSequenceClassification" in err
    assert err.count("\n") == 1


def test_a_key_of_a_config_that_is_not_understood_is_an_error(capsys, tmp_path) -> None:
    config = json.loads((CONFIGS / "llama3-8b.json").read_text(encoding="utf-8"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "moon_phase": 3}), encoding="utf-8")
    code, out, err = run(capsys, "fit", str(tmp_path), "H100")
    assert (code, out) == (1, "")
    assert "not understood: moon_phase." in err


def test_fit_as_json_is_the_table(capsys) -> None:
    _, out, _ = run(capsys, "fit", "Llama3_8B", "L4", "--precision", "bf16,w4a16", "--json")
    data = json.loads(out)
    table = Engine.fit(model="Llama3_8B", hardware="L4", precision=["bf16", "w4a16"])
    assert [row["precision"] for row in data["rows"]] == list(table.precision)
    found = [row["time_per_output_token"] for row in data["rows"]]
    assert found == [{"value": value, "unit": "s"} for value in table.time_per_output_token]
    assert data["prompt_tokens"] == {"value": 512, "unit": "token/sample"}


def test_fit_and_train_need_no_arrays_and_no_tables() -> None:
    program = (
        "import sys\n"
        "for name in ('numpy', 'pandas'): sys.modules[name] = None\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'numpy' else find(name, *a)\n"
        "from mlsim.cli.command import main\n"
        "main(['train', 'Llama3_8B', 'H100', '--global-batch', '8', '--lora-rank', '8'])\n"
        "sys.exit(main(['fit', 'Llama3_8B', 'L4']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "w4a16, KV fp8" in done.stdout
    assert "Training Llama 3.1 8B" in done.stdout


@pytest.mark.parametrize(
    "command", ["solve", "sweep", "explain", "serve", "fit", "train", "footprint"]
)
def test_help_speaks_of_flags(capsys, command: str) -> None:
    with pytest.raises(SystemExit):
        main((command, "--help"))
    shown = capsys.readouterr().out
    assert "Engine" not in shown


def test_goals_of_a_plan_go_by_the_field_s_letters(capsys) -> None:
    asked = ("plan", "Llama3_8B", "--rate", "5", "--hardware", "H100")
    short = run(capsys, *asked, "--ttft", "2 s", "--tpot", "30 ms")
    assert short == run(capsys, *asked, "--first-token", "2 s", "--per-token", "30 ms")
    assert short[0] == 0


@pytest.mark.parametrize(
    "question",
    [
        "serve Llama3_8B {} --precision w4a16",
        "fit Llama3_8B {} --precision w4a16",
        "load Llama3_8B {} --precision w4a16 --rate 1 --requests 50",
        "check-claim Llama3_8B {} --precision w4a16 --batch 1 --tokens-per-second 50",
        "check-claim ResNet50 {} --precision fp16 --batch 1 --samples-per-second 50",
    ],
)
def test_a_size_of_memory_that_nobody_read_is_told(
    question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "memory is an estimate: no list of a driver was read"
    for device, guessed in (("RTX4080", True), ("RTX4090", False)):
        assert main(question.format(device).split()) == 0
        assert (words in " ".join(capsys.readouterr().out.split())) == guessed
