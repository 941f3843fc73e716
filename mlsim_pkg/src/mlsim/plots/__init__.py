"""Figures, each of which carries the numbers that it shows. A name is imported when it is used."""

# ruff: noqa: F401 - what is imported here is what the room offers

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.plots.anatomy_plots import Treemap, plot_anatomy
    from mlsim.plots.diagrams import describe_equations, leading_to, plot_equations
    from mlsim.plots.drawing import COLOURS, MARKERS, attach, data_of
    from mlsim.plots.formats import plot_bits, plot_format_map, plot_formats, plot_stairs
    from mlsim.plots.machines import (
        plot_amdahl,
        plot_dennard,
        plot_latencies,
        plot_loader,
        plot_moore,
        plot_staleness,
        plot_sweep,
        plot_systolic,
    )
    from mlsim.plots.profiles import plot_regions, plot_tasks, report, write_report
    from mlsim.plots.published import plot_accuracy, plot_growth, plot_shares
    from mlsim.plots.rooflines import plot_roofline
    from mlsim.plots.training_plots import plot_breakdown, plot_memory, plot_pipeline

# Public names by module, which is imported when one of them is first used.
_MODULES = {
    "anatomy_plots": "Treemap plot_anatomy",
    "diagrams": "describe_equations leading_to plot_equations",
    "drawing": "COLOURS MARKERS attach data_of",
    "formats": "plot_bits plot_format_map plot_formats plot_stairs",
    "machines": "plot_amdahl plot_dennard plot_latencies plot_loader "
    "plot_moore plot_staleness plot_sweep plot_systolic",
    "profiles": "plot_regions plot_tasks report write_report",
    "published": "plot_accuracy plot_growth plot_shares",
    "rooflines": "plot_roofline",
    "training_plots": "plot_breakdown plot_memory plot_pipeline",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_HOMES)

__getattr__ = importing(__name__, _HOMES)
