"""What of the package's examples is tried: without PyTorch not what reads its modules."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/mlsim/workloads/pytorch/*.py"]
