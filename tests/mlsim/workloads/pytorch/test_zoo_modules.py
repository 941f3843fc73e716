"""What is in the zoo and in PyTorch is the same model, read from the module alone.

A network is compared operator by operator. Of a language model both graphs are fused by one pass,
so that what stands apart in one of them stands apart in the other: a product of queries, keys and
values is one kernel, whether a module has one matrix or three, and so are the two matrices of a
gated network with their function.

The plain run reads eight networks, and five of the language models that have the fewest layers in
their class; `MLSIM_JUDGE=1` (or `make judge`) reads them all.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kept import text
from language_modules import MODELS, WITHOUT, kernels
from pytorch_parts import torchvision_models
from zoo_modules import PICTURES, T5, WHISPER

from mlsim import Models
from mlsim.workloads import Transformer
from mlsim.workloads.graph.language import language_graph

pytest.importorskip("torch")
torchvision_models()
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
TOKENS = 64
COUNTS = ("multiply_adds", "parameters", "table_parameters", "activations_read")
COUNTS += ("activations_written", "outputs")
NETWORKS = ["LeNet5_Variant", *PICTURES, *T5, *WHISPER]
# Straight lines of layers, which have one order only.
CHAINS = ("LeNet5_Variant", "VGG16", "AlexNet_Torchvision", "MobileNetV2", "ViT_B16")


def sampled() -> tuple[list[str], list[str]]:
    """The networks and the language models that this run reads."""
    if os.environ.get("MLSIM_JUDGE"):
        return NETWORKS, list(MODELS)
    of_class: dict[str, str] = {}  # the one with the fewest layers
    for name in sorted(MODELS, key=lambda name: getattr(Models, name).layers):
        of_class.setdefault(MODELS[name][1], name)
    networks = ["LeNet5_Variant", "AlexNet_Torchvision", "ResNet50", "MobileNetV2"]
    networks += ["EfficientNet_B0", "ViT_B16", "T5_Small", "Whisper_Base"]
    return networks, random.Random(17).sample(list(of_class.values())[:14], 5)


SOME, LANGUAGE = sampled()
# Reads modules in a process that can reach neither the zoo nor its data.
ALONE = text("modules_alone.py.txt")


@pytest.fixture(scope="module")
def alone() -> dict[str, tuple[list[int], list[tuple[Any, ...]]]]:
    """Read all modules, with nothing of the zoo at hand."""
    helpers = str(Path(__file__).parents[3] / "helpers")
    asked = json.dumps([helpers, TOKENS, COUNTS, SOME, LANGUAGE])
    done = subprocess.run(
        [sys.executable, "-c", ALONE, asked], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr[-2000:]
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    return {name: (told, list(map(tuple, found))) for name, told, found in rows}


def test_each_language_model_is_compared_or_there_is_a_reason() -> None:
    without = [name for names in WITHOUT.values() for name in names]
    told = [*MODELS, *without]
    assert sorted(told) == sorted(each.key for each in Models if isinstance(each, Transformer))


def test_a_module_is_the_zoos_network_operator_by_operator(alone: dict) -> None:
    broken = []
    for name in SOME:
        (parameters, flop), rows = alone[name]
        model = getattr(Models, name)
        told = [tuple(getattr(each, count) for count in COUNTS) for each in model.operators]
        if (parameters, flop) != (model.parameter_count, model.flop_count):
            broken.append(f"{name}: {parameters} parameters, {flop} FLOP")
        if Counter(rows) != Counter(told) or (name in CHAINS and rows != told):
            broken.append(f"{name}: {Counter(rows) - Counter(told)}")
    assert broken == []


def test_a_module_is_the_zoos_language_model_kernel_by_kernel(alone: dict) -> None:
    broken = []
    for name in LANGUAGE:
        (held, done, hidden), rows = alone[name]
        model = getattr(Models, name)
        work = model.flop_count(TOKENS, all_logits=True)
        # What a causal mask hides stands beside the count on both sides.
        whole = model.flop_count(TOKENS, all_logits=True, causal=False)
        if (held, 2 * done, 2 * (done + hidden)) != (model.parameter_count, work, whole):
            broken.append(f"{name}: {held} parameters, {done} and {hidden} multiply-adds")
        known = kernels(language_graph(model, TOKENS, all_logits=True))
        if Counter(rows) != Counter(map(tuple, known)):
            broken.append(f"{name}: {Counter(rows) - Counter(map(tuple, known))}")
    assert broken == []
