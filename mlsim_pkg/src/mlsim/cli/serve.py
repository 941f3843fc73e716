"""The commands `mlsim serve` and `mlsim fit`: a language model for its users, and what fits."""

from __future__ import annotations

import argparse
from itertools import product
from typing import TYPE_CHECKING, Any

from mlsim.cli.flags import flags_of, in_flags
from mlsim.cli.options import (
    LAYOUT,
    add_command,
    add_flags,
    add_ignore_memory,
    add_layout,
    argument,
    as_json,
    given,
    note_fit,
    number,
    numbers,
)
from mlsim.cli.pools import add_spread, spread_of
from mlsim.cli.switches import add_switches, switches
from mlsim.engine import Engine

if TYPE_CHECKING:
    from mlsim.solvers.serving.serving import Serving


_REQUESTS = (
    ("batch", "N", "sequences served together; several with commas (1)"),
    ("prompt", "N", "tokens in each prompt; several with commas (512)"),
    ("output", "N", "new tokens for each; several with commas (128)"),
)
_FORMATS = (
    ("precision", "FORMAT", "number format: bf16, fp8, w4a16, w8a8kv8, ... (16 bits)"),
    ("weights", "FORMAT", "format of the weights alone"),
    ("activations", "FORMAT", "format of the activations alone"),
    ("kv-cache", "FORMAT", "format of the KV cache alone"),
)
_PASSED_ON = (
    *("precision", "weights", "activations", "kv_cache", "estimate", "software", "reserve"),
    *(argument(name) for name, _ in LAYOUT),
)


def add(commands: Any) -> None:
    """Add `mlsim serve` and `mlsim fit` to the commands."""
    _add_serve(commands)
    _add_fit(commands)


def _add_serve(commands: Any) -> None:
    text = "serve a language model: time to first token, tokens per second, memory"
    command = add_command(commands, "serve", _serve, text)
    add_flags(command, _REQUESTS)
    add_flags(command, _FORMATS)
    add_layout(command, tensor=1, data=True)
    add_switches(command)
    add_spread(command)
    add_ignore_memory(command)
    command.add_argument("--estimate", default="roofline", help="roofline, bound or calibrated")
    command.add_argument("--software", help="class of program of a calibrated estimate")
    results = "show how a result is computed: time_to_first_token, decode.total_bytes, ..."
    command.add_argument("--explain", metavar="QUANTITY", help=results)


def _add_fit(commands: Any) -> None:
    text = "in which number formats, batches and contexts a language model fits"
    command = add_command(commands, "fit", _fit, text)
    add_flags(command, [("prompt", "N", "tokens in the prompt (512)")], default="512")
    add_flags(command, [("output", "N", "new tokens (128)")])
    formats = "formats to try, with commas (all sensible ones)"
    command.add_argument("--precision", metavar="FORMATS", help=formats)
    add_layout(command, tensor=None, data=False)


def _serve(options: argparse.Namespace) -> str:
    serving = Engine.serve(
        model=options.model,
        hardware=options.hardware,
        **_requests(options),
        **given(options, _PASSED_ON),
        **spread_of(options),
        check_memory=options.check_memory,
        **switches(options),
    )
    note_fit(options, serving.feasible)
    if options.explain:
        explanation = _explained(serving, options.explain)
        return str(explanation.to_json() if options.json else explanation)
    return as_json(serving.to_dict()) if options.json else in_flags(str(serving), {})


def _explained(serving: Serving, name: str) -> Any:
    """Explain a result of a service, or with a phase before it a quantity of that."""
    phase, _, quantity = name.partition(".")
    if quantity and phase in ("prefill", "decode", "speculation"):
        return getattr(serving, phase).explain(quantity)
    if name == "latency":
        name = "generation_latency" if serving.model.decoder else "time_to_first_token"
    return serving.explain(name)


def _requests(options: argparse.Namespace) -> dict[str, Any]:
    """Return batch and lengths; of several, every combination, one after another."""
    flags = flags_of(options.parser)
    texts = given(options, ("batch_size", "prompt_tokens", "output_tokens"))
    several = {name: numbers(text, flags[name]) for name, text in texts.items()}
    combinations = list(product(*several.values()))
    if len(combinations) == 1:
        return dict(zip(several, combinations[0], strict=True))
    return {
        name: list(column)
        for name, column in zip(several, zip(*combinations, strict=True), strict=True)
    }


def _fit(options: argparse.Namespace) -> str:
    from mlsim.solvers.serving import fit, fit_report
    from mlsim.zoo import resolve

    asked = fit.question(
        model=resolve.transformer(options.model),
        hardware=resolve.hardware(options.hardware),
        prompt_tokens=number(options.prompt_tokens, "--prompt"),
        output_tokens=(
            None if options.output_tokens is None else number(options.output_tokens, "--output")
        ),
        tensor_parallel=options.tensor_parallel,
        pipeline_parallel=options.pipeline_parallel,
        expert_parallel=options.expert_parallel,
        reserve=options.reserve,
    )
    rows = fit.rows(asked, options.precision.split(",") if options.precision else None)
    note_fit(options, any(row["feasible"] for row in rows))
    if options.json:
        return as_json(fit_report.as_dict(asked, rows))
    return in_flags(fit_report.as_text(asked, rows), flags_of(options.parser))
