"""Clusters from TOML files: which node, how many, how they are joined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlsim import records
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.systems.cluster import Cluster
from mlsim.systems.system import System


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
    if figure.direction not in ("one-way", "both ways"):
        raise file.error(
            f'direction must be "one-way" or "both ways", not {figure.direction!r}.',
            "link",
            "bandwidth",
        )
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
