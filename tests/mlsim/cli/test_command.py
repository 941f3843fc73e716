"""The command `mlsim`: the same answers as the API, as text or JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlsim import Engine, Hardware, Models
from mlsim.cli.command import main

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"


ASSUMED = "fp16, since no other was given"


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_solve_prints_the_profile(capsys) -> None:
    code, out, _ = run(capsys, "solve", "ResNet50", "A100", "--batch", "32")
    profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=32)
    assert (code, out) == (0, f"{profile}\n")


def test_solve_takes_several_batches(capsys) -> None:
    asked = ("solve", "ResNet50", "A100", "--batch", "1,256")
    _, out, _ = run(capsys, *asked)
    assert len(out.splitlines()) == 5
    assert out.splitlines()[-1].split() == ["formats", *ASSUMED.split()]
    _, out, _ = run(capsys, *asked, "--precision", "fp16")
    assert len(out.splitlines()) == 4


def test_activations_may_stay_on_chip(capsys) -> None:
    code, out, _ = run(capsys, "solve", "ResNet50", "A100", "--activations", "on-chip")
    assert code == 0
    assert "roofline, activations on chip" in out
    assert "37.84 µs" in out


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
    assert "formats_assumed" not in rows[0]
    assert ASSUMED not in out


def test_a_precision_that_nobody_gave_is_said_to_be_the_default(capsys) -> None:
    _, out, _ = run(capsys, "sweep", "ResNet50", "V100,A100")
    assert out.splitlines()[-1] == f"formats: {ASSUMED}"
    _, out, _ = run(capsys, "sweep", "ResNet50", "V100,A100", "--json")
    assert [row["formats_assumed"] for row in json.loads(out)] == [ASSUMED] * 2
    _, out, _ = run(capsys, "explain", "ResNet50", "A100", "--quantity", "memory_required")
    assert f"{ASSUMED}: 16 bits" in out
    _, out, _ = run(capsys, "solve", "ResNet50", "A100", "--json")
    assert json.loads(out)["formats_assumed"] == ASSUMED


def test_a_sweep_prints_memory_as_the_doors_do(capsys) -> None:
    _, served, _ = run(capsys, "serve", "Qwen3_4B", "H100")
    _, out, _ = run(capsys, "sweep", "Qwen3_4B", "H100")
    assert "  memory        7.604 GiB of 71.68 GiB" in served
    assert "  7.604 GiB    64.08 GiB  " in out
    assert " GB" not in out.replace("80 GB", "")


def test_a_sweep_may_keep_activations_on_chip(capsys) -> None:
    asked = ("sweep", "ResNet50", "A100,V100", "--activations", "on-chip", "--json")
    code, out, _ = run(capsys, *asked)
    kept = Engine.solve(model="ResNet50", hardware="A100", activations="on-chip")
    row = json.loads(out)[0]
    assert code == 0
    assert row["activations"] == "on-chip"
    assert row["latency"]["value"] == pytest.approx(kept.value("latency"), rel=1e-12)


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
    kinds = {"models", "devices", "systems", "clusters", "grids", "data_centres", "regions"}
    assert set(json.loads(out)) == kinds


def test_zoo_shows_a_language_model(capsys) -> None:
    _, out, _ = run(capsys, "zoo", "Llama3_8B")
    assert "8,030,261,248" in out
    assert "32, with 8 of keys and values" in out
    assert "131,072 B/token in bf16" in out


def test_serve_prints_the_service(capsys) -> None:
    code, out, _ = run(capsys, "serve", "Llama3_8B", "H100", "--batch", "8", "--kv-cache", "fp8")
    serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=8, kv_cache="fp8")
    assert (code, out) == (0, f"{serving}\n")


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


def test_serve_lays_a_model_out(capsys, pair_file) -> None:
    _, out, _ = run(capsys, "serve", "Llama3_8B", pair_file, "--tp", "2", "--json")
    assert json.loads(out)["layout"]["tensor_parallel"] == 2
    _, out, _ = run(capsys, "serve", "Llama3_8B", pair_file, "--pp", "2", "--reserve", "0.2")
    assert "PP2" in out
    assert "20% of 79.65 GiB reserved" in out


@pytest.mark.parametrize(
    ("asked", "start"),
    [
        ("latency", "generation_latency = "),
        ("time_per_output_token", "time_per_output_token = "),
        ("decode.total_bytes", "total_bytes = "),
        ("prefill.latency", "latency = "),
    ],
)
def test_serve_explains(capsys, asked: str, start: str) -> None:
    arguments = ("serve", "Llama3_8B", "H100", "--explain", asked)
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert out.startswith(start)
    _, out, _ = run(capsys, *arguments, "--json")
    assert json.loads(out)["quantity"] == start.removesuffix(" = ")


def test_serve_explains_an_encoder(capsys) -> None:
    _, out, _ = run(capsys, "serve", "BERT_Base", "H100", "--explain", "latency")
    assert out.startswith("time_to_first_token = ")


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


def test_fit_says_in_which_formats(capsys) -> None:
    code, out, _ = run(capsys, "fit", "Llama3_70B", "H100")
    assert code == 0  # in some of them
    lines = {line.split("  ")[1]: line for line in out.splitlines()[1:-2]}
    assert list(lines)[1:3] == ["bf16", "fp8, KV bf16"]
    assert "60 GiB too much; it would fit with 2 devices (--tensor-parallel 2)" in lines["bf16"]
    assert out.splitlines()[-1] == (
        "It fits in fp8, KV bf16; fp8; w8a8; w8a8kv8; w8a16; w8a16, KV fp8; w4a16; w4a16, KV fp8."
    )


def test_fit_as_json_is_the_table(capsys) -> None:
    _, out, _ = run(capsys, "fit", "Llama3_8B", "L4", "--precision", "bf16,w4a16", "--json")
    data = json.loads(out)
    table = Engine.fit(model="Llama3_8B", hardware="L4", precision=["bf16", "w4a16"])
    assert [row["precision"] for row in data["rows"]] == list(table.precision)
    found = [row["time_per_output_token"] for row in data["rows"]]
    assert found == [{"value": value, "unit": "s"} for value in table.time_per_output_token]
    assert data["prompt_tokens"] == {"value": 512, "unit": "token/sample"}


def test_fit_of_an_encoder_has_one_pass(capsys) -> None:
    _, out, _ = run(capsys, "fit", "BERT_Base", "T4")
    head = out.splitlines()[1].split()
    assert head == ["precision", "weights", "one", "pass"]


def test_fit_needs_no_arrays_and_no_tables() -> None:
    program = (
        "import sys\n"
        "for name in ('numpy', 'pandas'): sys.modules[name] = None\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'numpy' else find(name, *a)\n"
        "from mlsim.cli.command import main\n"
        "sys.exit(main(['fit', 'Llama3_8B', 'L4']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "w4a16, KV fp8" in done.stdout


@pytest.fixture
def pair_file(tmp_path) -> str:
    """Return the path of a file with two H100 joined by a switch."""
    path = tmp_path / "pair.toml"
    path.write_text(PAIR, encoding="utf-8")
    return str(path)


PAIR = """key = "Pair"
name = "Two H100"
device = "Cloud.H100"
devices = 2
topology = "switch"
source = "nvidia2023h100"

