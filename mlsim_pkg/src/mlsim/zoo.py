"""The zoo: models and devices by dotted names, read from their files when asked.

    >>> from mlsim import Hardware, Models
    >>> Models.ResNet50.name
    'ResNet-50 v1.5'
    >>> Hardware.Cloud.A100.name
    'NVIDIA A100 SXM 80 GB'

An index of keys and files is made by scanning each file's `key` line only, so
looking one device up reads one file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, WrongKindError, unknown_name
from mlsim.hardware import Device, load_device
from mlsim.workloads import Model, load_model

DATA = Path(__file__).parent / "data"
_KEY = re.compile(r'^key\s*=\s*"([^"]+)"', re.MULTILINE)


def index(folder: Path) -> dict[str, Path]:
    """Map the keys of the data files in a folder to their paths.

    Raises
    ------
    DataFileError
        If a file has no key, or two have the same.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        match = _KEY.search(path.read_text(encoding="utf-8"))
        if not match:
            raise DataFileError(f'{path}:1: there is no line key = "...".')
        if match[1] in found:
            line = match.string.count("\n", 0, match.start()) + 1
            raise DataFileError(f"{path}:{line}: key {match[1]!r} is taken by {found[match[1]]}.")
        found[match[1]] = path
    return found


class Namespace:
    """Dotted names over data files: attributes are groups or loaded records."""

    def __init__(
        self, title: str, kind: str, folder: Path, load: Callable[[Path], Any], prefix: str = ""
    ) -> None:
        self._title, self._kind, self._folder = title, kind, folder
        self._load, self._prefix = load, prefix
        self._made: dict[str, Any] = {}

    def keys(self) -> list[str]:
        """Full dotted keys of all records below this name."""
        return [key for key in _index(self._folder) if key.startswith(self._prefix)]

    def __dir__(self) -> list[str]:
        return sorted({key.removeprefix(self._prefix).partition(".")[0] for key in self.keys()})

    def __iter__(self) -> Iterator[Any]:
        """All records below this name, in order of their keys."""
        return (self.get(key) for key in sorted(self.keys()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        full = self._prefix + name
        if full in self.keys():
            return self.get(full)
        if any(key.startswith(f"{full}.") for key in self.keys()):
            group = Namespace(
                f"{self._title}.{name}", self._kind, self._folder, self._load, f"{full}."
            )
            self._made[name] = self.__dict__[name] = group
            return group
        raise unknown_name(self._kind, f"{self._title}.{name}", self._choices())

    def _choices(self) -> list[str]:
        return [f"{self._title}.{key.removeprefix(self._prefix)}" for key in self.keys()]

    def get(self, key: str) -> Any:
        """Return the record of a full key such as "Cloud.A100"."""
        return _record(self._load, _index(self._folder)[key])

    def find(self, name: str) -> Any:
        """Return a record by its key, the last part of it, or its name.

        Case, spaces, dashes and underscores don't count.

        Raises
        ------
        UnknownNameError
            If there is none; suggests the nearest.
        """
        plain = _plain(name)
        for key in self.keys():
            if plain in (_plain(key), _plain(key.rpartition(".")[2])):
                return self.get(key)
        for record in self:
            if plain == _plain(record.name):
                return record
        raise unknown_name(self._kind, name, [key.rpartition(".")[2] for key in self.keys()])

    def __repr__(self) -> str:
        return f"<{self._title}: {', '.join(dir(self))}>"


def _plain(text: str) -> str:
    return re.sub(r"[\s._-]", "", text).lower()


@cache
def _index(folder: Path) -> dict[str, Path]:
    return index(folder)


@cache
def _record(load: Callable[[Path], Any], path: Path) -> Any:
    return load(path)


Models = Namespace("Models", "model", DATA / "workloads", load_model)
Hardware = Namespace("Hardware", "device", DATA / "hardware", load_device)


def model(which: Model | str) -> Model:
    """Return a model, given itself, its name, or the path of its file.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    WrongKindError
        If something else was given, such as a device.
    """
    found: Model = _resolve(which, Models, Model, "model", load_model)
    return found


def device(which: Device | str) -> Device:
    """Return a device, given itself, its name, or the path of its file.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    WrongKindError
        If something else was given, such as a model.
    """
    found: Device = _resolve(which, Hardware, Device, "hardware", load_device)
    return found


def _resolve(
    which: Any, space: Namespace, kind: type, argument: str, load: Callable[[Path], Any]
) -> Any:
    if isinstance(which, kind):
        return which
    if isinstance(which, str):
        return load(Path(which)) if which.endswith(".toml") else space.find(which)
    raise WrongKindError(
        f"{argument} must be a {kind.__name__.lower()} such as "
        f"{space._title}.{next(iter(space.keys()))}, not {which!r}."
    )
