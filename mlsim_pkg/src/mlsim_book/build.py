"""Build a book: every step, in order, into a folder that is swapped in when whole."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mlsim_book.assemble import step_line, write_site
from mlsim_book.assets import load_assets
from mlsim_book.errors import BookError, Problems
from mlsim_book.keep import content_hash
from mlsim_book.pages import execute_pages
from mlsim_book.pandoc import find_pandoc
from mlsim_book.project import load_project
from mlsim_book.quarto import render_with_quarto

Progress = Callable[[str], None]


class StrictError(BookError):
    """A strict build met problems; all of them have been told."""


def build(
    root: Path,
    *,
    out: Path | None = None,
    lenient: bool = False,
    engine: str = "own",
    refresh: bool = False,
    jobs: int = 2,
    progress: Progress = print,
) -> Path:
    """Build the book in a folder; return the folder of the site.

    Parameters
    ----------
    out
        Where the site goes; `project: output-dir:` of the book when None.
    lenient
        Report problems (unresolved references and the like) without failing.
    engine
        "own", or "quarto" for the one on the PATH.
    refresh
        Execute every cell again, whatever is cached.

    Raises
    ------
    BookError
        What stopped the build. The site that was there before is as it was.
    """
    root = root.resolve()
    if engine == "quarto":
        return render_with_quarto(root, out=out, refresh=refresh)
    started = time.perf_counter()
    problems = Problems()
    project = load_project(root, problems)
    load_assets()  # a missing tool is told before minutes of cells are run
    find_pandoc()
    target = (out or root / project.output_dir).resolve()
    pages = execute_pages(project, problems, jobs=jobs, refresh=refresh, progress=progress)
    progress(step_line("executed", len(pages), started))
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        write_site(project, pages, scratch, problems, jobs=jobs, progress=progress)
        _judge(problems, lenient, progress)
        scratch.chmod(0o755)
        _swap(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    progress(f"built in {time.perf_counter() - started:.1f} s")
    progress(f"The search needs a server: python3 -m http.server -d {target}")
    progress(f"Open {(target / 'index.html').as_uri()}")
    return target


def _judge(problems: Problems, lenient: bool, progress: Progress) -> None:
    """Tell all problems; unless lenient, fail."""
    if not problems.found:
        return
    for problem in problems.found:
        progress(f"{'WARN' if lenient else 'ERROR'}: {problem.text()}")
    if not lenient:
        count = len(problems.found)
        raise StrictError(
            f"{count} problem{'s' * (count != 1)}; the site was not changed",
            hint="Mend them, or build with --lenient to see the site all the same.",
        )


def _swap(fresh: Path, target: Path) -> None:
    """Put the fresh site in the place of the old one, which is kept until that is done."""
    if target.exists():
        old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-old-"))
        target.rename(old / "site")
        try:
            fresh.rename(target)
        except OSError:
            (old / "site").rename(target)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
    else:
        fresh.rename(target)


def site_hash(folder: Path) -> str:
    """Return a hash of all files of a site, to compare two builds."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in files]
    return content_hash(*names, *(path.read_bytes() for path in files))