[link.bandwidth]
value = 900
unit = "GB/s"
kind = "datasheet"
source = "nvidia2023h100"
where = "a table"
quote = "900GB/s"
direction = "both ways"
read = 2026-11-21
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "ResNet50", "H1000"), "no device is called 'H1000'. Did you mean 'H100'?"),
        (("solve", "A100", "ResNet50"), "'A100' is a device"),
        (("solve", "ResNet50", "A100", "--batch", "0"), "--batch must be a whole number"),
        (("solve", "ResNet50", "A100", "--batch", "1.5"), "not 1.5"),
        (("solve", "ResNet50", "A100", "--batch", "nan"), "not nan"),
        (("solve", "ResNet50", "A100", "--batch", "many"), "--batch must be whole numbers, not"),
        (("solve", "ResNet50", "A100", "--batch", "1,0"), "entry 1 of 2"),
        (("solve", "ResNet50", "A100", "--batch", ""), "--batch must be whole numbers"),
        (("solve", "ResNet50", "A100", "--precision", "fp8"), "has no fp8 peak on record"),
        (("solve", "ResNet50", "A100", "--precision", "fp7"), "Did you mean 'fp8'?"),
        (("solve", "ResNet50", "WSE3", "--estimate", "calibrated"), "needs measurements"),
        (("solve", "ResNet50", "T4", "--activations", "onchip"), "Did you mean 'on-chip'?"),
        (("explain", "ResNet50", "A100", "--quantity", "latensy"), "Did you mean 'latency'?"),
        (("explain", "ResNet50", "A100", "--batch", "1,2"), "pick one"),
        (
            ("zoo", "H1000"),
            "no model, device, system or place is called 'H1000'. Did you mean 'H100'?",
        ),
        (("solve", "Llama3_8B", "A100"), "use mlsim serve."),
        (("serve", "ResNet50", "A100"), "is no language model"),
        (("serve", "Llama3_9B", "A100"), "Did you mean 'Llama3_8B'?"),
        (("serve", "Llama3_8B", "H1000"), "no device, system or cluster is called 'H1000'."),
        (("serve", "Llama3_8B", "H100", "--batch", "0"), "--batch must be a whole number"),
        (("serve", "Llama3_8B", "H100", "--prompt", "long"), "--prompt must be whole numbers"),
        (("serve", "Llama3_8B", "H100", "--prompt", "1000000"), "longer than the context"),
        (("serve", "Llama3_8B", "H100", "--output", "1.5"), "not 1.5"),
        (("serve", "Llama3_8B", "H100", "--precision", "w3a16"), "bits must be 4, 8 or 16"),
        (("serve", "Llama3_8B", "A100", "--precision", "fp8"), "can't compute in fp8"),
        (("serve", "Llama3_8B", "H100", "--kv-cache", "fp7"), "Did you mean 'fp8'?"),
        (("serve", "Llama3_8B", "H100", "--tp", "2"), "is one device. Give a system"),
        (("serve", "Llama3_8B", "H100", "--tp", "0"), "--tensor-parallel must be a whole number"),
        (("serve", "Llama3_8B", "H100", "--reserve", "1"), "--reserve must be a share"),
        (("serve", "Llama3_8B", "H100", "--estimate", "bond"), "Did you mean 'bound'?"),
        (("serve", "Llama3_8B", "H100", "--explain", "latensy"), "no result of a service"),
        (("serve", "Llama3_8B", "H100", "--batch", "1,2", "--explain", "latency"), "pick one"),
        (("serve", "nowhere.json", "H100"), "there is no file 'nowhere.json'"),
        (("serve", "nowhere/llama", "H100"), "Nor is there a folder 'nowhere/llama'"),
        (("solve", "nowhere/net", "A100"), "Nor is there a folder 'nowhere/net'"),
        (("serve", "Llama3_8B", "nowhere/chip.toml"), "there is no file 'nowhere/chip.toml'"),
        (("serve", "Llama3_8B", "nowhere/chip"), "there is no file 'nowhere/chip'"),
        (("serve", "Qwen3_4B", "H100, banana"), "called 'H100, banana'. It reads as 2 names"),
        (("solve", "ResNet50", "A100,V100"), "mlsim sweep and mlsim plan take several"),
        (("fit", "Llama3_70B", "H100,A100"), "called 'H100,A100'. It reads as 2 names: give one"),
        (("load", "Llama3_8B", "H100,A100", "--rate", "5"), "with commas on the command line"),
        (("serve", "Qwen3_4B,GPT2", "H100"), "called 'Qwen3_4B,GPT2'. It reads as 2 names"),
        (("serve", "GPT2", "AMD Instinct MI250X / MI250"), "nearest are: MI250X, MI250, MI350X."),
        (("serve", "GPT2", "H100/8"), "called 'H100/8'. Did you mean 'H100'? The nearest are:"),
        (("fit", "ResNet50", "A100"), "is no language model"),
        (("fit", "Llama3_8B", "A100", "--prompt", "1,2"), "--prompt must be whole numbers"),
        (("fit", "Llama3_8B", "A100", "--precision", "w5a5"), "bits must be 4, 8 or 16"),
        (("fit", "Llama3_8B", "A100", "--pp", "0"), "--pipeline-parallel must be a whole number"),
        (("fit", "BERT_Base", "A100", "--output", "5"), "is an encoder"),
        (("solve", "nowhere.toml", "A100"), "there is no file 'nowhere.toml'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(capsys, arguments, words: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 1
    assert out == ""
    assert err.startswith("mlsim: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("serve Llama3_8B H100 --tp 8", "Give a system of them: one that `mlsim zoo` lists, or"),
        ("serve Llama3_8B H100 --tp 8", "mlsim: --tensor-parallel 8 needs 8 devices"),
        ("serve Llama3_8B HGX_H100 --tp 3", "--tensor-parallel"),
        ("serve Llama3_8B A100 --precision fp8", "set --activations (and with it"),
        ("serve Llama3_8B H100 --prompt 1000000", "give a config.json that says so"),
        ("solve A100 ResNet50", "model must be a model such as ResNet50;"),
        ("train Llama3_8B HGX_H100 --global-batch 7 --devices 8",
         "--global-batch = 7 is no multiple of --data-parallel x --micro-batch = 8 x 1 = 8"),
        ("footprint Llama3_8B HGX_H100 --host no", "say --pue 1.1 or a range --pue 1.1,1.5"),
        ("footprint Llama3_8B HGX_H100 --host no", "or --data-centre one of AWS"),
        ("explain ResNet50 A100 --batch 1000000", "or pass --ignore-memory for the time"),
        ("serve Llama3_70B H100 --explain latency", "--ignore-memory gives the time"),
        ("train Llama3_8B H100 --global-batch 8 --explain step_time", "Try --recompute full, more"),
        ("train Llama3_8B H100 --global-batch 8 --explain step_time", "--search looks for"),
    ],
    ids=str,
)  # fmt: skip
def test_a_refusal_speaks_of_flags(capsys, arguments: str, words: str) -> None:
    code, _, err = run(capsys, *arguments.split())
    assert code in (1, 3)
    assert words in err
    assert "Engine" not in err
    assert not re.search(r"\w+_\w+=", err)


