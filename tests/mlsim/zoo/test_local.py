"""The machine that runs this: where its file lies, and what is said where nobody measured it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from mlsim import Hardware
from mlsim.errors import NotMeasuredError, UnknownNameError
from mlsim.records import DATA
from mlsim.zoo.local import local, local_path, machines_folder

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, HOME / ".local" / "share" / "mlsim" / "machines"),
        ("linux", {"LOCALAPPDATA": "/other"}, HOME / ".local" / "share" / "mlsim" / "machines"),
        ("linux", {"XDG_DATA_HOME": "/data"}, Path("/data/mlsim/machines")),
        ("darwin", {}, HOME / "Library" / "Application Support" / "mlsim" / "machines"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/mlsim/machines")),
        ("win32", {}, HOME / ".local" / "share" / "mlsim" / "machines"),
        ("linux", {"MLSIM_MACHINES": "/mine", "XDG_DATA_HOME": "/data"}, Path("/mine")),
    ],
)
def test_where_files_of_machines_lie(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: Path
) -> None:
    for name in ("MLSIM_MACHINES", "LOCALAPPDATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: HOME)
    assert machines_folder() == folder


def test_a_machine_is_found_once_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLSIM_MACHINES", str(tmp_path))
    shutil.copy(DATA / "hardware" / "t4.toml", tmp_path / "other-cpu.toml")
    with pytest.raises(NotMeasuredError, match=r"measure` once.*machines were: other-cpu\.$"):
        local()
    with pytest.raises(NotMeasuredError, match=r"`mlsim measure --device gpu` once; it takes a mi"):
        Hardware.find("local-gpu")
    with pytest.raises(UnknownNameError, match="no kind of local device is called 'tpu'"):
        local_path("tpu")
    shutil.copy(DATA / "hardware" / "t4.toml", local_path("gpu"))
    assert local("gpu").key == Hardware.find("local-gpu").key == "Cloud.T4"
