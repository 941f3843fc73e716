"""Pint takes a third of a second: it is imported with the first value, and not for a report."""

from __future__ import annotations

import subprocess
import sys

TOLD = "str(answer), answer.to_dict(), str(answer.explain()), answer.value(answer.first)"
# One program, line by line: whether Pint is there after each.
STEPS = (
    ("import mlsim", False),
    ("from mlsim import Engine, Hardware, given, show", False),
    ("Hardware.Cloud.A100.memory", False),
    ("answer = Engine.solve(model='ResNet50', hardware='A100')", False),
    (TOLD, False),
    ("answer = Engine.serve(model='Llama3_8B', hardware='H100')", False),
    (TOLD, False),
    (
        "answer = Engine.train('Llama3_8B', 'HGX_H100', devices=8, global_batch=64, shard='zero3')",
        False,
    ),
    (TOLD, False),
    ("answer.step_time", True),
)


def test_pint_comes_with_the_first_value() -> None:
    told = "print('pint' in sys.modules, 'numpy' in sys.modules)"
    program = "\n".join(["import sys", *(f"{code}\n{told}" for code, _ in STEPS)])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "False False"
    assert [each.split()[0] for each in lines] == [str(pint) for _, pint in STEPS]
