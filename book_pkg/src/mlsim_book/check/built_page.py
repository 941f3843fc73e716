"""What checks need from a built page: ids, links, images, headings, loads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_LOADS = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",),
    "input": ("src",), "track": ("src",), "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"), "feimage": ("href", "xlink:href"),
}  # fmt: skip
_LOADING_LINKS = {
    "stylesheet", "preload", "prefetch", "prerender", "icon", "apple-touch-icon", "manifest",
    "modulepreload", "preconnect", "dns-prefetch",
}  # fmt: skip
_CSS_URL = re.compile(
    r"url\(\s*[\"']?((?:https?:)?//[^)\"'\s]+)|@import\s+[\"']((?:https?:)?//[^\"']+)"
)
_JS_URL = re.compile(
    r"\b(?:import|from|fetch|importScripts|sendBeacon|EventSource|WebSocket)\s*\(?\s*"
    r"[\"'`]((?:https?:|wss?:)?//[^\"'`\s]+)"
)
_HEADING = re.compile(r"h([1-6])")


@dataclass
class SitePage:
    """What matters of an HTML page."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    images: list[tuple[str, str | None]] = field(default_factory=list)  # src, alt
    loaded: list[str] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)  # of the content


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = SitePage()
        self._named_link = False  # an image in a link with a name may be silent
        self._templates = 0  # what they hold is on no page until a script copies it
        self._level = 0
        self._heading: list[str] | None = None  # the text of the heading that is open
        self._mains = 0  # how many are open
        self._content: list[tuple[int, str]] | None = None  # the headings of <main>
        self._raw = ""  # the tag of the script or style that is open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id") and not self._templates:
            self.page.ids.append(str(given["id"]))
        self._templates += tag == "template"
        self._raw = tag if tag in {"script", "style"} else ""
        if tag == "a" and given.get("href"):
            self.page.links.append(str(given["href"]))
            self._named_link = "aria-label" in given
        if tag == "img":
            alt = "named by its link" if self._named_link else given.get("alt")
            self.page.images.append((str(given.get("src") or ""), alt))
        if tag == "main":
            self._mains += 1
            self._content = self._content or []
        if (heading := _HEADING.fullmatch(tag)) and not self._templates:
            self._level, self._heading = int(heading[1]), []
        self._note_loads(tag, given)

    def _note_loads(self, tag: str, given: dict[str, str | None]) -> None:
        for name in _LOADS.get(tag, ()):
            value = given.get(name) or ""
            # of a srcset, the addresses: "a.png 1x, b.png 2x"
            parts = re.split(r",\s+", value) if name == "srcset" else [value]
            self.page.loaded += [part.split()[0] for part in parts if part.split()]
        loading = set(str(given.get("rel") or "").lower().split()) & _LOADING_LINKS
        if tag == "link" and loading and given.get("href"):
            self.page.loaded.append(str(given["href"]))
        self.page.loaded += css_loads(given.get("style") or "")

    def handle_endtag(self, tag: str) -> None:
        self._templates -= tag == "template"
        self._raw = ""
        if tag == "a":
            self._named_link = False
        if _HEADING.fullmatch(tag) and self._heading is not None:
            found = (self._level, " ".join("".join(self._heading).split()))
            self.page.headings.append(found)
            if self._mains and self._content is not None:
                self._content.append(found)
            self._heading = None
        if tag == "main":
            self._mains -= 1

    def handle_data(self, data: str) -> None:
        if self._heading is not None:
            self._heading.append(data)
        if self._raw == "style":
            self.page.loaded += css_loads(data)
        elif self._raw == "script":
            self.page.loaded += script_loads(data)

    def close(self) -> None:
        super().close()
        if self._content is not None:  # navigation around it has an order of its own
            self.page.headings = self._content


def read_page(html: str) -> SitePage:
    """Read what matters of a page.

    >>> read_page('<a href="b.html#x">b</a><img src="c.png">').images
    [('c.png', None)]
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page


def css_loads(css: str) -> list[str]:
    """Return the addresses on other servers that a style loads from.

    >>> css_loads("a { background: url(//cdn.example.org/a.png) } b { mask: url(b.svg) }")
    ['//cdn.example.org/a.png']
    """
    return [a or b for a, b in _CSS_URL.findall(css)]


def script_loads(script: str) -> list[str]:
    """Return the addresses on other servers that a script names where it loads something.

    >>> script_loads('import a from "https://cdn.example.org/a.js"; open("https://b.org")')
    ['https://cdn.example.org/a.js']
    """
    return _JS_URL.findall(script)
