"""What the shortcodes `video` and `kbd` write: HTML that needs no script."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

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
