"""The package as a whole: what its import loads, and its public names."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import mlsim


def modules_after(program: str) -> set[str]:
    """Return what a fresh interpreter has loaded after a program, by top-level name."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{program}\nimport json, sys\nprint(json.dumps(list(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def foreign(loaded: set[str]) -> set[str]:
    """Return what is neither standard nor ours, nor there before any import."""
    started = modules_after("")
    return loaded - set(sys.stdlib_module_names) - {"mlsim", "__mp_main__"} - started


def test_import_loads_the_standard_library_only() -> None:
    assert foreign(modules_after("import mlsim")) == set()


def test_serving_needs_no_table_and_no_figure() -> None:
    program = (
        "from mlsim import Engine, Hardware, Models\nModels.ResNet50\nHardware.Cloud.A100\n"
        "Engine.serve(model='Llama3_8B', hardware='H100', batch_size=8).decode_throughput"
    )
    assert not foreign(modules_after(program)) & {"sympy", "matplotlib", "pandas"}


# A plain install: what asks for a library of an extra finds none. Each question of the help is put,
# then those of Python alone; whatever is neither answered nor refused in our words is told.
PLAIN = """
import sys
for name in ("numpy", "pandas", "matplotlib", "sympy", "torch", "pyarrow", "distributed"):
    sys.modules[name] = None
import contextlib, io, json, shlex
from mlsim import Engine
from mlsim.cli.command import EPILOG, main
from mlsim.errors import MlsimError
asked = {"model": "Llama3_8B", "hardware": "H100"}
gemm = {"M": 16, "N": 4096, "K": 4096, "hardware": "H100"}
examples = [line.strip() for line in EPILOG.splitlines() if line.startswith("  mlsim ")]
doors = {line: lambda line=line: main(shlex.split(line)[1:]) for line in examples}
doors |= {
    "rate": lambda: Engine.load(**asked, rate=5),
    "users": lambda: Engine.load(**asked, users=5),
    "plan": lambda: Engine.plan(**asked, rate=5),
    "fit": lambda: str(Engine.fit(**asked)),
    "sensitivity": lambda: Engine.sensitivity(model="ResNet50", hardware="A100"),
    "batches": lambda: Engine.serve(**asked, batch_size=[1, 2]),
    "formats": lambda: str(Engine.compare_formats(**gemm)),
    "products": lambda: str(Engine.gemm(**gemm | {"M": [16, 32]})),
}
told, wrong = {}, {}
for name, ask in doors.items():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            ask()
        except MlsimError as error:
            told[name] = str(error)
        except Exception as error:
            wrong[name] = repr(error)
    told[name] = told.get(name, "") + err.getvalue()
print(json.dumps([told, wrong]))
"""


def test_a_plain_install_answers_or_says_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True, cwd=tmp_path
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


def test_parts_of_a_transformer_are_in_their_module_only() -> None:
    from mlsim import workloads

    for name in ("Attention", "Experts", "FeedForward", "LatentAttention"):
        assert getattr(workloads, name)
        assert name not in mlsim.__all__


def test_every_public_name_is_there() -> None:
    for name in mlsim.__all__:
        assert getattr(mlsim, name) is not None
    assert mlsim.__version__
    assert set(mlsim.__all__) == set(mlsim._HOMES)
    assert set(mlsim.__all__) >= {"Serving", "System", "Systems", "Transformer"}


def test_no_public_name_is_that_of_a_module_beside_it() -> None:
    """Whoever imports such a module puts it in the place of the name."""
    hidden = []
    for found in pkgutil.walk_packages(mlsim.__path__, "mlsim."):
        names = getattr(import_module(found.name), "_HOMES", {}) if found.ispkg else {}
        folder = Path(mlsim.__path__[0], *found.name.split(".")[1:])
        hidden += [f"{found.name}.{each}" for each in names if (folder / f"{each}.py").exists()]
    assert hidden == []
