"""Data files that cannot be: each mistake is told with its file, its line and the words for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from told import rows

from mlsim.errors import DataFileError
from mlsim.records import DATA
from mlsim.workloads.announced_models import FILE, load_announced
from mlsim.workloads.model_files import load_model
from mlsim.workloads.recipes import load_recipe


def source_of(name: str) -> tuple[Path, Any]:
    """Return a file of the package, and what reads such a file."""
    if name == "announced":
        return FILE, load_announced
    if name.startswith("recipes/"):
        return DATA / f"{name}.toml", load_recipe
    return DATA / "workloads" / f"{name}.toml", load_model


def test_files_that_cannot_be(tmp_path: Path) -> None:
    broken = []
    for name, old, new, line, words in rows("mistakes_in_models"):
        source, load = source_of(name)
        text = source.read_text(encoding="utf-8")
        assert old in text, (name, old)
        path = tmp_path / "mine.toml"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(DataFileError) as e:
            load(path)
        said = str(e.value)
        if not said.startswith(f"{path}:{line}") or not re.search(words, said):
            broken.append(f"{name}: {new!r}: {said}")
    assert broken == []
