"""The zoo: models, devices and places by dotted names, read from their files when asked.

    >>> from mlsim import Hardware, Models
    >>> Models.ResNet50.name
    'ResNet-50 v1.5'
    >>> Hardware.Cloud.A100.name
    'NVIDIA A100 SXM 80 GB'

An index of keys and files is made by scanning each file's `key` lines only, so
looking one device up reads one file. A file may contain many records, each with a key.
A layer's code is imported when the first of its files is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, InvalidValueError, unknown_name
from mlsim.records import DATA

if TYPE_CHECKING:
    from mlsim.systems import Cluster, System

# Bytes in which the key of a file of one record is looked for.
_HEAD = 2048
_KEY = re.compile(rb'^key\s*=\s*"([^"]+)"', re.MULTILINE)


def index(folder: Path) -> dict[str, Path]:
    """Map the keys of the data files in a folder to their paths.

    Raises
    ------
    DataFileError
        If a file has no key, or two have the same.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        matches = _keys(path)
        if not matches:
            raise DataFileError(f'{path}:1: there is no line key = "...".')
        for match in matches:
            key = match[1].decode(errors="replace")
            if key in found:
                line = match.string.count(b"\n", 0, match.start()) + 1
                raise DataFileError(f"{path}:{line}: key {key!r} is taken by {found[key]}.")
            found[key] = path
    return found


def _keys(path: Path) -> list[re.Match[bytes]]:
    """Find the keys of a data file; of one record the key stands in its head.

    In TOML what stands before the first table belongs to the whole file, so a key
    there is the only one, and the rest need not be read.
    """
    with path.open("rb", buffering=0) as file:
        head = file.read(_HEAD)
        only = _KEY.search(head, 0, max(head.find(b"\n["), 0))
        return [only] if only else list(_KEY.finditer(head + file.read()))


class Namespace:
    """Dotted names over data files: attributes are groups or loaded records."""

    def __init__(
        self, title: str, kind: str, folder: Path, load: Callable[[Path], Any], prefix: str = ""
    ) -> None:
        self._title, self._kind, self._folder = title, kind, folder
        self._load, self._prefix = load, prefix

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
        # What was found once is an attribute from then on.
        if full in _index(self._folder):
            self.__dict__[name] = record = self.get(full)
            return record
        if any(key.startswith(f"{full}.") for key in self.keys()):
            group = Namespace(
                f"{self._title}.{name}", self._kind, self._folder, self._load, f"{full}."
            )
            self.__dict__[name] = group
            return group
        raise unknown_name(self._kind, f"{self._title}.{name}", self._choices())

    def _choices(self) -> list[str]:
        return [f"{self._title}.{key.removeprefix(self._prefix)}" for key in self.keys()]

    def get(self, key: str) -> Any:
        """Return the record of a full key such as "Cloud.A100"."""
        record = _record(self._load, _index(self._folder)[key])
        return record[key] if isinstance(record, Mapping) else record

    def find(self, name: str) -> Any:
        """Return a record by its key, the last part of it, or its name.

        Case, spaces, dashes and underscores don't count.

        Raises
        ------
        UnknownNameError
            If there is none; suggests the nearest.
        InvalidValueError
            If several names differ only in dashes; lists them.
        """
        wanted = plain(name)
        found = self._spelled.get(wanted, [])
        if len(found) > 1:
            # AWS has a us-east-1, and Google a us-east1.
            found = [key for key in found if _dashed(name) in map(_dashed, _ways(key))] or found
        if len(found) > 1:
            choices = " or ".join(f"{self._title}.{key}" for key in found)
            raise InvalidValueError(f"{name!r} is not one {self._kind}: say {choices}.")
        if found:
            return self.get(found[0])
        if wanted in self._named:
            return self._named[wanted]
        raise unknown_name(self._kind, name, [key.rpartition(".")[2] for key in self.keys()])

    def has(self, name: str) -> bool:
        """Tell whether a key, or the last part of one, is spelled so; no file is read."""
        return plain(name) in self._spelled

    @cached_property
    def _spelled(self) -> dict[str, list[str]]:
        """Keys by what is asked for: a key as a whole, or the last part of it."""
        found: dict[str, list[str]] = {}
        for key in self.keys():
            for way in dict.fromkeys(map(plain, _ways(key))):
                found.setdefault(way, []).append(key)
        return found

    @cached_property
    def _named(self) -> dict[str, Any]:
        """Records by their names; reads all files."""
        found: dict[str, Any] = {}
        for record in self:
            found.setdefault(plain(record.name), record)
        return found

    def __repr__(self) -> str:
        return f"<{self._title}: {', '.join(dir(self))}>"


