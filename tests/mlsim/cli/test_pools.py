"""`mlsim serve` and `mlsim load` on many nodes and in two pools: as the functions answer."""

from __future__ import annotations

import json

import pytest

from mlsim import Engine
from mlsim.cli import main
from mlsim.systems import PrefillPool


def test_serve_in_two_pools(capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        "serve Llama3_8B H200 --batch 64 --prompt 2048 --json --prefill-hardware HGX_H100 "
        "--prefill-copies 2 --prefill-tensor-parallel 2 --prefill-overlap"
    )
    main([*line.split(), "--prefill-link", "400 Gb/s"])
    answer = Engine.serve(
        model="Llama3_8B",
        hardware="H200",
        batch_size=64,
        prompt_tokens=2048,
        prefill=PrefillPool(
            hardware="HGX_H100",
            copies=2,
            tensor_parallel=2,
            link_bandwidth="400 Gb/s",
            overlap=True,
        ),
    )
    printed = json.loads(capsys.readouterr().out)
    assert printed["split_rate"]["value"] == pytest.approx(answer.value("split_rate"))


def test_serve_on_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        "serve DeepSeek_V3 DeepSeek_H800 --dp 32 --ep 32 --batch 512 --expert-imbalance uniform "
        "--json"
    )
    main(line.split())
    printed = json.loads(capsys.readouterr().out)
    assert printed["expert_imbalance"] == "uniform"
    assert printed["feasible"]


def test_load_shares_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    line = "load Llama3_8B HGX_H100 --cp 4 --rate 1 --requests 20 --prompt 8000 --json"
    main(line.split())
    printed = json.loads(capsys.readouterr().out)
    alone = Engine.load(
        model="Llama3_8B", hardware="HGX_H100", rate=1, requests=20, prompt_tokens=8000
    )
    assert printed["time_to_first_token"]["value"] < alone.value("time_to_first_token") / 2


def test_an_imbalance_that_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("serve", "DeepSeek_V3", "DeepSeek_H800", "--dp", "32", "--ep", "32")
    code = main([*asked, "--expert-imbalance", "much"])
    assert code == 1
    assert '--expert-imbalance must be a number from 1 up, or "uniform"' in capsys.readouterr().err
