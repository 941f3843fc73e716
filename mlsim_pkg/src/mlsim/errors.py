"""Everything `mlsim` refuses, and why.

MlsimError
├── InvalidValueError      (ValueError)      a number, a batch or a name that can't be
├── UnitError              (TypeError)       a quantity of the wrong kind, or no unit
├── WrongKindError         (TypeError)       a model given where hardware belongs
├── UnknownNameError       (AttributeError)  no such device, model, precision or quantity
│   └── UnknownArgumentError (TypeError)     no such argument, or quantity that may be given
├── UnsupportedPrecisionError (ValueError)   the device has no peak for that precision
├── DoesNotFitError        (ValueError)      the workload is larger than the memory
├── UnfinishedError        (OSError)         a sweep stopped half way; says what is kept
├── UnreachableError       (LookupError)     no chain of equations leads to the answer
├── NotMeasuredError       (LookupError)     nobody measured this device
├── UnsupportedLayerError  (NotImplementedError) a layer of a PyTorch module can't be counted
├── DataFileError          (ValueError)      a data file is wrong; names file and line
└── MissingLibraryError    (ImportError)     an optional library is needed

Each also is the builtin error that it resembles, so `except ValueError` works.
A message says what was given, what is allowed, and the nearest valid choice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar


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


class UnknownArgumentError(UnknownNameError, TypeError):
    """A question was given an argument, or a quantity, that it does not take.

    Attributes
    ----------
    argument
        What was given.
    quantities
        What may be given in place of data or equations.
    arguments
        What the question takes, where another one asks it.
    """

    def __init__(
        self,
        argument: str,
        quantities: Iterable[str] = (),
        *,
        arguments: Iterable[str] = (),
        question: str = "",
    ) -> None:
        self.argument, self.quantities = argument, tuple(quantities)
        self.arguments = tuple(arguments)
        near = closest(argument, (*arguments, *self.quantities), 1, 0.7)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        results = ", and the book's page of quantities the results" if self.quantities else ""
        where = f" help({question}) lists the arguments{results}." if question else ""
        super().__init__(f"no argument or quantity is called {argument!r}.{meant}{where}")

    @classmethod
    def instead(cls, argument: str, meant: str, question: str) -> UnknownArgumentError:
        """Make the error for another word for an argument.

        >>> print(UnknownArgumentError.instead("system", "hardware", "train"))
        train takes hardware=..., not system=.
        """
        error = cls(argument)
        error.args = (f"{question} takes {meant}=..., not {argument}=.",)
        return error

    @classmethod
    def unnamed(
        cls, value: object, places: list[str], first: str, question: str
    ) -> UnknownArgumentError:
        """Make the error for a value that needs the name of its argument.

        >>> print(UnknownArgumentError.unnamed(32, ["model", "hardware"], "batch_size", "solve"))
        solve takes model and hardware without their names. Name the rest, as in batch_size=32.
        """
        error = cls(first)
        bare = " and ".join(filter(None, [", ".join(places[:-1]), places[-1]]))
        error.args = (
            f"{question} takes {bare} without their names. Name the rest, as in {first}={value!r}.",
        )
        return error


class UnsupportedPrecisionError(MlsimError, ValueError):
    """The device has no peak rate for the precision that was asked for."""


class DoesNotFitError(MlsimError, ValueError):
    """The workload needs more memory than the device has."""


class UnfinishedError(MlsimError, OSError):
    """A sweep stopped half way: its folder can't be written, or a worker died."""


class UnreachableError(MlsimError, LookupError):
    """No chain of equations leads from what is given to what is asked."""


class NotMeasuredError(MlsimError, LookupError):
    """A calibrated estimate was asked for a device that has no measurements."""


class DataFileError(MlsimError, ValueError):
    """A data file has an unknown key, lacks a source, or repeats a name."""


class UnsupportedLayerError(MlsimError, NotImplementedError):
    """A layer of a module does what can't be counted; names the layer and the operation."""


class MissingLibraryError(MlsimError, ImportError):
    """An optional library is not installed."""


# More names than these are not listed in a message.
LISTED = 15


def closest(name: object, allowed: Iterable[str], most: int = 3, alike: float = 0.6) -> list[str]:
    """Return the allowed names that are most like a name, the best first.

    Case does not count, nor do spaces, dashes and underscores. What begins with the
    name, or has it as a word, comes before what only resembles it, by a share of letters of at
    least `alike`.

    >>> closest("batch", ["latency", "micro_batch", "batch_size"])
    ['batch_size', 'micro_batch']
    """
    # Only a wrong name needs it.
    from difflib import get_close_matches

    def plain(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "").replace(" ", "")

    by_plain = {plain(choice): choice for choice in allowed}
    wanted = plain(str(name))
    found = [wanted] if wanted in by_plain else []
    if len(wanted) > 2:
        found += sorted((each for each in by_plain if each.startswith(wanted)), key=len)
        whole = (each for each, name in by_plain.items() if wanted in name.lower().split("_"))
        found += sorted(whole, key=len)
    found += get_close_matches(wanted, by_plain, n=most, cutoff=alike)
    return [by_plain[each] for each in dict.fromkeys(found)][:most]


