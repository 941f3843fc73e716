"""PyTorch's libraries for tests, and what they count themselves."""

from __future__ import annotations

import importlib
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
