"""The command `mlsim anatomy`: what each layer of a network computes, holds and moves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.cli.flags import arguments, as_json
from mlsim.errors import InvalidValueError
from mlsim.parameters import parameters_of as rows_of  # noqa: F401

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


def run(options: argparse.Namespace) -> str:
    """Return what was asked of a network.

    Raises
    ------
    MlsimError
        If it can't be answered; says why.
    """
    from mlsim.engine.anatomy import anatomy, largest_batch

    asked = arguments(options, options.rows, "anatomy")
    if ":" in options.model:
        asked["model"] = _module(options.model)
    if options.largest_batch:
        if options.hardware is None:
            raise InvalidValueError("--largest-batch needs a device: mlsim anatomy MODEL HARDWARE")
        most = largest_batch(**asked)
        return as_json({"largest_batch": most}) if options.json else f"largest batch  {most:,}"
    found = anatomy(**asked)
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
    told = {"inside": options.inside, "depth": options.depth}
    part = {name: value for name, value in told.items() if value is not None}
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
        from mlsim.plots.anatomy_plots import Treemap

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
