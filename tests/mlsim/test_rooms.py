"""The house: its rooms, in no circle; its front page; and how little a question loads.

That no import runs back up is in `test_walls.py`, and in the contracts of `.importlinter`.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import kept
import sizes

import mlsim

PACKAGE = Path(mlsim.__path__[0])
# Rooms and stones of the ground at the top level, and modules that one question loads: `values`
# is a stone with six of them.
MOST_NAMES, MOST_MODULES = 24, 42
MOST_PUBLIC = 30
# How many modules a question to a door may load; `make sizes` prints how many it does.
REACH = {"serve": 43, "load": 59, "train": 52, "gemm": 49, "footprint": 45}


def test_the_top_level_holds_few_names() -> None:
    names = {path.stem for path in PACKAGE.iterdir() if path.name[0] not in "_."} - {"py"}
    assert len(names) <= MOST_NAMES, sorted(names)


MODULES = {
    ".".join(("mlsim", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in PACKAGE.rglob("*.py")
}


def imported(path: Path) -> set[str]:
    """Return which of our modules one imports, within functions too, but not for types alone."""
    found: set[str] = set()
    stack: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ImportFrom):
            full = {f"{node.module}.{each.name}" for each in node.names}
            found |= {each if each in MODULES else str(node.module) for each in full}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += node.orelse
        else:
            stack += ast.iter_child_nodes(node)
    return found & set(MODULES)


def test_modules_import_one_another_in_no_circle_and_the_command_alone_the_front_page() -> None:
    arrows = {name: imported(path) - {name} for name, path in MODULES.items() if name != "mlsim"}
    # Who imports the front page loads what it loads: everything, once it is asked for.
    assert {name.split(".")[1] for name, targets in arrows.items() if "mlsim" in targets} <= {"cli"}
    # What no longer imports anything that is left is taken away; what stays is in a circle.
    while free := [name for name, targets in arrows.items() if not targets & set(arrows)]:
        for name in free:
            del arrows[name]
    assert sorted(arrows) == []


def test_each_public_name_is_there_and_none_is_that_of_a_module_beside_it() -> None:
    """Whoever imports such a module puts it in the place of the name."""
    hidden = []
    for name, path in MODULES.items():
        room = import_module(name) if path.name == "__init__.py" else None
        for each in getattr(room, "_HOME", getattr(room, "_HOMES", {})):
            assert getattr(room, each) is not None
            hidden += [f"{name}.{each}"] if path.with_name(f"{each}.py").exists() else []
    assert hidden == []
    assert set(mlsim.__all__) < set(mlsim._HOME)
    assert len(mlsim.__all__) <= MOST_PUBLIC


def loaded_after(program: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a program."""
    asked = f"{program}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_zoo_is_read_by_the_standard_library_and_a_service_needs_no_table_or_figure() -> None:
    zoo = (
        "from mlsim.zoo import spaces\n"
        "[list(each) for each in vars(spaces).values() if isinstance(each, spaces.Namespace)]\n"
    )
    served = (
        "from mlsim import Engine\n"
        "Engine.serve(model='Llama3_8B', hardware='H100', batch_size=8).decode_throughput"
    )
    started = {*loaded_after(""), *sys.stdlib_module_names, "__mp_main__"}
    read, answered = (
        {name.partition(".")[0] for name in loaded_after(program)} - started
        for program in (zoo, served)
    )
    assert read == {"mlsim"}
    assert not answered & {"sympy", "matplotlib", "pandas"}


def test_a_plain_solve_loads_few_modules() -> None:
    loaded = loaded_after(
        "from mlsim import Engine\n"
        "Engine.solve(model='ResNet50', hardware='A100', batch_size=32).latency"
    )
    ours = {name for name in loaded if name.split(".")[0] == "mlsim"}
    assert len(ours) <= MOST_MODULES, sorted(ours)
    elsewhere = ("serving", "training", "footprint", "calibrated", "calibration", "sweep", "blocks")
    assert not [name for name in ours if any(word in name for word in elsewhere)]
    rooms = {name.split(".")[1] for name in ours if "." in name}
    assert not rooms & {"cli", "display", "plots", "measured", "systems", "infrastructure"}


def test_a_question_reaches_few_modules() -> None:
    reached = {door: sizes.reached(sizes.DOORS[door]).modules for door in REACH}
    assert {door: n for door, n in reached.items() if n > REACH[door]} == {}


def test_a_plain_install_answers_or_says_what_it_needs(tmp_path: Path) -> None:
    program = kept.text("plain_install.py.txt")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    told, wrong = json.loads(done.stdout.splitlines()[-1])
    assert wrong == {}
    need = "needs numpy, which is not installed. Install mlsim with its extra [arrays]"
    refused = {name for name, words in told.items() if need in words}
    assert {"rate", "users", "plan", "sensitivity", "batches", "products"} <= refused
    of_commands = {name.split()[1] for name in refused if name.startswith("mlsim ")}
    assert {"load", "plan", "sweep", "measure"} <= of_commands
    assert told["fit"].startswith("a table needs pandas")
    assert not of_commands & {"anatomy", "fit", "train", "footprint", "zoo"}
