"""What the shortcodes `lipsum` and `placeholder` stand in with until the real thing is there."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from mlsim_book.render.media import split_call

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
