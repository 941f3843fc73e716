"""The command `mlsim anatomy`: what each layer of a network computes, holds and moves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.cli.options import add_json, as_json, given, number
from mlsim.errors import InvalidValueError

if TYPE_CHECKING:
    from mlsim.solvers.anatomy.anatomy import Anatomy

# What may be printed, by the word after --view.
VIEWS: dict[str, Callable[..., Any]] = {
    "layers": lambda found: found.overview(most=0),
    "operators": lambda found: found.operators,
    "ops": lambda found, **part: found.profile_ops(**part),
    "layer-mem": lambda found, **part: found.profile_layer_mem(**part),
    "mem": lambda found, **part: found.profile_mem(**part),
    "summary": lambda found, **part: found.summary(**part),
    "counts": lambda found: found.counts(),
    "moments": lambda found: found.moments,
}
# Which of them show a part of a network, and which have rows to fold.
PARTS = {
    "ops": ("inside", "depth"),
    "layer-mem": ("inside", "depth"),
    "mem": ("inside",),
    "summary": ("inside", "depth"),
}


def add(commands: Any) -> None:
    """Add `mlsim anatomy` to the commands."""
    text = "what each layer of a network computes, holds and moves"
    command = commands.add_parser("anatomy", help=text, description=text)
    command.add_argument(
        "model",
        help="name, .toml file, a config.json or its folder, or a PyTorch module as "
        "package.module:function, such as torchvision.models:resnet18",
    )
    command.add_argument("hardware", nargs="?", help="a device, for times: name or .toml file")
    command.add_argument("--view", choices=VIEWS, default="layers", help="what to print (layers)")
    command.add_argument("--inside", metavar="BLOCK", help="only the layers of a block: encoder.1")
    command.add_argument("--depth", metavar="N", help="one row for layers that share N names")
    command.add_argument("--batch", dest="batch_size", default="1", metavar="N", help="samples (1)")
    command.add_argument("--precision", help="number format (fp32, or that of a PyTorch module)")
    command.add_argument(
        "--count", default="flop", help="flop, mac, seed003 or pytorch: how operations are counted"
    )
    command.add_argument("--training", action="store_true", help="what training holds and does")
    command.add_argument(
        "--optimizer", default="momentum", help="of training: sgd, momentum or adam (momentum)"
    )
    command.add_argument("--estimate", default="roofline", help="of times: roofline or calibrated")
    command.add_argument("--software", help="class of program of a calibrated estimate")
    command.add_argument("--tokens", help="of a language model: tokens that it reads at once")
    command.add_argument("--shape", help="of a PyTorch module: one sample, such as 3,224,224")
    command.add_argument(
        "--largest-batch", action="store_true", help="the largest batch that fits in the device"
    )
    command.add_argument("--csv", metavar="FILE", help="write the rows of all layers to a file")
    command.add_argument(
        "--treemap", metavar="FILE", help="write a page with areas for operations, to be opened"
    )
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> str:
    """Return what was asked of a network.

    Raises
    ------
    MlsimError
        If it can't be answered; says why.
    """
    from mlsim.engine.anatomy import anatomy, largest_batch

    asked = given(options, ("precision", "count", "training", "optimizer", "estimate", "software"))
    if options.tokens is not None:
        asked["tokens"] = number(options.tokens, "--tokens")
    if options.shape is not None:
        asked["shape"] = tuple(number(part, "--shape") for part in options.shape.split(","))
    model = _module(options.model) if ":" in options.model else options.model
    if options.largest_batch:
        if options.hardware is None:
            raise InvalidValueError("--largest-batch needs a device: mlsim anatomy MODEL HARDWARE")
        most = largest_batch(model, hardware=options.hardware, **asked)
        return as_json({"largest_batch": most}) if options.json else f"largest batch  {most:,}"
    batch = number(options.batch_size, "--batch")
    found = anatomy(model, hardware=options.hardware, batch_size=batch, **asked)
    _write(found, options)
    if options.json:
        return as_json(found.to_dict())
    return str(VIEWS[options.view](found, **_part(options)))


def _part(options: argparse.Namespace) -> dict[str, Any]:
    """Return the part of the network that was asked for.

    Raises
    ------
    InvalidValueError
        If the view shows no part.
    """
    part: dict[str, Any] = {}
    if options.inside is not None:
        part["inside"] = options.inside
    if options.depth is not None:
        part["depth"] = number(options.depth, "--depth")
    for name in part:
        if name not in PARTS.get(options.view, ()):
            able = ", ".join(view for view, names in PARTS.items() if name in names)
            raise InvalidValueError(
                f"--{name} does not go with --view {options.view}; it goes with --view {able}."
            )
    return part


def _write(found: Anatomy, options: argparse.Namespace) -> None:
    for path in (options.csv, options.treemap):
        if path and not Path(path).expanduser().parent.is_dir():
            raise InvalidValueError(f"there is no folder {str(Path(path).parent)!r} to write to.")
    if options.csv:
        found.to_csv(options.csv)
    if options.treemap:
        from mlsim.plots.treemap import Treemap

        Treemap(found).save(options.treemap)


def _module(named: str) -> Any:
    """Return the PyTorch module that a function makes.

    Raises
    ------
    InvalidValueError
        If there is no such function, or it needs arguments.
    """
    place, _, name = named.partition(":")
    sys.path.insert(0, "")
    try:
        made = getattr(import_module(place), name)
        return made()
    except Exception as error:  # whatever somebody's own program raises is told
        raise InvalidValueError(
            f"{named} is no function that makes a PyTorch module without arguments: {error}. Write "
            "it as package.module:function, such as torchvision.models:resnet18."
        ) from error
    finally:
        sys.path.remove("")
