"""The command `mlsim`: solve, serve, train, footprint, zoo and more, as text or JSON."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import mlsim
from mlsim.cli import footprint as cli_footprint, train as cli_train
from mlsim.errors import InvalidValueError, MlsimError

EPILOG = """examples:
  mlsim solve ResNet50 A100 --batch 1,32,256
  mlsim sweep ResNet50 V100,A100,H100 --batch 1,256 --precision fp16,int8 --json
  mlsim explain ResNet50 A100 --quantity memory_required
  mlsim serve Llama3_8B H100 --batch 1,64 --prompt 512,2048 --output 128
  mlsim serve Llama3_8B L4 --precision w4a16 --kv-cache fp8 --explain time_per_output_token
  mlsim fit Llama3_70B H100
  mlsim fit path/to/config.json RTX4090 --prompt 4096 --json
  mlsim train Llama3_8B HGX_H100 --devices 8 --global-batch 64 --shard zero3 --recompute full
  mlsim train GPT3_175B Selene --devices 1024 --global-batch 1536 --search --tokens 300e9
  mlsim footprint Llama3_8B HGX_H100 --tp 8 --batch 64 --grid Germany --data-centre Google
  mlsim zoo A100
  mlsim zoo check my_device.toml path/to/config.json
  mlsim zoo diff old/data new/data
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code (0, or 1 after an error)."""
    options = _parser().parse_args(arguments)
    options.code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        try:
            print(options.run(options))
        except MlsimError as error:
            print(f"mlsim: {error}", file=sys.stderr)
            return 1
        except BrokenPipeError:
            return 1
    return int(options.code)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"mlsim: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlsim",
        description="Predict what a model does on a device, before running it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mlsim {mlsim.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, text in (
        ("solve", _solve, "one network on one device"),
        ("sweep", _sweep, "every combination, as a table"),
        ("explain", _explain, "how a number came to be"),
    ):
        several = " (several, with commas)" if name == "sweep" else ""
        model, hardware = (f"name or .toml file{several}" for _ in range(2))
        command = _command(commands, name, run, text, model=model, hardware=hardware)
        batches = "" if name == "explain" else ", several with commas"
        command.add_argument("--batch", default="1", help=f"samples per step{batches} (1)")
        command.add_argument("--precision", default="fp16", help=f"number format{several} (fp16)")
        command.add_argument("--estimate", default="roofline", help="roofline, bound or calibrated")
        if name == "explain":
            command.add_argument("--quantity", default="latency", help="what to explain (latency)")
    _add_serve(commands)
    _add_fit(commands)
    cli_train.add(commands)
    cli_footprint.add(commands)
    _add_zoo(commands)
    return parser


def _command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], str],
    text: str,
    *,
    model: str = "name, .toml file, or a config.json or its folder",
    hardware: str = "device or system: name or .toml file",
) -> argparse.ArgumentParser:
    """Add a command that takes a model and hardware."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.add_argument("model", help=model)
    command.add_argument("hardware", help=hardware)
    _add_json(command)
    command.set_defaults(run=run)
    return command


def _add_serve(commands: Any) -> None:
    text = "a language model for its users: time to first token, tokens per second, memory"
    command = _command(commands, "serve", _serve, text)
    for name, default, what in (
        ("batch", "1", "sequences served together, several with commas (1)"),
        ("prompt", "512", "tokens of each prompt, several with commas (512)"),
        ("output", None, "new tokens for each, several with commas (128)"),
    ):
        command.add_argument(f"--{name}", default=default, help=what)
    command.add_argument("--precision", help="bf16, fp8, w4a16, w8a8kv8, ... (16 bits)")
    for name in ("weights", "activations", "kv-cache"):
        command.add_argument(f"--{name}", metavar="FORMAT", help="where it differs from that")
    _add_layout(command, tensor=1, data=True)
    command.add_argument("--estimate", default="roofline", help="roofline, bound or calibrated")
    command.add_argument(
        "--explain",
        metavar="QUANTITY",
        help="how a result came to be, such as time_to_first_token or decode.total_bytes",
    )


def _add_fit(commands: Any) -> None:
    text = "does a language model fit: in which number formats, batches and contexts"
    command = _command(commands, "fit", _fit, text)
    command.add_argument("--prompt", default="512", help="tokens of the prompt (512)")
    command.add_argument("--output", help="new tokens (128)")
    command.add_argument("--precision", help="formats, with commas; all sensible ones if left out")
    _add_layout(command, tensor=None, data=False)


