"""The command `mlsim`: solve, serve, train, footprint, zoo and more, as text or JSON."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from mlsim import __version__
from mlsim.errors import DoesNotFitError, MlsimError, nearest

# What each command is for, and the module of `mlsim.cli` that knows it.
COMMANDS = {
    "solve": ("doors", "run one network on one device"),
    "explain": ("doors", "how a number is computed: equations, values, sources"),
    "sweep": (
        "doors",
        "ask every combination of models, devices and other arguments, as a table or a folder",
    ),
    "gemm": ("doors", "one matrix product or linear layer, and whether low precision pays"),
    "anatomy": ("anatomy", "what each layer of a network computes, holds and moves"),
    "serve": ("doors", "serve a language model: time to first token, tokens per second, memory"),
    "fit": ("doors", "in which number formats, batches and contexts a language model fits"),
    "load": (
        "doors",
        "requests that keep coming: first token, tokens per second, queue, saturation",
    ),
    "plan": ("doors", "which machines, how many and how laid out, serve so many requests in time"),
    "train": ("doors", "train a model: time, memory and cost; and, given a place, its footprint"),
    "footprint": ("doors", "energy, carbon and water of a service, or of device-hours"),
    "check-claim": ("doors", "whether a claimed speed can be true, and what would make it true"),
    "predict": (
        "files",
        "predictions for a table of cases, each with its bound, its band and its reasons",
    ),
    "calibrate": (
        "files",
        "how a few measurements of your own correct the predictions for their device",
    ),
    "measure": (
        "machine",
        "the ceilings of this machine: bandwidths by level, products, starts, disk (a minute)",
    ),
    "time": ("machine", "wall, user, system and waiting time of a program"),
    "profile": ("machine", "what a profiler's file says, what limits it, and what to try first"),
    "profile-command": ("machine", "print the commands that profile a script"),
    "zoo": (
        "files",
        "models, devices and systems, each figure with its source; check a file of one's own",
    ),
}
EPILOG = """examples:
  mlsim solve ResNet50 A100 --batch 1,32,256
  mlsim sweep ResNet50 V100,A100,H100 --batch 1,256 --precision fp16,int8 --json
  mlsim sweep Llama3_8B H100,HGX_H100 --batch 1,64 --set tensor_parallel=1,8 --out plans
  mlsim explain ResNet50 A100 --quantity memory_required
  mlsim gemm 8192 4096 4096 B200 --recipe mxfp8 --training
  mlsim gemm 16,8192 4096 4096 H100 --precision fp8 --estimate calibrated
  mlsim anatomy ResNet50 A100 --batch 32 --training
  mlsim serve Llama3_8B H100 --batch 1,64 --prompt 512,2048 --output 128
  mlsim load Llama3_8B H100 --rate 10 --prompt "lognormal 512 0.8" --estimate calibrated
  mlsim plan Llama3_70B --rate 20 --first-token "1 s" --per-token "40 ms" --prompt 2000
  mlsim serve Llama3_8B L4 --precision w4a16 --kv-cache fp8 --explain time_per_output_token
  mlsim fit Llama3_70B H100
  mlsim fit path/to/config.json RTX4090 --prompt 4096 --json
  mlsim train Llama3_8B HGX_H100 --devices 8 --global-batch 64 --shard zero3 --recompute full
  mlsim train GPT3_175B Selene --devices 1024 --global-batch 1536 --search --tokens 300e9
  mlsim footprint Llama3_8B HGX_H100 --tp 8 --batch 64 --grid Germany --data-centre Google
  mlsim check-claim Llama2_70B MI300X --precision fp16 --batch 1 --tokens-per-second 314
  mlsim predict cases.csv --out predictions.csv
  mlsim calibrate my_measurements.csv --explain
  mlsim profile profile_ncu.csv profile.sqlite --hardware A100 --report report.html
  mlsim profile-command train.py --hardware A100 --tool ncu
  mlsim measure
  mlsim solve ResNet50 local --precision fp32 --batch 1,8
  mlsim time --repeat 7 -- python train.py
  mlsim zoo A100
  mlsim zoo check my_device.toml path/to/config.json
  mlsim zoo diff old/data new/data

exit status:
  0  the question was answered
  1  it was refused, or the check of a file found an error
  2  the command was not understood
  3  nothing that was asked for fits in memory
  4  the claim that was checked is impossible
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, as `mlsim --help` lists them."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    options.code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        try:
            print(options.module.run(options))
        except MlsimError as error:
            from mlsim.cli.flags import DOES_NOT_FIT, REFUSED, in_flags

            rows = options.module.rows_of(options.name)
            print(f"mlsim: {in_flags(str(error), rows)}", file=sys.stderr)
            return DOES_NOT_FIT if isinstance(error, DoesNotFitError) else REFUSED
        except BrokenPipeError:
            return 1
    return int(options.code)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"mlsim: {message}", file=sys.stderr)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; refuse a command or a flag that isn't there with the nearest one."""
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        parser = _overview()
        if name and not name.startswith("-"):
            parser.error(f"there is no command {name!r}.{nearest(name, COMMANDS)}")
        parser.parse_args(arguments)  # prints the help or the version, or says what is missing
    module = import_module(f"mlsim.cli.{COMMANDS[name][0]}")
    command = argparse.ArgumentParser(prog=f"mlsim {name}", description=COMMANDS[name][1])
    module.add(name, command)
    if name != "profile-command":
        command.add_argument("--json", action="store_true", help="print JSON, values with units")
    options, rest = command.parse_known_args(arguments[1:])
    if rest:
        flags = [flag for each in command._actions for flag in each.option_strings]
        wrong = next((each for each in rest if each.startswith("-")), rest[0])
        hint = nearest(wrong.partition("=")[0], flags) or f" See {command.prog} --help."
        command.error(f"unrecognized arguments: {' '.join(rest)}.{hint}")
    options.name, options.module = name, module
    return options


def _overview() -> argparse.ArgumentParser:
    """Return what `mlsim --help` prints: the commands, each in a line."""
    parser = argparse.ArgumentParser(
        prog="mlsim",
        description="Predict what a model does on a device, before running it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mlsim {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser
