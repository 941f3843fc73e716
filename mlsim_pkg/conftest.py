"""What of the package's examples is tried: without PyTorch not what reads its modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["src/mlsim/workloads/pytorch/*.py"]


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Close the figures that an example has drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
