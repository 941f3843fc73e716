"""Each flag is an argument of a function: the command says what the function answers."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from kept import cases

from mlsim import Engine, LoRA, QLoRA, anatomy
from mlsim.cli.command import main
from mlsim.engine.sweep import sweep_rows, sweep_text
from mlsim.systems import PrefillPool
from mlsim.units import text
from mlsim.workloads import Offload, Speculation

KINDS = {each.__name__: each for each in (LoRA, QLoRA, PrefillPool, Offload, Speculation)}
SAME: list[tuple[str, dict[str, Any]]] = cases("flags.toml")  # type: ignore[assignment]
# One of each name whose text is that of the answer.
FIRST = {each.split()[0]: each for each, _ in reversed(SAME)}
for name in ("anatomy", "load", "plan"):
    del FIRST[name]


def argument(name: str, value: Any) -> Any:
    """Return what a table says of an argument: what `is` names is made, a band is a pair."""
    if isinstance(value, dict) and "is" in value:
        return KINDS[value["is"]](
            **{key: argument(key, each) for key, each in value.items() if key != "is"}
        )
    return tuple(value) if name in ("pue", "targets") else value


def answer(command: str, asked: dict[str, Any]) -> tuple[str, Any, Any]:
    """Return what a command should say: as text, as JSON, and what the function answers."""
    name, *words = shlex.split(command)
    first = [word for word in words[: {"gemm": 4, "plan": 1}.get(name, 2)] if word[:2] != "--"]
    given = {key: argument(key, each) for key, each in asked.items()}
    if name == "sweep":
        table = Engine.sweep(**given)
        return sweep_text(table), sweep_rows(table), table
    found: Any
    if name == "anatomy":
        found = anatomy(first[0], hardware=first[1], **given)
    elif name == "gemm":
        sides = ([int(each) for each in word.split(",")] for word in first[:3])
        sizes = (each if len(each) > 1 else each[0] for each in sides)
        found = Engine.gemm(*sizes, hardware=first[3], **given)
    elif name == "footprint":
        found = Engine.footprint(hardware=first[0], **given)
    else:
        found = getattr(Engine, name.replace("-", "_"))(*first, **given)
    return str(found), found.to_dict(), found


@pytest.mark.parametrize(("command", "asked"), SAME, ids=[command for command, _ in SAME])
def test_flags_are_the_arguments(
    command: str, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """So is its text, where that does not name arguments, which are flags here."""
    words, rows, found = answer(command, asked)
    code = main([*shlex.split(command), "--json"])
    told, said = capsys.readouterr()
    assert said == ""
    assert json.loads(told) == json.loads(json.dumps(rows))
    fits = getattr(found, "feasible", True)
    feasible = bool(getattr(fits, "any", lambda: fits)())
    assert code == (4 if getattr(found, "impossible", False) else 0 if feasible else 3)
    if command in FIRST.values():
        assert main(shlex.split(command)) == code
        assert capsys.readouterr().out == f"{words}\n"


def test_a_place_adds_a_footprint_to_a_run_and_a_service(
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = "--grid Germany --data-centre Google --embodied no"
    at: dict[str, Any] = {"grid": "Germany", "data_centre": "Google", "embodied": False}
    sharded = {"devices": 8, "shard": "zero3", "recompute": "full"}
    run = Engine.train("Llama3_8B", "HGX_H100", global_batch=64, **sharded)
    flags = "train Llama3_8B HGX_H100 --global-batch 64 --devices 8 --shard zero3 --recompute full"
    place = Engine.footprint(run, **at)
    assert main(shlex.split(f"{flags} {where}")) == 0
    assert capsys.readouterr().out == f"{run}\n\n{place}\n"
    main(shlex.split(f"{flags} {where} --json"))
    told = json.loads(capsys.readouterr().out)["footprint"]
    assert told == json.loads(json.dumps(place.to_dict()))
    served = Engine.serve("Llama3_8B", "H100", batch_size=7, tensor_parallel=1, precision="fp8")
    flags = "footprint Llama3_8B H100 --batch 7 --tp 1 --precision fp8 --host no"
    main(shlex.split(f"{flags} {where}"))
    assert capsys.readouterr().out == f"{Engine.footprint(served, host=False, **at)}\n"


def test_formats_of_a_product_stand_below_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    main(shlex.split("gemm 8192 4096 4096 H100 --formats --training"))
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head == f"  {'format':<24}{'time':>10}{'passes':>10}{'speed-up':>10}"
    compared = Engine.compare_formats(8192, 4096, 4096, hardware="H100", training=True)
    row = compared.table().to_dict(orient="records")[0]
    name, *numbers = first.split()
    assert (name, numbers[-1]) == (row["format"], f"{row['format_speedup']:.2f}")
    assert " ".join(numbers[:2]) == text(row["latency"], "s")


def test_a_result_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for command, start in cases("explained.toml"):
        assert main(shlex.split(command)) == 0, command
        assert capsys.readouterr().out.startswith(f"{start} = "), command
        assert main([*shlex.split(command), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["quantity"] == start, command
