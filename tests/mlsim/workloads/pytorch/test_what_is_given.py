"""How a PyTorch module is given: shapes, examples, number formats, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mlsim import anatomy, profile_ops  # noqa: E402
from mlsim.errors import InvalidValueError, UnsupportedLayerError  # noqa: E402


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(3456, 10))


class Calling(nn.Module):  # type: ignore[misc]
    """A module that does what a function of it and its input says."""

    def __init__(self, what: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layer, self.what = nn.Linear(4, 4), what

    def forward(self, x: Any) -> Any:
        return self.what(self, x)


def test_a_batch_of_one_in_front_of_the_shape_is_dropped() -> None:
    front = profile_ops(convolutions(), shape=(1, 1, 28, 28))
    # 6 x 24 x 24 outputs of 25 multiply-adds, and 3,456 by 10 weights.
    assert front["operations"][-1] == 2 * (6 * 24 * 24 * 25 + 34560)
    assert front["operations"] == profile_ops(convolutions(), shape=(1, 28, 28))["operations"]
    assert anatomy(convolutions(), shape=(1, 1, 28, 28), batch_size=8).total("operations") == (
        8 * front["operations"][-1]
    )


def test_a_batch_of_several_in_front_is_asked_for_as_such() -> None:
    with pytest.raises(InvalidValueError, match=r"Write shape=\(1, 28, 28\), and batch_size=8"):
        anatomy(convolutions(), shape=(8, 1, 28, 28))


def test_a_shape_that_fits_neither_way_is_refused_as_it_was_given() -> None:
    with pytest.raises(InvalidValueError, match=r"of shape \(1, 1, 3, 28, 28\)"):
        anatomy(convolutions(), shape=(1, 3, 28, 28))


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (3.5, "whole numbers"),
        ("1,28,28", "whole numbers"),
        ({"a": 1}, "whole numbers"),
        (torch.zeros(1, 28, 28), r"a tensor; its shape is \(1, 28, 28\)"),
        ((), "no side"),
        ((1, -28, 28), "not -28"),
        ((1, float("nan"), 28), "not nan"),
        ((1, 10**20, 28), "at most"),
        ((1, 10**9, 10**9), "at most"),
    ],
)
def test_what_is_no_shape_is_refused(shape: Any, told: str) -> None:
    with pytest.raises(InvalidValueError, match=told):
        anatomy(convolutions(), shape=shape)


def test_several_inputs_are_given_as_an_example() -> None:
    attention = nn.MultiheadAttention(64, 4, batch_first=True)
    with pytest.raises(InvalidValueError, match="Give example="):
        anatomy(attention, shape=(10, 64))
    tokens = torch.empty(1, 10, 64, device="meta")
    found = anatomy(attention, example=(tokens, tokens, tokens))
    # Four matrices of 64 by 64 for ten tokens, and two products of 10 by 10 by 64.
    assert found.total("operations") == 2 * (10 * 4 * 64 * 64 + 2 * 10 * 10 * 64)


def test_tokens_and_numbers_are_told_apart() -> None:
    with pytest.raises(InvalidValueError, match="give tokens="):
        anatomy(nn.Embedding(100, 16), shape=(7,))
    with pytest.raises(InvalidValueError, match="give shape="):
        anatomy(convolutions(), tokens=7)


@pytest.mark.parametrize("layer", [nn.LSTM(8, 16), nn.TransformerEncoderLayer(8, 2)])
def test_steps_are_never_taken_for_samples(layer: nn.Module) -> None:
    with pytest.raises(UnsupportedLayerError, match="batch_first=True"):
        anatomy(layer, shape=(5, 8))


def test_a_layer_with_steps_first_is_read_where_the_module_swaps_them() -> None:
    class Swapping(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 16)

        def forward(self, x: Any) -> Any:
            return self.lstm(x.transpose(0, 1))[0]

    # Four gates of 16, each from 8 inputs and 16 states, for five steps.
    expected = 2 * 5 * 4 * 16 * (8 + 16)
    assert anatomy(Swapping(), shape=(5, 8)).total("operations") == expected


@pytest.mark.parametrize(
    "what",
    [
        lambda self, x: self.layer(x) if x.sum() > 0 else x,
        lambda self, x: x[x > 0],
        lambda self, x: torch.from_numpy(x.numpy()),
        lambda self, x: self.layer(x) * len(x.tolist()),
        lambda self, x: self.layer(x) if self.layer.weight.sum() > 0 else x,
    ],
)
def test_what_depends_on_numbers_can_not_be_counted(what: Any) -> None:
    with pytest.raises(UnsupportedLayerError, match="numbers"):
        anatomy(Calling(what), shape=(4,))


def test_complex_numbers_can_not_be_counted() -> None:
    with pytest.raises(UnsupportedLayerError, match="complex"):
        anatomy(nn.Linear(4, 4, dtype=torch.complex64), shape=(4,))


@pytest.mark.parametrize("module", [nn.Identity(), nn.Flatten(), nn.Sequential()])
def test_a_module_without_a_layer_is_refused(module: nn.Module) -> None:
    with pytest.raises(InvalidValueError, match="nothing to count"):
        anatomy(module, shape=(4,))


def test_the_number_format_is_that_of_the_module() -> None:
    half = anatomy(convolutions().half(), shape=(1, 28, 28))
    assert half.precision.name == "fp16"
    assert anatomy(convolutions().bfloat16(), shape=(1, 28, 28)).precision.name == "bf16"
    full = anatomy(convolutions().half(), shape=(1, 28, 28), precision="fp32")
    assert full.total("working_set") == 2 * half.total("working_set")


@pytest.mark.parametrize("thing", [nn.Linear, torch.zeros(3), {"weight": 1}, "ResNet50"])
def test_a_shape_goes_with_a_module_only(thing: Any) -> None:
    with pytest.raises(InvalidValueError, match="is for a PyTorch module"):
        anatomy(thing, shape=(4,))
