"""What of this machine a submission sees: the interpreter, its packages, and its libraries.

Nothing else is named here, so nothing else is there: no home, no `/etc`, no temporary files. A
package that is installed from its sources is shown alone, not the folder in which it lies.
"""

from __future__ import annotations

import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = (Path("/"), Path("/usr"), Path("/usr/local"))  # prefixes with more than an interpreter
_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib")
_SMALL = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_STORES = (Path("/nix/store"), Path("/gnu/store"))  # where a library may lie anywhere
_OWN = ("mlsim_exercises", "mlsim_grading")  # what the program inside imports
# of an interpreter's folder: beside these may lie settings with passwords, or a whole course
_PARTS = ("lib", "lib32", "lib64", "share/zoneinfo", "pyvenv.cfg")


@dataclass(frozen=True)
class Environment:
    """An interpreter's environment.

    `shown` are files and folders, `links` symbolic links with where they lead, `search` folders
    in which the interpreter looks first, `variables` what it needs to be told.
    """

    python: str
    shown: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    search: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]


def environment() -> Environment:
    """Return the environment of this very interpreter."""
    shown: set[Path] = set()
    links: dict[str, str] = {}
    for name in _LIBRARIES:
        path = Path(name)
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_dir():
            shown.add(path)
    shown |= {Path(name) for name in _SMALL if Path(name).exists()}
    shown |= set(_interpreter())
    shown |= {each for each in _folders_of("LD_LIBRARY_PATH") if any(each.glob("*.so*"))}
    search, packages = _outside(shown)
    shown |= packages
    shown = set(_outermost(shown))
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    variables = (("LD_LIBRARY_PATH", libraries),) if libraries else ()
    return Environment(
        sys.executable,
        tuple(sorted(map(str, shown))),
        tuple(sorted(links.items())),
        tuple(map(str, search)),
        variables,
    )


def _interpreter() -> Iterator[Path]:
    """Yield what the interpreter reads of its prefixes, and the links by which it is reached."""
    for name in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        prefix = Path(name)
        if prefix in _SYSTEM:
            yield from {Path(sysconfig.get_path(each)) for each in ("stdlib", "platstdlib")}
        else:
            places = {each / part for each in (prefix, prefix.resolve()) for part in _PARTS}
            yield from (each for each in places if each.exists())
    step = Path(sys.executable)
    for _ in range(40):  # as many links as the system follows
        yield step
        if not step.is_symlink():
            break
        step = step.parent / step.readlink()
    real = step.resolve()
    yield real
    yield from (store for store in _STORES if real.is_relative_to(store))


def _outside(shown: set[Path]) -> tuple[list[Path], set[Path]]:
    """Return where else packages are found, and those packages, one by one."""
    named = [Path(each) for each in sys.path if each and Path(each).is_absolute()]
    asked = {*_folders_of("PYTHONPATH"), *_pth_folders(), *_homes_of(_OWN)}
    search: list[Path] = []
    packages: set[Path] = set()
    for folder in dict.fromkeys([*named, *sorted(asked)]):
        if folder not in asked or within(folder, shown):
            continue
        found = {each.parent for each in folder.glob("*/__init__.py")}
        if found:
            search.append(folder)
            packages |= found
    user = Path(site.getusersitepackages())
    if site.ENABLE_USER_SITE and user.is_dir() and not within(user, shown):
        search.append(user)
        packages.add(user)
    return search, packages


def _folders_of(variable: str) -> list[Path]:
    named = (Path(each) for each in os.environ.get(variable, "").split(os.pathsep) if each)
    return [each for each in named if each.is_absolute() and each.is_dir()]


def _homes_of(names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            yield Path(spec.origin).parent.parent


def _pth_folders() -> Iterator[Path]:
    """Yield the folders that packages installed from their sources are found in."""
    for name in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for file in Path(name).glob("*.pth"):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("/") and Path(line.strip()).is_dir():
                    yield Path(line.strip())


def within(path: str | Path, folders: Iterable[str | Path]) -> bool:
    """Return whether a path is one of these folders or lies in one."""
    return any(Path(path).is_relative_to(each) for each in folders)


def _outermost(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths that lie in no other of them.

    >>> [str(each) for each in _outermost([Path("/a/b"), Path("/a"), Path("/c")])]
    ['/a', '/c']
    """
    found: list[Path] = []
    for path in sorted(paths, key=lambda each: len(each.parts)):
        if not within(path, found):
            found.append(path)
            yield path


def covered(shown: Iterable[str], hidden: Iterable[str]) -> list[str]:
    """Return what must be covered: hidden files and folders that lie in what is shown.

    A folder that is shown under two names is covered under both. What lies in another that is
    covered goes with it.

    >>> covered(["/usr"], ["/usr/bin", "/usr/bin/env", "/usr/no-such-folder", "/dev"])
    ['/usr/bin']
    """
    real = [path for each in hidden if (path := Path(each).resolve()).exists()]
    found = []
    for each in map(Path, shown):
        folder = each.resolve()
        found += [each / path.relative_to(folder) for path in real if within(path, [folder])]
    return sorted(map(str, _outermost(found)))


def lost(inside: Environment, hidden: Iterable[str]) -> str:
    """Return which hidden folder holds the interpreter's own files, so that nothing could run."""
    shell = importlib.util.find_spec("IPython")
    own = (inside.python, os.__file__, __file__, (shell and shell.origin) or __file__)
    needed = [Path(each).resolve() for each in own]
    places = (Path(each) for each in covered(inside.shown, hidden))
    return next((str(each) for each in places for path in needed if within(path, [each])), "")
