"""Systems and clusters from TOML files: of what, how many, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlsim import records
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.hardware import Device
from mlsim.systems.cluster import Cluster
from mlsim.systems.system import System

_LINK = {"bandwidth": "B/s", "latency": "s"}
_POWER = {"max": "W", "idle": "W"}


def load_system(path: str | Path, device: Callable[[str], Device]) -> System:
    """Read a system's file; `device` finds a device by its key.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, the device is unknown, or the link does
        not say whether its rate counts both directions; names file and line.
    """
    file = records.load(path)
    data = file.data
    known = ("key", "name", "device", "devices", "topology", "shape", "source", "link", "power")
    file.only(data, known)
    texts = {name: file.need(data, name, str) for name in ("key", "name", "topology", "source")}
    rows = file.need(data, "link", dict)
    file.only(rows, _LINK, "link")
    figures = {
        f"link.{name}": file.figure(row, _LINK[name], "link", name) for name, row in rows.items()
    }
    draws = data.get("power", {})
    file.only(draws, _POWER, "power")
    for name, row in draws.items():
        figures[f"power.{name}"] = file.figure(row, _POWER[name], "power", name)
    bandwidth = figures.get("link.bandwidth")
    if bandwidth is None:
        raise file.error("[link.bandwidth] is missing: devices must reach one another.", "link")
    _check_direction(file, bandwidth)
    key, count = file.need(data, "device", str), file.need(data, "devices", int)
    try:
        return System.of_figures(
            device=device(key),
            devices=count,
            shape=data.get("shape", ()),
            figures=figures,
            **texts,
        )
    except InvalidValueError as error:
        # Its message begins with the key that can't be.
        raise file.error(str(error), str(error).partition(" ")[0]) from None
    except MlsimError as error:
        raise file.error(str(error), "device") from None


def load_cluster(path: str | Path, system: Callable[[str], System]) -> Cluster:
    """Read a cluster's file; `system` finds a node by its key.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, the node is unknown, or the link does not
        say whether its rate counts both directions; names file and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, ("key", "name", "node", "nodes", "source", "link"))
    texts = {name: file.need(data, name, str) for name in ("key", "name", "source")}
    rows = file.need(data, "link", dict)
    file.only(rows, ("bandwidth",), "link")
    figure = file.figure(file.need(rows, "bandwidth", dict, "link"), "B/s", "link", "bandwidth")
    _check_direction(file, figure)
    key, count = file.need(data, "node", str), file.need(data, "nodes", int)
    try:
        return Cluster.of_figures(
            node=system(key),
            nodes=count,
            figures={"link.bandwidth": figure},
            **texts,
        )
    except InvalidValueError as error:
        raise file.error(str(error), "nodes") from None
    except MlsimError as error:
        raise file.error(str(error), "node") from None


def _check_direction(file: records.DataFile, figure: records.Figure) -> None:
    """Refuse a link whose rate does not say whether it counts both directions."""
    if figure.direction not in ("one-way", "both ways"):
        raise file.error(
            f'direction must be "one-way" or "both ways", not {figure.direction!r}.',
            "link",
            "bandwidth",
        )
