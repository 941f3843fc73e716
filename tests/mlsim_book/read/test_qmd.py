"""Parsing .qmd: what is a cell, where each line stands, which divs pair up, what is included."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import cases, text, untold

from mlsim_book.errors import Problem, Problems, SourceError
from mlsim_book.read.lines import SourceLine, check_divs, expand_includes, read_lines, split_lines
from mlsim_book.read.qmd import Cell, Document, parse_blocks, read_document


def cells(text: str) -> list[Cell]:
    return [b for b in parse_blocks(split_lines(text, file="a.qmd")) if isinstance(b, Cell)]


def document(tmp_path: Path, text: str, problems: Problems | None = None) -> Document:
    path = tmp_path / "a.qmd"
    path.write_text(text, encoding="utf-8")
    return read_document(path, root=tmp_path, problems=problems or Problems())


def test_cells_in_lists_and_longer_fences() -> None:
    listed = """\
- item

  ```{python}
  #| echo: false
  if True:
      x = 1
  ```

````{python}
s = '''
```
'''
````
"""
    first, second = cells(listed)
    assert first.source == "if True:\n    x = 1"
    assert (first.indent, first.line, first.code[0].line) == ("  ", 3, 5)
    assert second.source == "s = '''\n```\n'''"
    assert (first.number, second.number) == (2, 3)
    for fence in ("``` {python}", "```{python} ", "```{python echo=FALSE}", "```{python, x}"):
        assert cells(f"{fence}\n1\n```\n")[0].source == "1"
    (cell,) = cells("```{python}\n#|echo: false\n#| label: a\n\n\n1\n\n2\n\n```\n")
    assert (cell.source, cell.code[0].line, cell.option_line("label")) == ("1\n\n2", 6, 3)
    (only,) = cells(text("only_cell.qmd.txt"))  # of many that are none
    assert only.source == "7"


def test_front_matter(tmp_path: Path) -> None:
    page = document(tmp_path, "---\ntitle: A\nfig-width: 3\n---\n\nText\n\n---\n\nb: 2\n")
    assert page.front_matter == {"title": "A", "fig-width": 3}
    assert document(tmp_path, "---\n\nA rule, no YAML.\n").front_matter == {}
    with pytest.raises(SourceError, match=r"a\.qmd:1: .*not closed"):
        document(tmp_path, "---\ntitle: A\n\nText\n")
    with pytest.raises(SourceError, match=r"a\.qmd:3: 'toc'"):
        document(tmp_path, "---\ntitle: A\ntoc: sometimes\n---\n")
    with pytest.raises(SourceError, match="name: value"):
        document(tmp_path, "---\n- a\n---\n")
    cell = "```{python}\n#| label: same\n1\n```\n\n"
    with pytest.raises(SourceError, match=r"a\.qmd:6: .*'same'.*a\.qmd:1"):
        document(tmp_path, cell + cell)
    (tmp_path / "a.qmd").write_bytes("\ufeff# A\r\n\r\n```{python}\r\n1\r\n```\r\n".encode())
    page = read_document(tmp_path / "a.qmd", root=tmp_path, problems=Problems())
    assert page.cells[0].source == "1"  # after a mark of Windows, with its line ends


def divs(text: str) -> list[Problem]:
    problems = Problems()
    check_divs(split_lines(text, file="a.qmd"), problems)
    return problems.found


def test_what_is_not_closed_is_refused_at_its_line() -> None:
    assert untold(cells, "wrong_sources.toml") == []
    assert untold(divs, "wrong_divs.toml") == []
    assert [text for (text,) in cases("good_divs.toml") if divs(text)] == []
    for above in ("Text\n", "Text\n    more\n"):
        (glued,) = divs(f"{above}::: {{.b}}\nx\n:::\n")
        assert glued.line == 1 + above.count("\n")
        assert "blank line" in (glued.hint or "")


# -------------------------------------------------------------------- includes
def included(page: Path) -> tuple[list[SourceLine], list[str]]:
    lines, used = expand_includes(read_lines(page, name="a.qmd"), path=page, root=page.parent)
    return [line for line in lines if line.text], [path.name for path in used]


def test_nested_includes_keep_their_places(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    page = tmp_path / "a.qmd"
    page.write_text("one\n\n{{< include parts/_b.qmd >}}\n\nfour\n")
    nested = '---\nx: 1\n---\ntwo\n{{< include "parts/_c.qmd" >}}\n'
    (tmp_path / "parts" / "_b.qmd").write_text(nested)
    (tmp_path / "parts" / "_c.qmd").write_text("{{< include /_d.qmd >}}\n")
    (tmp_path / "_d.qmd").write_text("three\n")
    lines, used = included(page)
    assert [(line.text, line.file, line.line) for line in lines] == [
        ("one", "a.qmd", 1), ("two", "parts/_b.qmd", 4), ("three", "_d.qmd", 1),
        ("four", "a.qmd", 5),
    ]  # fmt: skip
    assert used == ["_b.qmd", "_c.qmd", "_d.qmd"]
    # in code, too, but not escaped nor in a line
    escaped = ["{{{< include _no.qmd >}}}", "see {{< include x >}}"]
    page.write_text("\n".join(["```{python}", "{{< include a.py >}}", "```", *escaped]))
    (tmp_path / "a.py").write_text("import math\nmath.pi\n")
    lines, _ = included(page)
    texts = ["```{python}", "import math", "math.pi", "```", *escaped]
    assert [line.text for line in lines] == texts
    assert (lines[2].file, lines[2].line) == ("a.py", 2)


def test_an_include_starts_from_the_page_and_what_is_missing_is_named(tmp_path: Path) -> None:
    """As in Quarto, a nested include starts from the page."""
    (tmp_path / "parts").mkdir()
    page = tmp_path / "a.qmd"
    page.write_text("\n{{< include _prt.qmd >}}\n")
    (tmp_path / "_part.qmd").write_text("x")
    with pytest.raises(SourceError, match=r"(?s)a\.qmd:2: .*'_prt\.qmd'.*_part\.qmd"):
        included(page)
    page.write_text("{{< include parts/_b.qmd >}}\n")
    (tmp_path / "parts" / "_b.qmd").write_text("\n{{< include _c.qmd >}}\n")
    (tmp_path / "parts" / "_c.qmd").write_text("beside\n")
    with pytest.raises(SourceError, match=r"parts/_b\.qmd:2: .*'_c\.qmd'") as caught:
        included(page)
    assert "write '/parts/_c.qmd'" in str(caught.value)
    (tmp_path / "_c.qmd").write_text("by the page\n")
    assert [line.text for line in included(page)[0]] == ["by the page"]
    (tmp_path / "_c.qmd").write_text("x\n{{< include a.qmd >}}\n")
    circle = r"_c\.qmd:2: .*a\.qmd -> parts/_b\.qmd -> _c\.qmd -> a\.qmd"
    with pytest.raises(SourceError, match=circle):
        included(page)


def test_a_cell_of_an_included_file_is_a_cell_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "a.qmd").write_text("# A\n\n{{< include _b.qmd >}}\n")
    (tmp_path / "_b.qmd").write_text("---\ntitle: B\n...\n\n```{python}\n1\n```\n")
    page = read_document(tmp_path / "a.qmd", root=tmp_path, problems=Problems())
    assert [(each.file, each.line, each.source) for each in page.cells] == [("_b.qmd", 5, "1")]
    assert page.front_matter == {}
    assert page.included == (tmp_path / "_b.qmd",)
