"""The command `mlsim-book`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mlsim_book.errors import BookError, Problems, ToolError
from mlsim_book.progress import Teller
from mlsim_exercises.errors import ExerciseError

# A distribution that adds commands names a module here, with `add_commands` and `findings`.
ADDED = "mlsim_book.commands"
_GRADING = {"assign", "grade", "sheet"}  # the commands of `mlsim-grading`
_INSTALL = "In a clone: python3 -m pip install ./mlsim_pkg ./book_pkg ./grading_pkg"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 well, 1 failed, 2 wrong usage."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        added = [each.load() for each in entry_points(group=ADDED)]
        if given and given[0] in _GRADING and not added:
            raise ToolError(
                f"'mlsim-book {given[0]}' belongs to mlsim-grading, which isn't installed",
                hint=_INSTALL,
            )
        options = _parser(added).parse_args(given)
        _recover(options)
        return int(options.run(options))
    except (BookError, ExerciseError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return int(getattr(error, "code", 1))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _recover(options: argparse.Namespace) -> None:
    """Put back the site of a book if a build was killed while it swapped it."""
    root = getattr(options, "root", None)
    if root is None or not (root / "_quarto.yml").is_file():
        return
    from mlsim_book.quarto import output_dir
    from mlsim_book.site.swap import recover

    given = getattr(options, "output_dir", None)
    recover((given or root / output_dir(root)).resolve(), _say)


def _parser(added: Sequence[Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlsim-book", description="Build a Quarto book whose chapters execute Python."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build the site")
    _folder(build)
    build.add_argument("--lenient", action="store_true", help="report problems without failing")
    build.add_argument("--engine", choices=("own", "quarto"), default="own")
    build.add_argument("--output-dir", type=Path, metavar="DIR", help="where the site goes")
    build.add_argument(
        "--to", default="html", metavar="FORMATS",
        help="what to make besides the site: pdf, epub, zip, figures (several with commas)",
    )  # fmt: skip
    _address(build)
    _running(build)
    build.set_defaults(run=_build)
    preview = commands.add_parser("preview", help="show the site and follow the sources")
    _folder(preview)
    preview.add_argument("--port", type=_count, metavar="N", help="port (default: any free one)")
    preview.add_argument("--lenient", action="store_true", help="show pages that have problems")
    preview.add_argument(
        "-j", "--jobs", type=_count, default=2, metavar="N", help="pages at a time"
    )
    preview.set_defaults(run=_preview)
    check = commands.add_parser("check", help="check sources, numbers and the built site")
    _folder(check)
    check.add_argument("--output-dir", type=Path, metavar="DIR", help="where the site is")
    check.add_argument(
        "--external", action="store_true", help="ask other servers, too, for the pages linked to"
    )
    check.set_defaults(run=_check)
    notebooks = commands.add_parser("notebooks", help="write the chapters' notebooks")
    _folder(notebooks)
    notebooks.add_argument("--check", action="store_true", help="only say which are out of date")
    notebooks.add_argument(
        "--output-dir", type=Path, metavar="DIR", help="where they go (default: notebooks/)"
    )
    _address(notebooks)
    _running(notebooks)
    notebooks.set_defaults(run=_notebooks)
    for each in added:
        each.add_commands(commands)
    moved = commands.add_parser("moved", help="list what two builds of a book say differently")
    moved.add_argument("old", type=Path, metavar="OLD", help="the built site before a change")
    moved.add_argument("new", type=Path, metavar="NEW", help="the built site after it")
    moved.add_argument("--json", action="store_true", help="print plain data")
    moved.set_defaults(run=_moved)
    quarto = commands.add_parser(
        "quarto", help="render with Quarto, and compare its pages with those of our site"
    )
    _folder(quarto)
    quarto.add_argument(
        "--site", type=Path, metavar="DIR", help="a site that Quarto has rendered already"
    )
    quarto.add_argument("--output-dir", type=Path, metavar="DIR", help="where our own site is")
    quarto.set_defaults(run=_quarto)
    doctor = commands.add_parser(
        "doctor", help="say what is installed and missing, and what Quarto would do here"
    )
    _folder(doctor)
    doctor.set_defaults(run=_doctor, added=added)
    return parser


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path(), metavar="DIR",
        help="the book's folder (default: here)",
    )  # fmt: skip


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--refresh", action="store_true", help="run every cell again")
    parser.add_argument("-j", "--jobs", type=_count, default=2, metavar="N", help="pages at a time")


def _address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--site-url", metavar="URL", help="the address of the site, in place of that in _quarto.yml"
    )


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1")
    return int(text)


_say = Teller()


def _build(options: argparse.Namespace) -> int:
    from mlsim_book.build import build
    from mlsim_book.paper.formats import parse_formats

    build(
        options.root, out=options.output_dir, lenient=options.lenient, engine=options.engine,
        refresh=options.refresh, jobs=options.jobs, progress=_say,
        formats=parse_formats(options.to), site_url=_site_url(options),
    )  # fmt: skip
    return 0


def _site_url(options: argparse.Namespace) -> str | None:
    from mlsim_book.read.settings import web_address

    return web_address(options.site_url) if options.site_url else None


def _preview(options: argparse.Namespace) -> int:
    from mlsim_book.preview.session import preview

    preview(
        options.root, port=options.port, lenient=options.lenient, jobs=options.jobs, progress=_say
    )
    return 0


def _check(options: argparse.Namespace) -> int:
    from mlsim_book.check.book import check_book

    problems = check_book(
        options.root, out=options.output_dir, external=options.external, progress=_say
    )
    return _report(problems, "the book is in order")


def _notebooks(options: argparse.Namespace) -> int:
    from mlsim_book.read.project import load_project
    from mlsim_book.render.install import FOLDER
    from mlsim_book.render.notebooks import check_notebooks, write_notebooks
    from mlsim_book.site.lock import take_turns

    problems = Problems()
    project = load_project(options.root.resolve(), problems)
    folder = options.output_dir or project.root / FOLDER
    if url := _site_url(options):
        if folder.resolve() == project.root / FOLDER:
            raise BookError(
                f"{FOLDER}/ belongs to the repository, and follows its _quarto.yml",
                hint="Write `site-url:` there, or name another folder with --output-dir.",
            )
        project = replace(project, site_url=url)
    with take_turns((project.root / project.output_dir).resolve(), _say):
        if options.check:
            check_notebooks(
                project, folder, problems, jobs=options.jobs, refresh=options.refresh, progress=_say
            )
            return _report(problems, "the notebooks are up to date")
        written = write_notebooks(
            project, folder, problems, jobs=options.jobs, refresh=options.refresh, progress=_say
        )
    for path in written:
        _say(f"wrote {path}")
    return _report(problems, f"{len(written)} notebooks changed")


def _moved(options: argparse.Namespace) -> int:
    from mlsim_book.check.compare_builds import as_text, moved

    found = moved(options.old, options.new)
    if options.json:
        print(json.dumps([each.as_dict() for each in found], indent=2, ensure_ascii=False))
    else:
        print(as_text(found))
    return 0


def _report(problems: Problems, well: str) -> int:
    for advice in problems.advice:
        _say(f"WARN: {advice.text()}")
    for problem in problems.found:
        print(f"ERROR: {problem.text()}", file=sys.stderr)
    if problems.found:
        return 1
    _say(well)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from mlsim_book.doctor import Finding, examine

    more = [found for each in options.added for found in each.findings()]
    missing = Finding("grading", False, "not installed", _INSTALL, needed=False)
    return examine(_say, options.root, more or [missing])


def _quarto(options: argparse.Namespace) -> int:
    from mlsim_book.check.quarto_scan import try_quarto

    found = try_quarto(
        options.root.resolve(), site=options.site, ours=options.output_dir, progress=_say
    )
    for each in found:
        print(f"ERROR: {each}", file=sys.stderr)
    if not found:
        _say("Quarto's pages are sound, and show the same numbers as ours")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
