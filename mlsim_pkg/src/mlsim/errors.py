"""Everything `mlsim` refuses, and why.

MlsimError
├── InvalidValueError      (ValueError)      a number, a batch or a name that can't be
├── UnitError              (TypeError)       a quantity of the wrong kind, or no unit
├── WrongKindError         (TypeError)       a model given where hardware belongs
├── UnknownNameError       (AttributeError)  no such device, model, precision or argument
├── UnsupportedPrecisionError (ValueError)   the device has no peak for that precision
├── DoesNotFitError        (ValueError)      the workload is larger than the memory
├── UnreachableError       (LookupError)     no chain of equations leads to the answer
├── NotMeasuredError       (LookupError)     nobody measured this device
├── DataFileError          (ValueError)      a data file is wrong; names file and line
└── MissingLibraryError    (ImportError)     an optional library is needed

Each also is the builtin error that it resembles, so `except ValueError` works.
A message says what was given, what is allowed, and the nearest valid choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from types import ModuleType


class MlsimError(Exception):
    """The base of all errors of this package."""


class InvalidValueError(MlsimError, ValueError):
    """A value is of the right kind but can't be, such as batch_size=0."""


class UnitError(MlsimError, TypeError):
    """A quantity has the wrong dimension, such as a bandwidth in TB."""


class WrongKindError(MlsimError, TypeError):
    """A model was given where hardware belongs, or the other way round."""


class UnknownNameError(MlsimError, AttributeError):
    """A name is not among those that exist."""


class UnsupportedPrecisionError(MlsimError, ValueError):
    """The device has no peak rate for the precision that was asked for."""


class DoesNotFitError(MlsimError, ValueError):
    """The workload needs more memory than the device has."""


class UnreachableError(MlsimError, LookupError):
    """No chain of equations leads from what is given to what is asked."""


class NotMeasuredError(MlsimError, LookupError):
    """A calibrated estimate was asked for a device that has no measurements."""


class DataFileError(MlsimError, ValueError):
    """A data file has an unknown key, lacks a source, or repeats a name."""


class MissingLibraryError(MlsimError, ImportError):
    """An optional library is not installed."""


def nearest(name: object, allowed: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest allowed name, else "".

    Case does not count, nor do spaces, dashes and underscores.

    >>> nearest("H1000", ["A100", "H100", "T4"])
    " Did you mean 'H100'?"
    >>> nearest("zebra", ["A100"])
    ''
    """

    def plain(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "").replace(" ", "")

    by_plain = {plain(choice): choice for choice in allowed}
    found = get_close_matches(plain(str(name)), by_plain, n=1, cutoff=0.5)
    return f" Did you mean {by_plain[found[0]]!r}?" if found else ""


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that does not exist.

    >>> print(unknown_name("device", "H1000", ["A100", "H100"]))
    no device is called 'H1000'. Did you mean 'H100'? There are: A100, H100.
    """
    choices = list(allowed)
    listed = ", ".join(choices)
    return UnknownNameError(
        f"no {kind} is called {name!r}.{nearest(name, choices)} There are: {listed}."
    )


def need(library: str, purpose: str, extra: str) -> ModuleType:
    """Import an optional library, or say how to get it.

    Raises
    ------
    MissingLibraryError
        If `library` is not installed; names the extra that brings it.
    """
    from importlib import import_module

    try:
        return import_module(library)
    except ImportError as error:
        raise MissingLibraryError(
            f"{purpose} needs {library}, which is not installed. "
            f"Install mlsim with its extra [{extra}], or {library} itself."
        ) from error
