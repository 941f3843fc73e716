"""The front door: a question in, an answer out.

Each question is a function of a module below; `Engine` holds them together.
"""

from __future__ import annotations

from mlsim.engine.footprint import footprint
from mlsim.engine.serve import fit, serve
from mlsim.engine.solve import find, solve, sweep
from mlsim.engine.train import optimal_size, train


class Engine:
    """Predict what a model does on a device, before running it."""

    solve = staticmethod(solve)
    serve = staticmethod(serve)
    train = staticmethod(train)
    footprint = staticmethod(footprint)
    fit = staticmethod(fit)
    find = staticmethod(find)
    sweep = staticmethod(sweep)
    optimal_size = staticmethod(optimal_size)


__all__ = ["Engine"]
