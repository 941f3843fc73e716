"""The command `mlsim gemm`."""

from __future__ import annotations

import json

import pytest

from mlsim import Engine
from mlsim.cli.command import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["gemm", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_it_says_what_python_says(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("8192", "4096", "4096", "B200", "--recipe", "mxfp8", "--training")
    code, out, _ = run(capsys, *words)
    same = Engine.gemm(8192, 4096, 4096, hardware="B200", recipe="mxfp8", training=True)
    assert (code, out) == (0, f"{same}\n")
    code, out, _ = run(capsys, *words, "--json")
    assert json.loads(out) == same.to_dict()


def test_several_sides_explanations_searches_and_formats(
    capsys: pytest.CaptureFixture[str],
) -> None:
    layer = ("8192", "4096", "4096", "H100")
    assert run(capsys, "16,8192", *layer[1:])[1].count("\n") == 4
    assert "flops = " in run(capsys, *layer, "--explain", "latency")[1]
    assert run(capsys, *layer, "--recipe", "fp8_rowwise", "--find", "N")[1] == "N = 886\n"
    found = run(capsys, *layer, "--recipe", "fp8_rowwise", "--find", "N", "--json")[1]
    assert json.loads(found) == {"N": 886}
    out = run(capsys, *layer, "--formats", "--estimate", "calibrated")[1]
    assert out.splitlines()[1].startswith("  fp8_block128")
    compared = json.loads(run(capsys, *layer, "--formats", "--json")[1])
    assert "mxfp8" in compared["left_out"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0", "64", "64", "H100"), "M must be a whole number from 1 up, not 0"),
        (("nan", "64", "64", "H100"), "M must be a whole number from 1 up, not nan"),
        (("64", "64", "100", "B200", "--recipe", "mxfp8"), "K = 100 is no multiple of 32"),
        (("64", "64", "64", "B200", "--precision", "mxfp8"), "give --recipe mxfp8"),
        (("64", "64", "64", "B200", "--formats", "--precision", "fp8"), "leave out --precision"),
        (("a", "64", "64", "B200"), "M must be whole numbers, not 'a'"),
    ],
)
def test_it_refuses_in_words_of_the_command(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (1, "")
    assert said in err


def test_what_does_not_fit_has_its_own_status(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("2000000", "2000000", "1000000", "H100")
    assert run(capsys, *words)[0] == 3
    code, out, _ = run(capsys, *words, "--ignore-memory")
    assert code == 0
    assert "time" in out
