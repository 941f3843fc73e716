"""Expand shortcodes in a page's Markdown: `var`, `meta`, `video`, `lipsum` and others.

They are expanded in code too, as in Quarto; `{{{< … >}}}` shows one. Includes
were resolved when the page was read.
"""

from __future__ import annotations

import base64
import html
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.lines import Reporter
from mlsim_book.read.yamlfile import read_yaml

_YOUTUBE = re.compile(
    r"https://(?:www\.youtube(?:-nocookie)?\.com/(?:embed/|shorts/|watch\?v=)|youtu\.be/)([\w-]+)"
)
_VIMEO = re.compile(r"https://vimeo\.com/(\d+)")
_RATIOS = {"1x1": "1 / 1", "4x3": "4 / 3", "16x9": "16 / 9", "21x9": "21 / 9"}


def split_call(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Part the words of a shortcode into plain ones and `name=value`.

    >>> split_call(["a.mp4", "width=300"])
    (['a.mp4'], {'width': '300'})
    """
    plain = [word for word in words if not re.match(r"[\w-]+=", word)]
    named = dict(word.split("=", 1) for word in words if word not in plain)
    return plain, named


def video(words: Sequence[str]) -> str | None:
    """Return a video: a player of YouTube or Vimeo in a frame, or a file of one's own.

    >>> "youtube.com/embed/abc" in video(["https://youtu.be/abc"])
    True
    """
    plain, named = split_call(words)
    source = plain[0] if plain else named.get("src")
    if not source:
        return None
    size = "".join(
        f' {name}="{html.escape(named[name])}"' for name in ("width", "height") if name in named
    )
    title = html.escape(named.get("title") or named.get("aria-label") or "Video")
    ratio = _RATIOS.get(named.get("aspect-ratio", "16x9"), _RATIOS["16x9"])
    style = "" if size else f' style="aspect-ratio: {ratio}; width: 100%"'
    frame = _frame(source, named)
    if frame:
        player = (
            f'<iframe data-external="1" src="{html.escape(frame)}"{size}{style} title="{title}"'
            ' allow="fullscreen; picture-in-picture" allowfullscreen="" loading="lazy"></iframe>'
        )
    else:
        player = (
            f'<video controls="" preload="metadata"{size}{style} title="{title}">'
            f'<source src="{html.escape(source)}"></video>'
        )
    return f'\n\n```{{=html}}\n<div class="quarto-video">{player}</div>\n```\n\n'


def _frame(source: str, named: Mapping[str, str]) -> str | None:
    """Return the address of a player, for a video of a service."""
    if match := _YOUTUBE.match(source):
        start = f"?start={named['start']}" if "start" in named else ""
        return f"https://www.youtube.com/embed/{match.group(1)}{start}"
    if match := _VIMEO.match(source):
        return f"https://player.vimeo.com/video/{match.group(1)}"
    return source if "players.brightcove.net" in source else None


def kbd(words: Sequence[str]) -> str | None:
    """Return the keys to press; those of other systems in its title.

    >>> kbd(["Ctrl-C", "mac=Cmd-C"])
    '`<kbd title="Ctrl-C, mac: Cmd-C" data-mac="Cmd-C">Ctrl-C</kbd>`{=html}'
    """
    plain, named = split_call(words)
    if named.get("mode") == "plain" and plain:
        return f'`<kbd data-mode="plain" class="kbd">{html.escape(plain[0])}</kbd>`{{=html}}'
    systems = {"win": "windows", "mac": "mac", "linux": "linux"}
    named = {systems[name]: value for name, value in named.items() if name in systems}
    shown = plain[0] if plain else next(iter(named.values()), None)
    if shown is None:
        return None
    title = ", ".join(sorted([*(f"{name}: {value}" for name, value in named.items()), *plain[:1]]))
    data = "".join(f' data-{name}="{html.escape(value)}"' for name, value in sorted(named.items()))
    return f'`<kbd title="{html.escape(title)}"{data}>{html.escape(shown)}</kbd>`{{=html}}'


# Cicero, De finibus bonorum et malorum (45 BC), I 32 and 33: what "lorem ipsum" is made of.
_TEXT = """\
Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut
labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris
nisi ut aliquip ex ea commodo consequat. Duis aute irure dolor in reprehenderit in voluptate velit
esse cillum dolore eu fugiat nulla pariatur. Excepteur sint occaecat cupidatat non proident, sunt
in culpa qui officia deserunt mollit anim id est laborum.

Sed ut perspiciatis unde omnis iste natus error sit voluptatem accusantium doloremque laudantium,
totam rem aperiam, eaque ipsa quae ab illo inventore veritatis et quasi architecto beatae vitae
dicta sunt explicabo. Nemo enim ipsam voluptatem quia voluptas sit aspernatur aut odit aut fugit,
sed quia consequuntur magni dolores eos qui ratione voluptatem sequi nesciunt.

Neque porro quisquam est, qui dolorem ipsum quia dolor sit amet, consectetur, adipisci velit, sed
quia non numquam eius modi tempora incidunt ut labore et dolore magnam aliquam quaerat voluptatem.
Ut enim ad minima veniam, quis nostrum exercitationem ullam corporis suscipit laboriosam, nisi ut
aliquid ex ea commodi consequatur?

At vero eos et accusamus et iusto odio dignissimos ducimus qui blanditiis praesentium voluptatum
deleniti atque corrupti quos dolores et quas molestias excepturi sint occaecati cupiditate non
provident, similique sunt in culpa qui officia deserunt mollitia animi, id est laborum et dolorum
fuga. Et harum quidem rerum facilis est et expedita distinctio.

Nam libero tempore, cum soluta nobis est eligendi optio cumque nihil impedit quo minus id quod
maxime placeat facere possimus, omnis voluptas assumenda est, omnis dolor repellendus. Temporibus
autem quibusdam et aut officiis debitis aut rerum necessitatibus saepe eveniet ut et voluptates
repudiandae sint et molestiae non recusandae.
"""
_PARAGRAPHS = [" ".join(each.split()) for each in _TEXT.split("\n\n")]


def lipsum(words: Sequence[str]) -> str | None:
    r"""Return paragraphs of filler text: five, so many, or a range of them such as `2-4`.

    The words are not those of Quarto; nothing is chosen at random, so that builds repeat.

    >>> lipsum(["2"]).count("\n\n"), lipsum(["4-3"]).startswith("At vero")
    (1, True)
    """
    plain, _ = split_call(words)
    given = re.fullmatch(r"(\d+)(?:-(\d+))?", plain[0] if plain else "5")
    if given is None:
        return None
    first, last = (int(given[1]), int(given[2])) if given[2] else (1, int(given[1]))
    numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return "\n\n".join(_PARAGRAPHS[(number - 1) % len(_PARAGRAPHS)] for number in numbers)


def placeholder(words: Sequence[str]) -> str | None:
    """Return a gray image of a size in pixels, with the size written on it.

    >>> placeholder(["wide"]) is None, placeholder(["40", "30"])[:26]
    (True, '![](data:image/svg+xml;bas')
    """
    plain, _ = split_call(words)
    width, height = (plain[0], plain[-1]) if plain else ("100", "100")
    if not (width.isdigit() and height.isdigit()):
        return None
    size = max(1, min(int(width), int(height)) // 10)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><rect width="{width}" height="{height}" fill="#ddd"/>'
        f'<text x="50%" y="50%" font-family="sans-serif" font-size="{size}" text-anchor="middle">'
        f"{width} x {height}</text></svg>"
    )
    return f"![](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


_SHORTCODE = re.compile(r"\{\{(\{?)<\s*(.*?)\s*>(\}?)\}\}")
_VARIABLES = ("_variables.yml", "_variables.yaml")
_KNOWN = (
    "var", "meta", "env", "pagebreak", "include", "video", "kbd", "lipsum",
    "placeholder", "version",
)  # fmt: skip
_MADE = {"video": video, "kbd": kbd, "lipsum": lipsum, "placeholder": placeholder}
QUARTO = "1.10.18"  # whose behavior this is: what `{{< version >}}` says


def expand_shortcodes(page: ExecutedPage, project: Project, reporter: Reporter) -> str:
    """Return a page's Markdown with its shortcodes expanded; note those that can't be."""
    if "{{" not in page.markdown:
        return page.markdown

    def expand(match: re.Match[str]) -> str:
        if match[1]:
            return f"{{{{< {match[2]} >}}}}"
        value = _value(match[2], page, project)
        if value is not None:
            return value
        name = (match[2].split() or [""])[0]
        reporter.note(
            page,
            f"the shortcode {match[0]} can't be expanded",
            re.escape(match[0]),
            hint=None if name in _KNOWN else f"Known are: {', '.join(_KNOWN)}.",
        )
        return f"**?{':'.join(match[2].split()[:2])}**" if name in _KNOWN else match[0]

    return _SHORTCODE.sub(expand, page.markdown)


def _value(call: str, page: ExecutedPage, project: Project) -> str | None:
    try:
        name, *arguments = shlex.split(call)
    except ValueError:
        return None
    if name == "pagebreak":
        return '\n\n```{=html}\n<div style="page-break-after: always;"></div>\n```\n\n'
    if name == "version":
        return QUARTO
    if name in _MADE:
        return _MADE[name](arguments)
    if not arguments:
        return None
    if name == "var":
        return look_up(_variables(project), arguments[0])
    if name == "meta":
        layers = (page.metadata, project.metadata, project.metadata.get("book") or {})
        values = (look_up(each, arguments[0]) for each in layers)
        return next((value for value in values if value is not None), None)
    if name == "env":
        return os.environ.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
    return None


def _variables(project: Project) -> Mapping[str, Any]:
    for name in _VARIABLES:
        path = project.root / name
        if path.is_file():
            data = read_yaml(path, name=name).data
            return data if isinstance(data, Mapping) else {}
    return {}


def look_up(data: Mapping[str, Any], name: str) -> str | None:
    """Return a value by its dotted name, as text.

    >>> look_up({"drink": {"hot": True}}, "drink.hot")
    'true'
    """
    value: Any = data
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    if isinstance(value, bool):
        return str(value).lower()
    return None if isinstance(value, Mapping | list) else str(value)
