"""Parsing .qmd: what is a cell, where each line stands, which divs pair up."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.divs import check_divs
from mlsim_book.read.document import Cell, Document
from mlsim_book.read.lines import split_lines
from mlsim_book.read.qmd import parse_blocks, read_document


def cells(text: str) -> list[Cell]:
    return [b for b in parse_blocks(split_lines(text, file="a.qmd")) if isinstance(b, Cell)]


def document(tmp_path: Path, text: str, problems: Problems | None = None) -> Document:
    path = tmp_path / "a.qmd"
    path.write_text(text, encoding="utf-8")
    return read_document(path, root=tmp_path, problems=problems or Problems())


def test_cells_in_lists_and_longer_fences() -> None:
    text = """\
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
    first, second = cells(text)
    assert first.source == "if True:\n    x = 1"
    assert (first.indent, first.line, first.code[0].line) == ("  ", 3, 5)
    assert second.source == "s = '''\n```\n'''"
    assert (first.number, second.number) == (2, 3)


def test_what_is_not_a_cell() -> None:
    text = """\
````markdown
```{python}
1
```
````

~~~
```{python}
~~~

```python
2
```

```{.python}
3
```

```{{python}}
4
```

```{=html}
<b>5</b>
```

<!--
```{python}
6
```
-->

<!-- a
--> b <!--
```{python}
8
```
-->

`<!--` in code opens no comment.

```{python}
7
```
"""
    (only,) = cells(text)
    assert only.source == "7"


def test_spaces_and_options_in_the_fence() -> None:
    for fence in ("``` {python}", "```{python} ", "```{python echo=FALSE}", "```{python, x}"):
        assert cells(f"{fence}\n1\n```\n")[0].source == "1"


def test_blank_lines_around_the_code_go() -> None:
    (cell,) = cells("```{python}\n#|echo: false\n#| label: a\n\n\n1\n\n2\n\n```\n")
    assert cell.source == "1\n\n2"
    assert cell.code[0].line == 6
    assert cell.option_line("label") == 3


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a\n\n```{python}\n1\n", 3, "cell that opens here is not closed"),
        ("a\n\n````{python}\n1\n", 3, "a line '````' at the same indent"),
        ("```python\n1\n", 1, "code block that opens here is not closed"),
        ("- a\n\n  ```{python}\n  1\n```\n", 3, "same indent"),
        ("a\n\n<!-- b\n\nc\n", 3, "comment that opens here is not closed"),
        ("```{python}\n#| echo: maybe\n```\n", 2, "'maybe'"),
    ],
)
def test_errors_at_their_line(text: str, line: int, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        cells(text)
    assert (caught.value.file, caught.value.line) == ("a.qmd", line)
    assert words in str(caught.value)


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


def test_a_label_used_twice(tmp_path: Path) -> None:
    cell = "```{python}\n#| label: same\n1\n```\n\n"
    with pytest.raises(SourceError, match=r"a\.qmd:6: .*'same'.*a\.qmd:1"):
        document(tmp_path, cell + cell)


def test_windows_line_ends_and_bom(tmp_path: Path) -> None:
    (tmp_path / "a.qmd").write_bytes("\ufeff# A\r\n\r\n```{python}\r\n1\r\n```\r\n".encode())
    page = read_document(tmp_path / "a.qmd", root=tmp_path, problems=Problems())
    assert page.cells[0].source == "1"


GOOD_DIVS = [
    "::: {.a}\nx\n:::\n",
    "::: a\nx\n:::\n",
    "::: a :::\nx\n::::::\n",
    ":::: {.a}\n\n::: {.b}\nx\n:::\n\n::::\n",
    "- a\n\n  ::: {.b}\n  x\n  :::\n",
    "- a\n\n    ::: {.b}\n    x\n    :::\n",
    "```\n:::\n```\n",
    "Indented:\n\n    :::\n",
    "    :::\n",
    "- a\n\nText\n\n    :::\n",
    "    code\n::: {.b}\nx\n:::\n",
    "::: {.a\n  b=c}\nx\n:::\n",
    "<!--\n:::\n-->\n",
    "# A\n::: {.b}\nx\n:::\n",
    "- ::: {.b}\n  x\n  :::\n",
    "- a\n- - ::: {.b}\n    x\n    :::\n  - ::: callout-note\n    x\n    :::\n",
    "1. ::: {.b}\n   x\n   :::\n(a) ::: {.b}\n    x\n    :::\n",
]


def test_divs_that_pair_up() -> None:
    for text in GOOD_DIVS:
        problems = Problems()
        check_divs(split_lines(text, file="a.qmd"), problems)
        assert not problems.found, text


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a\n\n::: {.b}\nx\n", 3, "is not closed"),
        (":::: {.a}\n\n::: {.b}\n:::\n", 1, "is not closed"),
        ("::: {.b}\n:::\n\n:::\n", 4, "closes no div"),
        ("- ::: {.b}\n  x\n", 1, "is not closed"),
        ("- a\nlazy\n\n    ::: {.b}\n    x\n", 4, "is not closed"),
    ],
)
def test_divs_that_do_not(text: str, line: int, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        check_divs(split_lines(text, file="a.qmd"), Problems())
    assert caught.value.line == line
    assert words in str(caught.value)


def test_a_div_glued_to_a_paragraph() -> None:
    for above in ("Text\n", "Text\n    more\n"):
        problems = Problems()
        check_divs(split_lines(f"{above}::: {{.b}}\nx\n:::\n", file="a.qmd"), problems)
        assert problems.found[0].line == 1 + above.count("\n")
        assert "blank line" in (problems.found[0].hint or "")
