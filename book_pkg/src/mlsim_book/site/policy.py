"""The Content-Security-Policy of a book that asks for one: nothing but its own origin.

    mlsim-book:
      content-security-policy: true

A browser then runs no script but the site's own files, loads nothing from elsewhere and
sends nothing elsewhere. It is off unless set, since a book may well embed a video, a
widget or a script of its own, which this policy would silence.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.read.settings import book_settings

KEY = "content-security-policy"

_INLINE = re.compile(
    r"<script\b(?![^>]*\bsrc=)(?![^>]*\btype=[\"']?(?:application/(?:ld\+)?json|text/template))[^>]*>"
    r"|<[a-z][^>]*?\son(?:click|load|error|change|input|submit|toggle|focus|blur|key|mouse|pointer)"
    r"\w*\s*=|<[a-z][^>]*?\s(?:href|src|action)=[\"']?\s*javascript:",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)


def wants_policy(metadata: Mapping[str, Any]) -> bool:
    """Say whether a book asks for the policy.

    >>> wants_policy({}), wants_policy({"mlsim-book": {"content-security-policy": True}})
    (False, True)
    """
    given = book_settings(metadata).get(KEY, False)
    if not isinstance(given, bool):
        raise SourceError(
            f"`mlsim-book: {KEY}:` is {given!r}, which must be `true` or `false`",
            file="_quarto.yml",
            hint="`true` allows scripts and connections of the site's own origin only.",
        )
    return given


def policy(inline_script: str) -> str:
    """Return the policy of a page whose one inline script is given.

    The script is allowed by its hash. Formulas and tables carry inline styles; the
    stylesheet holds its icons as `data:` images.
    """
    digest = base64.b64encode(hashlib.sha256(inline_script.encode()).digest()).decode()
    rules = {
        "default-src": "'none'",
        "script-src": f"'self' 'sha256-{digest}'",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "media-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "frame-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())


def refused(html: str, allowed: str = "") -> str | None:
    """Return what of a page the policy would silence, if anything; `allowed` is the one script.

    >>> refused('<p onclick="x()">'), refused('<script src="a.js"></script>')
    ('<p onclick=', None)
    """
    found = _INLINE.search(_HIDDEN.sub("", html.replace(f"<script>{allowed}</script>", "")))
    return found.group()[:80] if found else None
