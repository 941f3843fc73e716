"""Figures, each of which carries the numbers that it shows. A name is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import importing

if TYPE_CHECKING:
    from mlsim.plots.accuracy_plots import plot_accuracy, plot_shares
    from mlsim.plots.anatomy_plots import plot_anatomy
    from mlsim.plots.dataflows import plot_loader, plot_systolic
    from mlsim.plots.diagrams import describe_equations, leading_to, plot_equations
    from mlsim.plots.format_plots import plot_bits, plot_format_map, plot_stairs
    from mlsim.plots.growth_plots import plot_growth
    from mlsim.plots.machine_plots import plot_formats, plot_staleness
    from mlsim.plots.machines import (
        plot_amdahl,
        plot_capacities,
        plot_dennard,
        plot_energies,
        plot_latencies,
        plot_moore,
        plot_sweep,
        plot_tiles,
    )
    from mlsim.plots.plot_data import attach, data_of
    from mlsim.plots.profile_plots import plot_regions, plot_tasks
    from mlsim.plots.profile_report import report, write_report
    from mlsim.plots.roof import COLOURS, MARKERS
    from mlsim.plots.rooflines import plot_roofline
    from mlsim.plots.training_plots import plot_breakdown, plot_memory, plot_pipeline
    from mlsim.plots.treemap import Treemap

__all__ = [
    "COLOURS",
    "MARKERS",
    "Treemap",
    "attach",
    "data_of",
    "describe_equations",
    "leading_to",
    "plot_accuracy",
    "plot_amdahl",
    "plot_anatomy",
    "plot_bits",
    "plot_breakdown",
    "plot_capacities",
    "plot_dennard",
    "plot_energies",
    "plot_equations",
    "plot_format_map",
    "plot_formats",
    "plot_growth",
    "plot_latencies",
    "plot_loader",
    "plot_memory",
    "plot_moore",
    "plot_pipeline",
    "plot_regions",
    "plot_roofline",
    "plot_shares",
    "plot_stairs",
    "plot_staleness",
    "plot_sweep",
    "plot_systolic",
    "plot_tasks",
    "plot_tiles",
    "report",
    "write_report",
]

_HOMES = {
    **dict.fromkeys(("plot_accuracy", "plot_shares"), "accuracy_plots"),
    "plot_anatomy": "anatomy_plots",
    "Treemap": "treemap",
    **dict.fromkeys(("report", "write_report"), "profile_report"),
    **dict.fromkeys(("COLOURS", "MARKERS"), "roof"),
    "plot_roofline": "rooflines",
    **dict.fromkeys(("attach", "data_of"), "plot_data"),
    **dict.fromkeys(("describe_equations", "leading_to", "plot_equations"), "diagrams"),
    **dict.fromkeys(("plot_bits", "plot_format_map", "plot_stairs"), "format_plots"),
    "plot_growth": "growth_plots",
    **dict.fromkeys(("plot_regions", "plot_tasks"), "profile_plots"),
    **dict.fromkeys(("plot_loader", "plot_systolic"), "dataflows"),
    **dict.fromkeys(("plot_formats", "plot_staleness"), "machine_plots"),
    **dict.fromkeys(
        (
            "plot_amdahl",
            "plot_capacities",
            "plot_dennard",
            "plot_energies",
            "plot_latencies",
            "plot_moore",
            "plot_sweep",
            "plot_tiles",
        ),
        "machines",
    ),
    **dict.fromkeys(("plot_breakdown", "plot_memory", "plot_pipeline"), "training_plots"),
}


__getattr__ = importing(__name__, _HOMES)
