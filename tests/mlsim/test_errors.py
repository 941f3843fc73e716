"""Errors: each also is the builtin that it resembles, and names the nearest that there is."""

from __future__ import annotations

import builtins
import inspect
import re
from functools import partial

import pytest
import refusals

import mlsim
from mlsim import errors
from mlsim.errors import (
    MlsimError,
    UnknownArgumentError,
    check_whole,
    closest,
    nearest,
    unknown_name,
)


def test_an_error_is_the_builtin_that_the_tree_says() -> None:
    for _, each in inspect.getmembers(errors, inspect.isclass):
        if issubclass(each, MlsimError) and each is not MlsimError:
            assert each.__doc__
            drawn = re.search(rf"── {each.__name__}\s+\((\w+)\)", errors.__doc__ or "")
            assert drawn, f"the tree at the top of the module lacks {each.__name__}"
            assert issubclass(each, getattr(builtins, drawn[1]))


def test_what_begins_with_a_name_or_has_it_as_a_word_comes_before_what_resembles_it() -> None:
    """Three at most; of two letters none begins with it; six letters of ten must be alike."""
    names = ["xx_bat", "batch_size", "bat_one", "x_bat_y"]
    assert closest("bat", names) == ["bat_one", "batch_size", "xx_bat"]
    assert closest("Bat One", names, 1) == ["bat_one"]
    assert closest("ba", ["batch"]) == []  # 2 x 2 letters of 7
    assert nearest("abcdxy", ["abcdef"]) == " Did you mean 'abcdef'?"  # 2 x 4 of 12
    assert nearest("resnet-50", ["VGG16", "ResNet50"]) == " Did you mean 'ResNet50'?"
    assert nearest(None, ["A100"]) == ""


def test_of_many_names_the_three_nearest_are_told() -> None:
    many = [f"H{number}" for number in range(100, 200)]
    told = "no device is called 'H1000'. Did you mean 'H100'? "
    assert str(unknown_name("device", "H1000", iter(["A100", "H100"]))) == (
        f"{told}There are: A100, H100."
    )
    see = "`mlsim zoo` lists them."
    nearest_told = f"{told}The nearest are: H100, H190, H180."
    assert str(unknown_name("device", "H1000", many, see=see)) == f"{nearest_told} {see}"
    assert str(unknown_name("device", "H1000", ["H100"], see=see)) == f"{told}{see}"
    assert str(unknown_name("device", "x", many, near=["H7", "H5"])).endswith("are: H7, H5.")
    zebra = partial(unknown_name, "device", "zebra")
    assert str(zebra(many)) == "no device is called 'zebra'. Some are: H100, H101, H102."
    assert str(zebra(many[:15])).endswith(f"There are: {', '.join(many[:15])}.")
    assert "Some are" in str(zebra(many[:16]))
    assert str(unknown_name("result", "latensy", ["latency", *many])) == (
        "no result is called 'latensy'. Did you mean 'latency'?"
    )
    assert "mean 'H100'" in str(unknown_name("device", "NVIDIA H 1", many, like="h100"))


def test_an_argument_that_is_none_is_told_the_nearest_and_where_the_others_are() -> None:
    """Seven letters of ten must be alike."""
    asked = partial(UnknownArgumentError, "abcdexy", ["efficiency"])
    told = "no argument or quantity is called 'abcdexy'."
    results = "help(solve) lists the arguments, and the book's page of quantities the results."
    found = asked(arguments=["abcdefg"], question="solve")  # 2 x 5 letters of 14
    assert str(found) == f"{told} Did you mean 'abcdefg'? {results}"
    assert (found.argument, found.quantities) == ("abcdexy", ("efficiency",))
    assert found.arguments == ("abcdefg",)
    assert str(asked(arguments=["abcdfg"])) == told  # 2 x 4 of 13
    alone = UnknownArgumentError("abcdexy", question="solve")
    assert str(alone) == f"{told} help(solve) lists the arguments."


class Thing(errors.Suggesting):
    latency = 3

    def _by_name(self) -> list[str]:
        return ["total_bytes"]

    @property
    def broken(self) -> int:
        raise AttributeError("words of its own")


def test_an_attribute_that_is_not_there_suggests_one_that_is_or_a_name() -> None:
    says = "'Thing' object has no attribute "
    cases = {"latensy": f"{says}'latensy'. Did you mean 'latency'?", "zebra": f"{says}'zebra'."}
    cases |= {"total_byte": f"{says}'total_byte'. Did you mean ['total_bytes']?"}
    for name, words in {**cases, "broken": "words of its own", "_by_nam": "_by_nam"}.items():
        with pytest.raises(AttributeError, match=f"^{re.escape(words)}$"):
            getattr(Thing(), name)
    hidden = errors.unknown_attribute("a plan", "_hidde", ["_hidden"])
    assert str(hidden) == "a plan has no attribute '_hidde'."
    with pytest.raises(AttributeError, match=r"no name in mlsim is called 'Engin'.*'Engine'"):
        mlsim.Engin  # noqa: B018


def test_whole_numbers_and_values_that_count_are_taken() -> None:
    assert refusals.answered(partial(check_whole, "nodes"), "whole_numbers") == []
    assert [check_whole("nodes", each, least=3, most=8) for each in (3, 8)] == [3, 8]
    assert type(check_whole("nodes", mlsim.given(5, "GPUs"))) is int


def test_a_library_that_is_not_there_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"a drawing needs nonesuch_lib.*extra \[plots\]"):
        errors.need("nonesuch_lib", "a drawing", "plots")
    assert errors.need("math", "arithmetic", "none").pi > 3
