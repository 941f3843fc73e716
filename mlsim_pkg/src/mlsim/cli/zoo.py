"""The command `mlsim zoo`: what is on record, the check of files, and what changed."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.options import add_json, as_json
from mlsim.errors import InvalidValueError


def add(commands: Any) -> None:
    """Add `mlsim zoo` to the commands."""
    text = "models, devices and systems, each figure with its source"
    command = commands.add_parser(
        "zoo",
        help=f"{text}; check a file of one's own",
        description=text,
        usage="mlsim zoo [-h] [--json] [NAME | check FILE... | diff OLD NEW]",
    )
    command.add_argument(
        "words",
        nargs="*",
        metavar="NAME",
        help="one of them, all if left out; `check FILE...` checks devices, systems and models "
        "from files (exit 1 after an error); `diff OLD NEW` lists what changed between two "
        "folders of data files",
    )
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> str:
    """Return what is on record, what the rules say of files, or what changed.

    Raises
    ------
    MlsimError
        If there is nothing of a name, or a folder can't be read.
    """
    from mlsim.zoo import catalogue

    match options.words:
        case []:
            return as_json(catalogue.all_as_dict()) if options.json else catalogue.all_as_text()
        case ["check", *files]:
            return _zoo_check(options, files)
        case ["diff", *folders]:
            return _zoo_diff(options, folders)
        case [name]:
            record = catalogue.find(name)
            return as_json(catalogue.as_dict(record)) if options.json else catalogue.as_text(record)
    raise InvalidValueError(
        f"zoo shows one name at a time, or all; it was given {', '.join(options.words)}. "
        "Others: zoo check FILE..., zoo diff OLD NEW."
    )


def _zoo_check(options: argparse.Namespace, files: list[str]) -> str:
    from mlsim.zoo.review import file_report

    if not files:
        raise InvalidValueError("zoo check needs a file: mlsim zoo check my_device.toml")
    reports = [file_report.validate_file(file) for file in files]
    options.code = int(any(report.errors for report in reports))
    if options.json:
        return as_json([report.as_dict() for report in reports])
    return "\n".join(map(str, reports))


def _zoo_diff(options: argparse.Namespace, folders: list[str]) -> str:
    from mlsim.zoo import differences

    if len(folders) != 2:
        raise InvalidValueError(
            f"zoo diff needs two folders of data files, not {len(folders)}: mlsim zoo diff OLD NEW"
        )
    found = differences.differences(*folders)
    return (
        as_json([each.as_dict() for each in found]) if options.json else differences.as_text(found)
    )
