"""The settings of this builder: `mlsim-book:` in `_quarto.yml` or in front matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsim_book.errors import SourceError


def book_settings(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what stands under `mlsim-book:`, nothing if it is no mapping.

    >>> book_settings({"mlsim-book": {"terms": False}}), book_settings({})
    ({'terms': False}, {})
    """
    given = metadata.get("mlsim-book")
    return given if isinstance(given, Mapping) else {}


def named_paths(metadata: Mapping[str, Any], key: str, hint: str) -> list[str]:
    """Return a setting that is a list of paths.

    Raises
    ------
    SourceError
        It is anything else; `hint` says what to write.

    >>> named_paths({"mlsim-book": {"exercises": ["questions"]}}, "exercises", "")
    ['questions']
    """
    given = book_settings(metadata).get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise SourceError(
            f"`mlsim-book: {key}:` is {given!r}, which must be a list of paths",
            file="_quarto.yml",
            hint=hint,
        )
    return given


@dataclass(frozen=True)
class BookPackage:
    """The package that a book's code needs, as `_quarto.yml` names it.

        mlsim-book:
          package: kettle          # what is imported
          path: kettle_pkg         # where it is in the repository
          extras: [notebook]

    >>> BookPackage("kettle", "kettle_pkg", ("notebook",)).wanted
    'kettle[notebook]'
    """

    name: str
    path: str | None
    extras: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """The package with its extras, as pip is asked for it."""
        return self.name + self.with_extras

    @property
    def with_extras(self) -> str:
        """The extras in brackets, "" if there are none."""
        return f"[{','.join(self.extras)}]" if self.extras else ""


def book_package(metadata: Mapping[str, Any]) -> BookPackage | None:
    """Return the package that a book names, if it names one.

    Raises
    ------
    SourceError
        Its name can't be imported.
    """
    settings = book_settings(metadata)
    name = settings.get("package")
    if name is None:
        return None
    if not re.fullmatch(r"[A-Za-z_]\w*", str(name)):
        raise SourceError(
            f"`mlsim-book: package:` is {name!r}, which must be an importable name",
            file="_quarto.yml",
        )
    path = settings.get("path")
    extras = tuple(str(each) for each in settings.get("extras") or ())
    return BookPackage(str(name), None if path is None else str(path), extras)


def web_address(given: str) -> str:
    """Return the address of a site or a repository, without a slash at its end.

    It goes into commands and code as it is, so it may hold nothing that ends a string there.

    >>> web_address("https://example.org/book/")
    'https://example.org/book'
    """
    if not re.fullmatch(r"[a-z]+://[^\s\"'`$\\<>{}]+", given):
        raise SourceError(
            f"{given!r} is no address of a site or a repository",
            hint="Write it whole, such as https://me.github.io/book, without quotes or spaces.",
        )
    return given.rstrip("/")
