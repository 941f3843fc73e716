"""`mlsim train`: the same answers as `Engine.train`, as text or JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from mlsim import Engine, LoRA, QLoRA
from mlsim.cli.command import main

PLAIN = ("train", "Llama3_8B", "HGX_H100", "--global-batch", "64")
SHARDED = (*PLAIN, "--devices", "8", "--shard", "zero3", "--recompute", "full")


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def train(**changes: Any) -> Any:
    arguments = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 64}
    return Engine.train(**{**arguments, **changes})


def test_prints_the_run(capsys) -> None:
    code, out, err = run(capsys, *SHARDED)
    expected = train(devices=8, shard="zero3", recompute="full")
    assert (code, out, err) == (0, f"{expected}\n", "")


def test_json_is_that_of_the_api(capsys) -> None:
    code, out, _ = run(capsys, *SHARDED, "--json")
    expected = train(devices=8, shard="zero3", recompute="full").to_dict()
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ("--tp 8", {"tensor_parallel": 8}),
        ("--tp 4 --sequence-parallel --dp 2", {
            "tensor_parallel": 4, "sequence_parallel": True, "data_parallel": 2}),
        ("--pp 4 --interleaved 2 --micro-batch 2", {
            "pipeline_parallel": 4, "interleaved": 2, "micro_batch": 2}),
        ("--cp 2 --sequence 8192 --tp 4", {
            "context_parallel": 2, "sequence_tokens": 8192, "tensor_parallel": 4}),
        ("--tp 8 --gradients fp32 --precision fp8", {
            "tensor_parallel": 8, "gradients": "fp32", "precision": "fp8"}),
        ("--tp 8 --attention standard --dropout --recompute none", {
            "tensor_parallel": 8, "attention": "standard", "dropout": True, "recompute": "none"}),
        ("--devices 8 --shard zero1 --collective tree --estimate calibrated", {
            "devices": 8, "shard": "zero1", "collective": "tree", "estimate": "calibrated"}),
        ("--tp 8 --overlap 0.5 --reserve 0.05", {
            "tensor_parallel": 8, "overlap": 0.5, "reserve": 0.05}),
        ("--tp 8 --overlap exchange=0.5,gradient=1", {
            "tensor_parallel": 8, "overlap": {"exchange": 0.5, "gradient": 1}}),
        ("--tp 8 --tokens 15.6e12 --price 2_USD/h", {
            "tensor_parallel": 8, "tokens": 15.6e12, "price": "2 USD/h"}),
        ("--tp 8 --lora-rank 16", {"tensor_parallel": 8, "adapters": LoRA(rank=16)}),
        ("--lora-rank 8 --lora-targets attention,feed-forward --qlora", {
            "adapters": QLoRA(rank=8, targets=("attention", "feed-forward"))}),
    ],
    ids=str,
)  # fmt: skip
def test_options_are_the_arguments(capsys, options: str, arguments: dict[str, Any]) -> None:
    code, out, _ = run(
        capsys, *PLAIN, *(each.replace("_", " ") for each in options.split()), "--json"
    )
    expected = train(**arguments)
    assert code == (0 if expected.feasible else 3)
    assert json.loads(out) == json.loads(json.dumps(expected.to_dict()))


def test_experts_are_spread(capsys) -> None:
    code, out, _ = run(
        capsys, "train", "Mixtral_8x7B", "Selene", "--global-batch", "64", "--dp", "8",
        "--tp", "8", "--ep", "8", "--shard", "zero1", "--recompute", "full", "--json"
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["layout"]["expert_parallel"] == 8


def test_failures_take_their_part(capsys) -> None:
    options = ("--tp", "8", "--tokens", "1e12", "--mttf", "50000 h")
    options += ("--checkpoint-bandwidth", "10 GB/s", "--restart-time", "10 min")
    _, out, _ = run(capsys, *PLAIN, *options, "--json")
    expected = train(
        tensor_parallel=8,
        tokens=1e12,
        mean_time_to_failure="50000 h",
        checkpoint_bandwidth="10 GB/s",
        restart_time="10 min",
    )
    assert json.loads(out)["goodput"]["value"] == expected.goodput < 1
    _, out, _ = run(capsys, *PLAIN, *options)
    assert "1 trillion tokens: " in out
    assert "goodput" in out


def test_search_finds_a_layout(capsys) -> None:
    code, out, _ = run(capsys, *PLAIN, "--devices", "8", "--search")
    assert code == 0
    assert out == f"{train(devices=8, search=True)}\n"


@pytest.mark.parametrize(
    "options",
    [("--tp", "8"), ("--shard", "zero1"), ("--recompute", "full"), ("--sequence-parallel",),
     ("--micro-batch", "2"), ("--pp", "2", "--dp", "4")],
    ids=str,
)  # fmt: skip
def test_search_chooses_the_layout_itself(capsys, options: tuple[str, ...]) -> None:
    code, out, err = run(capsys, *PLAIN, "--search", *options)
    assert (code, out) == (1, "")
    long = {"--tp": "--tensor-parallel", "--pp": "--pipeline-parallel"}
    assert f"--search chooses {long.get(options[0], options[0])}" in err
    assert "or leave out --search" in err


@pytest.mark.parametrize("quantity", ["step_time", "activation_memory", "model_flops_utilization"])
def test_explains(capsys, quantity: str) -> None:
    code, out, _ = run(capsys, *SHARDED, "--explain", quantity)
    assert code == 0
    assert out.startswith(f"{quantity} = ")
    _, out, _ = run(capsys, *SHARDED, "--explain", quantity, "--json")
    assert json.loads(out)["quantity"] == quantity


def test_what_does_not_fit_says_so(capsys) -> None:
    code, out, _ = run(capsys, "train", "GPT3_175B", "HGX_A100", "--global-batch", "8", "--tp", "8")
    assert code == 3
    assert "feasible    no: " in out
    code, _, err = run(
        capsys, "train", "GPT3_175B", "HGX_A100", "--global-batch", "8", "--tp", "8",
        "--explain", "step_time",
    )  # fmt: skip
    assert code == 3
    assert "too much. Try --recompute full" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--tp", "3", "--devices", "8"), "does not divide --devices = 8"),
        (("--tp", "many"), "--tensor-parallel must be a number, not 'many'"),
        (("--tp", "2.5"), "--tensor-parallel must be a whole number from 1 up, not 2.5"),
        (("--tp", "nan"), "--tensor-parallel must be a whole number"),
        (("--tp", "16"), "needs 16 devices; NVIDIA HGX H100, 8 GPUs has 8"),
        (("--global-batch", "0"), "--global-batch must be a whole number from 1 up"),
        (("--global-batch", "64,128"), "--global-batch must be a number, not '64,128'"),
        (("--sequence", "1e6"), "longer than the context"),
        (("--tokens", "-1"), "--tokens must be a positive, finite number"),
        (("--price", "2"), "--price needs a unit"),
        (("--mttf", "50000"), "--mean-time-to-failure needs a unit"),
        (("--tp", "8", "--tokens", "1e9", "--mttf", "1 h"), "needs --checkpoint-bandwidth"),
        (("--shard", "zero4"), "Did you mean 'zero3'?"),
        (("--recompute", "selectiv"), "Did you mean 'selective'?"),
        (("--precision", "bf17"), "Did you mean 'bf16'?"),
        (("--estimate", "bund"), "Did you mean 'bound'?"),
        (("--overlap", "1.5"), "--overlap must be a share"),
        (("--overlap", "half"), "--overlap must be a number, not 'half'"),
        (("--overlap", "gradents=1"), "Did you mean 'gradient'?"),
        (("--overlap", "gradient=1,gradient=0"), "--overlap says gradient twice"),
        (("--overlap", "gradient="), "--overlap must be a number, not ''"),
        (("--explain", "step_tim"), "Did you mean 'step_time'?"),
        (("--search", "--devices", "9"), "from 1 to 8"),
    ],
    ids=str,
)
def test_errors_are_one_line_on_stderr(capsys, options: tuple[str, ...], words: str) -> None:
    code, out, err = run(capsys, *PLAIN, *options)
    assert (code, out) == (1, "")
    assert err.startswith("mlsim: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "ResNet51", "H100", "--global-batch", "8"), "Did you mean 'ResNet50'?"),
        (("train", "Llama3_9B", "H100", "--global-batch", "8"), "Did you mean 'Llama3_8B'?"),
        (("train", "Llama3_8B", "Selen", "--global-batch", "8"), "Did you mean 'Selene'?"),
    ],
)
def test_names_that_do_not_exist(capsys, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert words in err


def test_the_batch_is_needed(capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(("train", "Llama3_8B", "H100"))
    assert stopped.value.code == 2
    assert "--global-batch" in capsys.readouterr().err


def test_help_names_the_command(capsys) -> None:
    with pytest.raises(SystemExit):
        main(("--help",))
    shown = capsys.readouterr().out
    assert "train " in shown
    assert "footprint " in shown
    with pytest.raises(SystemExit):
        main(("train", "--help"))
    shown = capsys.readouterr().out
    for option in ("--global-batch", "--checkpoint-bandwidth", "--search", "--explain", "--json"):
        assert option in shown


def test_needs_no_arrays_and_no_tables() -> None:
    program = (
        "import sys\n"
        "for name in ('numpy', 'pandas'): sys.modules[name] = None\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'numpy' else find(name, *a)\n"
        "from mlsim.cli.command import main\n"
        f"sys.exit(main({list(SHARDED)!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{train(devices=8, shard='zero3', recompute='full')}\n"


PLACED = (*SHARDED, "--grid", "Germany", "--data-centre", "Google", "--embodied", "no")


def test_a_place_adds_the_footprint(capsys) -> None:
    code, out, _ = run(capsys, *PLACED)
    assert code == 0
    assert out.startswith(str(train(devices=8, shard="zero3", recompute="full")))
    assert "grid of Germany" in out
    assert "tCO2e" in out or "gCO2e" in out


def test_the_footprint_is_in_json(capsys) -> None:
    _, out, _ = run(capsys, *PLACED, "--json")
    data = json.loads(out)
    assert data["footprint"]["operational_carbon"]["unit"] == "kg_CO2e"
    _, out, _ = run(capsys, *SHARDED, "--json")
    assert "footprint" not in json.loads(out)


def test_a_place_without_its_building_says_what_to_give(capsys) -> None:
    code, _, err = run(capsys, *SHARDED, "--grid", "Germany")
    assert code == 1
    assert "pue" in err.lower()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--qlora",), "--qlora needs the rank of the adapters: --lora-rank 16."),
        (("--lora-targets", "q_proj"), "--lora-targets needs the rank"),
        (("--lora-rank", "0"), "rank must be a whole number from 1 up"),
        (("--lora-rank", "2.5"), "rank must be a whole number from 1 up"),
        (("--lora-rank", "many"), "--lora-rank must be a number"),
        (("--lora-rank", "8", "--lora-targets", "qproj"), "Did you mean 'q_proj'"),
        (("--lora-rank", "8", "--lora-targets", ""), "no target of adapters is called ''"),
    ],
    ids=str,
)
def test_adapters_that_can_not_be(capsys, options: tuple[str, ...], words: str) -> None:
    code, out, err = run(capsys, *PLAIN, *options)
    assert (code, out) == (1, "")
    assert words in err
