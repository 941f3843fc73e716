"""The commands `mlsim serve` and `mlsim fit`: a language model for its users, and what fits."""

from __future__ import annotations

import argparse
from itertools import product
from typing import TYPE_CHECKING, Any

from mlsim.cli.options import add_command, add_layout, as_json, number, numbers
from mlsim.engine import Engine

if TYPE_CHECKING:
    from mlsim.solvers.serving.serving import Serving


def add(commands: Any) -> None:
    """Add `mlsim serve` and `mlsim fit` to the commands."""
    _add_serve(commands)
    _add_fit(commands)


def _add_serve(commands: Any) -> None:
    text = "a language model for its users: time to first token, tokens per second, memory"
    command = add_command(commands, "serve", _serve, text)
    for name, default, what in (
        ("batch", "1", "sequences served together, several with commas (1)"),
        ("prompt", "512", "tokens of each prompt, several with commas (512)"),
        ("output", None, "new tokens for each, several with commas (128)"),
    ):
        command.add_argument(f"--{name}", default=default, help=what)
    command.add_argument("--precision", help="bf16, fp8, w4a16, w8a8kv8, ... (16 bits)")
    for name in ("weights", "activations", "kv-cache"):
        command.add_argument(f"--{name}", metavar="FORMAT", help="where it differs from that")
    add_layout(command, tensor=1, data=True)
    command.add_argument("--estimate", default="roofline", help="roofline, bound or calibrated")
    command.add_argument(
        "--explain",
        metavar="QUANTITY",
        help="how a result came to be, such as time_to_first_token or decode.total_bytes",
    )


def _add_fit(commands: Any) -> None:
    text = "does a language model fit: in which number formats, batches and contexts"
    command = add_command(commands, "fit", _fit, text)
    command.add_argument("--prompt", default="512", help="tokens of the prompt (512)")
    command.add_argument("--output", help="new tokens (128)")
    command.add_argument("--precision", help="formats, with commas; all sensible ones if left out")
    add_layout(command, tensor=None, data=False)


def _serve(options: argparse.Namespace) -> str:
    serving = Engine.serve(
        model=options.model,
        hardware=options.hardware,
        **_requests(options),
        precision=options.precision,
        weights=options.weights,
        activations=options.activations,
        kv_cache=options.kv_cache,
        tensor_parallel=options.tp,
        pipeline_parallel=options.pp,
        data_parallel=options.dp,
        expert_parallel=options.ep,
        reserve=options.reserve,
        estimate=options.estimate,
    )
    if options.explain:
        explanation = _explained(serving, options.explain)
        return str(explanation.to_json() if options.json else explanation)
    return as_json(serving.to_dict()) if options.json else str(serving)


def _explained(serving: Serving, name: str) -> Any:
    """Explain a result of a service, or with a phase before it a quantity of that."""
    phase, _, quantity = name.partition(".")
    if quantity and phase in ("prefill", "decode"):
        return getattr(serving, phase).explain(quantity)
    if name == "latency":
        name = "generation_latency" if serving.model.decoder else "time_to_first_token"
    return serving.explain(name)


def _requests(options: argparse.Namespace) -> dict[str, Any]:
    """Return batch and lengths; of several, every combination, one after another."""
    names = {"batch": "batch_size", "prompt": "prompt_tokens", "output": "output_tokens"}
    given = {
        names[option]: numbers(text, option)
        for option in names
        if (text := getattr(options, option)) is not None
    }
    combinations = list(product(*given.values()))
    if len(combinations) == 1:
        return dict(zip(given, combinations[0], strict=True))
    return {
        name: list(column)
        for name, column in zip(given, zip(*combinations, strict=True), strict=True)
    }


def _fit(options: argparse.Namespace) -> str:
    from mlsim.solvers.serving import fit, fit_report
    from mlsim.zoo import resolve

    asked = fit.question(
        model=resolve.transformer(options.model),
        hardware=resolve.hardware(options.hardware),
        prompt_tokens=number(options.prompt, "prompt"),
        output_tokens=None if options.output is None else number(options.output, "output"),
        tensor_parallel=options.tp,
        pipeline_parallel=options.pp,
        expert_parallel=options.ep,
        reserve=options.reserve,
    )
    rows = fit.rows(asked, options.precision.split(",") if options.precision else None)
    return (
        as_json(fit_report.as_dict(asked, rows))
        if options.json
        else fit_report.as_text(asked, rows)
    )
