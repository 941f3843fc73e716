"""The wheel of a package, built offline by the backend that its `pyproject.toml` declares.

pip and `build` would first download that backend; here it is one that is installed. The
sources are copied, so that nothing is left among them and no ignored file gets in, and the
same sources give the same bytes. A wheel is kept under a hash of all that it was made of.
"""

from __future__ import annotations

import base64
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.caches import TextCache, cache_folder, content_hash
from mlsim_book.errors import SourceError, ToolError
from mlsim_book.model import Project
from mlsim_book.read.yamlfile import book_package

_DAYS = 3.0  # a wheel is large, and soon made again
_EPOCH = "315532800"  # 1980, where the times of zip archives begin
_LEFT_OUT = re.compile(r"\..*|__pycache__|build|dist|.*\.egg-info|.*\.pyc")
# What a frontend does, without its isolation: the name of the wheel is the last line.
_BUILD = """
import importlib, sys
folder, declared, *path = sys.argv[1:]
sys.path[:0] = path
module, _, within = declared.partition(":")
backend = importlib.import_module(module)
for name in filter(None, within.split(".")):
    backend = getattr(backend, name)
print("\\n" + backend.build_wheel(folder))
"""


@dataclass(frozen=True)
class Wheel:
    """A wheel: its name, as pip wants it, and its bytes."""

    name: str
    data: bytes


def book_wheel(project: Project) -> Wheel | None:
    """Return the wheel of the package that a book names; None if it doesn't say where that is.

    Raises
    ------
    SourceError
        There is no such package, or it has another name.
    ToolError
        Its backend is missing, or can't build it.
    """
    package = book_package(project.metadata)
    if package is None or package.path is None:
        return None
    folder = project.root / package.path
    if not (folder / "pyproject.toml").is_file():
        raise SourceError(
            f"`mlsim-book: path:` is {package.path!r}, where there is no pyproject.toml",
            file="_quarto.yml",
            hint=f"Name the folder of the package {package.name}, from that of the book.",
        )
    wheel = build_wheel(folder)
    if wheel.name.split("-")[0] != package.name.lower():
        raise SourceError(
            f"`mlsim-book: package:` is {package.name!r}, and {package.path} makes {wheel.name}",
            file="_quarto.yml",
            hint="A notebook asks pip for what it imports: both must have one name.",
        )
    return wheel


def build_wheel(folder: Path) -> Wheel:
    """Return the wheel of the package in a folder."""
    declared = _build_system(folder)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in _sources(folder)}
    keep = TextCache(cache_folder() / "wheels")
    key = content_hash(_epoch(), _version(declared), *files, *files.values())
    kept = keep.load(key)
    if kept is not None:
        name, _, data = kept.partition("\n")
        return Wheel(name, base64.b64decode(data))
    wheel = _build(folder, declared, files)
    keep.prune(_DAYS)
    keep.store(key, f"{wheel.name}\n{base64.b64encode(wheel.data).decode()}")
    return wheel


def _build_system(folder: Path) -> Mapping[str, Any]:
    """Return what `pyproject.toml` says of how to build; else what the standard says for that."""
    path = folder / "pyproject.toml"
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8")).get("build-system", {})
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"can't be read: {error}", file=str(path)) from None
    return {"requires": ["setuptools"], "build-backend": "setuptools.build_meta", **declared}


def _version(declared: Mapping[str, Any]) -> str:
    """Return the version of the backend, which writes it into the wheel."""
    module = str(declared["build-backend"]).split(".")[0]
    try:
        return f"{module} {importlib.metadata.version(module)}"
    except importlib.metadata.PackageNotFoundError:
        return module


def _sources(folder: Path) -> Iterator[Path]:
    """Yield the files that a package is made of, in order."""
    for path in sorted(folder.iterdir()):
        if _LEFT_OUT.fullmatch(path.name):
            continue
        if path.is_dir():
            yield from _sources(path)
        elif path.is_file():
            yield path


def _epoch() -> str:
    return os.environ.get("SOURCE_DATE_EPOCH", _EPOCH)


def _build(folder: Path, declared: Mapping[str, Any], files: Mapping[str, bytes]) -> Wheel:
    with tempfile.TemporaryDirectory(prefix="mlsim-book-wheel-") as scratch:
        sources, out = Path(scratch) / "sources", Path(scratch) / "out"
        out.mkdir()
        for name, data in files.items():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes(data)
        beside = [str(sources / each) for each in declared.get("backend-path", ())]
        done = subprocess.run(
            [sys.executable, "-P", "-c", _BUILD, str(out), declared["build-backend"], *beside],
            cwd=sources, env={**os.environ, "SOURCE_DATE_EPOCH": _epoch()},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            hint = "python -m pip install " + " ".join(f"'{each}'" for each in declared["requires"])
            raise ToolError(
                f"the wheel of {folder} can't be built: {said.splitlines()[-1] if said else ''}",
                hint=f"What builds it must be installed here: {hint}",
            )
        path = out / done.stdout.splitlines()[-1]
        return Wheel(path.name, path.read_bytes())