def nearest(name: object, allowed: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest allowed name, else "".

    >>> nearest("H1000", ["A100", "H100", "T4"])
    " Did you mean 'H100'?"
    >>> nearest("zebra", ["A100"])
    ''
    """
    found = closest(name, allowed, 1)
    return f" Did you mean {found[0]!r}?" if found else ""


def unknown_name(
    kind: str,
    name: object,
    allowed: Iterable[str],
    *,
    see: str = "",
    like: str = "",
    near: Sequence[str] | None = None,
) -> UnknownNameError:
    """Make the error for a name that does not exist.

    Where there are too many to list, the three nearest are named, and `see` says where the
    rest are. `like` is the name without words that tell nothing, such as a maker's; `near`
    are the nearest, where more than the letters tells them.

    >>> print(unknown_name("device", "H1000", ["A100", "H100"]))
    no device is called 'H1000'. Did you mean 'H100'? There are: A100, H100.
    """
    choices = list(allowed)
    near = closest(like or name, choices, 3) if near is None else near
    meant = f" Did you mean {near[0]!r}?" if near else ""
    if see or len(choices) > LISTED:
        listed = f" The nearest are: {', '.join(near)}." if len(near) > 1 else ""
        listed += f" {see}" if see else "" if near else f" Some are: {', '.join(choices[:3])}."
    else:
        listed = f" There are: {', '.join(choices)}."
    return UnknownNameError(f"no {kind} is called {name!r}.{meant}{listed}")


def unknown_attribute(
    what: str,
    name: str,
    there: Iterable[str],
    results: Iterable[str] = (),
    way: str = "[{!r}]",
) -> UnknownNameError:
    """Make the error for an attribute that is not there, with the nearest that is.

    `results` are asked for by name, in the `way` that is given.

    >>> print(unknown_attribute("a plan", "pric", ["best"], ["fleet_price", "price"]))
    a plan has no attribute 'pric'. Did you mean ['price']?
    """
    public = [each for each in there if not each.startswith("_")]
    near = closest(name, [*public, *results], 1)
    nearest = [f"{each!r}" if each in public else way.format(each) for each in near]
    hint = f" Did you mean {nearest[0]}?" if near else ""
    return UnknownNameError(f"{what} has no attribute {name!r}.{hint}")


class Suggesting:
    """What refuses an attribute that it does not have with the nearest that it has."""

    __slots__ = ()
    # How code asks for what has a name and no attribute.
    _way: ClassVar[str] = "[{!r}]"

    def _by_name(self) -> Iterable[str]:
        """Return what is asked for by name, in that way."""
        return ()

    if not TYPE_CHECKING:  # which must go on to see what is not there

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if hasattr(type(self), name):
                # A property that is there, and refuses: its own words are better.
                return object.__getattribute__(self, name)
            try:
                results = tuple(self._by_name())
            except (MlsimError, NotImplementedError):
                results = ()  # what can't be computed has none
            kind = f"{type(self).__name__!r} object"
            raise unknown_attribute(kind, name, dir(self), results, self._way)


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number, or refuse what is none. A value that counts is one.

    Raises
    ------
    InvalidValueError
        If it is no whole number, or not from `least` to `most`.

    >>> check_whole("nodes", 4)
    4
    """
    if isinstance(value, float) and hasattr(value, "__index__") and value.is_integer():
        value = int(value)  # a value that counts, which is a float as well
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < least
        or (most is not None and value > most)
    ):
        range_ = f"from {least} up" if most is None else f"from {least} to {most:,}"
        raise InvalidValueError(f"{name} must be a whole number {range_}, not {value!r}.")
    return value


def need(library: str, purpose: str, extra: str) -> ModuleType:
    """Import an optional library, or say how to get it.

    Raises
    ------
    MissingLibraryError
        If `library` is not installed; names the extra that brings it.
    """
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingLibraryError(
            f"{purpose} needs {library}, which is not installed. "
            f"Install mlsim with its extra [{extra}], or {library} itself."
        ) from error


def importing(room: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a room, which imports a name when it is first used.

    Parameters
    ----------
    room
        The room, by its `__name__`.
    homes
        The module of each name, within the room.

    >>> importing("mlsim.systems", {"load_and_compute": "in_steps"})("load_and_compute").__module__
    'mlsim.systems.in_steps'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(f"{room}.{homes[name]}"), name)
        setattr(sys.modules[room], name, value)
        return value

    return find
