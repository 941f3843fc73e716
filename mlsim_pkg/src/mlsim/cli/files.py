"""The commands that read files: tables of cases, own measurements, and records of the zoo."""

from __future__ import annotations

import argparse
from pathlib import Path

from mlsim.cli.flags import arguments, as_json
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.parameters import parameters_of as rows_of  # noqa: F401


def run(options: argparse.Namespace) -> str:
    """Return what a command answers, as text or JSON.

    Raises
    ------
    MlsimError
        If a file can't be read or written, or there is nothing of a name.
    """
    return {"zoo": _zoo, "predict": _predict, "calibrate": _calibrate}[options.name](options)


def _predict(options: argparse.Namespace) -> str:
    """Return the predictions, or how many were written; a row never stops them."""
    from mlsim.engine.predict import architectures, predict, read_cases, write

    rows = read_cases(options.cases)
    beside = Path(options.cases).expanduser().with_name("models.csv")
    table = options.models or (beside if beside.is_file() else None)
    found = list(predict(rows, architectures(table) if table else None))
    made = as_json([each.as_dict() for each in found]) + "\n" if options.json else write(found)
    if options.out is None:
        return made.rstrip("\n")
    try:
        Path(options.out).expanduser().write_text(made, encoding="utf-8")
    except OSError as error:
        raise InvalidValueError(f"the predictions can't be written: {error}.") from None
    answered = sum(1 for each in found if each.predicted)
    return f"{options.out}: {answered:,} of {len(found):,} cases predicted"


def _calibrate(options: argparse.Namespace) -> str:
    found = Engine.calibrate(options.measured, **arguments(options, options.rows, options.name))
    if options.json:
        return as_json(found.to_dict())
    return f"{found}\n\n{found.explain()}" if options.explain else str(found)


def _zoo(options: argparse.Namespace) -> str:
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
    from mlsim.zoo import catalogue

    if len(folders) != 2:
        raise InvalidValueError(
            f"zoo diff needs two folders of data files, not {len(folders)}: mlsim zoo diff OLD NEW"
        )
    found = catalogue.differences(*folders)
    return (
        as_json([each.as_dict() for each in found])
        if options.json
        else catalogue.differences_as_text(found)
    )
