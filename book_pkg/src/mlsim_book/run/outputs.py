"""One output of a cell -> Markdown, as Quarto writes it for HTML.

Of the forms an object offers, the first of these is taken: JavaScript, HTML,
Markdown (LaTeX counts as such), SVG, PNG, JPEG, text. (An inline expression takes
Markdown before HTML: see `inline`.)
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlsim_book.read.ipynb import strip_ansi
from mlsim_book.read.lines import attributes, fence_for
from mlsim_book.run.figures import DARK, MIME, SUFFIX, dark
from mlsim_book.run.repair import mend, repaired
from mlsim_book.run.results import Output

# What moves a figure, kept beside it: see `render/live_figures.py`.
SCRIPT, LIVE = "application/vnd.mlsim-book.script+json", ".live.json"
_IMAGES = {"image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg"}
_ORDER = ("application/javascript", "text/html", "text/markdown", *_IMAGES, "text/plain")
_ECHO = re.compile(r"^[<(\[].*[>)\]]$")
_ARTISTS = ("[<matplotlib", "<matplotlib", "<seaborn.", "<ggplot:")
# What a drawing says of itself: its alternative text, where the page gives it none.
_TOLD = re.compile(r"<svg\b[^>]*>\s*(?:<title>[^<]*</title>\s*)?<desc>([^<]+)</desc>")
_SCOPED_STYLE = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)


@dataclass
class Figure:
    """Where the image of an output goes, and what is said about it."""

    path: str  # relative to the page, without suffix
    label: str | None = None
    caption: str | None = None
    link: str | None = None
    pairs: Mapping[str, Any] = field(default_factory=dict)
    themed: bool = False  # whether it gets a copy for the dark look
    with_data: bool = False  # whether its data, if it gives them, are kept beside it


def is_display(output: Output) -> bool:
    """Say whether an output is an object shown, not text printed."""
    return output["output_type"] in {"display_data", "execute_result"}


def mime_of(output: Output) -> str | None:
    """Return the MIME type under which a displayed object is shown."""
    data = output.get("data", {})
    return next((mime for mime in _ORDER if mime in data), None)


def is_image(output: Output) -> bool:
    """Say whether an output is shown as an image."""
    return is_display(output) and mime_of(output) in _IMAGES


def wanted_outputs(outputs: Sequence[Output], *, warning: bool) -> list[Output]:
    """Return the outputs a reader should see, with LaTeX turned into Markdown.

    Left out are what plotting calls return beside their image and, without
    `warning`, what went to stderr.
    """
    have_image = any(is_image(each) for each in outputs)
    kept = []
    for output in outputs:
        if output.get("name") == "stderr" and not warning:
            continue
        if _is_echo(output, have_image) or (is_display(output) and not output.get("data")):
            continue
        data = output.get("data", {})
        if (latex := data.get("text/latex")) and "text/markdown" not in data:
            math = latex.strip()
            math = f"$$\n{math}\n$$" if math.startswith(r"\begin{") else math
            kept.append({**output, "data": {**data, "text/markdown": math}})
        else:
            kept.append(output)
    return kept


def _is_echo(output: Output, have_image: bool) -> bool:
    data = output.get("data", {})
    if output["output_type"] != "execute_result" or set(data) != {"text/plain"}:
        return False
    text = data["text/plain"]
    if have_image and "\n" not in text.strip():
        return bool(_ECHO.match(text.strip()))
    return bool(text.startswith(_ARTISTS))


def output_classes(output: Output) -> list[str]:
    """Return the classes of the div around an output.

    >>> output_classes({"output_type": "stream", "name": "stdout"})
    ['cell-output', 'cell-output-stdout']
    """
    if output["output_type"] == "stream":
        return ["cell-output", f"cell-output-{output['name']}"]
    if output["output_type"] == "error":
        return ["cell-output", "cell-output-error"]
    classes = ["cell-output", "cell-output-display"]
    return [*classes, "cell-output-markdown"] if mime_of(output) == "text/markdown" else classes


def output_markdown(output: Output, figure: Figure, files: dict[str, bytes], *, asis: bool) -> str:
    r"""Return the Markdown of an output; an image goes into `files` by its path.

    >>> print(output_markdown({"output_type": "stream", "name": "stdout", "text": "hi\n"},
    ...                       Figure("x"), {}, asis=False), end="")
    ```
    hi
    ```
    """
    if output["output_type"] == "stream":
        text = overwritten(output["text"])
        if asis and output["name"] == "stdout":
            return strip_ansi(text)
        return _plain(text)
    if output["output_type"] == "error":  # its traceback, which ends in the error's name
        trace = "\n".join(output.get("traceback") or ())
        message = f"{output['ename']}: {output['evalue']}"
        return _plain(trace if has_ansi(trace) else f"{message}\n{trace}" if trace else message)
    mime = mime_of(output)
    data = output["data"].get(mime, "")
    if mime in _IMAGES:
        if figure.with_data and (rows := output["data"].get(MIME)):
            files[f"{figure.path}{SUFFIX}"] = str(rows).encode()
        if script := output["data"].get(SCRIPT):
            files[f"{figure.path}{LIVE}"] = json.dumps(script, ensure_ascii=False).encode()
        return _image(mime, data, figure, files)
    if mime == "text/markdown":
        text = str(data).rstrip("\n") + "\n"
        return text if asis else mend([text])[0]  # those of a cell `asis` are one text
    if mime == "text/html":
        return raw_html(repaired(_SCOPED_STYLE.sub("", data)))
    if mime == "application/javascript":
        return raw_html(f'<script type="application/javascript">\n{data}\n</script>')
    if mime == "text/plain":
        return _plain(data)
    return fenced(f"Unable to display output for mime type(s): {', '.join(output['data'])}")


def _plain(text: str) -> str:
    if has_ansi(text):
        raw = raw_html(f"<pre>{ansi_to_html(text)}</pre>")
        return f"::: {{.ansi-escaped-output}}\n{raw}:::\n"
    return fenced(strip_ansi(text))


def _image(mime: str, data: str, figure: Figure, files: dict[str, bytes]) -> str:
    path = f"{figure.path}.{_IMAGES[mime]}"
    files[path] = data.encode() if mime == "image/svg+xml" else base64.b64decode(data)
    if figure.themed and mime == "image/svg+xml":
        files[f"{figure.path}{DARK}"] = dark(data).encode()
    pairs = dict(figure.pairs)
    if not pairs.get("fig-alt") and (told := _TOLD.search(data[:20000])):
        pairs["fig-alt"] = html.unescape(told[1])
    given = attributes(label=figure.label, pairs=pairs)
    image = f"![{figure.caption or ''}]({path}){given if given != '{}' else ''}"
    return f"[{image}]({figure.link})\n" if figure.link else f"{image}\n"


def overwritten(text: str) -> str:
    r"""Return a text as a terminal shows it: a carriage return starts its line again.

    >>> overwritten("10 %\r90 %\rdone\r\nnext\n")
    'done\nnext\n'
    """
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)


def fenced(text: str) -> str:
    r"""Return a text in a code fence.

    >>> fenced("a ``` b")
    '````\na ``` b\n````\n'
    """
    ticks = fence_for(text)
    return f"{ticks}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{ticks}\n"


def raw_html(html: str) -> str:
    """Return HTML that pandoc passes through."""
    ticks = fence_for(html)
    return f"{ticks}{{=html}}\n{html.rstrip(chr(10))}\n{ticks}\n"


_CODE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def has_ansi(text: str) -> bool:
    """Say whether a text holds codes for colors or weight."""
    return any(code.group(2) == "m" for code in _CODE.finditer(text))


def ansi_to_html(text: str) -> str:
    r"""Return escaped HTML with a span for each colored stretch.

    >>> ansi_to_html("\x1b[1;31m<a>\x1b[0m b")
    '<span class="ansi-bold ansi-red-fg">&lt;a&gt;</span> b'
    """
    pieces: list[str] = []
    looks: dict[str, str] = {}
    position = 0
    for code in _CODE.finditer(text):
        pieces.append(_span(text[position : code.start()], looks))
        if code.group(2) == "m":
            _apply(code.group(1), looks)
        position = code.end()
    pieces.append(_span(text[position:], looks))
    return "".join(pieces)


def _span(text: str, looks: dict[str, str]) -> str:
    """Return a text in a span of its looks: class names, and styles (which hold a colon)."""
    escaped = html.escape(text, quote=False)
    if not text or not looks:
        return escaped
    styles = ";".join(look for look in looks.values() if ":" in look)
    classes = " ".join(look for look in looks.values() if ":" not in look)
    given = (f' style="{styles}"' if styles else "") + (f' class="{classes}"' if classes else "")
    return f"<span{given}>{escaped}</span>"


_ON = {
    1: ("weight", "ansi-bold"),
    2: ("weight", "opacity:0.7"),
    3: ("slant", "font-style:italic"),
    4: ("line", "text-decoration:underline"),
}
_COLOURS = (
    (30, "fg", "ansi-{}-fg"), (40, "bg", "ansi-{}-bg"), (90, "fg", "ansi-bright-{}-fg"),
    (100, "bg", "ansi-bright-{}-bg"),
)  # fmt: skip
_OFF = {22: "weight", 23: "slant", 24: "line", 39: "fg", 49: "bg"}


def _apply(codes: str, looks: dict[str, str]) -> None:
    """Change the looks in force as one `ESC[...m` says."""
    numbers = [int(number) for number in codes.split(";") if number] or [0]
    index = 0
    while index < len(numbers):
        number = numbers[index]
        if number in (38, 48):
            index += _apply_palette("fg" if number == 38 else "bg", numbers[index + 1 :], looks)
        elif number == 0:
            looks.clear()
        elif number in _ON:
            side, look = _ON[number]
            looks[side] = look
        elif number in _OFF:
            looks.pop(_OFF[number], None)
        for first, side, name in _COLOURS:
            if first <= number < first + len(_NAMES):
                looks[side] = name.format(_NAMES[number - first])
        index += 1


def _apply_palette(side: str, after: list[int], looks: dict[str, str]) -> int:
    """Set one of 256 colors (`5;n`) or any color (`2;r;g;b`); return how many codes it took.

    >>> looks = {}
    >>> _apply_palette("fg", [5, 208], looks), looks
    (2, {'fg': 'color:rgb(255,135,0)'})
    """
    style = "color" if side == "fg" else "background-color"
    if after[:1] == [2] and len(after) >= 4:
        looks[side] = f"{style}:rgb({','.join(str(min(each, 255)) for each in after[1:4])})"
        return 4
    if after[:1] != [5] or len(after) < 2:
        return len(after)
    number = min(after[1], 255)
    if number < 16:
        bright = "bright-" if number >= len(_NAMES) else ""
        looks[side] = f"ansi-{bright}{_NAMES[number % len(_NAMES)]}-{side}"
        return 2
    # a ramp of grays above a cube of 6 x 6 x 6
    steps, at = (0, 95, 135, 175, 215, 255), number - 16
    cube = (steps[at // 36 % 6], steps[at // 6 % 6], steps[at % 6])
    rgb = (8 + 10 * (number - 232),) * 3 if number >= 232 else cube
    looks[side] = f"{style}:rgb({','.join(map(str, rgb))})"
    return 2
