"""What a caller gives for a model or for hardware: a record, its name, or its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, UnknownNameError, WrongKindError, unknown_name
from mlsim.hardware.device import Device, load_device
from mlsim.workloads.model import Model, Network
from mlsim.workloads.model_files import load_model
from mlsim.zoo import spaces
from mlsim.zoo.spaces import is_hub_id, is_instance, unquantized

if TYPE_CHECKING:
    from mlsim.systems import Cluster, System
    from mlsim.workloads.language import Transformer

# What a message names where something else was given.
_EXAMPLES = {"Models": "ResNet50", "Hardware": "Cloud.A100"}


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
    from mlsim.workloads.language import Transformer

    found = model(which)
    if isinstance(found, Transformer):
        return found
    what = "is no language model"
    if isinstance(found, Network) and found.sample:
        what = f"is counted as one pass over a sample ({found.sample}), not word by word"
    raise WrongKindError(
        f"{found.name} {what}: use Engine.solve(model=..., batch_size=...). "
        "Language models are such as Llama3_8B; `mlsim zoo` lists all."
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
    if isinstance(which, Device):
        return which
    if not isinstance(which, str):
        from mlsim.systems import System

        return which if isinstance(which, System) else device(which)
    _refuse_missing(which, "hardware")
    if not which.endswith(".toml"):
        if spaces.Hardware.has(which) and not spaces.Systems.has(which):
            return device(which)  # no file is read to compare names
        with suppress(UnknownNameError):
            found: System = spaces.Systems.find(which)
            return found
        try:
            return device(which)
        except UnknownNameError:
            raise _unknown("device or system", which, spaces.Hardware, spaces.Systems) from None
    if "\ndevice = " in _text(Path(which)):
        return spaces.load_system(Path(which))
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
    if isinstance(which, Device):
        return which
    if isinstance(which, str) and which.endswith(".toml"):
        _refuse_missing(which, "hardware")
        is_cluster = "\nnode = " in _text(Path(which))
        return spaces.load_cluster(Path(which)) if is_cluster else hardware(which)
    if not isinstance(which, str):
        from mlsim.systems import Cluster

        return which if isinstance(which, Cluster) else hardware(which)
    smaller = spaces.Hardware.has(which) or spaces.Systems.has(which)
    if smaller and not spaces.Clusters.has(which):
        return hardware(which)  # no file is read to compare names
    with suppress(UnknownNameError):
        found: Cluster = spaces.Clusters.find(which)
        return found
    try:
        return hardware(which)
    except UnknownNameError:
        every = (spaces.Hardware, spaces.Systems, spaces.Clusters)
        raise _unknown("device, system or cluster", which, *every) from None


def _unknown(kind: str, name: str, *found_in: spaces.Namespace) -> UnknownNameError:
    """Make the error for hardware that none of these has."""
    if is_instance(name):
        return UnknownNameError(
            f"no {kind} is called {name!r}. It reads like a cloud's name of a machine that is not "
            "on record: give the device in it, such as H100, or a system, such as HGX_H100."
        )
    if several := _several(name):
        return UnknownNameError(f"no {kind} is called {name!r}. {several}")
    names = [key.rpartition(".")[2] for space in found_in for key in space.keys()]  # noqa: SIM118
    core = spaces.Hardware.core(_known_part(name) or name)
    return unknown_name(kind, name, names, see="`mlsim zoo` lists them all.", like=core)


def _several(name: str) -> str:
    """Say what takes several names, where commas part this one; "" where none does."""
    count = sum(bool(part.strip()) for part in name.split(","))
    if count < 2:
        return ""
    return (
        f"It reads as {count} names: give one here. Engine.sweep and Engine.plan take several, "
        "with commas on the command line and in Python as a list."
    )


def _known_part(name: str) -> str:
    """Return the first device of a name with slashes, such as a driver's of two modules; or ""."""
    parts = name.split("/") if "/" in name else []
    return next((each for each in parts if spaces.Hardware.knows(each)), "")


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
        _refuse_missing(which, "model")
        return _of_config(which)
    try:
        found: Model = _resolve(which, spaces.Models, Model, "model", load_model)
    except UnknownNameError as error:
        # A name of the zoo comes before a folder that happens to be called so.
        if Path(str(which)).is_dir():
            return _of_config(str(which))
        _refuse_missing(str(which), "model")
        if several := _several(str(which)):
            raise UnknownNameError(f"no model is called {which!r}. {several}") from None
        if is_hub_id(str(which)) and not unquantized(str(which)):
            raise UnknownNameError(f"{error} Nor is there a folder {str(which)!r}.") from None
        raise
    return found


# What may be given by the path of a file, and by a folder.
_PATHS = {
    "model": "a .toml file, or a config.json or the folder that holds it",
    "hardware": "a .toml file",
}


def _refuse_missing(path: str, argument: str) -> None:
    """Say so if what is written as a path leads nowhere.

    Raises
    ------
    DataFileError
        If there is no such file or folder; says what may be given.
    """
    named = path.endswith((".toml", ".json"))
    if argument == "model" and not named and is_hub_id(path):
        return
    if argument == "hardware" and not named and _known_part(path):
        return  # not a path: a slash in a name of hardware
    kind = "file" if named or argument != "model" else "folder"
    if (named or "/" in path or os.sep in path) and not Path(path).exists():
        raise DataFileError(
            f"there is no {kind} {path!r} (looked for in {Path.cwd()}): {argument} is a name of "
            f"the zoo, or {_PATHS[argument]}."
        )


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
    found: Device = _resolve(which, spaces.Hardware, Device, "hardware", load_device)
    return found


def _resolve(
    which: Any, space: spaces.Namespace, kind: type, argument: str, load: Callable[[Path], Any]
) -> Any:
    if isinstance(which, kind):
        return which
    if isinstance(which, str):
        if which.endswith(".toml"):
            _refuse_missing(which, argument)
            return load(Path(which))
        try:
            return space.find(which)
        except UnknownNameError:
            _refuse_other_kind(which, space, argument)
            if argument == "hardware":
                _refuse_missing(which, argument)
                raise _unknown("device", which, space) from None
            raise
    raise WrongKindError(
        f"{argument} must be a {kind.__name__.lower()} such as "
        f"{space._title}.{_EXAMPLES[space._title]}, not {which!r}."
    )


def _refuse_other_kind(name: str, space: spaces.Namespace, argument: str) -> None:
    """Say so if a name that was not found is that of another kind of thing.

    Raises
    ------
    WrongKindError
        If it is.
    """
    for other in spaces.SPACES:
        if other is not space and other.knows(name):
            raise WrongKindError(
                f"{argument} must be a {space._kind} such as "
                f"{space._title}.{_EXAMPLES[space._title]}; {name!r} is a {other._kind}."
            )
