"""The command `mlsim-book`."""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mlsim_book.errors import BookError, Problems, ToolError
from mlsim_book.progress import Teller
from mlsim_exercises.data import ExerciseError

# A distribution that adds commands names a module here, with `add_commands` and `findings`.
ADDED = "mlsim_book.commands"
_GRADING = {"assign", "grade", "sheet"}  # the commands of `mlsim-grading`
_INSTALL = 'In a clone: python3 -m pip install "./mlsim_pkg[notebook]" ./book_pkg ./grading_pkg'


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
    runs = {
        "build": _build, "preview": _preview, "check": _check, "notebooks": _notebooks,
        "moved": _moved, "quarto": _quarto, "doctor": _doctor,
    }  # fmt: skip
    add_from_table(commands, Path(__file__).with_name("commands.toml"), runs)
    commands.choices["doctor"].set_defaults(added=added)
    for each in added:
        each.add_commands(commands)
    return parser


def add_from_table(
    commands: Any, table: Path, runs: Mapping[str, Callable[[argparse.Namespace], int]]
) -> None:
    """Add commands that a TOML file describes, and what runs each.

    An option has the keys of `add_argument`, and `short`, its letter. `either` names options of
    which one may be given; `group` is a heading of the help.
    """
    types = {"path": Path, "count": _count, "number": float}
    for name, about in tomllib.loads(table.read_text(encoding="utf-8")).items():
        parser = commands.add_parser(name, help=about["help"])
        parser.set_defaults(run=runs[name], command=name)
        places: dict[str, Any] = defaultdict(parser.add_mutually_exclusive_group)
        for option, said in about["options"].items():
            place = places[said.pop("either")] if "either" in said else parser
            if heading := said.pop("group", ""):
                if heading not in places:
                    places[heading] = parser.add_argument_group(heading)
                place = places[heading]
            if "type" in said:
                said["type"] = types[said["type"]]
            place.add_argument(*([said.pop("short")] if "short" in said else []), option, **said)


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
    from mlsim_book.read.yamlfile import web_address

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
    from mlsim_book.render.notebooks import FOLDER, check_notebooks, write_notebooks
    from mlsim_book.site.swap import take_turns

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
    return examine(_say, more or [missing])


def _quarto(options: argparse.Namespace) -> int:
    from mlsim_book.check.quarto import try_quarto

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
