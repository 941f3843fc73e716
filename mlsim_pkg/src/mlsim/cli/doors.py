"""The commands that ask a door of `Engine`: its parameters are their flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

from mlsim.cli.flags import (
    IMPOSSIBLE,
    arguments,
    as_json,
    in_flags,
    note_fit,
)
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.parameters import Parameter, parameter, parameters_of

if TYPE_CHECKING:
    import pandas

# What a service is asked before its footprint.
_SERVED = (
    *("batch_size", "prompt_tokens", "output_tokens", "precision", "estimate"),
    *("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel"),
)
# Parameters that a printed answer proposes.
_PROPOSED = {
    "load": ("running_limit", "tokens_per_step"),
    "plan": ("price", "prefill_link_bandwidth"),
}


def rows_of(command: str) -> tuple[Parameter, ...]:
    """Return the parameters that a command takes: of its door, and of one that it asks besides."""
    own = parameters_of(command.replace("-", "_"))
    if command == "train":
        return own + tuple(each for each in parameters_of("footprint") if each.group == "the place")
    if command == "footprint":
        return tuple(parameter(name, "serve") for name in ("model", *_SERVED)) + own
    return own


def run(options: argparse.Namespace) -> str:
    """Ask the door of a command, and return what to print.

    Raises
    ------
    MlsimError
        As the door; or if a value can't be read.
    """
    asked = arguments(options, rows_of(options.name), options.name.replace("-", "_"))
    return _RUN.get(options.name, _ask)(options, asked)


def _ask(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    door = "solve" if options.name == "explain" else options.name
    answer = getattr(Engine, door)(**asked)
    note_fit(options, getattr(answer, "feasible", True))
    quantity = getattr(options, "quantity", None) or getattr(options, "explain", None)
    if quantity:
        explanation = _EXPLAIN.get(door, type(answer).explain)(answer, quantity)
        return str(explanation.to_json() if options.json else explanation)
    if options.json:
        return as_json(answer.to_dict())
    return in_flags(str(answer), [parameter(each, door) for each in _PROPOSED.get(door, ())])


def _explain_service(serving: Any, name: str) -> Any:
    """Explain a result of a service, or with a phase before it a quantity of that."""
    phase, _, quantity = name.partition(".")
    if quantity and phase in ("prefill", "decode", "speculation"):
        return getattr(serving, phase).explain(quantity)
    if name == "latency":
        name = "generation_latency" if serving.model.decoder else "time_to_first_token"
    return serving.explain(name)


def _explain_load(loaded: Any, name: str) -> Any:
    """Explain a closed form where it is one, else a result of the steps."""
    steady = loaded.steady
    formula = steady is not None and name in (*steady.names, *steady.left_out)
    return (steady if formula else loaded).explain(name)


def _serve(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    """Serve every combination of several batches and lengths, one after another."""
    names = [name for name in ("batch_size", "prompt_tokens", "output_tokens") if name in asked]
    several = [each if isinstance(each, list) else [each] for each in map(asked.get, names)]
    if any(len(each) > 1 for each in several):
        asked |= zip(names, map(list, zip(*product(*several), strict=True)), strict=True)
    return _ask(options, asked)


def _fit(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    from mlsim.engine.serve import fit_rows
    from mlsim.solvers.serving import fit
    from mlsim.workloads.steps import Parallelism

    sizes = {name: asked.pop(name) for name in [*asked] if name.endswith("_parallel")}
    question, rows = fit_rows(
        **asked, parallelism=Parallelism.of(sizes), widest="tensor_parallel" not in sizes
    )
    note_fit(options, any(row["feasible"] for row in rows))
    if options.json:
        return as_json(fit.as_dict(question, rows))
    return in_flags(fit.as_text(question, rows), rows_of("fit"))


def _train(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    """Train, and where a place is given tell the footprint of it."""
    places = {row.name for row in rows_of("train") if row.group == "the place"}
    place = {name: asked.pop(name) for name in places & asked.keys()}
    if not place or options.explain:
        return _ask(options, asked)
    training = Engine.train(**asked)
    note_fit(options, training.feasible)
    footprint = Engine.footprint(training, **place)
    if options.json:
        return as_json(training.to_dict() | {"footprint": footprint.to_dict()})
    return f"{training}\n\n{footprint}"


def _footprint(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    served = {name: asked.pop(name) for name in ("model", *_SERVED) if name in asked}
    if "device_hours" not in asked:
        if "model" not in served:
            raise InvalidValueError(
                "footprint of what? Give a model and hardware, or hardware and --device-hours."
            )
        asked["work"] = Engine.serve(hardware=asked.pop("hardware"), **served)
    elif served:
        raise InvalidValueError(
            "--device-hours stands in place of a model and its options: leave one of them out."
        )
    return _ask(options, asked)


def _check_claim(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    checked = Engine.check_claim(**asked)
    if checked.impossible:
        options.code = IMPOSSIBLE
    if options.json:
        return as_json(checked.to_dict())
    words = in_flags(str(checked), ())
    return f"{words}\n\n{checked.explain()}" if options.explain else words


def _gemm(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    if options.formats:
        return _formats(options, asked)
    if options.find:
        size = Engine.gemm(**asked).find(options.find)
        return as_json({options.find: size}) if options.json else f"{options.find} = {size:,}"
    return _ask(options, asked)


def _formats(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    from mlsim.units import text

    if asked.keys() & {"precision", "recipe"}:
        raise InvalidValueError("--formats compares all: leave out --precision and --recipe.")
    compared = Engine.compare_formats(**asked)
    rows = compared.table().to_dict(orient="records")
    if options.json:
        return as_json({"formats": rows, "left_out": compared.left_out})
    lines = [f"  {'format':<24}{'time':>10}{'passes':>10}{'speed-up':>10}"]
    for row in rows:
        times = (text(row[name], "s") for name in ("latency", "casts_time"))
        cells = "".join(f"{each:>10}" for each in (*times, f"{row['format_speedup']:.2f}"))
        lines.append(f"  {row['format']:<24}{cells}")
    return "\n".join(lines)


def _sweep(options: argparse.Namespace, asked: dict[str, Any]) -> str:
    from mlsim.engine.sweep import sweep_rows, sweep_text

    for each in options.set:
        name, equals, values = each.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values:
            raise InvalidValueError(f"--set takes NAME=VALUES, not {each!r}.")
        if name in asked:
            raise InvalidValueError(f"{name} is given twice.")
        asked[name] = [_value(part.strip()) for part in values.split(",")]
    found = Engine.sweep(progress=bool(options.out), **asked)
    if options.out:
        return as_json(found.to_dict()) if options.json else str(found)
    _note_none_fits(options, found)
    return as_json(sweep_rows(found)) if options.json else sweep_text(found)


def _note_none_fits(options: argparse.Namespace, table: pandas.DataFrame) -> None:
    """Note if nothing fits in memory; a precision that a device lacks is no lack of memory."""
    from mlsim.engine.sweeps.rows import TOO_LARGE

    note_fit(options, table.feasible.any() or not (table.reason == TOO_LARGE).any())


def _value(text: str) -> Any:
    """Return a number where it is one, True or False, else the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


_RUN: dict[str, Callable[[argparse.Namespace, dict[str, Any]], str]] = {
    "serve": _serve,
    "fit": _fit,
    "train": _train,
    "footprint": _footprint,
    "check-claim": _check_claim,
    "gemm": _gemm,
    "sweep": _sweep,
}
_EXPLAIN: dict[str, Callable[[Any, str], Any]] = {"serve": _explain_service, "load": _explain_load}
