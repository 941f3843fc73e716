"""Includes: expanded where they stand, with every line's own place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.includes import expand_includes
from mlsim_book.read.lines import read_lines
from mlsim_book.read.qmd import read_document


def test_nested_includes_keep_their_places(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    page = tmp_path / "a.qmd"
    page.write_text("one\n\n{{< include parts/_b.qmd >}}\n\nfour\n")
    (tmp_path / "parts" / "_b.qmd").write_text(
        '---\nx: 1\n---\ntwo\n{{< include "parts/_c.qmd" >}}\n'
    )
    (tmp_path / "parts" / "_c.qmd").write_text("{{< include /_d.qmd >}}\n")
    (tmp_path / "_d.qmd").write_text("three\n")
    lines, used = expand_includes(read_lines(page, name="a.qmd"), path=page, root=tmp_path)
    assert [(line.text, line.file, line.line) for line in lines if line.text] == [
        ("one", "a.qmd", 1),
        ("two", "parts/_b.qmd", 4),
        ("three", "_d.qmd", 1),
        ("four", "a.qmd", 5),
    ]
    assert [path.name for path in used] == ["_b.qmd", "_c.qmd", "_d.qmd"]


def test_in_code_too_but_not_escaped_nor_in_a_line(tmp_path: Path) -> None:
    page = tmp_path / "a.qmd"
    text = "{{{< include _no.qmd >}}}\nsee {{< include x >}}\n"
    page.write_text(f"```{{python}}\n{{{{< include a.py >}}}}\n```\n\n{text}")
    (tmp_path / "a.py").write_text("import math\nmath.pi\n")
    lines, _ = expand_includes(read_lines(page, name="a.qmd"), path=page, root=tmp_path)
    assert "\n".join(each.text for each in lines).startswith(
        f"```{{python}}\nimport math\nmath.pi\n```\n\n{text.rstrip()}"
    )
    assert (lines[2].file, lines[2].line) == ("a.py", 2)


def test_missing_names_the_nearest(tmp_path: Path) -> None:
    page = tmp_path / "a.qmd"
    page.write_text("\n{{< include _prt.qmd >}}\n")
    (tmp_path / "_part.qmd").write_text("x")
    with pytest.raises(SourceError, match=r"a\.qmd:2: .*'_prt\.qmd'") as caught:
        expand_includes(read_lines(page, name="a.qmd"), path=page, root=tmp_path)
    assert "_part.qmd" in str(caught.value)


def test_a_nested_include_starts_from_the_page_as_in_quarto(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    page = tmp_path / "a.qmd"
    page.write_text("{{< include parts/_b.qmd >}}\n")
    (tmp_path / "parts" / "_b.qmd").write_text("\n{{< include _c.qmd >}}\n")
    (tmp_path / "parts" / "_c.qmd").write_text("beside\n")
    with pytest.raises(SourceError, match=r"parts/_b\.qmd:2: .*'_c\.qmd'") as caught:
        expand_includes(read_lines(page, name="a.qmd"), path=page, root=tmp_path)
    assert "write '/parts/_c.qmd'" in str(caught.value)
    (tmp_path / "_c.qmd").write_text("by the page\n")
    lines, _ = expand_includes(read_lines(page, name="a.qmd"), path=page, root=tmp_path)
    assert [line.text for line in lines if line.text] == ["by the page"]


def test_a_circle_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "a.qmd"
    page.write_text("{{< include _b.qmd >}}\n")
    (tmp_path / "_b.qmd").write_text("x\n{{< include a.qmd >}}\n")
    with pytest.raises(SourceError, match=r"_b\.qmd:2: .*a\.qmd -> _b\.qmd -> a\.qmd"):
        expand_includes(read_lines(page, name="a.qmd"), path=page, root=tmp_path)


def test_a_cell_of_an_included_file_is_a_cell_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "a.qmd").write_text("# A\n\n{{< include _b.qmd >}}\n")
    (tmp_path / "_b.qmd").write_text("---\ntitle: B\n...\n\n```{python}\n1\n```\n")
    page = read_document(tmp_path / "a.qmd", root=tmp_path, problems=Problems())
    assert [(each.file, each.line, each.source) for each in page.cells] == [("_b.qmd", 5, "1")]
    assert page.front_matter == {}
    assert page.included == (tmp_path / "_b.qmd",)
