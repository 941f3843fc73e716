"""Find and run pandoc: the one of the `pypandoc_binary` wheel, never a distribution's.

Pandoc 3.6 is the oldest that reads and writes what the filter needs (attributes
on table captions, the Figure element); Debian 12 still ships 2.17.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mlsim_book.errors import ToolError

OLDEST = (3, 6)
_HINT = "Install it with: python -m pip install 'pypandoc_binary>=1.17'"


@functools.cache
def find_pandoc() -> str:
    """Return the path of a pandoc that is new enough."""
    try:
        import pypandoc  # type: ignore[import-untyped]
    except ImportError:
        raise ToolError("pandoc is missing", hint=_HINT) from None
    packaged = Path(pypandoc.__file__).parent / "files" / "pandoc"
    found = str(packaged) if packaged.exists() else ""
    with suppress(OSError):
        found = found or str(pypandoc.get_pandoc_path())
    if not found:
        raise ToolError("pandoc is missing: the package pypandoc brings none", hint=_HINT)
    if (version := pandoc_version(found)) < OLDEST:
        shown = ".".join(map(str, version))
        raise ToolError(f"pandoc is {shown}, which must be 3.6 or newer ({found})", hint=_HINT)
    return found


@functools.cache
def pandoc_version(path: str) -> tuple[int, ...]:
    """Return a pandoc's version, (0,) if it can't be run or says none."""
    return version_of(path, r"pandoc\S* ([\d.]+)")


def version_of(path: str, pattern: str) -> tuple[int, ...]:
    """Return the version that a program prints where it says this, (0,) if it doesn't."""
    try:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return (0,)
    match = re.match(pattern, run.stdout)
    return tuple(int(part) for part in match[1].strip(".").split(".")) if match else (0,)


def run_pandoc(
    arguments: Sequence[str],
    text: str,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    file: str = "",
) -> tuple[str, str]:
    r"""Run pandoc on a text; return what it wrote, and its warnings.

    >>> run_pandoc(["-f", "markdown", "-t", "html"], "*hi*")[0]
    '<p><em>hi</em></p>\n'
    """
    run = subprocess.run(
        [find_pandoc(), *arguments],
        input=text.encode(),
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    warnings = run.stderr.decode("utf-8", "replace")
    if run.returncode:
        raise ToolError(f"pandoc failed (exit {run.returncode}):\n{warnings.strip()}", file=file)
    return run.stdout.decode(), warnings
