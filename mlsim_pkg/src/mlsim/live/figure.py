"""A figure that a reader moves: one object, whose still figure stands wherever no script runs.

    live.figure("systolic", still=drawn, handles=[live.Handle("cycle", 1, 10, start=5)], ...)

Displayed, it offers the still figure as an image, the data of that figure, and a script with its
data for a page that knows how to start one. The script is the module `<view>.js` of this folder,
with those that it imports: it draws, and `live.js` makes the sliders and keeps what readers set in
the page's address. A module may have a stylesheet of its name, which the page links: one that a
script adds has the whole page styled anew. A notebook or a printed page shows the image.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, need, unknown_name
from mlsim.live.handles import Choice, Handle

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MIME = "application/vnd.mlsim-book.script+json"
_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'from "\./([\w.-]+)\.js"')
# Modules that are no views: a view imports them.
_PARTS = ("chart", "live", "systolic_array")


@dataclass(frozen=True)
class Figure:
    """A still figure and what moves it.

    Attributes
    ----------
    still
        The figure that stands where no script runs.
    modules
        ECMAScript modules by file name; `entry` is the one that draws.
    styles
        Stylesheets by file name, in the order in which a page links them.
    data
        What it draws from, with handles and choices: plain values, as JSON has them.
    """

    still: Drawing
    modules: Mapping[str, str]
    styles: Mapping[str, str]
    entry: str
    data: Mapping[str, Any]
    label: str = ""
    svg: str = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the forms in which IPython may show it: the image first of all."""
        script = {"modules": dict(self.modules), "entry": self.entry, "data": dict(self.data)}
        forms: dict[str, Any] = {"image/svg+xml": self.svg, "text/plain": repr(self)}
        forms |= getattr(self.still, "_repr_mimebundle_", dict)()  # its data, if it has any
        script |= {"styles": dict(self.styles)}
        script |= {"handles": [each["name"] for each in self.data["handles"]]}
        script |= {"guess": self.data.get("guess", "")}
        return forms | {MIME: script | {"label": self.label}}

    def __repr__(self) -> str:
        """Return what it is and what moves, on a line."""
        names = [each["name"] for part in ("choices", "handles") for each in self.data[part]]
        return f"<live figure {self.entry.removesuffix('.js')}: {', '.join(names)}>"


def figure(
    view: str,
    *,
    still: Drawing,
    handles: Sequence[Handle] = (),
    choices: Sequence[Choice] = (),
    answer: Any = None,
    data: Mapping[str, Any] | None = None,
    label: str = "",
    guess: str = "",
) -> Figure:
    """Return a figure that a reader moves.

    Parameters
    ----------
    view
        What draws it: the name of a module of `mlsim.live`, such as "systolic".
    still
        The Matplotlib figure that stands where no script runs. It is closed here, so that a cell
        shows it once.
    handles, choices
        What moves, in the order in which it is shown.
    answer
        A compiled question: a module's text as `script`, and `data` for it. The view imports it as
        `answer.js`, and finds its data as `data.answer`.
    data
        What else the view draws from.
    label
        What the settings are called, for who can't see them.
    guess
        The name of a guess on the page that opens the figure: until a reader has answered or
        skipped it, the still figure stands, and nothing moves.

    Raises
    ------
    InvalidValueError
        If two handles or choices have one name, or something in `data` is no plain value.
    UnknownNameError
        If there is no such view.

    >>> from mlsim.hardware.systolic import multiply
    >>> from mlsim.plots import plot_systolic
    >>> run = multiply([[1, 2], [3, 4]], [[5, 6], [7, 8]], rows=2, columns=2, trace=True)
    >>> figure("systolic", still=plot_systolic(run, cycles=[3]), handles=[Handle("cycle", 1, 6)],
    ...        data={"inputs": [[1, 2], [3, 4]], "weights": [[5, 6], [7, 8]]})
    <live figure systolic: cycle>
    """
    names = [*(each.name for each in handles), *(each.name for each in choices)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidValueError(f"two handles or choices are named '{twice[0]}': rename one.")
    shown = {
        **(data or {}),
        "name": view,
        "label": label,
        "handles": [each.as_data() for each in handles],
        "choices": [each.as_data() for each in choices],
        **({"guess": guess} if guess else {}),
    }
    given = {}
    if answer is not None:
        given["answer.js"] = answer.script
        shown["answer"] = answer.data
    try:
        json.dumps(shown, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"data of a live figure must be numbers, texts, lists and mappings: {error}."
        ) from None
    need("matplotlib.pyplot", "a figure", "plots").close(still)
    modules = _modules(view, given)
    return Figure(still, modules, _styles(modules), f"{view}.js", shown, label, _svg(still))


def views() -> tuple[str, ...]:
    """Return the names of the views that there are.

    >>> "systolic" in views()
    True
    """
    names = sorted(path.stem for path in _FOLDER.glob("*.js"))
    return tuple(name for name in names if name not in _PARTS)


def _modules(view: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return a view's module and all that it imports."""
    if view not in views():
        raise unknown_name("view of a live figure", view, views())
    found: dict[str, str] = {}
    wanted = [view]
    while wanted:
        name = wanted.pop()
        if f"{name}.js" in found:
            continue
        found[f"{name}.js"] = text = given.get(f"{name}.js") or _source(name)
        wanted += _IMPORT.findall(text)
    return found


def _styles(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the stylesheets beside modules: what figures share comes first."""
    names = [name.replace(".js", ".css") for name in modules]
    names.sort(key=lambda name: name not in {"live.css", "chart.css"})
    paths = [_FOLDER / name for name in names]
    return {
        path.name: " ".join(path.read_text(encoding="utf-8").split())
        for path in paths
        if path.is_file()
    }


def _source(name: str) -> str:
    """Return the text of a module of this folder."""
    path = _FOLDER / f"{name}.js"
    if not path.is_file():
        raise InvalidValueError(
            f"this view needs the module '{name}.js', which nobody gave: pass what you compiled "
            "as answer=."
        )
    return path.read_text(encoding="utf-8")


def _svg(drawing: Drawing) -> str:
    """Return a figure as SVG, cut to what is drawn, as notebooks do."""
    out = io.StringIO()
    drawing.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    return out.getvalue()
