"""Questions and figures that a reader moves where scripts run; elsewhere figures stand still."""

from __future__ import annotations

from mlsim.live.board import board
from mlsim.live.compiled import Compiled, compiled
from mlsim.live.figure import Figure, figure
from mlsim.live.formulas import formula
from mlsim.live.handles import Choice, Handle
from mlsim.live.knee import knee
from mlsim.live.roof import roof
from mlsim.live.tank import tank
from mlsim.live.will_it_run import will_it_run

__all__ = [
    "Choice",
    "Compiled",
    "Figure",
    "Handle",
    "board",
    "compiled",
    "figure",
    "formula",
    "knee",
    "roof",
    "tank",
    "will_it_run",
]
