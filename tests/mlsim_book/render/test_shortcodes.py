"""Shortcodes: what each becomes, and which stay."""

from __future__ import annotations

import base64
from pathlib import Path

from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.lines import Reporter
from mlsim_book.render.shortcodes import expand_shortcodes, kbd, lipsum, placeholder, video

CALLS = """{{< var v.n >}} {{< meta level >}} {{{< var v.n >}}} {{< env NOT_SET_HERE x >}}

{{< nope >}}
{{< meta title >}}, {{< version >}}
{{< kbd Enter mode=plain >}}
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
    assert '<kbd data-mode="plain" class="kbd">Enter</kbd>' in lines[4]
    assert lines[5] == "**?var:gone.deep** red **?env:NOT_SET_HERE** **?var** **?var:'x**"
    assert '<div style="page-break-after: always;"></div>' in lines
    nope, *known = problems.found
    assert (nope.line, nope.message) == (3, "the shortcode {{< nope >}} can't be expanded")
    assert (nope.hint or "").startswith("Known are: ")
    assert [(each.line, each.hint) for each in known] == [(6, None)] * 4
    text = "{{< lipsum 2 >}}\n{{< placeholder 40 30 >}}\n"
    made = expand_shortcodes(
        ExecutedPage(chapter, text, {}, {}, text), project, Reporter(problems, tmp_path)
    )
    assert "Sed ut perspiciatis" in made
    assert "![](data:image/svg+xml;base64," in made


def test_filler_in_parts_and_images_of_a_size() -> None:
    first = {"L": 1, "S": 2, "N": 3, "A": 4}  # the letters with which paragraphs begin
    calls = {
        "": [1, 2, 3, 4, 5], "3": [1, 2, 3], "2-4": [2, 3, 4], "4-2": [4, 3, 2],
        "5-7": [5, 1, 2],  # there are five
    }  # fmt: skip
    for call, numbers in calls.items():
        parts = (lipsum(call.split()) or "").split("\n\n")
        found = [5 if each.startswith("Nam") else first[each[0]] for each in parts]
        assert found == numbers, call
    sizes = {"70 30": (70, 30, 3), "50": (50, 50, 5), "": (100, 100, 10), "9 7": (9, 7, 1)}
    for call, (width, height, letters) in sizes.items():
        image = placeholder(call.split()) or ""
        svg = base64.b64decode(image.partition("base64,")[2].rstrip(")")).decode()
        assert f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"' in svg
        assert f'font-size="{letters}"' in svg
        assert f">{width} x {height}</text>" in svg
    assert lipsum(["many"]) is placeholder(["wide"]) is placeholder(["40", "high"]) is None


WIDE = ' style="aspect-ratio: {}; width: 100%"'
VIDEOS = {
    "https://www.youtube.com/watch?v=ab_c":
        f'"https://www.youtube.com/embed/ab_c"{WIDE.format("16 / 9")} ',
    "https://youtu.be/ab start=7": '"https://www.youtube.com/embed/ab?start=7" ',
    "https://vimeo.com/123 aspect-ratio=4x3":
        f'"https://player.vimeo.com/video/123"{WIDE.format("4 / 3")} ',
    "https://players.brightcove.net/1 height=30 width=40": 'net/1" width="40" height="30" title=',
    "src=film.mp4 width=5":
        'preload="metadata" width="5" title="A film"><source src="film.mp4">',
}  # fmt: skip


def test_videos_and_keys_of_other_systems() -> None:
    for call, found in VIDEOS.items():
        html = video([*call.split(), "title=A film"]) or ""
        assert found in html, html
        assert 'title="A film"' in html
        assert ("<iframe" in html) == ("http" in call)
    assert video([]) is kbd(["mode=plain"]) is kbd([]) is None
    assert 'title="So"' in (video(["a.mp4", "aria-label=So"]) or "")
    assert kbd(["win=Ctrl-S", "linux=F2", "x=y"]) == (
        '`<kbd title="linux: F2, windows: Ctrl-S" data-linux="F2" data-windows="Ctrl-S">Ctrl-S</kbd>`{=html}'
    )
