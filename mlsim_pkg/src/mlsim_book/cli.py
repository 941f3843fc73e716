"""The command `mlsim-book`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mlsim_book.errors import BookError, Problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 well, 1 failed, 2 wrong usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except BookError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return int(getattr(error, "code", 1))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlsim-book", description="Build a Quarto book whose chapters execute Python."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build the site")
    _folder(build)
    build.add_argument("--lenient", action="store_true", help="report problems without failing")
    build.add_argument("--engine", choices=("own", "quarto"), default="own")
    build.add_argument("--output-dir", type=Path, metavar="DIR", help="where the site goes")
    _running(build)
    build.set_defaults(run=_build)
    check = commands.add_parser("check", help="check sources, numbers and the built site")
    _folder(check)
    check.add_argument("--output-dir", type=Path, metavar="DIR", help="where the site is")
    check.set_defaults(run=_check)
    notebooks = commands.add_parser("notebooks", help="write the chapters' notebooks")
    _folder(notebooks)
    notebooks.add_argument("--check", action="store_true", help="only say which are out of date")
    _running(notebooks)
    notebooks.set_defaults(run=_notebooks)
    doctor = commands.add_parser("doctor", help="say what is installed and what is missing")
    doctor.set_defaults(run=_doctor)
    return parser


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path(), metavar="DIR",
        help="the book's folder (default: here)",
    )  # fmt: skip


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--refresh", action="store_true", help="run every cell again")
    parser.add_argument("-j", "--jobs", type=_count, default=2, metavar="N", help="pages at a time")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1")
    return int(text)


def _say(line: str) -> None:
    print(line, flush=True)


def _build(options: argparse.Namespace) -> int:
    from mlsim_book.build import build

    build(
        options.root, out=options.output_dir, lenient=options.lenient, engine=options.engine,
        refresh=options.refresh, jobs=options.jobs, progress=_say,
    )  # fmt: skip
    return 0


def _check(options: argparse.Namespace) -> int:
    from mlsim_book.check import check_book

    problems = check_book(options.root, out=options.output_dir, progress=_say)
    return _report(problems, "the book is in order")


def _notebooks(options: argparse.Namespace) -> int:
    from mlsim_book.notebooks import check_notebooks, write_notebooks
    from mlsim_book.project import load_project

    problems = Problems()
    project = load_project(options.root.resolve(), problems)
    folder = project.root / "notebooks"
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


def _report(problems: Problems, well: str) -> int:
    for problem in problems.found:
        print(f"ERROR: {problem.text()}", file=sys.stderr)
    if problems.found:
        return 1
    _say(well)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from mlsim_book.doctor import examine

    return examine(_say)


if __name__ == "__main__":
    sys.exit(main())
