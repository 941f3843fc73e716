"""Outputs as Markdown: which form is shown, what is dropped, colours, images."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim_book.read.stable_outputs import sanitize
from mlsim_book.run.ansi import ansi_to_html
from mlsim_book.run.outputs import Figure, mime_of, output_classes, output_markdown, wanted_outputs


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


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        ({"plain": "1"}, "text/plain"),
        ({"plain": "1", "html": "<b>"}, "text/html"),
        ({"plain": "1", "html": "<b>", "markdown": "m"}, "text/html"),
        ({"plain": "1", "png": "eA==", "markdown": "m"}, "text/markdown"),
        ({"plain": "1", "png": "eA==", "svg": "<svg/>"}, "image/svg+xml"),
    ],
)
def test_the_form_that_is_shown(data: dict[str, str], mime: str) -> None:
    assert mime_of(result(**data)) == mime


def test_echoes_of_plotting_go() -> None:
    image = {**result(svg="<svg/>", plain="<Figure>"), "output_type": "display_data"}
    line, axes, text = (
        result(plain="[<matplotlib.lines.Line2D at 0x0>]"),
        result(plain="(0.0, 1.0)"),
        result(plain="a string"),
    )
    assert wanted_outputs([line, axes, text], warning=True) == [axes, text]
    assert wanted_outputs([line, axes, text, image], warning=True) == [text, image]


def test_warnings_can_be_dropped() -> None:
    out, err = stream("stdout", "a"), stream("stderr", "b")
    assert wanted_outputs([out, err], warning=False) == [out]
    assert wanted_outputs([out, err], warning=True) == [out, err]


def test_latex_becomes_markdown() -> None:
    (math,) = wanted_outputs([result(latex="$x^2$", plain="x**2", png="eA==")], warning=True)
    assert shown(math) == "$x^2$\n"
    (block,) = wanted_outputs([result(latex=r"\begin{align}x\end{align}")], warning=True)
    assert shown(block) == "$$\n\\begin{align}x\\end{align}\n$$\n"


def test_text_html_and_asis() -> None:
    assert shown(stream("stdout", "a\n```\nb")) == "````\na\n```\nb\n````\n"
    assert shown(stream("stdout", "**b**\n"), asis=True) == "**b**\n"
    assert shown(stream("stderr", "\x1b[2Kred\n")) == "```\nred\n```\n"
    html = "<div>\n<style scoped>\n .x {}\n</style>\n<table></table>\n</div>"
    assert shown(result(html=html)) == "```{=html}\n<div>\n<table></table>\n</div>\n```\n"
    error = {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": []}
    assert shown(error) == "```\nE: bad\n```\n"
    assert output_classes(error)[1] == "cell-output-error"


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


def test_what_is_printed_keeps_its_colours() -> None:
    text = shown(stream("stderr", "\x1b[48;2;1;2;3m\x1b[4mx\x1b[24m\x1b[49my"))
    style = "background-color:rgb(1,2,3);text-decoration:underline"
    assert f'<span style="{style}">x</span>y' in text


def test_an_error_shows_its_traceback() -> None:
    error = {"output_type": "error", "ename": "E", "evalue": "why"}
    assert shown({**error, "traceback": []}) == "```\nE: why\n```\n"
    assert "<pre>at <span" in shown({**error, "traceback": ["at \x1b[31mline 1\x1b[0m"]})


def test_random_ids_and_paths_are_made_the_same() -> None:
    one, two = (
        f'<style type="text/css">\n#T_{name}_row0 {{}}\n</style><table id="T_{name}">'
        for name in ("0a1b2", "ffeed")
    )
    clean = [sanitize(result(html=html))["data"]["text/html"] for html in (one, two)]
    assert clean[0] == clean[1]
    path = stream("stderr", "/tmp/ipykernel_77/1234.py:2: UserWarning: x")
    assert sanitize(path)["text"] == "/tmp/ipykernel_0/0.py:2: UserWarning: x"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("File \x1b[32m/home/a/book/pkg/zoo.py:10\x1b[39m, in f()", "pkg/zoo.py:10"),
        ("File ~/b/pkg/zoo.py:10, in f()", "File pkg/zoo.py:10"),
        ("File /tmp/ipykernel_0/0.py:2", "/tmp/ipykernel_0/0.py:2"),
    ],
)
def test_a_traceback_names_no_folder_of_a_machine(line: str, shown: str) -> None:
    error = {"output_type": "error", "ename": "E", "evalue": "x", "traceback": [line]}
    [found] = sanitize(error)["traceback"]
    assert shown in found
    assert "/home/" not in found
    assert "~" not in found
