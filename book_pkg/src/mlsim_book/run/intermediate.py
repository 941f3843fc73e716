"""An executed page -> the Markdown that Quarto itself writes, for pandoc to read.

::: {#cell-fig-a .cell execution_count="1"}
``` {.python .cell-code}
plot()
```

::: {.cell-output .cell-output-display}
![Caption](page_files/figure-html/fig-a-output-1.svg){#fig-a}
:::
:::
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from mlsim_book.read.lines import attributes, fence_for
from mlsim_book.read.qmd import Cell, Defaults, Document, Markdown
from mlsim_book.run.inline import find_inline, substitute
from mlsim_book.run.outputs import (
    Figure,
    is_display,
    is_image,
    output_classes,
    output_markdown,
    wanted_outputs,
)
from mlsim_book.run.repair import mend
from mlsim_book.run.results import Output, Results

# Cell options that the page hears of in another way, or not at all.
_NOT_ATTRIBUTES = (
    "echo", "eval", "output", "include", "warning", "error", "label", "id", "classes", "panel",
    "column", "fig-column", "tbl-column", "fig-cap", "fig-subcap", "fig-scap", "fig-link",
    "fig-align", "fig-env", "fig-pos", "fig-alt", "fig-cap-location", "cap-location", "lst-label",
    "lst-cap", "code-fold", "code-summary", "code-overflow", "code-line-numbers", "filename",
    "fig-format", "fig-dpi", "autodep", "slideshow", "export",
)  # fmt: skip
_FIGURE_PAIRS = ("fig-align", "fig-env", "fig-alt", "fig-pos", "fig-scap")


def write_markdown(
    document: Document, results: Results, defaults: Defaults, *, source: str
) -> tuple[str, dict[str, bytes]]:
    """Return a page's intermediate Markdown, and its figures.

    Parameters
    ----------
    source
        The chapter's path from the book's folder, e.g. `tutorials/hello.qmd`.

    Returns
    -------
    The Markdown, and the figures by path from the book's folder.
    """
    page = PurePosixPath(source)
    pieces, files = write_blocks(
        document, results, defaults, figures=f"{page.stem}_files/figure-html"
    )
    placed = {(page.parent / path).as_posix(): data for path, data in files.items()}
    return "".join(pieces), placed


def write_blocks(
    document: Document, results: Results, defaults: Defaults, *, figures: str
) -> tuple[list[str], dict[str, bytes]]:
    """Return the Markdown of each block of a page, and its figures by path from the page.

    `figures` is what the paths of figures begin with: a folder.
    """
    files: dict[str, bytes] = {}
    pieces: list[str] = []
    loose: list[int] = []  # those without a div around: one may close what another opens
    values = list(results.values)
    outputs = iter(results.cells)
    count = 0
    for block in document.blocks:
        if isinstance(block, Markdown):
            used = len(find_inline(block))
            pieces.append(substitute(block, values[:used]))
            values = values[used:]
        else:
            count += 1
            writer = _CellWriter(block, next(outputs), defaults, count=count)
            writer.figures, writer.files = figures, files
            lines = writer.write().splitlines(keepends=True)
            pieces.append("".join(block.indent * bool(each.strip()) + each for each in lines))
            if writer.loose:
                loose.append(len(pieces) - 1)
    for at, text in zip(loose, mend([pieces[at] for at in loose]), strict=True):
        pieces[at] = text
    return pieces, files


class _CellWriter:
    """Writes one cell and what it gave."""

    figures: str  # the folder of figures, from the page
    files: dict[str, bytes]  # takes the figures
    loose = False  # its outputs are text of the page, with no div around them

    def __init__(
        self, cell: Cell, outputs: Sequence[Output], defaults: Defaults, *, count: int
    ) -> None:
        self.cell, self.defaults, self.count = cell, defaults, count
        self.outputs = wanted_outputs(outputs, warning=self._of("warning") is not False)
        self.asis = self._of("output") == "asis"
        displayed = [each for each in self.outputs if is_display(each)]
        captions = cell.options.get("fig-cap")
        label = cell.label or ""
        # As Quarto: one displayed object takes the label, else the cell has it.
        self.label_on_cell = bool(label) and (
            self._of("output") is False
            or not displayed
            or (len(displayed) > 1 and not isinstance(captions, list))
            or label.startswith("tbl-")
            or any(name.startswith("layout") for name in cell.options)
        )

    def _of(self, name: str) -> Any:
        return self.defaults.of(self.cell.options, name)

    def write(self) -> str:
        """Return the cell's Markdown, with a blank line after it."""
        shown = self._of("echo") is not False and bool(self.cell.code)
        if self._of("include") is False or not (self.cell.code or self.outputs):
            return ""
        body = [self._code()] if shown else []
        crossref = (self.cell.label or "").startswith(("fig-", "tbl-"))
        self.loose = self.asis and not shown and not crossref
        if self._of("output") is not False:
            outputs = self._outputs()
            body += mend(outputs) if self.asis and not self.loose else outputs
        if not body:
            return ""
        if self.loose:
            return "\n" + "\n".join(body) + "\n\n"
        return f"\n::: {self._cell_attributes()}\n" + "\n".join(body) + ":::\n\n"

    def _cell_attributes(self) -> str:
        options = self.cell.options
        label = self.cell.label
        if label and not self.label_on_cell:
            label = f"cell-{label}"
        if options.get("id"):
            label = str(options["id"])
        classes = ["cell", *str(options.get("classes") or "").split()]
        for name, prefix in (
            ("panel", "panel"),
            ("column", "column"),
            ("fig-column", "fig-column"),
            ("tbl-column", "tbl-column"),
        ):
            if options.get(name):
                classes.append(f"{prefix}-{options[name]}")
        pairs = {name: value for name, value in options.items() if name not in _NOT_ATTRIBUTES}
        if self.label_on_cell and (self.cell.label or "").startswith("fig-"):
            pairs["fig-cap-location"] = self._caption_location()
        pairs["execution_count"] = self.count
        return attributes(label=label, classes=classes, pairs=pairs)

    def _caption_location(self) -> Any:
        options = self.cell.options
        return options.get("fig-cap-location") or options.get("cap-location")

    def _code(self) -> str:
        options = self.cell.options
        source = self.cell.source
        language = "python"
        if self._of("echo") == "fenced":
            kept = [
                line.text
                for line in self.cell.option_lines
                if not line.text.removeprefix("#|").strip().startswith("echo:")
            ]
            ticks = fence_for("\n".join(line.text for line in self.cell.code), least=3)
            source = "\n".join([f"{ticks}{{python}}", *kept, source, ticks])
            language = "markdown"
        classes = [language, "cell-code"]
        overflow = self._of("code-overflow")
        if overflow in {"wrap", "scroll"}:
            classes.append(f"code-overflow-{overflow}")
        ticks = fence_for(source)
        given = attributes(
            label=str(options["lst-label"]).lstrip("#") if "lst-label" in options else None,
            classes=classes,
            pairs=self._code_pairs(),
        )
        return f"{ticks} {given}\n{source}\n{ticks}\n"

    def _code_pairs(self) -> Mapping[str, Any]:
        options = self.cell.options
        fold = self._of("code-fold")
        folds = fold in (True, "show")
        said = "code-fold" in options
        return {
            "lst-cap": options.get("lst-cap"),
            "filename": options.get("filename"),
            "code-fold": fold if folds else False if said else None,
            "code-summary": self._of("code-summary") if folds else None,
            "code-line-numbers": self._of("code-line-numbers"),
        }

    def _outputs(self) -> list[str]:
        cell_caption, captions = self._captions()
        name = self.cell.label or f"cell-{self.cell.number}"
        pieces: list[str] = []
        displayed = 0
        for index, output in enumerate(self.outputs):
            label = caption = None
            if is_display(output):
                displayed += 1
                caption = captions.pop(0) if captions else None
                label = self._output_label(displayed)
            path = f"{self.figures}/{name}-output-{index + 1}"
            figure = Figure(path, label, caption, self._broadcast("fig-link", displayed))
            figure.pairs = self._figure_pairs(displayed)
            figure.themed = bool(self.defaults.values.get("figure-theme"))
            figure.with_data = bool(self.defaults.values.get("figure-data"))
            text = output_markdown(output, figure, self.files, asis=self.asis)
            if caption and not is_image(output):
                text += f"\n{caption}\n"
            pieces.append(text if self.asis else self._wrapped(output, text, label))
        if cell_caption:
            pieces.append(f"\n{cell_caption}\n")
        return pieces

    def _output_label(self, position: int) -> str | None:
        """Return the id of a displayed object: the cell's, or one derived from it."""
        label = self.cell.label
        if label is None or label.startswith("tbl-"):
            return None
        several = sum(is_display(each) for each in self.outputs) > 1
        if self.label_on_cell and not several:
            return None
        return f"{label}-{position}" if several else label

    def _wrapped(self, output: Output, text: str, label: str | None) -> str:
        own = label if is_display(output) and not is_image(output) else None
        counted = output["output_type"] == "execute_result"
        given = attributes(
            label=own,
            classes=output_classes(output),
            pairs={
                "execution_count": self.count if counted else None,
                "html-table-processing": self.cell.options.get("html-table-processing"),
            },
        )
        return f"\n::: {given}\n{text}:::\n"

    def _captions(self) -> tuple[str | None, list[str | None]]:
        """Return the caption of the cell, and those of the displayed objects."""
        options = self.cell.options
        caption, sub = options.get("fig-cap"), options.get("fig-subcap")
        count = sum(is_display(each) for each in self.outputs)
        if sub is not None and sub is not False:
            given = [] if sub is True else sub if isinstance(sub, list) else [sub]
            return _line(caption), [_line(each) for each in given]
        if isinstance(caption, list):
            return None, [_line(each) for each in caption]
        if not isinstance(caption, str | int | float) or isinstance(caption, bool):
            return None, []
        if self.label_on_cell or count > 1:
            return _line(caption), []
        return None, [_line(caption)]

    def _figure_pairs(self, position: int) -> dict[str, Any]:
        pairs = {name: self._broadcast(name, position) for name in _FIGURE_PAIRS}
        if not self.label_on_cell:
            pairs["fig-cap-location"] = self._caption_location()
        return pairs

    def _broadcast(self, name: str, position: int) -> Any:
        """Return an option of the figure at a position: a list gives one each."""
        value = self.cell.options.get(name)
        if isinstance(value, list):
            return value[position - 1] if 0 < position <= len(value) else None
        return value


def _line(caption: Any) -> str | None:
    return None if caption is None else " ".join(str(caption).split())
