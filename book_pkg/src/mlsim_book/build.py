"""Build a book: every step, in order, into a folder that is swapped in when whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mlsim_book.caches import content_hash
from mlsim_book.errors import BookError, Problems
from mlsim_book.paper.formats import download_name, require_tools, wanted_formats
from mlsim_book.quarto import render_with_quarto
from mlsim_book.read.project import load_project
from mlsim_book.render.assets import load_assets
from mlsim_book.render.pandoc import find_pandoc
from mlsim_book.render.wheel import book_wheel
from mlsim_book.run.pages import execute_pages
from mlsim_book.site.assemble import step_line, write_site
from mlsim_book.site.swap import WAIT, check_target, disk_errors, fresh_folder, hold, swap
from mlsim_book.site.template import Offer, notebooks_for

Progress = Callable[[str], None]


class StrictError(BookError):
    """A strict build met problems; all of them have been reported."""


def build(
    root: Path,
    *,
    out: Path | None = None,
    lenient: bool = False,
    engine: str = "own",
    refresh: bool = False,
    jobs: int = 2,
    formats: Sequence[str] = (),
    site_url: str | None = None,
    wait: float = WAIT,
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
    formats
        What to make of the whole book besides ("pdf", "epub", "zip"). With any, those
        that the site has already are made again, too.
    site_url
        The address of this site, in place of that in `_quarto.yml`.
    wait
        Seconds to wait for another build of the same folder.

    Raises
    ------
    BookError
        What stopped the build. The site that was there before is as it was.
    """
    root = root.resolve()
    if engine == "quarto":
        if formats:
            raise BookError(
                "other formats are made by our own engine only",
                hint="With Quarto: quarto render --to pdf, or --to epub.",
            )
        if site_url or refresh:
            raise BookError(
                f"{'--site-url' if site_url else '--refresh'} is for our own engine",
                hint="With Quarto, write `site-url:` below `book:` in _quarto.yml, and delete the"
                " folder _freeze to have every cell run again.",
            )
        return render_with_quarto(root, out=out, wait=wait, progress=progress)
    started = time.perf_counter()
    problems = Problems()
    committed = load_project(root, problems)
    project = replace(committed, site_url=site_url or committed.site_url)
    load_assets()  # a missing tool is reported before minutes of cells are run
    find_pandoc()
    require_tools(formats)
    wheel = book_wheel(project)
    target = (out or root / project.output_dir).resolve()
    check_target(project, target)
    # the lock and the folder come first: what is refused is reported before cells are run
    with (
        disk_errors(target),
        hold(target, wait=wait, progress=progress),
        fresh_folder(target, progress=progress) as new,
    ):
        pages = execute_pages(project, problems, jobs=jobs, refresh=refresh, progress=progress)
        progress(step_line("executed", len(pages), started))
        offer = Offer(notebooks_for(committed, project.site_url, jobs=jobs), wheel)
        write_site(
            project, pages, new, problems, jobs=jobs, progress=progress, offer=offer,
            formats=wanted_formats(project, target, formats),
        )  # fmt: skip
        _judge(problems, lenient, progress)
        swap(target)
    progress(f"built in {time.perf_counter() - started:.1f} s")
    for form in formats:
        progress(f"Made {target / download_name(project, form)}")
    progress(f"The search needs a server: python3 -m http.server -d {target}")
    progress(f"Open {(target / 'index.html').as_uri()}")
    return target


def _judge(problems: Problems, lenient: bool, progress: Progress) -> None:
    """Tell all problems; unless lenient, fail. Advice never fails a build."""
    for advice in problems.advice:
        progress(f"WARN: {advice.text()}")
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


def site_hash(folder: Path) -> str:
    """Return a hash of all files of a site, to compare two builds."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in files]
    return content_hash(*names, *(path.read_bytes() for path in files))
