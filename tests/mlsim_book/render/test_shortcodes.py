"""Shortcodes: what each becomes, and which stay."""

from __future__ import annotations

from pathlib import Path

from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.lines import Reporter
from mlsim_book.render.shortcodes import expand_shortcodes

CALLS = """{{< var v.n >}} {{< meta level >}} {{{< var v.n >}}} {{< env NOT_SET_HERE x >}}

{{< nope >}}
{{< meta title >}}, {{< version >}}
{{< lipsum 2 >}}
{{< var gone.deep x >}} {{< meta colour >}} {{< env NOT_SET_HERE >}} {{< var >}} {{< var 'x >}}
{{< pagebreak >}}
"""


def test_shortcodes(tmp_path: Path) -> None:
    (tmp_path / "_variables.yml").write_text("v: {n: 3}\n")
    chapter, problems = Chapter("a.qmd", "a.html", "T", 1), Problems()
    metadata = {"level": "easy", "colour": "blue", "book": {"title": "Book", "colour": "green"}}
    project = Project(tmp_path, "Book", (chapter,), metadata=metadata)
    page = ExecutedPage(chapter, CALLS, {"colour": "red"}, {}, CALLS)
    lines = expand_shortcodes(page, project, Reporter(problems, tmp_path)).splitlines()
    assert lines[:4] == ["3 easy {{< var v.n >}} x", "", "{{< nope >}}", "Book, 1.10.18"]
    assert lines[4] == "{{< lipsum 2 >}}"
    assert lines[5] == "**?var:gone.deep** red **?env:NOT_SET_HERE** **?var** **?var:'x**"
    assert '<div style="page-break-after: always;"></div>' in lines
    nope, _, *known = problems.found
    assert (nope.line, nope.message) == (3, "the shortcode {{< nope >}} can't be expanded")
    assert (nope.hint or "").startswith("Known are: ")
    assert [(each.line, each.hint) for each in known] == [(6, None)] * 4
