"""What is in the zoo and in PyTorch is the same network, read from the module alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from zoo_modules import PICTURES, T5, WHISPER

from mlsim import Models

pytest.importorskip("torch")
NAMES = ("LeNet5_Variant", *PICTURES, *T5, *WHISPER)
COUNTS = (
    "multiply_adds",
    "parameters",
    "table_parameters",
    "activations_read",
    "activations_written",
    "outputs",
)
# Reads all modules in a process that can reach neither the zoo nor any data file.
ALONE = """
import json, sys

def watch(event, arguments):
    if event == "import" and arguments[0].startswith("mlsim.zoo"):
        raise ImportError("the zoo is out of reach")
    if event == "open" and "mlsim/data/" in str(arguments[0]):
        raise OSError("the zoo's data is out of reach")

sys.addaudithook(watch)
sys.path.insert(0, sys.argv[1])
from zoo_modules import weightless, zoo_modules
from mlsim.workloads.pytorch import load_module

try:
    import mlsim.zoo
except ImportError:
    pass
else:
    sys.exit("the zoo is not out of reach")
found = {}
for name, (build, given) in zoo_modules().items():
    network = load_module(weightless(build), **given)
    rows = [[getattr(each, count) for count in sys.argv[2:]] for each in network.operators]
    found[name] = [network.parameter_count, network.flop_count, rows]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def alone() -> dict[str, tuple[int, int, list[list[int]]]]:
    pytest.importorskip("transformers")
    helpers = Path(__file__).parents[3] / "helpers"
    command = [sys.executable, "-c", ALONE, str(helpers), *COUNTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_the_zoos_network_operator_by_operator(name: str, alone: dict) -> None:
    parameters, flop, rows = alone[name]
    model = getattr(Models, name)
    assert (parameters, flop) == (model.parameter_count, model.flop_count)
    told = [tuple(getattr(each, count) for count in COUNTS) for each in model.operators]
    assert Counter(map(tuple, rows)) == Counter(told)
    # A straight line of layers has one order only.
    if name in ("LeNet5_Variant", "VGG16", "AlexNet_Torchvision", "MobileNetV2", "ViT_B16"):
        assert list(map(tuple, rows)) == told
