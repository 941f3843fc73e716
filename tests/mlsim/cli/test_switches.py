"""The flags of what a service may switch on."""

from __future__ import annotations

import json

import pytest

from mlsim import Engine, LoRA
from mlsim.cli import main
from mlsim.workloads import Offload, Speculation


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_serve_gives_what_python_gives(capsys: pytest.CaptureFixture[str]) -> None:
    text = asked(
        capsys,
        *("serve", "Llama3_70B", "HGX_H100", "--tp", "8", "--batch", "8"),
        *("--prefix-share", "0.5", "--prefix-count", "2"),
        *("--draft", "Llama3_8B", "--draft-tokens", "3", "--acceptance", "0.6"),
        *("--offload-cache", "0.25", "--host-link-bandwidth", "32 GB/s"),
        *("--adapter-rank", "8", "--adapter-count", "5", "--adapter-targets", "q_proj,v_proj"),
        "--json",
    )
    same = Engine.serve(
        model="Llama3_70B",
        hardware="HGX_H100",
        tensor_parallel=8,
        batch_size=8,
        prefix_share=0.5,
        prefix_count=2,
        speculation=Speculation(draft="Llama3_8B", tokens=3, acceptance=0.6),
        offload=Offload(cache=0.25),
        host_link_bandwidth="32 GB/s",
        adapters=LoRA(rank=8, targets=("q_proj", "v_proj")),
        adapter_count=5,
    )
    assert json.loads(text) == json.loads(json.dumps(same.to_dict()))


def test_load_gives_what_python_gives(capsys: pytest.CaptureFixture[str]) -> None:
    text = asked(
        capsys,
        *("load", "Llama3_8B", "H100", "--rate", "2", "--requests", "100"),
        *("--prefix-share", "0.5", "--draft-cost", "0.1", "--acceptance", "0.6"),
    )
    same = Engine.load(
        model="Llama3_8B",
        hardware="H100",
        rate=2,
        requests=100,
        prefix_share=0.5,
        speculation=Speculation(cost=0.1, tokens=4, acceptance=0.6),
    )
    assert text.rstrip("\n") == str(same)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--draft", "Llama3_8B"], "needs --acceptance"),
        (["--acceptance", "0.7"], "given is neither"),
        (["--adapter-targets", "q_proj"], "needs --adapter-rank"),
        (["--adapter-count", "3"], "needs adapters"),
        (["--offload-cache", "2"], "share from 0 to 1"),
        (["--prefix-share", "half"], "--prefix-share must be"),
        (["--prefix-count", "2"], "--prefix-share above 0"),
    ],
)
def test_what_cannot_be_is_refused_in_flags(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "Llama3_8B", "H100", *flags]) == 1
    assert words in capsys.readouterr().err