def _add_zoo(commands: Any) -> None:
    text = "models, devices and systems, each figure with its source"
    command = commands.add_parser(
        "zoo",
        help=f"{text}; check a file of one's own",
        description=text,
        usage="mlsim zoo [-h] [--json] [NAME | check FILE... | diff OLD NEW]",
    )
    command.add_argument(
        "words",
        nargs="*",
        metavar="NAME",
        help="one of them, all if left out; `check FILE...` checks devices, systems and models "
        "from files (exit 1 after an error); `diff OLD NEW` lists what changed between two "
        "folders of data files",
    )
    _add_json(command)
    command.set_defaults(run=_zoo)


def _add_layout(command: argparse.ArgumentParser, *, tensor: int | None, data: bool) -> None:
    most = "all of a system" if tensor is None else "1"
    parts = [("tp", tensor, f"devices that share each matrix ({most})")]
    parts += [("pp", 1, "stages that share the layers (1)")]
    parts += [("dp", 1, "copies that share the batch (1)")] if data else []
    parts += [("ep", 1, "groups over which experts are spread (1)")]
    for name, default, what in parts:
        command.add_argument(f"--{name}", type=int, default=default, metavar="N", help=what)
    command.add_argument(
        "--reserve",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of memory kept for everything else (0.1)",
    )


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, values with units")


def _number(text: str, option: str) -> Any:
    """Turn one entry of an option into a number; what is none is refused later."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"--{option} must be whole numbers, not {text!r}.") from None


def _numbers(text: str, option: str) -> list[Any]:
    return [_number(part, option) for part in text.split(",")]


def _batches(text: str) -> Any:
    entries = _numbers(text, "batch")
    return entries if len(entries) > 1 else entries[0]


def _profile(options: argparse.Namespace) -> mlsim.Profile:
    return mlsim.Engine.solve(
        model=options.model,
        hardware=options.hardware,
        batch_size=_batches(options.batch),
        precision=options.precision,
        estimate=options.estimate,
    )


def _solve(options: argparse.Namespace) -> str:
    profile = _profile(options)
    return _json(profile.to_dict()) if options.json else str(profile)


def _explain(options: argparse.Namespace) -> str:
    explanation = _profile(options).explain(options.quantity)
    return explanation.to_json() if options.json else str(explanation)


def _sweep(options: argparse.Namespace) -> str:
    table = mlsim.Engine.sweep(
        model=options.model.split(","),
        hardware=options.hardware.split(","),
        batch_size=_batches(options.batch),
        precision=options.precision.split(","),
        estimate=options.estimate,
    )
    from mlsim.engine.sweep import sweep_rows, sweep_text

    return _json(sweep_rows(table)) if options.json else sweep_text(table)


def _serve(options: argparse.Namespace) -> str:
    serving = mlsim.Engine.serve(
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
    return _json(serving.to_dict()) if options.json else str(serving)


def _explained(serving: mlsim.Serving, name: str) -> Any:
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
        names[option]: _numbers(text, option)
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
        prompt_tokens=_number(options.prompt, "prompt"),
        output_tokens=None if options.output is None else _number(options.output, "output"),
        tensor_parallel=options.tp,
        pipeline_parallel=options.pp,
        expert_parallel=options.ep,
        reserve=options.reserve,
    )
    rows = fit.rows(asked, options.precision.split(",") if options.precision else None)
    return (
        _json(fit_report.as_dict(asked, rows)) if options.json else fit_report.as_text(asked, rows)
    )


def _zoo(options: argparse.Namespace) -> str:
    from mlsim.zoo import catalogue

    match options.words:
        case []:
            return _json(catalogue.all_as_dict()) if options.json else catalogue.all_as_text()
        case ["check", *files]:
            return _zoo_check(options, files)
        case ["diff", *folders]:
            return _zoo_diff(options, folders)
        case [name]:
            record = catalogue.find(name)
            return _json(catalogue.as_dict(record)) if options.json else catalogue.as_text(record)
    raise InvalidValueError(
        f"zoo shows one name at a time, or all; it was given {', '.join(options.words)}. "
        "Others: zoo check FILE..., zoo diff OLD NEW."
    )


def _zoo_check(options: argparse.Namespace, files: list[str]) -> str:
    from mlsim.zoo.review import file_report

    if not files:
        raise InvalidValueError("zoo check needs a file: mlsim zoo check my_device.toml")
    reports = [file_report.validate_file(file) for file in files]
    options.code = int(any(report.errors for report in reports))
    if options.json:
        return _json([report.as_dict() for report in reports])
    return "\n".join(map(str, reports))


def _zoo_diff(options: argparse.Namespace, folders: list[str]) -> str:
    from mlsim.zoo import differences

    if len(folders) != 2:
        raise InvalidValueError(
            f"zoo diff needs two folders of data files, not {len(folders)}: mlsim zoo diff OLD NEW"
        )
    found = differences.differences(*folders)
    return _json([each.as_dict() for each in found]) if options.json else differences.as_text(found)


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
