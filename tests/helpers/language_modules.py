"""Language models of the zoo as the transformers library builds them, without weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytorch_parts import torchvision_models
from zoo_modules import weightless

from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.fuse import fused

# Of each kernel: what it is, computes, holds, reads and writes.
OPERATOR = (
    *("kind", "multiply_adds", "table_parameters"),
    *("activations_read", "activations_written", "outputs"),
)


FILE = Path(__file__).parents[1] / "fixtures" / "language_modules.json"
# The zoo's name: the library's configuration and model, and what differs from its defaults.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    name: (told["config"], told["model"], told["sizes"])
    for name, told in json.loads(FILE.read_text(encoding="utf-8")).items()
    if name != "about"
}

# Those that are not compared, and why.
WITHOUT: dict[str, tuple[str, ...]] = {
    "the library adds both parts of a layer at once, these one after the other": (
        *("Falcon_180B", "Pythia_160M", "Pythia_1_4B", "Pythia_6_9B", "Pythia_12B"),
    ),
    "the library has no such model": (
        *("BigScience_181B", "GPT3_175B", "MT_NLG_530B", "Megatron_1T", "Megatron_22B"),
        *("GPT_20B", "GPT_6_7B", "PaLM_540B"),
    ),
    "the library's has ALiBi and no biases, these have learned positions and biases": (
        *("MPT_125M", "MPT_1B", "MPT_3B", "MPT_7B", "MPT_13B", "MPT_30B", "MPT_70B"),
    ),
    "the library writes out a state's recurrence as many operations, some of them not known": (
        *("Nemotron_3_Nano_30B_A3B", "Nemotron_H_56B", "Qwen3_Next_80B_A3B"),
    ),
    "the library lets all experts work on all tokens, and weighs most with zero": (
        *("Llama4_Maverick", "Llama4_Scout"),
    ),
    "the library computes all scores, and hides with a mask what an indexer leaves out": (
        *("DeepSeek_V3_2", "GLM_5"),
    ),
}


def language_module(name: str) -> Any:
    """Build the module of a language model, which has shapes only."""
    torchvision_models()
    import transformers

    kind, head, sizes = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    return weightless(lambda: getattr(transformers, head)._from_config(config))


def kernels(graph: Graph) -> list[list[object]]:
    """Return each kernel's counts, and the sides of what it puts out.

    What a router adds to its scores is a buffer in a module, which no gradient changes.
    """
    rows = []
    for each in fused(graph):
        held = each.operator.parameters + sum(node.buffers for node in each.nodes)
        read = sum(node.parameters_read() + node.buffers for node in each.nodes)
        counts = [getattr(each.operator, count) for count in OPERATOR]
        rows.append([*counts, held, read])
    return rows


def totals(graph: Graph) -> list[int]:
    """Return parameters, multiply-adds, and those that a causal mask hides."""
    held = graph.parameters + sum(node.buffers for node in graph)
    return [held, graph.multiply_adds, sum(node.masked_multiply_adds for node in graph)]
