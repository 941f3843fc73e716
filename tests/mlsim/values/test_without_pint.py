"""Pint takes a third of a second: it is imported with the first value, and not for a report."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "\nimport sys\nprint('pint' in sys.modules, 'numpy' in sys.modules)"
SOLVED = "from mlsim import Engine\nanswer = Engine.solve(model='ResNet50', hardware='A100')\n"
SERVED = "from mlsim import Engine\nanswer = Engine.serve(model='Llama3_8B', hardware='H100')\n"
TRAINED = (
    "from mlsim import Engine\nanswer = Engine.train(model='Llama3_8B', hardware='HGX_H100', "
    "devices=8, global_batch=64, shard='zero3', recompute='full', tokens=1e12, price='2 USD/h')\n"
)
TOLD = "str(answer), answer.to_dict(), str(answer.explain()), answer.value(answer.first)"


@pytest.mark.parametrize(
    ("code", "pint"),
    [
        ("import mlsim", False),
        ("from mlsim import Engine, given, show", False),
        ("from mlsim import Hardware\nHardware.Cloud.A100.memory", False),
        (SOLVED + TOLD, False),
        (SERVED + TOLD, False),
        (TRAINED + TOLD, False),
        ("from mlsim import given\ngiven(3, 'people')", True),
        (SOLVED + "answer.throughput", True),
    ],
)
def test_pint_comes_with_the_first_value(code: str, pint: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code + LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == str(pint)
    if code == "import mlsim":
        assert done.stdout.split()[1] == "False"
