"""What can't be read is refused by the name of its layer and with a way out, never counted 0."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest

from mlsim.errors import (
    InvalidValueError,
    MissingLibraryError,
    MlsimError,
    UnsupportedLayerError,
    WrongKindError,
)
from mlsim.workloads.pytorch import is_module, load_module, read_module


def test_without_pytorch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingLibraryError, match=r'pip install "mlsim\[torch\]"'):
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

from mlsim.workloads.pytorch import calls  # noqa: E402


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


@pytest.mark.parametrize(
    ("forward", "operation", "why"),
    [
        (lambda x: x if x.sum() > 0 else -x, "is_nonzero", "depends on numbers"),
        (lambda x: x * x.max().item(), "item", "depends on numbers"),
        (lambda x: x[x > 0], "index", "depends on numbers"),
        (lambda x: x.nonzero(), "nonzero", "depends on numbers"),
        (lambda x: torch.masked_select(x, x > 0), "masked_select", "depends on numbers"),
        (torch.fft.fft, "fft", "nobody has told"),
        (lambda x: torch.linalg.eigvals(x @ x.mT), "eig", "nobody has told"),
        (lambda x: torch.einsum("bi,bj,bk->bijk", x, x, x), "einsum", "only two tensors"),
    ],
)
def test_an_operation_that_cannot_be_counted_is_named(
    forward: Any, operation: str, why: str
) -> None:
    with pytest.raises(UnsupportedLayerError, match=why) as caught:
        read_module(_Outer(forward), shape=(4,))
    message = str(caught.value)
    assert message.startswith("odd.0 (_Inner): the operation ")
    assert operation in message.partition("can't be counted")[0]
    assert isinstance(caught.value, NotImplementedError)
    assert isinstance(caught.value, MlsimError)


def test_a_module_that_asks_for_numbers_is_refused() -> None:
    for forward in (lambda x: x * len(x.tolist()), lambda x: torch.from_numpy(x.numpy())):
        with pytest.raises(UnsupportedLayerError, match=r"^odd\.0: it asks for numbers of a tens"):
            read_module(_Outer(forward), shape=(4,))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, r"what does Linear read\? Give shape=.*tokens=.*example="),
        ({"shape": (3,), "example": torch.zeros(1, 3)}, "not both"),
        ({"shape": (0,)}, "whole number of 1 or more, not 0"),
        ({"shape": (2.5,)}, "whole number of 1 or more, not 2.5"),
        ({"tokens": True}, "tokens must be a whole number"),
        ({"shape": (5,), "tokens": 3}, "takes no decoder_input_ids"),
        ({"example": 7}, "example must be a tensor"),
        ({"example": {"x": 1}}, "example has no tensor"),
        ({"shape": (9,)}, r"Linear does not take this input, of shape \(1, 9\)"),
    ],
)
def test_an_input_that_cannot_be_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        read_module(nn.Linear(4, 4), **given)


def test_a_shape_that_does_not_fit_names_the_layer() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(10, 2))
    with pytest.raises(InvalidValueError, match=r"does not take this input.*: 2: ") as caught:
        read_module(module, shape=(3, 8, 8), name="my network")
    assert "my network" in str(caught.value)
    assert "without the batch" in str(caught.value)


def test_what_is_no_module_that_has_its_weights_is_refused() -> None:
    for thing in ("resnet50", nn.Linear, None):
        with pytest.raises(WrongKindError, match=r"a torch\.nn\.Module is wanted"):
            read_module(thing, shape=(3,))
    with pytest.raises(InvalidValueError, match=r"weight has no shape yet.*run the module once"):
        read_module(nn.LazyLinear(4), shape=(3,))


def test_a_tensor_of_four_million_numbers_is_still_filled() -> None:
    for more, large in ((0, False), (1, True)):
        read = torch.empty(2**22 + more, device="meta")
        assert calls.is_large(None, ([2**22 + more],), []) is large
        assert calls.is_large(None, (), [read]) is large
    assert not calls.is_large(None, ([2**12, 2**10],), [])
    assert calls.is_large(None, ([2**12, 2**10 + 1],), [])


def test_a_scripted_module_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.trace(nn.Linear(4, 4), torch.zeros(1, 4))
    with pytest.raises(UnsupportedLayerError, match="scripted"):
        read_module(scripted, shape=(4,))
