"""The house: which rooms there are, which imports which, and how little a plain solve loads."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import NamedTuple

import pytest

import mlsim

PACKAGE = Path(mlsim.__path__[0])
CONTRACTS = Path(__file__).parents[2] / ".importlinter"
# Rooms and stones of the ground at the top level, and modules that one question loads: `values`
# is a stone with six of them.
MOST_NAMES, MOST_MODULES = 21, 42
# Holds files, and no code.
DATA = "data"


class Import(NamedTuple):
    """One module that another imports, and whether type checkers alone see it."""

    source: str
    target: str
    for_types: bool
    line: int


def modules() -> dict[str, Path]:
    """Return every module of the package with its file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("mlsim", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports_of(name: str, path: Path) -> Iterator[Import]:
    """Yield what a module imports of the package, at its top or within a function."""
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while stack:
        node, for_types = stack.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mlsim":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                target = full if full in MODULES else str(node.module)
                yield Import(name, target, for_types, node.lineno)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "mlsim":
                    yield Import(name, alias.name, for_types, node.lineno)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += [(each, True) for each in node.body]
            stack += [(each, for_types) for each in node.orelse]
        else:
            stack += [(each, for_types) for each in ast.iter_child_nodes(node)]


IMPORTS = [
    each for name, path in MODULES.items() if name != "mlsim" for each in imports_of(name, path)
]


def floors(contract: str) -> dict[str, int]:
    """Return the height of each member of a contract, the ground at 0."""
    config = ConfigParser()
    config.read(CONTRACTS)
    layers = config[f"importlinter:contract:{contract}"]["layers"].split("\n")
    levels = [re.findall(r"\w+", line) for line in reversed(layers) if line.strip()]
    return {name: number for number, names in enumerate(levels) for name in names}


def test_the_top_level_holds_at_most_twenty_names() -> None:
    names = {path.stem for path in PACKAGE.iterdir() if path.name[0] not in "_."} - {"py"}
    assert len(names) <= MOST_NAMES, sorted(names)
    assert names - {DATA} == set(floors("floors"))


@pytest.mark.parametrize(
    ("contract", "container"), [("floors", "mlsim"), ("solvers", "mlsim.solvers")]
)
def test_no_import_runs_back_up(contract: str, container: str) -> None:
    """Imports within functions, and those for type checkers, are imports too."""
    height = floors(contract)

    def member(module: str) -> str:
        rest = module.removeprefix(f"{container}.")
        return rest.split(".")[0] if rest != module else ""

    there = {member(name) for name in MODULES} - {""}
    assert there == set(height), "give each its place in .importlinter"
    wrong = []
    for each in IMPORTS:
        source, target = member(each.source), member(each.target)
        if source and target and source != target and height[source] <= height[target]:
            wrong.append(f"{each.source}:{each.line} imports {each.target}")
    assert wrong == []


def test_only_the_command_imports_the_front_page() -> None:
    """Who imports it loads what it loads, which is everything once it is asked for."""
    rooms = {each.source.split(".")[1] for each in IMPORTS if each.target == "mlsim"}
    assert rooms <= {"cli"}


def test_modules_import_one_another_in_no_circle() -> None:
    arrows: dict[str, set[str]] = {name: set() for name in MODULES}
    for each in IMPORTS:
        if not each.for_types and each.target != each.source:
            arrows[each.source].add(each.target)
    # What no longer imports anything that is left is taken away; what stays is in a circle.
    while free := [name for name, targets in arrows.items() if not targets & set(arrows)]:
        for name in free:
            del arrows[name]
    assert sorted(arrows) == []


SOLVE = """
from mlsim import Engine
Engine.solve(model="ResNet50", hardware="A100", batch_size=32).latency
import json, sys
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "mlsim"]))
"""


def test_a_plain_solve_loads_few_modules() -> None:
    done = subprocess.run([sys.executable, "-c", SOLVE], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert len(loaded) <= MOST_MODULES, sorted(loaded)
    elsewhere = ("serving", "training", "footprint", "calibrated", "calibration", "sweep", "blocks")
    assert not [name for name in loaded if any(word in name for word in elsewhere)]
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert not rooms & {"cli", "display", "plots", "measured", "systems", "infrastructure"}
