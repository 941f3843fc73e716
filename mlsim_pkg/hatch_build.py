"""A wheel of the core alone, where MLSIM_CORE is set: what a browser loads.

Left out are readers of configurations and modules, most measurements, predictions that
these score, pictures and the command, with the data that only they read.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OUTER = (
    "cli", "display", "draw", "live", "plots", "profiling",
    # Of measured rows stay those that say what a device draws and costs.
    *(f"measured/{each}.py"
      for each in ("growth", "inference", "inside_machines", "lab", "surfaces", "training")),
    "workloads/huggingface", "workloads/pytorch",
    "engine/predict", "engine/accuracy.py", "engine/bands.py", "engine/calibrate.py",
    "zoo/review",
    "data/profilers", "data/profiles", "data/readings", "data/comparisons", "data/growth",
    "data/inside", "data/commands.toml", "data/huggingface.toml", "data/pytorch.toml",
    *(f"data/measurements/{each}"
      for each in ("network_training", "resnet50_inference.csv", "runs", "serving", "training")),
)  # fmt: skip


class CoreHook(BuildHookInterface[Any]):
    """Leave the outer rooms out of a wheel, where that is asked for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what a wheel of the core leaves out."""
        if os.environ.get("MLSIM_CORE"):
            left_out = [f"src/mlsim/{each}" for each in OUTER]
            self.build_config.target_config.setdefault("exclude", []).extend(
                [*left_out, "src/mlsim_course", "src/mlsim_exercises"]
            )
