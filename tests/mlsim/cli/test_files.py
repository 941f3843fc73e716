"""Commands that read files of one's own, and write some."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mlsim.cli.command import main
from mlsim.records import DATA

CONFIG = Path(__file__).parents[2] / "fixtures" / "configs" / "llama3-8b.json"
CASES = """case_id,kind,metric_kind,device,a_dtype,extra,measured
a,gemm,kernel_time_s,A100-80,fp16,"{""M"": 4096, ""N"": 4096, ""K"": 4096}",1
b,gemm,kernel_time_s,A100-80,fp16,,1
"""
OWN = """kind,model,hardware,batch_size,measured
serve-decode,Llama3_8B,H100,1,6.1 ms
serve-decode,Llama3_8B,H100,8,6.9 ms
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    return (main([*map(str, arguments)]), *capsys.readouterr())


def test_cases_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "cases.csv", tmp_path / "out.csv"
    path.write_text(CASES)
    code, told, _ = run(capsys, "predict", path, "--out", out)
    assert (code, "1 of 2 cases" in told) == (0, True)
    with out.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["from"], second["predicted"]) == ("calibrated", "")
    assert "M is empty" in second["note"]
    told = run(capsys, "predict", path, "--json")[1]
    assert [each["case_id"] for each in json.loads(told)] == ["a", "b"]
    assert "can't be written" in run(capsys, "predict", path, "--out", tmp_path / "no" / "x")[2]
    (tmp_path / "models.csv").write_text("model,layers\nx,1\nx,2\n")
    assert "twice" in run(capsys, "predict", path)[2]
    for text in ("", "x,y\n1,2\n", "case_id\n\x00\xff"):
        path.write_text(text, encoding="latin-1")
        code, _, said = run(capsys, "predict", path)
        assert (code, said[:7]) == (1, "mlsim: ")
    assert run(capsys, "predict", tmp_path / "none.csv")[0] == 1


def test_rows_of_ones_own_calibrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.csv"
    path.write_text(OWN)
    code, told, _ = run(capsys, "calibrate", path, "--explain")
    assert (code, "NVIDIA H100" in told, "measured 6.1 ms" in told) == (0, True, True)
    found = json.loads(run(capsys, "calibrate", path, "--json", "--estimate", "roofline")[1])
    assert (found["estimate"], found["factors"][0]["rows"]) == ("roofline", 2)
    path.write_text(f"{OWN}serve-decode,Llama3_8B,H100,8,6.9\n")
    code, _, said = run(capsys, "calibrate", path)
    assert (code, f"{path}:4: measured needs a unit" in said) == (1, True)


def test_an_anatomy_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, page = tmp_path / "layers.csv", tmp_path / "map.html"
    assert main(["anatomy", "ResNet18", "--csv", str(table), "--treemap", str(page)]) == 0
    with table.open(encoding="utf-8") as file:
        assert sum(int(row["parameters"]) for row in csv.DictReader(file)) == 11_689_512
    assert "<details" in page.read_text(encoding="utf-8")
    assert main(["anatomy", "ResNet18", "--csv", str(tmp_path / "no" / "x.csv")]) == 1
    assert "no folder" in capsys.readouterr().err


def test_files_of_ones_own_are_checked_and_folders_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file has its report; one with an error is an exit status of 1."""
    bad = tmp_path / "chip.toml"
    bad.write_text('key = "Chip"\n')
    first, second = (run(capsys, "zoo", "check", each) for each in (CONFIG, bad))
    assert (first[0], second[0]) == (0, 1)
    both = run(capsys, "zoo", "check", CONFIG, bad)
    assert both[:2] == (1, first[1] + second[1])
    assert len(json.loads(run(capsys, "zoo", "check", CONFIG, bad, "--json")[1])) == 2
    assert run(capsys, "zoo", "diff", DATA, DATA, "--json")[:2] == (0, "[]\n")


def test_a_model_may_be_a_config_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left out of it is a line on stderr; a key that is not understood an error."""
    code, out, _ = run(capsys, "serve", CONFIG, "H100", "--json")
    assert (code, json.loads(out)["weight_memory"]["value"]) == (0, 2 * 8_030_261_248)
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    asked = ("fit", tmp_path, "H100", "--precision", "bf16")
    last = {"architectures": ["LlamaForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps({**config, **last}), encoding="utf-8")
    code, out, said = run(capsys, *asked)
    assert (code, "It fits in each." in out) == (0, True)
    assert (said[:7], said.count("\n")) == ("mlsim: ", 1)
    assert "LlamaForSequenceClassification" in said
    (tmp_path / "config.json").write_text(json.dumps({**config, "moon_phase": 3}), "utf-8")
    code, out, said = run(capsys, *asked)
    assert (code, out) == (1, "")
    assert "not understood: moon_phase." in said
