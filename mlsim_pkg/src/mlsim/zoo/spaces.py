"""The zoo: models, devices and places by dotted names, read from their files when asked.

    >>> from mlsim import Hardware, Models
    >>> Models.ResNet50.name
    'ResNet-50 v1.5'
    >>> Hardware.Cloud.A100.name
    'NVIDIA A100 SXM 80 GB'

An index of keys and files is made by scanning each file's `key` lines only, so
looking one device up reads one file. A file may hold many records, each with a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    UnknownNameError,
    WrongKindError,
    unknown_name,
)
from mlsim.hardware import Device
from mlsim.hardware.device_files import load_device
from mlsim.infrastructure import (
    CloudRegion,
    EmbodiedCarbon,
    grid_loader,
    load_data_centres,
    load_embodied,
    load_operator,
    load_regions,
)
from mlsim.records import DATA
from mlsim.systems import Cluster, System
from mlsim.systems.system_files import load_cluster, load_system
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.model_files import load_model
from mlsim.workloads.network import Network

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
            If there are several that only dashes tell apart; names them.
        """
        plain = _plain(name)
        named = {key: (key, key.rpartition(".")[2]) for key in self.keys()}
        found = [key for key, each in named.items() if plain in map(_plain, each)]
        if len(found) > 1:
            # AWS has a us-east-1, and Google a us-east1.
            found = [key for key in found if _dashed(name) in map(_dashed, named[key])] or found
        if len(found) > 1:
            choices = " or ".join(f"{self._title}.{key}" for key in found)
            raise InvalidValueError(f"{name!r} is not one {self._kind}: say {choices}.")
        if found:
            return self.get(found[0])
        for record in self:
            if plain == _plain(record.name):
                return record
        raise unknown_name(self._kind, name, [key.rpartition(".")[2] for key in self.keys()])

    def __repr__(self) -> str:
        return f"<{self._title}: {', '.join(dir(self))}>"


def _plain(text: str) -> str:
    return re.sub(r"[\s._-]", "", text).lower()


def _dashed(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text).lower()


@cache
def _index(folder: Path) -> dict[str, Path]:
    return index(folder)


@cache
def _record(load: Callable[[Path], Any], path: Path) -> Any:
    return load(path)


Models = Namespace("Models", "model", DATA / "workloads", load_model)
Hardware = Namespace("Hardware", "device", DATA / "hardware", load_device)


# What a message names where something else was given.
_EXAMPLES = {"Models": "ResNet50", "Hardware": "Cloud.A100"}


def _load_system(path: Path) -> System:
    return load_system(path, Hardware.find)


Systems = Namespace("Systems", "system", DATA / "systems", _load_system)


def _load_cluster(path: Path) -> Cluster:
    return load_cluster(path, Systems.find)


Clusters = Namespace("Clusters", "cluster", DATA / "clusters", _load_cluster)

_PLACES = DATA / "infrastructure"
_load_grids = grid_loader(_PLACES, lambda: _index(_PLACES / "grids"))
Grids = Namespace("Grids", "grid", _PLACES / "grids", _load_grids)
DataCentres = Namespace("DataCentres", "data centre", _PLACES / "datacentres", load_data_centres)
CloudOperators = Namespace("Operators", "operator", _PLACES / "operators", load_operator)


def _load_embodied(path: Path) -> EmbodiedCarbon:
    return load_embodied(path, Hardware.keys())


Embodied = Namespace("Embodied", "embodied carbon", _PLACES / "embodied", _load_embodied)


def _load_regions(path: Path) -> dict[str, CloudRegion]:
    return load_regions(path, Grids.find)


Regions = Namespace("Regions", "region", _PLACES / "regions", _load_regions)

SPACES = (Models, Hardware, Systems, Clusters, Grids, Regions, DataCentres)


def network(which: Model | str) -> Network:
    """Return a network with a fixed input, given itself, its name, or its file.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    WrongKindError
        If something else was given; a language model is served.
    """
    found = model(which)
    if isinstance(found, Network):
        return found
    raise WrongKindError(
        f"{found.name} is a language model, whose work depends on its tokens: "
        "use Engine.serve(model=..., prompt_tokens=..., output_tokens=...)."
    )


