"""A language model of the zoo and its PyTorch module are the same network, kernel by kernel.

Both graphs are fused by one pass, so that what stands apart in one of them stands apart in
the other: a product of queries, keys and values is one kernel, whether a module has one
matrix or three, and so are the two matrices of a gated network with their function.

The plain run reads the smallest model of each of twelve classes; `MLSIM_JUDGE=1` (or `make judge`)
reads them all.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from language_modules import MODELS, WITHOUT, kernels
from pytorch_parts import torchvision_models

from mlsim import Models
from mlsim.workloads import Transformer
from mlsim.workloads.graph.language import language_graph

pytest.importorskip("torch")
torchvision_models()
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
TOKENS = 64


def sampled() -> list[str]:
    """The models that this run reads."""
    if os.environ.get("MLSIM_JUDGE"):
        return list(MODELS)
    of_class: dict[str, str] = {}  # the one with the fewest layers
    for name in sorted(MODELS, key=lambda name: getattr(Models, name).layers):
        of_class.setdefault(MODELS[name][1], name)
    return random.Random(17).sample(list(of_class.values()), 12)


SAMPLE = sampled()
# Reads modules in a process that can reach neither the zoo nor any data file.
ALONE = """
import json, sys

def watch(event, arguments):
    if event == "import" and arguments[0].startswith("mlsim.zoo"):
        raise ImportError("the zoo is out of reach")
    if event == "open" and "mlsim/data/" in str(arguments[0]):
        raise OSError("the zoo's data is out of reach")

sys.addaudithook(watch)
sys.path.insert(0, sys.argv[1])
from language_modules import MODELS, kernels, language_module, totals
from mlsim.workloads.pytorch import read_module

try:
    import mlsim.zoo
except ImportError:
    pass
else:
    sys.exit("the zoo is not out of reach")
read = {}
for name in sys.argv[3:]:
    told = MODELS[name]
    if str(told) not in read:  # some releases have one architecture
        graph = read_module(language_module(name), tokens=int(sys.argv[2]))
        read[str(told)] = [totals(graph), kernels(graph)]
    print(json.dumps([name, *read[str(told)]]), flush=True)
"""


@pytest.fixture(scope="module")
def alone() -> dict[str, tuple[list[int], list[list[object]]]]:
    """Read all modules, with nothing of the zoo at hand."""
    helpers = Path(__file__).parents[3] / "helpers"
    command = [sys.executable, "-c", ALONE, str(helpers), str(TOKENS), *SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    return {name: (told, found) for name, told, found in rows}


def test_each_language_model_is_compared_or_there_is_a_reason() -> None:
    without = [name for names in WITHOUT.values() for name in names]
    told = [*MODELS, *without]
    assert sorted(told) == sorted(each.key for each in Models if isinstance(each, Transformer))


@pytest.mark.parametrize("name", SAMPLE)
def test_a_module_has_the_zoos_counts(name: str, alone: dict) -> None:
    (held, done, hidden), _ = alone[name]
    model = getattr(Models, name)
    assert held == model.parameter_count
    assert 2 * done == model.flop_count(TOKENS, all_logits=True)
    # What a causal mask hides stands beside the count on both sides.
    assert 2 * (done + hidden) == model.flop_count(TOKENS, all_logits=True, causal=False)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_module_is_the_zoos_model_kernel_by_kernel(name: str, alone: dict) -> None:
    known = kernels(language_graph(getattr(Models, name), TOKENS, all_logits=True))
    assert Counter(map(tuple, alone[name][1])) == Counter(map(tuple, known))
