"""Outputs as Markdown: which form is shown, what is dropped, colours, images."""

from __future__ import annotations

from typing import Any

from mlsim_book.run.outputs import (
    Figure,
    ansi_to_html,
    mime_of,
    output_classes,
    output_markdown,
    wanted_outputs,
)


def result(**data: str) -> dict[str, Any]:
    named = {
        {"svg": "image/svg+xml", "png": "image/png"}.get(name, f"text/{name}"): text
        for name, text in data.items()
    }
    return {"output_type": "execute_result", "data": named, "metadata": {}, "execution_count": 1}


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(output: dict[str, Any], *, asis: bool = False) -> str:
    return output_markdown(output, Figure("f/x"), {}, asis=asis)


def test_which_form_is_shown_and_what_is_dropped() -> None:
    html, svg = {"html": "<b>"}, {"svg": "<svg/>"}
    for data, mime in (
        ({}, "text/plain"),
        (html, "text/html"),
        (html | {"markdown": "m"}, "text/html"),
        ({"png": "eA==", "markdown": "m"}, "text/markdown"),
        ({"png": "eA=="} | svg, "image/svg+xml"),
    ):
        assert mime_of(result(plain="1", **data)) == mime
    out, err = stream("stdout", "a"), stream("stderr", "b")
    assert wanted_outputs([out, err], warning=False) == [out]
    assert wanted_outputs([out, err], warning=True) == [out, err]
    (math,) = wanted_outputs([result(latex="$x^2$", plain="x**2", png="eA==")], warning=True)
    assert shown(math) == "$x^2$\n"
    (block,) = wanted_outputs([result(latex=r"\begin{align}x\end{align}")], warning=True)
    assert shown(block) == "$$\n\\begin{align}x\\end{align}\n$$\n"
    # echoes of plotting go
    image = {**result(svg="<svg/>", plain="<Figure>"), "output_type": "display_data"}
    plains = ("[<matplotlib.lines.Line2D at 0x0>]", "(0.0, 1.0)", "a string")
    line, axes, text = (result(plain=each) for each in plains)
    assert wanted_outputs([line, axes, text], warning=True) == [axes, text]
    assert wanted_outputs([line, axes, text, image], warning=True) == [text, image]


def test_a_drawing_gives_its_own_alternative_text_unless_the_page_has_one() -> None:
    svg = '<svg width="9pt"><title>A</title>\n<desc>A &amp; B: "1 &lt; 2".</desc><g/></svg>'
    for pairs, told in (({}, r"A & B: \"1 < 2\"."), ({"fig-alt": "mine"}, "mine")):
        made = output_markdown(result(svg=svg), Figure("f/x", pairs=pairs), {}, asis=False)
        assert f'fig-alt="{told}"' in made
    assert "fig-alt" not in shown(result(svg="<svg><g><desc>of a part</desc></g></svg>"))


def test_text_html_and_asis() -> None:
    assert shown(stream("stdout", "a\n```\nb")) == "````\na\n```\nb\n````\n"
    assert shown(stream("stdout", "**b**\n"), asis=True) == "**b**\n"
    assert shown(stream("stderr", "\x1b[2Kred\n")) == "```\nred\n```\n"
    html = "<div>\n<style scoped>\n .x {}\n</style>\n<table></table>\n</div>"
    assert shown(result(html=html)) == "```{=html}\n<div>\n<table></table>\n</div>\n```\n"
    error = {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": []}
    assert shown(error) == "```\nE: bad\n```\n"
    assert "<pre>at <span" in shown({**error, "traceback": ["at \x1b[31mline 1\x1b[0m"]})
    assert output_classes(error)[1] == "cell-output-error"
    assert output_classes(result(markdown="m"))[1:] == [
        "cell-output-display", "cell-output-markdown",
    ]  # fmt: skip
    assert output_classes(result(html="h"))[1:] == ["cell-output-display"]


def test_images_become_files() -> None:
    files: dict[str, bytes] = {}
    figure = Figure("p_files/x", "fig-a", "A *b*", pairs={"fig-alt": 'say "hi"', "fig-pos": None})
    text = output_markdown(result(png="eA=="), figure, files, asis=False)
    assert text == '![A *b*](p_files/x.png){#fig-a fig-alt="say \\"hi\\""}\n'
    assert files == {"p_files/x.png": b"x"}
    linked = output_markdown(result(svg="<svg/>"), Figure("x", link="a.html"), files, asis=False)
    assert linked == "[![](x.svg)](a.html)\n"


def test_colours_become_spans() -> None:
    text = shown(result(plain="\x1b[0;31ma<b\x1b[39m c\x1b[38;5;4md\x1b[m"))
    assert text.startswith("::: {.ansi-escaped-output}\n```{=html}\n<pre>")
    assert '<span class="ansi-red-fg">a&lt;b</span> c<span class="ansi-blue-fg">d</span>' in text
    assert ansi_to_html("\x1b[1m\x1b[92mx\x1b[22;0my") == (
        '<span class="ansi-bold ansi-bright-green-fg">x</span>y'
    )
    text = shown(stream("stderr", "\x1b[48;2;1;2;3m\x1b[4mx\x1b[24m\x1b[49my"))
    style = "background-color:rgb(1,2,3);text-decoration:underline"
    assert f'<span style="{style}">x</span>y' in text


NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def look(codes: str) -> str:
    """Return the attributes of a text after one code; "" for a text without any."""
    shown = ansi_to_html(f"\x1b[{codes}mx")
    return "" if shown == "x" else shown.removeprefix("<span ").removesuffix(">x</span>")


def test_each_code_has_its_look() -> None:
    """As ECMA-48 and xterm have them: of 256, 16 names, a cube of 6, and 24 greys by tens from 8."""
    for number, name in enumerate(NAMES):
        for first, wanted in ((30, f"{name}-fg"), (40, f"{name}-bg"), (90, f"bright-{name}-fg"),
                              (100, f"bright-{name}-bg")):  # fmt: skip
            assert look(str(first + number)) == f'class="ansi-{wanted}"'
        assert look(f"38;5;{number}") == f'class="ansi-{name}-fg"'
        assert look(f"48;5;{8 + number}") == f'class="ansi-bright-{name}-bg"'
    cube = {
        16: (0, 0, 0), 21: (0, 0, 255), 22: (0, 95, 0), 46: (0, 255, 0), 52: (95, 0, 0),
        67: (95, 135, 175), 208: (255, 135, 0), 231: (255, 255, 255), 232: (8, 8, 8),
        243: (118, 118, 118), 255: (238, 238, 238), 300: (238, 238, 238),
    }  # fmt: skip
    for number, (red, green, blue) in cube.items():
        assert look(f"38;5;{number}") == f'style="color:rgb({red},{green},{blue})"', number
    assert look("48;2;1;2;300;1") == 'style="background-color:rgb(1,2,255)" class="ansi-bold"'
    alone = {
        "1": 'class="ansi-bold"', "2": 'style="opacity:0.7"', "3": 'style="font-style:italic"',
        "4": 'style="text-decoration:underline"', "38;5": "", "48;2;1;2": "", "7": "", "98": "", "": "",
    }  # fmt: skip
    assert {codes: look(codes) for codes in alone} == alone
    ends = {"1": "22", "3": "23", "4": "24", "31": "39", "41": "49", "1;3": "0"}
    for on, off in ends.items():
        assert ansi_to_html(f"\x1b[{on}m\x1b[{off}mx\x1b[K") == "x"