def transformer(which: Model | str) -> Transformer:
    """Return a language model, given itself, its name, or its file.

    A file is a TOML file, or the `config.json` of a model (or its folder).

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    WrongKindError
        If something else was given; a network with a fixed input is solved.
    """
    found = model(which)
    if isinstance(found, Transformer):
        return found
    what = "is no language model"
    if isinstance(found, Network) and found.sample:
        what = f"is counted as one pass over a sample ({found.sample}), not word by word"
    raise WrongKindError(
        f"{found.name} {what}: use Engine.solve(model=..., batch_size=...). "
        f"Language models are "
        f"{', '.join(each.key for each in Models if isinstance(each, Transformer))}."
    )


def hardware(which: Device | System | str) -> Device | System:
    """Return a device or a system, given itself, its name, or its file.

    Raises
    ------
    UnknownNameError
        If there is neither; suggests the nearest.
    WrongKindError
        If something else was given, such as a model.
    """
    if isinstance(which, System):
        return which
    if isinstance(which, str) and not which.endswith(".toml"):
        try:
            found: System = Systems.find(which)
        except UnknownNameError:
            pass
        else:
            return found
        try:
            return device(which)
        except UnknownNameError:
            names = [key.rpartition(".")[2] for key in (*Hardware.keys(), *Systems.keys())]
            raise unknown_name("device or system", which, names) from None
    if isinstance(which, str) and "\ndevice = " in _text(Path(which)):
        return _load_system(Path(which))
    return device(which)


def cluster(which: Device | System | Cluster | str) -> Device | System | Cluster:
    """Return a device, a system or a cluster, given itself, its name, or its file.

    Raises
    ------
    UnknownNameError
        If there is none of that name; suggests the nearest.
    WrongKindError
        If something else was given, such as a model.
    """
    if isinstance(which, Cluster):
        return which
    if isinstance(which, str) and which.endswith(".toml"):
        is_cluster = "\nnode = " in _text(Path(which))
        return _load_cluster(Path(which)) if is_cluster else hardware(which)
    if not isinstance(which, str):
        return hardware(which)
    try:
        found: Cluster = Clusters.find(which)
    except UnknownNameError:
        pass
    else:
        return found
    try:
        return hardware(which)
    except UnknownNameError:
        spaces = (Hardware, Systems, Clusters)
        names = [key.rpartition(".")[2] for space in spaces for key in space.keys()]  # noqa: SIM118
        raise unknown_name("device, system or cluster", which, names) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""  # the loader says what is wrong with it


def model(which: Model | str) -> Model:
    """Return a model, given itself, its name, or the path of its file.

    A file is a TOML file, or the `config.json` of a model (or the folder that
    holds it).

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    WrongKindError
        If something else was given, such as a device.
    DataFileError
        If the file can't be understood; names file and line.
    """
    if isinstance(which, str) and which.endswith(".json"):
        return _of_config(which)
    try:
        found: Model = _resolve(which, Models, Model, "model", load_model)
    except UnknownNameError:
        # A name of the zoo comes before a folder that happens to be called so.
        if not Path(str(which)).is_dir():
            raise
        return _of_config(str(which))
    return found


def _of_config(path: str) -> Model:
    from mlsim.workloads.huggingface import load_config

    return load_config(path)


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
        if which.endswith(".toml"):
            return load(Path(which))
        try:
            return space.find(which)
        except UnknownNameError:
            _refuse_other_kind(which, space, argument)
            raise
    raise WrongKindError(
        f"{argument} must be a {kind.__name__.lower()} such as "
        f"{space._title}.{_EXAMPLES[space._title]}, not {which!r}."
    )


def _refuse_other_kind(name: str, space: Namespace, argument: str) -> None:
    """Say so if a name that was not found is that of another kind of thing.

    Raises
    ------
    WrongKindError
        If it is.
    """
    for other in SPACES:
        keys = other.keys()
        names = {_plain(each) for key in keys for each in (key, key.rpartition(".")[2])}
        if other is not space and _plain(name) in names:
            raise WrongKindError(
                f"{argument} must be a {space._kind} such as "
                f"{space._title}.{_EXAMPLES[space._title]}; {name!r} is a {other._kind}."
            )
