"""Errors: each also is the builtin that it resembles, and the essay names them all."""

from __future__ import annotations

import builtins
import inspect
import re

import pytest

from mlsim import errors
from mlsim.errors import MissingLibraryError, MlsimError, nearest, need, unknown_name

CLASSES = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, MlsimError) and each is not MlsimError
]


def test_an_error_is_the_builtin_that_the_tree_says() -> None:
    for each in CLASSES:
        assert each.__doc__
        drawn = re.search(rf"── {each.__name__}\s+\((\w+)\)", errors.__doc__ or "")
        assert drawn, f"the tree at the top of the module lacks {each.__name__}"
        assert issubclass(each, getattr(builtins, drawn[1]))


def test_nearest_ignores_case_and_dashes() -> None:
    assert nearest("resnet-50", ["ResNet50", "VGG16"]) == " Did you mean 'ResNet50'?"
    assert nearest("zebra", ["A100"]) == ""
    assert nearest(None, ["A100"]) == ""


def test_unknown_name_lists_what_there_is() -> None:
    message = str(unknown_name("device", "H1000", iter(["A100", "H100"])))
    assert message == "no device is called 'H1000'. Did you mean 'H100'? There are: A100, H100."


def test_of_many_names_the_three_nearest_are_told() -> None:
    many = [f"H{number}" for number in range(100, 200)]
    message = str(unknown_name("device", "H1000", many, see="`mlsim zoo` lists them."))
    assert message == (
        "no device is called 'H1000'. Did you mean 'H100'? The nearest are: H100, H190, H180. "
        "`mlsim zoo` lists them."
    )
    assert str(unknown_name("device", "zebra", many)) == (
        "no device is called 'zebra'. Some are: H100, H101, H102."
    )
    assert str(unknown_name("result", "latensy", ["latency", *many])) == (
        "no result is called 'latensy'. Did you mean 'latency'?"
    )


def test_a_missing_library_names_the_extra() -> None:
    with pytest.raises(MissingLibraryError, match=r"a drawing needs nonesuch_lib.*extra \[plots\]"):
        need("nonesuch_lib", "a drawing", "plots")


def test_a_library_that_is_there_is_returned() -> None:
    assert need("math", "arithmetic", "none").pi > 3


def test_an_unknown_name_of_the_package_suggests_the_nearest() -> None:
    import mlsim

    with pytest.raises(AttributeError, match=r"no name in mlsim is called 'Engin'.*'Engine'"):
        mlsim.Engin  # noqa: B018
    assert not hasattr(mlsim, "no_such_thing")
    assert set(mlsim.__all__) <= set(dir(mlsim))
