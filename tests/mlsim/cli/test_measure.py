"""The commands `mlsim measure` and `mlsim time`."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

import pytest
from made_machine import MACHINE, MadeMachine

from mlsim.cli.command import main
from mlsim.profiling.measuring.cpu import Processor


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MadeMachine:
    """A machine that does not exist, in the place of this one."""
    machine = MadeMachine()

    def measure(device: str, *, accept_noisy: bool, **_: object) -> object:
        return Processor(
            machine.numpy, machine, 1e6, accept_noisy=accept_noisy, machine=MACHINE,
            worker=machine.worker, clock=machine.clock, today=datetime.date(2026, 11, 23),
        ).measure()  # fmt: skip

    monkeypatch.setattr("mlsim.profiling.measuring.measure", measure)
    monkeypatch.setattr("mlsim.zoo.local.this_machine", lambda: MACHINE)
    monkeypatch.setenv("MLSIM_MACHINES", str(tmp_path / "machines"))
    return machine


def test_measured_saved_and_asked(
    made: MadeMachine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["measure", "--no-save", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "Made Chip 1"
    assert not (tmp_path / "machines").exists()
    assert main(["solve", "resnet50", "local"]) == 1
    assert "run `mlsim measure` once" in capsys.readouterr().err
    assert main(["measure"]) == 0
    out, said = capsys.readouterr()
    assert "Made Chip 1, 1 core" in out
    assert "now: mlsim solve ResNet50 local" in said
    assert main(["solve", "resnet50", "local", "--precision", "fp32"]) == 0
    assert "Made Chip 1" in capsys.readouterr().out
    assert main(["zoo", "local"]) == 0
    assert "memory.l1_bandwidth" in capsys.readouterr().out


def test_a_noisy_roof_is_kept_marked_and_answers_say_so(
    made: MadeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    made.noisy = ("memory",)
    for flags in ([], ["--accept-noisy"]):
        assert main(["measure", *flags]) == 0
        out, said = capsys.readouterr()
        assert "~ main memory" in out
        assert "mlsim: saved as" in said
        assert main(["solve", "resnet50", "local", "--precision", "fp32"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "memory bandwidth: measured on a noisy machine, and kept" in said


def test_a_program_is_timed(capfd: pytest.CaptureFixture[str]) -> None:
    program = [sys.executable, "-c", "print('work')"]
    flags = ["--repeat", "2", "--warm-up", "1", "--quiet", "--json"]
    assert main(["time", *flags, "--", *program]) == 0
    found = json.loads(capfd.readouterr().out)
    assert len(found["runs"]) == 2
    assert found["wall"]["median"] > 0
    assert main(["time", "--", *program]) == 0
    out = capfd.readouterr().out
    assert "work" in out
    assert "1 run" in out
    failing = ["--", sys.executable, "-c", "raise SystemExit(5)"]
    for words, said in ((failing, "ended with status 5"), ([], "no command to time")):
        assert main(["time", *words]) == 1
        assert said in capfd.readouterr().err
