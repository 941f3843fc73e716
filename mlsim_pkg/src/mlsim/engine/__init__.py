"""The front door: a question in, an answer out.

Each question is a function of the module that bears its name, imported when it is first
asked; `Engine` holds them together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsim.engine.find import find
    from mlsim.engine.footprint import footprint
    from mlsim.engine.serve import fit, serve
    from mlsim.engine.solve import solve
    from mlsim.engine.sweep import sweep
    from mlsim.engine.train import optimal_size, train

__all__ = ["Engine"]


class _Question:
    """A static method that is imported, and takes this one's place, when it is first used."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        function = getattr(import_module(f"{__name__}.{self.module}"), self.name)
        setattr(owner, self.name, staticmethod(function))
        return function


class Engine:
    """Predict what a model does on a device, before running it."""

    if TYPE_CHECKING:
        solve = staticmethod(solve)
        serve = staticmethod(serve)
        train = staticmethod(train)
        footprint = staticmethod(footprint)
        fit = staticmethod(fit)
        find = staticmethod(find)
        sweep = staticmethod(sweep)
        optimal_size = staticmethod(optimal_size)
    else:
        solve = _Question("solve")
        serve = _Question("serve")
        train = _Question("train")
        footprint = _Question("footprint")
        fit = _Question("serve")
        find = _Question("find")
        sweep = _Question("sweep")
        optimal_size = _Question("train")
