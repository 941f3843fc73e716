"""The shelf: measured kernels as they were timed, a few thousand for each device of the atlas.

They come from the package that `hardware.kernel_constants` names, chosen by
`benchmarks/atlas`: of products in 16 bits a grid of powers of two, of the rest a fair sample.
"""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from functools import lru_cache

from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.hardware.kernel_constants import FOLDER

COLUMNS = ("kind", "path", "engine", "version", "kernel", "fitted", "shape", "microseconds")

# What the numbers of a shape are, by kind.
_ATTENTION = ("sequences", "heads", "kv_heads", "head_size", "window")
SHAPES = {
    "product": ("rows", "outputs", "depth"),
    "prefill": ("tokens", *_ATTENTION),
    "decode": ("cached_tokens", *_ATTENTION),
    "latent_prefill": ("sequences", "tokens", "heads"),
    "latent_decode": ("sequences", "cached_tokens", "heads"),
    "experts": (
        *("tokens", "hidden", "width", "chosen", "experts"),
        *("tensor_parallel", "expert_parallel", "even"),
    ),
    "state": ("sequences", "tokens", "heads", "key_size", "value_size"),
    "exchange": ("devices", "elements"),
    "graph_all_reduce": ("devices", "elements"),
}


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """One measured shape.

    Attributes
    ----------
    kind, path, engine, version, kernel
        As in `KernelSeries`.
    fitted
        Whether constants were fitted to it.
    shape
        Numbers, named by `SHAPES`; elements of an exchange have two bytes each.
    seconds
        Its time; the median where it was measured several times.
    """

    kind: str
    path: str
    engine: str
    version: str
    kernel: str
    fitted: bool
    shape: tuple[int, ...]
    seconds: float


@lru_cache(maxsize=16)
def shelf(device: str) -> tuple[TimedKernel, ...]:
    """Return the measured kernels of a device, by its key.

    Raises
    ------
    NotMeasuredError
        If there are none; lists the devices that have some.

    >>> rows = [row for row in shelf("Cloud.H100") if row.kind == "product"]
    >>> len(rows) > 1000
    True
    """
    path = FOLDER / "shelf" / f"{device}.csv.gz"
    if not path.is_file():
        there = ", ".join(
            each.name.removesuffix(".csv.gz") for each in sorted(path.parent.iterdir())
        )
        raise NotMeasuredError(f"no kernels of {device} are on the shelf. There are: {there}.")
    reader = csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise DataFileError(f"{path}:1: the columns must be {', '.join(COLUMNS)}.")
    return tuple(_kernel(cells) for cells in reader)


def _kernel(cells: dict[str, str]) -> TimedKernel:
    return TimedKernel(
        kind=cells["kind"],
        path=cells["path"],
        engine=cells["engine"],
        version=cells["version"],
        kernel=cells["kernel"],
        fitted=cells["fitted"] == "1",
        shape=tuple(map(int, cells["shape"].split())),
        seconds=float(cells["microseconds"]) * 1e-6,
    )
