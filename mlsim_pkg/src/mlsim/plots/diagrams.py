"""A solver's equations as a graph: from what is known to what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsim.equations import Equation, plan
from mlsim.errors import unknown_name
from mlsim.plots.drawing import attach, panels
from mlsim.quantities import term
from mlsim.solvers import SOLVERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def equation_layers(equations: Sequence[Equation]) -> dict[str, int]:
    """Give every quantity a row: 0 for what is known, then one more than its inputs.

    >>> from mlsim.equations import EQUATIONS
    >>> equation_layers([EQUATIONS["memory_time"]])
    {'bytes_moved': 0, 'memory_bandwidth': 0, 'memory_time': 1}
    """
    made: dict[str, list[str]] = {}  # a quantity may be had in two ways: below both
    for each in equations:
        made.setdefault(each.yields, []).extend(each.inputs)
    rows: dict[str, int] = {}

    def row(name: str) -> int:
        if name not in rows:
            inputs = made.get(name, ())
            rows[name] = 1 + max(row(each) for each in inputs) if inputs else 0
        return rows[name]

    for name in sorted({each for e in equations for each in e.inputs} | set(made)):
        row(name)
    return rows


def describe_equations(equations: Sequence[Equation]) -> str:
    """Return the graph in words: a sentence for each equation, in an order that works.

    >>> from mlsim.equations import EQUATIONS
    >>> describe_equations([EQUATIONS["memory_time"]])
    'memory time from bytes moved and memory bandwidth.'
    """
    rows = equation_layers(equations)
    sentences = []
    for each in sorted(equations, key=lambda e: (rows[e.yields], e.yields)):
        inputs = [name.replace("_", " ") for name in each.inputs]
        listed = " and ".join([", ".join(inputs[:-1]), inputs[-1]] if inputs[1:] else inputs)
        sentences.append(f"{each.yields.replace('_', ' ')} from {listed}.")
    text = " ".join(sentences)
    return text[0].lower() + text[1:]


def leading_to(*results: str, solver: str = "Engine.solve") -> tuple[Equation, ...]:
    """Return the equations of a solver that lead to some results.

    Raises
    ------
    UnknownNameError
        If there is no such solver, or it does not compute a result.

    >>> [each.name for each in leading_to("ridge_point")]
    ['ridge_point']
    """
    if solver not in SOLVERS:
        raise unknown_name("solver", solver, SOLVERS)
    made = {each.yields for each in SOLVERS[solver]}
    for name in results:
        if name not in made:
            raise unknown_name("result of this solver", name, made)
    known = {name for each in SOLVERS[solver] for name in each.inputs} - made
    return plan(SOLVERS[solver], known, results).steps


def plot_equations(*results: str, solver: str = "Engine.solve") -> Figure:
    """Draw the equations that lead to some results: inputs above what they give.

    Raises
    ------
    UnknownNameError
        If there is no such solver, or it does not compute a result.

    >>> type(plot_equations("latency")).__name__
    'Figure'
    """
    equations = leading_to(*results, solver=solver)
    places = _places(equations)
    depth = max(row for _, row in places.values())
    figure, ((ax,),) = panels(1, 1, 7.2, 0.8 * depth + 1)
    arrow = {"arrowstyle": "-|>", "color": "#99A3AD", "linewidth": 0.8, "shrinkA": 0}
    for each in equations:
        for name in each.inputs:
            (x, row), (end, below) = places[name], places[each.yields]
            ax.annotate("", (end, -below + 0.22), (x, -row - 0.22), zorder=1, arrowprops=arrow)
    made = {each.yields for each in equations}
    middle = {"ha": "center", "va": "center", "fontsize": 11, "zorder": 2}
    for name, (x, row) in places.items():
        fill, edge = ("white", "#0072B2") if name in made else ("#E8F1F8", "#8899AA")
        box = {"boxstyle": "round,pad=0.3", "facecolor": fill, "edgecolor": edge}
        ax.text(x, -row, f"${term(name).symbol}$", bbox=box, **middle)
    ax.set(xlim=(-0.6, max(x for x, _ in places.values()) + 0.6), ylim=(-depth - 0.5, 0.5))
    ax.axis("off")
    rows = equation_layers(equations)
    ordered = sorted(equations, key=lambda each: (rows[each.yields], each.yields))
    words = [(each.yields, ", ".join(each.inputs)) for each in ordered]
    heads = ("Quantity", "Computed from")
    attach(ax, [{h: w.replace("_", " ") for h, w in zip(heads, row, strict=True)} for row in words])
    return figure


def _places(equations: Sequence[Equation]) -> dict[str, tuple[float, int]]:
    """Place boxes row by row, each near the middle of what it comes from or leads to."""
    rows = equation_layers(equations)
    # Something known stands just above its first use, not far at the top.
    for name, row in rows.items():
        uses = [rows[e.yields] for e in equations if name in e.inputs]
        if row == 0 and uses:
            rows[name] = min(uses) - 1
    by_row: dict[int, list[str]] = {}
    for name in sorted(rows):
        by_row.setdefault(rows[name], []).append(name)
    width = max(len(names) for names in by_row.values())
    places: dict[str, tuple[float, int]] = {}
    made = {each.yields: each for each in equations}

    def middle(name: str) -> float:
        """Where a box wants to be: below its inputs, or above its first use."""
        if name in made:
            inputs = [places[each][0] for each in made[name].inputs if each in places]
            return sum(inputs) / len(inputs)
        users = [i for i, each in enumerate(equations) if name in each.inputs]
        return users[0] * width / len(equations)

    for row in sorted(by_row):
        names = sorted(by_row[row], key=lambda name: (middle(name), name))
        step = (width - 1) / max(len(names) - 1, 1)
        start = 0.0 if len(names) > 1 else (width - 1) / 2
        for index, name in enumerate(names):
            places[name] = (start + index * step, row)
    return places
