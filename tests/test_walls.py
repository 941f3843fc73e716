"""No import runs back up between rooms: not in a function, and not by a name in a string."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = ConfigParser()
CONFIG.read(ROOT / ".importlinter")
# The contracts whose layers are the modules and rooms of one package, all of them.
HOUSES = {
    contract["containers"].strip(): contract["layers"]
    for contract in map(CONFIG.__getitem__, CONFIG.sections())
    if "containers" in contract and "." not in contract["containers"]
}
# A value opens itself on a page and in a notebook, wherever it was made: it asks for what
# writes it, and that knows the documents, which stand above it. No other name looks up.
DOORS = {("mlsim.values.kinds", "mlsim.display.notes")}


def floors(package: str) -> dict[str, int]:
    """Return the floor of each module and room, counted from the top."""
    lines = [line for line in HOUSES[package].splitlines() if line.strip()]
    return {name: n for n, line in enumerate(lines) for name in re.findall(r"\w+", line)}


def files(package: str) -> dict[str, Path]:
    """Return the files of a package by the names of their modules."""
    spec = find_spec(package)
    assert spec is not None
    folder = Path(spec.origin or "").parent
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found


def targets(path: Path, package: str) -> Iterator[tuple[str, int]]:
    """Yield what a file imports of a package, wherever in it, and names in strings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    remarks = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    named = re.compile(rf"\b{package}(?:\.\w+)+")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports here name their package"
            yield from ((f"{node.module}.{each.name}", node.lineno) for each in node.names)
        elif isinstance(node, ast.Constant) and id(node) not in remarks:
            yield from ((each, node.lineno) for each in named.findall(str(node.value)))


@pytest.mark.parametrize("package", sorted(HOUSES))
def test_every_module_has_its_place(package: str) -> None:
    units = {name.split(".")[1] for name in files(package) if "." in name}
    assert units == set(floors(package))


@pytest.mark.parametrize("package", sorted(HOUSES))
def test_no_import_runs_back_up(package: str) -> None:
    floor, upward, opened = floors(package), [], set()
    for name, path in files(package).items():
        unit = f"{name}.".split(".")[1]
        for target, line in targets(path, package):
            other = f"{target}.".split(".")[1] if target.split(".")[0] == package else ""
            if (name, target) in DOORS:
                opened.add((name, target))
            elif unit and other in floor and other != unit and floor[other] <= floor[unit]:
                upward.append(f"{name}:{line} imports {target}")
    assert upward == []
    assert opened == {each for each in DOORS if each[0].startswith(f"{package}.")}


# What a browser loads is the core: all but readers of configurations and modules, measurements,
# predictions scored by them, pictures and the command.
OUTER = re.compile(
    r"mlsim\.(workloads\.(huggingface|pytorch)|profiling|measured|plots|draw|display|live|cli"
    r"|engine\.(predict|accuracy|bands|calibrate))\b"
)
# Where the core opens a door to an outer room, when somebody asks for what is there.
CORE_DOORS = {
    *("mlsim", "mlsim.engine", "mlsim.engine.anatomy", "mlsim.engine.footprint"),
    *("mlsim.engine.layouts", "mlsim.engine.plan", "mlsim.values.kinds", "mlsim.zoo.resolve"),
    "mlsim.zoo.review.file_report",
}


def test_the_core_reaches_outer_rooms_by_named_doors_alone_and_late() -> None:
    doors, at_once = set(), []
    for name, path in files("mlsim").items():
        if OUTER.match(name):
            continue
        doors |= {name for target, _ in targets(path, "mlsim") if OUTER.match(target)}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                full = [f"{node.module}.{each.name}" for each in node.names]
                at_once += [f"{name} imports {each}" for each in full if OUTER.match(each)]
    assert at_once == []
    assert doors == CORE_DOORS


def test_the_exercises_need_nothing_installed() -> None:
    used = {
        name.split(".")[0]
        for path in files("mlsim_exercises").values()
        for name, _ in targets(path, "mlsim_exercises")
    }
    assert used <= {*sys.stdlib_module_names, "mlsim_exercises"}
