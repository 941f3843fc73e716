"""How a module is given; and what can't be read is refused by the name of its layer."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from typing import Any

import pytest
from refusals import answered

from mlsim import anatomy
from mlsim.engine import profile_ops
from mlsim.errors import (
    InvalidValueError,
    MissingLibraryError,
    UnsupportedLayerError,
    WrongKindError,
)
from mlsim.workloads.pytorch import is_module, load_module, read_module


def test_without_pytorch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingLibraryError, match=r"with its extra \[torch\]"):
        load_module(object(), shape=(3,))
    with pytest.raises(ImportError):
        read_module(object(), shape=(3,))
    assert not is_module(object())


def test_to_tell_a_module_pytorch_is_not_imported() -> None:
    program = (
        "import sys, mlsim.workloads.pytorch as door\n"
        "assert not door.is_module('resnet50')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from mlsim.workloads.pytorch import recorder  # noqa: E402


class _Inner(nn.Module):
    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.does = forward

    def forward(self, x: Any) -> Any:
        return self.does(x)


class _Outer(nn.Module):
    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.odd = nn.Sequential(_Inner(forward))

    def forward(self, x: Any) -> Any:
        return self.odd(self.first(x))


# What is done with x, the operation that is named, and why it can't be counted.
UNCOUNTED = [
    (lambda x: x if x.sum() > 0 else -x, "is_nonzero", "depends on numbers"),
    (lambda x: x * x.max().item(), "item", "depends on numbers"),
    (lambda x: x[x > 0], "index", "depends on numbers"),
    (lambda x: x[torch.ones(1, 4, dtype=torch.bool)], "index", "depends on numbers"),
    (lambda x: x.nonzero(), "nonzero", "depends on numbers"),
    (lambda x: torch.masked_select(x, x > 0), "masked_select", "depends on numbers"),
    (torch.fft.fft, "fft", "nobody has told"),
    (lambda x: torch.linalg.eigvals(x @ x.mT), "eig", "nobody has told"),
    (lambda x: torch.einsum("bi,bj,bk->bijk", x, x, x), "einsum", "only two tensors"),
]


def test_an_operation_that_cannot_be_counted_is_named() -> None:
    for forward, operation, why in UNCOUNTED:
        with pytest.raises(UnsupportedLayerError, match=why) as caught:
            read_module(_Outer(forward), shape=(4,))
        message = str(caught.value)
        assert message.startswith("odd.0 (_Inner): the operation "), message
        assert operation in message.partition("can't be counted")[0]
        assert isinstance(caught.value, NotImplementedError)


def test_a_module_that_asks_for_numbers_is_refused() -> None:
    for forward in (lambda x: x * len(x.tolist()), lambda x: torch.from_numpy(x.numpy())):
        with pytest.raises(UnsupportedLayerError, match=r"^odd\.0: it asks for numbers of a tens"):
            read_module(_Outer(forward), shape=(4,))


MODULES = {
    "net": nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(3456, 10)),
    "linear": nn.Linear(4, 4),
    "lazy": nn.LazyLinear(4),
    "complex": nn.Linear(4, 4, dtype=torch.complex64),
    "embedding": nn.Embedding(100, 16),
    "convolution": nn.Conv2d(1, 6, 5),
    "identity": nn.Identity(),
    "flatten": nn.Flatten(),
    "empty": nn.Sequential(),
    "unfit": nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(10, 2)),
    "attention": nn.MultiheadAttention(64, 4, batch_first=True),
    # Steps are never taken for samples.
    "LSTM": nn.LSTM(8, 16),
    "encoder": nn.TransformerEncoderLayer(8, 2),
}


def test_an_input_that_cannot_be_is_refused() -> None:
    def ask(module: str, **given: Any) -> Any:
        if isinstance(given.get("shape"), list):
            given["shape"] = tuple(given["shape"])
        return read_module(MODULES[module], **given)

    assert answered(ask, "modules") == []
    with pytest.raises(InvalidValueError, match=r"a tensor; its shape is \(1, 28, 28\)"):
        read_module(MODULES["net"], shape=torch.zeros(1, 28, 28))


def test_what_is_no_module_that_has_its_weights_is_refused() -> None:
    for thing in ("resnet50", nn.Linear, None):
        with pytest.raises(WrongKindError, match=r"a torch\.nn\.Module is wanted"):
            read_module(thing, shape=(3,))
    for thing in (nn.Linear, torch.zeros(3), {"weight": 1}, "ResNet50"):
        with pytest.raises(InvalidValueError, match=r"^shape= is for a PyTorch module"):
            anatomy(thing, shape=(4,))


def test_a_tensor_of_four_million_numbers_is_still_filled() -> None:
    for more, large in ((0, False), (1, True)):
        read = torch.empty(2**22 + more, device="meta")
        assert recorder.is_large(None, ([2**22 + more],), []) is large
        assert recorder.is_large(None, (), [read]) is large
    assert not recorder.is_large(None, ([2**12, 2**10],), [])
    assert recorder.is_large(None, ([2**12, 2**10 + 1],), [])


def test_a_scripted_module_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.trace(nn.Linear(4, 4), torch.zeros(1, 4))
    with pytest.raises(UnsupportedLayerError, match="scripted"):
        read_module(scripted, shape=(4,))


# What is given and read.


def test_a_batch_in_front_of_the_shape_is_dropped_if_it_is_one() -> None:
    front = profile_ops(MODULES["net"], shape=(1, 1, 28, 28))
    # 6 x 24 x 24 outputs of 25 multiply-adds, and 3,456 by 10 weights.
    assert front["operations"][-1] == 2 * (6 * 24 * 24 * 25 + 34560)
    assert front["operations"] == profile_ops(MODULES["net"], shape=(1, 28, 28))["operations"]
    flat = nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2))
    assert [anatomy(flat, shape=each).total("operations") for each in ((1, 6), (6,))] == [24, 24]
    eight = anatomy(MODULES["net"], shape=(1, 1, 28, 28), batch_size=8)
    assert eight.total("operations") == 8 * front["operations"][-1]


def test_several_inputs_are_given_as_an_example() -> None:
    tokens = torch.empty(1, 10, 64, device="meta")
    found = anatomy(MODULES["attention"], example=(tokens, tokens, tokens))
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
    net = copy.deepcopy(MODULES["net"])
    assert anatomy(net.bfloat16(), shape=(1, 28, 28)).precision.name == "bf16"
    half = anatomy(net.half(), shape=(1, 28, 28))
    assert half.precision.name == "fp16"
    full = anatomy(net, shape=(1, 28, 28), precision="fp32")
    assert full.total("working_set") == 2 * half.total("working_set")
