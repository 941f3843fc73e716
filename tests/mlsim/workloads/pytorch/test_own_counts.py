"""Parameters and operations of other people's networks equal their own libraries' counts.

The plain run reads a few of them; `MLSIM_JUDGE=1` (or `make judge`) reads them all.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pytorch_parts import counted_flop, torchvision_models
from zoo_modules import weightless

torch = pytest.importorskip("torch")
models = torchvision_models()
transformers = pytest.importorskip("transformers")

from mlsim.workloads.graph import Graph  # noqa: E402
from mlsim.workloads.pytorch import load_module, read_module  # noqa: E402

PICTURES = (
    *("alexnet", "vgg16", "resnet18", "resnet50", "resnext50_32x4d", "mobilenet_v2"),
    *("mobilenet_v3_large", "efficientnet_b0", "densenet121", "googlenet", "inception_v3"),
    *("squeezenet1_1", "shufflenet_v2_x1_0", "mnasnet1_0", "regnet_y_400mf", "convnext_tiny"),
    *("swin_t", "swin_v2_t", "vit_b_16"),
)
# Held for training only: what a pass does not use, by the name of its part.
UNUSED = {"googlenet": ("aux1", "aux2"), "inception_v3": ("AuxLogits",)}

FILE = Path(__file__).parents[3] / "fixtures" / "small_transformers.json"
TINY = json.loads(FILE.read_text(encoding="utf-8"))
del TINY["about"]
# The library has no other attention for these, or none at all.
WRITTEN_OUT = {
    *("GPTJForCausalLM", "BloomForCausalLM", "Gemma2ForCausalLM", "MambaForCausalLM"),
    "ConvNextModel",
}
TOKENS = 16


def some(names: Iterable[str], count: int) -> list[str]:
    """Return a few of the networks; with `MLSIM_JUDGE=1`, all."""
    every = list(names)
    return every if os.environ.get("MLSIM_JUDGE") else random.Random(17).sample(every, count)


def flop(graph: Graph) -> int:
    """Return the FLOP of a program that also computes what a mask hides."""
    return sum(2 * (node.multiply_adds + node.masked_multiply_adds) for node in graph)


def held(module: Any) -> int:
    return sum(each.numel() for each in module.parameters())


@pytest.mark.parametrize("name", some(PICTURES, 6))
def test_a_network_of_torchvision(name: str) -> None:
    kwargs = {"init_weights": False} if name in UNUSED else {}

    def build() -> Any:
        return getattr(models, name)(**kwargs).eval()

    # One builder works out its widths with numbers.
    module = build() if name.startswith("regnet") else weightless(build)
    size = 299 if name == "inception_v3" else 224
    network = load_module(module, shape=(3, size, size))
    assert network.parameter_count == held(module)
    stored = network.operators
    assert stored.table_parameters + sum(each.parameters for each in stored) == held(module)
    assert flop(network.graph) == counted_flop(module, torch.empty(1, 3, size, size))
    assert [note.partition(":")[0] for note in network.graph.notes] == list(UNUSED.get(name, ()))


def tiny(name: str, attention: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return a small model, what the reader is told of its input, and its input."""
    kind, sizes = TINY[name].values()
    told = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = getattr(transformers, kind)(**{**told, **sizes})
    config.use_cache = False
    build = getattr(transformers, name)._from_config
    module = build(config, attn_implementation=attention).eval()
    words = torch.zeros(1, TOKENS, dtype=torch.int64)
    if name.startswith("Whisper"):
        given = {"shape": (80, 100), "tokens": TOKENS}
        sound = torch.zeros(1, 80, 100)
        return module, given, {"input_features": sound, "decoder_input_ids": words}
    if name.startswith(("ViT", "ConvNext")):
        return module, {"shape": (3, 32, 32)}, {"pixel_values": torch.zeros(1, 3, 32, 32)}
    if name.endswith("ConditionalGeneration"):
        return module, {"tokens": TOKENS}, {"input_ids": words, "decoder_input_ids": words}
    return module, {"tokens": TOKENS}, {"input_ids": words}


@pytest.mark.parametrize("name", some(TINY, 7))
def test_a_network_of_transformers(name: str) -> None:
    attention = "eager" if name in WRITTEN_OUT else "sdpa"
    module, told, given = tiny(name, attention)
    graph = read_module(module, **told)
    assert graph.parameters == held(module)
    assert flop(graph) == counted_flop(module, meta=False, **given)
    assert not graph.notes


@pytest.mark.parametrize("name", ["GPTJForCausalLM", "ViTModel"])
def test_a_module_without_numbers_is_the_same_network(name: str) -> None:
    module, told, _ = tiny(name, "eager")
    empty = weightless(lambda: tiny(name, "eager")[0])
    assert next(empty.parameters()).is_meta
    assert read_module(empty, **told).nodes == read_module(module, **told).nodes
