"""The fixtures that Quarto itself has rendered, held against our rendering of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REQUIRED = [
    "book-parts",
    "callouts-collapse",
    "callouts-types",
    "cell-figure-one",
    "cell-fold",
    "cell-magics",
    "cell-options-misc",
    "cell-visibility",
    "cite-basic",
    "cite-none",
    "code-annotation",
    "code-blocks",
    "conditional",
    "course-page",
    "divs-spans",
    "duplicate-label",
    "error-cell",
    "error-chapter",
    "error-format-option",
    "error-include",
    "error-inline",
    "error-inline-lines",
    "error-outside-chapter",
    "error-yaml",
    "exec-defaults",
    "footnotes",
    "front-matter",
    "headings-ids",
    "images",
    "includes-css",
    "inline-broken-lines",
    "inline-expr",
    "inline-places",
    "inline-rich",
    "inline-touching",
    "links",
    "lists",
    "margin",
    "math-basic",
    "metadata-files",
    "other-languages",
    "raw-html",
    "results-rich",
    "shortcodes-vars",
    "tables-pipe",
    "tabset-plain",
    "titles-markup",
    "xref-chapters",
    "xref-custom",
    "xref-equations",
    "xref-figures",
    "xref-places",
    "xref-tables",
    "xref-theorems",
    "xref-uncaptioned",
    "xref-unnumbered",
]


@pytest.mark.usefixtures("with_assets")
def test_required_fixtures(conformance: Path, tmp_path: Path) -> None:
    scripts, books = conformance.parent, [str(conformance / name) for name in REQUIRED]
    command = f"{sys.executable} -m mlsim_book.cli build {{src}} --lenient"
    subprocess.run(
        [sys.executable, str(scripts / "render.py"), str(tmp_path), "--cmd", command, *books],
        check=True, capture_output=True, cwd=tmp_path,
    )  # fmt: skip
    run = subprocess.run(
        [sys.executable, str(scripts / "check.py"), str(conformance), str(tmp_path), "-q",
         "--only", *REQUIRED],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    failures = [line for line in run.stdout.splitlines() if line.startswith("FAIL")]
    assert run.returncode == 0, "\n".join(failures)
