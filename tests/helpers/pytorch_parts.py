"""PyTorch's libraries for tests, and what they count themselves."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest


def torchvision_models() -> ModuleType:
    """Return torchvision's models, or skip.

    A torchvision that was built for another PyTorch can't load its own operators; its models
    need none of them, but its import needs some to be there.
    """
    torch = pytest.importorskip("torch")
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed", allow_module_level=True)
    while True:
        try:
            return importlib.import_module("torchvision.models")
        except RuntimeError as error:
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(error))
            if missing is None:
                raise
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define(f"{missing.group(1)}(Tensor dets, Tensor scores, float most) -> Tensor")
        KEPT.append(library)


# A library's operators last as long as it does.
KEPT: list[Any] = []


def counted_flop(module: Any, *args: Any, meta: bool = True, **kwargs: Any) -> int:
    """Return the FLOP that PyTorch itself counts as a module runs, by default without numbers."""
    import torch
    from torch.utils._pytree import tree_map
    from torch.utils.flop_counter import FlopCounterMode

    if meta:
        module = module.to("meta")
        args, kwargs = tree_map(lambda each: each.to("meta"), (args, kwargs))
    # It does not know the attention that is made for processors; this one is products.
    plain = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), plain:
        module(*args, **kwargs)
    return int(counter.get_total_flops())
