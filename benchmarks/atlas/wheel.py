"""The tables of measured kernels in a wheel, a folder, or a clone of its repository."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas
import pyarrow.parquet

VERSION = "0.12.0"
WHEEL = f"aiconfigurator_core-{VERSION}-cp311-abi3-manylinux_2_28_x86_64.whl"
SHA256 = "aadc4aad0a00bf8a61c477c62bef43de479849c3aa0b1c3078068e08309eccc4"


@dataclass(frozen=True, slots=True)
class Table:
    """One Parquet file: what was measured, on which device, by which version of which engine."""

    device: str
    topic: str
    engine: str
    version: str
    name: str

    @property
    def path(self) -> str:
        """Where it stands below `systems/data`."""
        return f"{self.device}/{self.topic}/{self.engine}/{self.version}/{self.name}.parquet"


class Tables:
    """All Parquet files below a folder `systems/data`."""

    def __init__(self, where: Path) -> None:
        self._zip = zipfile.ZipFile(where) if where.is_file() else None
        if self._zip:
            found = hashlib.sha256(where.read_bytes()).hexdigest()
            if found != SHA256:
                raise SystemExit(f"{where.name} has the hash {found}, and not that of {WHEEL}.")
            names = [name for name in self._zip.namelist() if name.endswith(".parquet")]
        else:
            names = [path.relative_to(where).as_posix() for path in where.rglob("*.parquet")]
        self._names = {}
        for name in sorted(names):
            parts = PurePosixPath(name).parts
            if len(parts) >= 5:
                table = Table(*parts[-5:-1], parts[-1].removesuffix(".parquet"))
                self._names[table] = name
        if not self._names:
            raise SystemExit(f"{where} has no Parquet files in it.")
        self._where = where

    def of(self, device: str, topic: str, name: str) -> Iterator[Table]:
        """Yield the tables of a name, the newest version first."""
        found = [t for t in self._names if (t.device, t.topic, t.name) == (device, topic, name)]
        yield from sorted(found, key=lambda t: (t.engine, _age(t.version)), reverse=True)

    def read(self, table: Table) -> pandas.DataFrame:
        """Return a table's rows."""
        name = self._names[table]
        source = io.BytesIO(self._zip.read(name)) if self._zip else self._where / name
        return pyarrow.parquet.read_table(source).to_pandas()

    def provenance(self, table: Table) -> str:
        """Return how the rows came to be, in the table's own word."""
        name = str(PurePosixPath(self._names[table]).with_name("collection_meta.yaml"))
        try:
            text = self._zip.read(name).decode() if self._zip else (self._where / name).read_text()
        except (KeyError, OSError):
            return ""
        found = re.search(r"^provenance: (\w+)$", text, re.MULTILINE)
        return found[1] if found else ""


def _age(version: str) -> tuple[tuple[int, ...], int]:
    """Order versions by age: 1.3.0rc9 before 1.3.0rc10 before 1.3.0."""
    main, _, candidate = version.partition("rc")
    return tuple(map(int, re.findall(r"\d+", main))), int(candidate or 10**6)