@pytest.mark.parametrize(
    "arguments",
    [
        "solve ResNet50 A100 --batch 1000000",
        "solve ResNet50 A100 --batch 1000000 --json",
        "solve ResNet50 A100 --batch 1000000,2000000",
        "explain ResNet50 A100 --batch 1000000",
        "explain ResNet50 A100 --batch 1000000 --quantity memory_required",
        "sweep ResNet50 A100 --batch 1000000",
        "serve Llama3_70B H100",
        "serve Llama3_70B H100 --explain latency",
        "fit GPT3_175B T4",
        "train Llama3_8B H100 --global-batch 8",
        "train Llama3_8B H100 --global-batch 8 --explain step_time",
        "train GPT3_175B HGX_A100 --global-batch 64 --search",
        "footprint Llama3_70B H100 --host no --pue 1.1 --grid Germany",
    ],
)
def test_what_does_not_fit_has_a_status_of_its_own(capsys, arguments: str) -> None:
    assert run(capsys, *arguments.split())[0] == 3


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        # Some of it fits; or it is asked as if it did.
        ("solve ResNet50 A100 --batch 1,1000000", 0),
        ("sweep ResNet50 A100 --batch 1,1000000", 0),
        ("solve ResNet50 A100 --batch 1000000 --ignore-memory", 0),
        ("explain ResNet50 A100 --batch 1000000 --ignore-memory", 0),
        ("serve Llama3_70B H100 --ignore-memory", 0),
        ("train Llama3_8B H100 --global-batch 8 --ignore-memory", 0),
        # Another lack than memory.
        ("sweep ResNet50 A100 --precision fp8", 0),
        ("solve ResNet50 A100 --precision fp8", 1),
    ],
)
def test_other_statuses(capsys, arguments: str, status: int) -> None:
    assert run(capsys, *arguments.split())[0] == status


