"""Options that several commands have, and how their values are read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import Any

from mlsim.errors import InvalidValueError

# Exit statuses; 2 is argparse's own, after wrong usage.
REFUSED, DOES_NOT_FIT = 1, 3

# A flag: its name, what stands for its value in the help, and what it is.
Flag = tuple[str, str, str]
# Flags that are shorter than the arguments of doors that they give, in every command.
_ARGUMENTS = {
    "batch": "batch_size",
    "prompt": "prompt_tokens",
    "output": "output_tokens",
    "sequence": "sequence_tokens",
    "first-token": "time_to_first_token",
    "per-token": "time_per_output_token",
}
# Those that the field abbreviates.
_SHORT = {
    "first-token": "ttft",
    "per-token": "tpot",
    "tensor-parallel": "tp",
    "pipeline-parallel": "pp",
    "data-parallel": "dp",
    "context-parallel": "cp",
    "expert-parallel": "ep",
    "mean-time-to-failure": "mttf",
}
# Classes of software of a calibrated estimate, with a word each.
SOFTWARE = (
    "class of program of a calibrated estimate: "
    "vllm_async (vLLM from release 0.14), vllm (older), torch_engine (SGLang, TensorRT-LLM), "
    "engine (fused kernels), early_engine (of 2023), llama_cpp, request_path (TensorRT in Triton), "
    "eager (PyTorch), graph (TensorFlow), framework (training), megatron, kernels (nothing added)"
)
# The sizes of a layout, and what each is.
LAYOUT = (
    ("tensor-parallel", "devices that share each matrix"),
    ("pipeline-parallel", "stages that share the layers"),
    ("data-parallel", "copies of the model that share the batch"),
    ("expert-parallel", "groups that share the experts"),
)


def add_flags(command: Any, flags: Iterable[Flag], **more: Any) -> None:
    """Add flags to a command or a group of it; `more` is what argparse is told of each."""
    for name, metavar, what in flags:
        names = [f"--{each}" for each in (name, _SHORT.get(name)) if each]
        command.add_argument(*names, dest=argument(name), metavar=metavar, help=what, **more)


def argument(flag: str) -> str:
    """Return the argument of a door that a flag gives.

    >>> argument("kv-cache"), argument("batch")
    ('kv_cache', 'batch_size')
    """
    return _ARGUMENTS.get(flag, flag.replace("-", "_"))


def given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of a door, by name, for which something was given."""
    found = {name: getattr(options, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], str],
    text: str,
    *,
    model: str = "name, .toml file, or a config.json or its folder",
    hardware: str = "device, system or cluster: name or .toml file",
) -> argparse.ArgumentParser:
    """Add a command that takes a model and hardware."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.add_argument("model", help=model)
    command.add_argument("hardware", help=hardware)
    add_json(command)
    command.set_defaults(run=run)
    return command


def add_layout(command: argparse.ArgumentParser, *, tensor: int | None, data: bool) -> None:
    """Add the sizes of a layout, and the memory that is reserved."""
    for name, what in LAYOUT:
        if name == "data-parallel" and not data:
            continue
        usual = tensor if name == "tensor-parallel" else 1
        shown = "all of a system" if usual is None else usual
        add_flags(command, [(name, "N", f"{what} ({shown})")], type=int, default=usual)
    reserved = "share of memory to keep free for everything else (0.1)"
    add_flags(command, [("reserve", "SHARE", reserved)], type=float, default=0.1)


def add_ignore_memory(command: argparse.ArgumentParser) -> None:
    """Add `--ignore-memory`."""
    command.add_argument(
        "--ignore-memory",
        dest="check_memory",
        action="store_false",
        help="give the times of what does not fit in memory, as if it did",
    )


def note_fit(options: argparse.Namespace, feasible: Any) -> None:
    """Let the command exit with its own status if nothing that was asked for fits."""
    if getattr(options, "check_memory", True) and not getattr(feasible, "any", lambda: feasible)():
        options.code = DOES_NOT_FIT


def add_json(command: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    command.add_argument("--json", action="store_true", help="print JSON, values with units")


def number(text: str, option: str) -> Any:
    """Turn one entry of an option into a number; what is none is refused later.

    Raises
    ------
    InvalidValueError
        If it is no number.
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"{option} must be whole numbers, not {text!r}.") from None


def numbers(text: str, option: str) -> list[Any]:
    """Turn an option with commas into numbers."""
    return [number(part, option) for part in text.split(",")]


def as_json(data: Any) -> str:
    """Return plain data as JSON text."""
    return json.dumps(data, indent=2, ensure_ascii=False)
