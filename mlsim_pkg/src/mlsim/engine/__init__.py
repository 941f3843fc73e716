"""The front door: a question in, an answer out.

Each question is a function of the module that bears its name, imported when it is first
asked; `Engine` holds them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from mlsim.errors import (
    MlsimError,
    Suggesting,
    UnknownArgumentError,
    importing,
    unknown_attribute,
)

if TYPE_CHECKING:
    from mlsim.engine.accuracy import (
        KINDS,
        fitted_scores,
        rival_scores,
        score,
        service_scores,
        shelf,
    )
    from mlsim.engine.anatomy import (
        estimate_training_for,
        largest_batch,
        over_memory,
        profile_layer_mem,
        profile_mem,
        profile_ops,
        summary,
    )
    from mlsim.engine.bands import band, held
    from mlsim.engine.calibrate import calibrate
    from mlsim.engine.claims import check_claim
    from mlsim.engine.find import find
    from mlsim.engine.footprint import footprint
    from mlsim.engine.gemm import compare_formats, gemm
    from mlsim.engine.load import load
    from mlsim.engine.plan import owned, plan
    from mlsim.engine.sensitivity import sensitivity
    from mlsim.engine.serve import fit, serve
    from mlsim.engine.solve import solve
    from mlsim.engine.sweep import sweep
    from mlsim.engine.train import optimal_size, train

__all__ = [
    "KINDS",
    "Engine",
    "band",
    "estimate_training_for",
    "fitted_scores",
    "held",
    "largest_batch",
    "over_memory",
    "owned",
    "profile_layer_mem",
    "profile_mem",
    "profile_ops",
    "rival_scores",
    "score",
    "service_scores",
    "shelf",
    "summary",
]

# What says how right predictions are, what a device costs that is bought, and layers by name.
_HOMES = {
    "owned": "plan",
    **dict.fromkeys(("estimate_training_for", "largest_batch", "over_memory"), "anatomy"),
    **dict.fromkeys(("profile_layer_mem", "profile_mem", "profile_ops", "summary"), "anatomy"),
    **dict.fromkeys(("KINDS", "score", "shelf"), "accuracy"),
    **dict.fromkeys(("fitted_scores", "rival_scores", "service_scores"), "accuracy"),
    **dict.fromkeys(("band", "held"), "bands"),
}


__getattr__ = importing(__name__, _HOMES)


class _Question:
    """A static method that is imported, and takes this one's place, when it is first used."""

    def __init__(self, name: str, module: str) -> None:
        self.name, self.module = name, module

    def __get__(self, instance: object, owner: type) -> Any:
        function = _asking(getattr(import_module(f"{__name__}.{self.module}"), self.name))
        setattr(owner, self.name, staticmethod(function))
        return function


# The estimate whose answers have bands.
_CALIBRATED = "calibrated"
# Arguments that are either True or False, of any question.
_SWITCHES = ("check_memory", "search")
_PLAIN = frozenset((int, float, str, bool))


def _asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a question that, asked with a wrong name, tells the argument that was meant."""
    from mlsim.parameters import check
    from mlsim.units import unitless

    @wraps(function)
    def ask(*positional: Any, **given: Any) -> Any:
        positional = tuple(map(unitless, positional))
        # What is of a plain kind has no unit; most arguments are.
        given = {
            name: each if each.__class__ in _PLAIN else unitless(each)
            for name, each in given.items()
        }
        for name in _SWITCHES:
            if given.get(name, True).__class__ is not bool:
                check(name, given[name])
        try:
            answer = function(*positional, **given)
            return _banded(answer)
        except UnknownArgumentError as error:
            _refuse(function, error.argument, error.quantities, error.arguments)
        except TypeError as error:
            if not isinstance(error, MlsimError):
                _refuse_names(function, positional, given)
            raise

    return ask


def _banded(answer: Any) -> Any:
    """Return an answer that knows the bands around its results, or of what it expects."""
    if hasattr(answer, "banding"):  # no table of many answers
        answer.banding = _banding
    return answer


def _banding(answer: Any, name: str) -> Any:
    if answer.estimate != _CALIBRATED:
        return None
    # By its name: bands are made of answers of these doors. What a browser loads has none.
    try:
        bands = import_module(f"{__name__}.bands")
    except ModuleNotFoundError:
        return None
    return bands.band_of(answer, name)


def _refuse_names(
    function: Callable[..., Any], positional: tuple[Any, ...], given: Mapping[str, Any]
) -> None:
    """Refuse a name that is none, where a call came to nothing because of its names."""
    from inspect import Parameter, signature

    from mlsim.quantities import VOCABULARY

    asked = signature(function)
    try:
        asked.bind(*positional, **given)
    except TypeError:
        open_ended = any(each.kind is each.VAR_KEYWORD for each in asked.parameters.values())
        for name in given:
            if name not in asked.parameters and not (open_ended and name in VOCABULARY):
                _refuse(function, name, ())
        places, named = (
            [each.name for each in asked.parameters.values() if each.kind is kind]
            for kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        )
        if len(positional) > len(places) and named:
            value, question = positional[len(places)], f"Engine.{function.__name__}"
            raise UnknownArgumentError.unnamed(value, places, named[0], question) from None


def _refuse(
    function: Callable[..., Any], name: str, quantities: Any, others: tuple[str, ...] = ()
) -> NoReturn:
    from inspect import signature

    from mlsim.parameters import parameters

    own = [
        each.name
        for each in signature(function).parameters.values()
        if each.kind is not each.VAR_KEYWORD
    ]
    own += others
    for meant, rows in parameters().items():
        if meant in own and any(name in row.aliases for row in rows):
            raise UnknownArgumentError.instead(name, meant, function.__name__) from None
    raise UnknownArgumentError(
        name, quantities, arguments=own, question=f"Engine.{function.__name__}"
    ) from None


class _Doors(type):
    """What refuses a door that there is not with the nearest that there is."""

    if not TYPE_CHECKING:  # which must go on to see what is not there

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_attribute("Engine", name, dir(cls))


class Engine(Suggesting, metaclass=_Doors):
    """Predict what a model does on a device, before running it."""

    if TYPE_CHECKING:
        solve = staticmethod(solve)
        serve = staticmethod(serve)
        train = staticmethod(train)
        footprint = staticmethod(footprint)
        fit = staticmethod(fit)
        find = staticmethod(find)
        sweep = staticmethod(sweep)
        sensitivity = staticmethod(sensitivity)
        optimal_size = staticmethod(optimal_size)
        check_claim = staticmethod(check_claim)
        calibrate = staticmethod(calibrate)
        load = staticmethod(load)
        plan = staticmethod(plan)
        gemm = staticmethod(gemm)
        compare_formats = staticmethod(compare_formats)


# The module of each door.
_MODULES = {
    "solve": "solve",
    "serve": "serve",
    "train": "train",
    "footprint": "footprint",
    "fit": "serve",
    "find": "find",
    "sweep": "sweep",
    "sensitivity": "sensitivity",
    "optimal_size": "train",
    "check_claim": "claims",
    "calibrate": "calibrate",
    "load": "load",
    "plan": "plan",
    "gemm": "gemm",
    "compare_formats": "gemm",
}
for _name, _module in _MODULES.items():
    setattr(Engine, _name, _Question(_name, _module))