def test_ignored_memory_gives_the_times(capsys) -> None:
    _, out, _ = run(capsys, "serve", "Llama3_70B", "H100", "--ignore-memory", "--json")
    serving = Engine.serve(model="Llama3_70B", hardware="H100", check_memory=False)
    assert json.loads(out)["time_to_first_token"]["value"] == serving.value("time_to_first_token")


def test_help_names_the_exit_statuses(capsys) -> None:
    with pytest.raises(SystemExit):
        main(("--help",))
    shown = capsys.readouterr().out
    assert "exit status:" in shown
    assert "3  nothing that was asked for fits in memory" in shown


@pytest.mark.parametrize(
    "command", ["solve", "sweep", "explain", "serve", "fit", "train", "footprint"]
)
def test_help_speaks_of_flags(capsys, command: str) -> None:
    with pytest.raises(SystemExit):
        main((command, "--help"))
    shown = capsys.readouterr().out
    assert "Engine" not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("pln", "no command 'pln'. Did you mean 'plan'?"),
        ("plan Llama3_8B --rate 5 --first-tokn 1s", "Did you mean '--first-token'?"),
        ("serve Llama3_8B H100 --tensor-paralel=2", "Did you mean '--tensor-parallel'?"),
        ("solve ResNet50 A100 7", "unrecognized arguments: 7. See mlsim solve --help."),
        ("solve ResNet50 A100 --qqq", "--qqq. See mlsim solve --help."),
    ],
)
def test_a_wrong_flag_names_the_one_that_was_meant(capsys, arguments: str, words: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split())
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_goals_of_a_plan_go_by_the_field_s_letters(capsys) -> None:
    asked = ("plan", "Llama3_8B", "--rate", "5", "--hardware", "H100")
    short = run(capsys, *asked, "--ttft", "2 s", "--tpot", "30 ms")
    assert short == run(capsys, *asked, "--first-token", "2 s", "--per-token", "30 ms")
    assert short[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        *("solve ResNet51 A100", "solve ResNet50 A1000", "solve Llama3_8B A100"),
        *("serve Llama3_9B H100", "serve Llama3_8B H1001", "serve ResNet50 H100"),
        *("fit Llama3_9B H100", "load Llama3_8B H1001 --rate 1", "plan Llama3_9B --rate 5"),
        *("plan Llama3_8B --rate 5 --hardware H1001", "gemm 1 1 1 H1001", "zoo H1001"),
        *("train Llama3_8B H1001 --global-batch 8", "anatomy ResNet5", "zoo zebra"),
        *("gemm 64 64 64 H100 --recipe mxfp9", "solve ResNet50 A100 --precision fp17"),
        *("serve Qwen/Qwen2.5-72B-Instruct H100", "serve Llama3_8B p3.16xlarge"),
        "serve Llama3_8B H100 --estimate calibrated --software vlm",
        "explain ResNet50 A100 --quantity latensy",
        "sweep ResNet50 A100 --results latenci",
        "solve Llama-3.2-1B A100",
    ],
)
def test_a_wrong_name_is_answered_with_few(capsys, command: str) -> None:
    assert main(command.split()) == 1
    told = capsys.readouterr().err
    assert told.startswith("mlsim: ")
    assert len(told) < 280, told


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
