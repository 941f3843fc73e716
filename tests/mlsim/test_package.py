"""The package as a whole: what its import loads, and its public names."""

from __future__ import annotations

import json
import subprocess
import sys

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


def test_names_and_data_load_the_standard_library_and_pint_only() -> None:
    program = "from mlsim import Engine, Hardware, Models\nModels.ResNet50\nHardware.Cloud.A100"
    loaded = foreign(modules_after(program))
    assert not loaded & {"sympy", "matplotlib", "pandas"}


def test_serving_needs_no_table_and_no_figure() -> None:
    program = (
        "from mlsim import Engine\n"
        "Engine.serve(model='Llama3_8B', hardware='H100', batch_size=8).tokens_per_second"
    )
    assert not foreign(modules_after(program)) & {"sympy", "matplotlib", "pandas"}


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