def _ways(key: str) -> tuple[str, str]:
    """Return the ways to write a key: as a whole, or the last part of it."""
    return key, key.rpartition(".")[2]


def plain(text: str) -> str:
    """Return a name as it is compared: case, spaces, dots, dashes and underscores don't count."""
    return re.sub(r"[\s._-]", "", text).lower()


def _dashed(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text).lower()


@cache
def _index(folder: Path) -> dict[str, Path]:
    return index(folder)


@cache
def _record(load: Callable[[Path], Any], path: Path) -> Any:
    return load(path)


def _load_model(path: Path) -> Any:
    from mlsim.workloads.model_files import load_model

    return load_model(path)


def _load_device(path: Path) -> Any:
    from mlsim.hardware.device_files import load_device

    return load_device(path)


class Devices(Namespace):
    """The devices of the zoo, and the machine that runs this, once it was measured."""

    def local(self, kind: str = "cpu") -> Any:
        """Return this machine as `mlsim measure` found it: its processor, or its "gpu".

        Raises
        ------
        NotMeasuredError
            If nobody measured it yet; says how.
        UnknownNameError
            If `kind` is neither "cpu" nor "gpu".
        """
        from mlsim.zoo.local import local

        return local(kind)

    def find(self, name: str) -> Any:
        """Return a device by its key, its name, or as "local" or "local-gpu".

        Raises
        ------
        NotMeasuredError
            If this machine is asked for, and nobody measured it yet.
        UnknownNameError, InvalidValueError
            As of any namespace.
        """
        kinds = {"local": "cpu", "localcpu": "cpu", "localgpu": "gpu"}
        wanted = plain(name)
        return self.local(kinds[wanted]) if wanted in kinds else super().find(name)


Models = Namespace("Models", "model", DATA / "workloads", _load_model)
Hardware = Devices("Hardware", "device", DATA / "hardware", _load_device)


def load_system(path: Path) -> System:
    """Read a system's file; its device is one of the zoo."""
    from mlsim.systems import system_files

    return system_files.load_system(path, Hardware.find)


Systems = Namespace("Systems", "system", DATA / "systems", load_system)


def load_cluster(path: Path) -> Cluster:
    """Read a cluster's file; its node is one of the zoo."""
    from mlsim.systems import system_files

    return system_files.load_cluster(path, Systems.find)


Clusters = Namespace("Clusters", "cluster", DATA / "clusters", load_cluster)

_PLACES = DATA / "infrastructure"


@cache
def _grid_loader() -> Callable[[Path], Any]:
    from mlsim.infrastructure import grid_loader

    return grid_loader(_PLACES, lambda: _index(_PLACES / "grids"))


def _load_grids(path: Path) -> Any:
    return _grid_loader()(path)


Grids = Namespace("Grids", "grid", _PLACES / "grids", _load_grids)


def _load_data_centres(path: Path) -> Any:
    from mlsim.infrastructure import load_data_centres

    return load_data_centres(path)


DataCentres = Namespace("DataCentres", "data centre", _PLACES / "datacentres", _load_data_centres)


def _load_operator(path: Path) -> Any:
    from mlsim.infrastructure import load_operator

    return load_operator(path)


CloudOperators = Namespace("CloudOperators", "operator", _PLACES / "operators", _load_operator)


def _load_embodied(path: Path) -> Any:
    from mlsim.infrastructure import load_embodied

    return load_embodied(path, Hardware.keys())


Embodied = Namespace("Embodied", "embodied carbon", _PLACES / "embodied", _load_embodied)


def _load_regions(path: Path) -> Any:
    from mlsim.infrastructure import load_regions

    return load_regions(path, Grids.find)


Regions = Namespace("Regions", "region", _PLACES / "regions", _load_regions)

SPACES = (Models, Hardware, Systems, Clusters, Grids, Regions, DataCentres)
