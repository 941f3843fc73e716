"""How a PyTorch module is given: shapes, examples, number formats, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mlsim import anatomy, profile_ops  # noqa: E402
from mlsim.errors import InvalidValueError, UnsupportedLayerError  # noqa: E402


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(3456, 10))


def test_a_batch_in_front_of_the_shape_is_dropped_if_it_is_one() -> None:
    front = profile_ops(convolutions(), shape=(1, 1, 28, 28))
    # 6 x 24 x 24 outputs of 25 multiply-adds, and 3,456 by 10 weights.
    assert front["operations"][-1] == 2 * (6 * 24 * 24 * 25 + 34560)
    assert front["operations"] == profile_ops(convolutions(), shape=(1, 28, 28))["operations"]
    eight = anatomy(convolutions(), shape=(1, 1, 28, 28), batch_size=8)
    assert eight.total("operations") == 8 * front["operations"][-1]


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
        ((8, 1, 28, 28), r"Write shape=\(1, 28, 28\), and batch_size=8"),
        ((1, 3, 28, 28), r"of shape \(1, 1, 3, 28, 28\)"),
    ],
)
def test_what_is_no_shape_is_refused(shape: Any, told: str) -> None:
    with pytest.raises(InvalidValueError, match=told):
        anatomy(convolutions(), shape=shape)


@pytest.mark.parametrize(
    ("module", "given", "error", "told"),
    [
        (nn.Embedding(100, 16), {"shape": (7,)}, InvalidValueError, "give tokens="),
        (nn.Conv2d(1, 6, 5), {"tokens": 7}, InvalidValueError, "give shape="),
        (nn.Identity(), {"shape": (4,)}, InvalidValueError, "nothing to count"),
        (nn.Flatten(), {"shape": (4,)}, InvalidValueError, "nothing to count"),
        (nn.Sequential(), {"shape": (4,)}, InvalidValueError, "nothing to count"),
        # Steps are never taken for samples.
        (nn.LSTM(8, 16), {"shape": (5, 8)}, UnsupportedLayerError, "batch_first=True"),
        (
            nn.TransformerEncoderLayer(8, 2),
            {"shape": (5, 8)},
            UnsupportedLayerError,
            "batch_first=True",
        ),
        (
            nn.Linear(4, 4, dtype=torch.complex64),
            {"shape": (4,)},
            UnsupportedLayerError,
            "complex",
        ),
    ],
)
def test_what_a_module_cannot_take_is_refused(
    module: nn.Module, given: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        anatomy(module, **given)


def test_several_inputs_are_given_as_an_example() -> None:
    attention = nn.MultiheadAttention(64, 4, batch_first=True)
    with pytest.raises(InvalidValueError, match="Give example="):
        anatomy(attention, shape=(10, 64))
    tokens = torch.empty(1, 10, 64, device="meta")
    found = anatomy(attention, example=(tokens, tokens, tokens))
    # Four matrices of 64 by 64 for ten tokens, and two products of 10 by 10 by 64.
    assert found.total("operations") == 2 * (10 * 4 * 64 * 64 + 2 * 10 * 10 * 64)


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


def test_the_number_format_is_that_of_the_module() -> None:
    half = anatomy(convolutions().half(), shape=(1, 28, 28))
    assert half.precision.name == "fp16"
    assert anatomy(convolutions().bfloat16(), shape=(1, 28, 28)).precision.name == "bf16"
    full = anatomy(convolutions().half(), shape=(1, 28, 28), precision="fp32")
    assert full.total("working_set") == 2 * half.total("working_set")


def test_a_shape_goes_with_a_module_only() -> None:
    for thing in (nn.Linear, torch.zeros(3), {"weight": 1}, "ResNet50"):
        with pytest.raises(InvalidValueError, match="is for a PyTorch module"):
            anatomy(thing, shape=(4,))
