"""What PyTorch's own counter makes of the same models: 2 for each multiply-add, masks ignored.

Counted with `torch.utils.flop_counter.FlopCounterMode` of torch 2.13.0, one sample, the
models of torchvision 0.28.0 and transformers 5.23.0 with the sizes of the zoo's data files,
without memory for their parameters (on the meta device; Whisper on the processor, with
`attn_implementation="eager"`). A picture has 224 pixels.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mlsim import Models
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.nodes import Node
from mlsim.workloads.graph.of import graph

PICTURES = {
    "AlexNet_Torchvision": 1_428_376_960,
    "VGG16": 30_940_528_640,
    "ResNet18": 3_628_146_688,
    "ResNet50": 8_178_368_512,
    "ResNet101": 15_602_810_880,
    "MobileNetV2": 601_548_544,
    "EfficientNet_B0": 771_629_504,
    "ViT_B16": 35_127_656_448,
}
# A model with encoder and decoder, at the lengths of its data file.
BOTH = {"T5_Small": 35_417_800_704, "Whisper_Base": 151_051_829_248}
# Tokens, whether all have an output, and the count.
LANGUAGE = {
    ("GPT2", 1024, True): 291_648_307_200,
    ("GPT2", 1024, False): 212_678_075_904,
    ("Llama3_8B", 512, True): 7_822_209_187_840,
    ("Llama3_8B", 512, False): 7_285_315_207_168,
    # Longer than its window, which the counter does not see.
    ("Mistral_7B", 5000, True): 84_211_138_560_000,
    ("Qwen3_8B", 512, True): 7_904_350_437_376,
    ("Gemma2_9B", 512, True): 9_643_275_321_344,
    ("GPT_J_6B", 512, True): 6_104_088_051_712,
    ("OPT_175B", 512, True): 179_990_402_433_024,
    ("BERT_Base", 128, False): 22_348_431_360,
    ("DistilBERT_Base", 128, False): 11_173_625_856,
    # With experts run in batches (`batched_mm`).
    ("Mixtral_8x7B", 64, True): 1_633_966_620_672,
    ("DeepSeek_V3", 64, True): 4_708_416_618_496,
}
# The same with experts run in groups (`grouped_mm`), for which the counter has no rule.
GROUPED = {"Mixtral_8x7B": 190_857_609_216, "DeepSeek_V3": 2_092_781_535_232}


def counted(nodes: Iterable[Node]) -> int:
    return 2 * sum(node.multiply_adds + node.masked_multiply_adds for node in nodes)


@pytest.mark.parametrize("name", [*PICTURES, *BOTH])
def test_networks_of_one_size(name: str) -> None:
    assert counted(graph(getattr(Models, name))) == {**PICTURES, **BOTH}[name]


@pytest.mark.parametrize(("name", "tokens", "all_logits"), LANGUAGE)
def test_language_models(name: str, tokens: int, all_logits: bool) -> None:
    found = graph(getattr(Models, name), tokens, all_logits=all_logits)
    assert counted(found) == LANGUAGE[name, tokens, all_logits]


@pytest.mark.parametrize("name", GROUPED)
def test_experts_in_groups_are_left_out_by_the_counter(name: str) -> None:
    found: Graph = graph(getattr(Models, name), 64, all_logits=True)
    others = [node for node in found if node.kind != "experts"]
    assert counted(others) == GROUPED[name]
    assert counted(others) < counted(found) / 2


def test_ours_skips_what_a_mask_hides() -> None:
    """Of the pairs of tokens that GPT-2 has at its full length, nearly half are hidden."""
    found = graph(Models.GPT2, 1024, all_logits=True)
    pairs = [node for node in found if node.kind == "attention"]
    # 12 layers, 1024 x 1023 / 2 pairs, 2 x 768 multiply-adds each.
    hidden = 12 * 523_776 * 1536
    assert counted(found) - 2 * found.multiply_adds == 2 * hidden
    assert counted(pairs) == 2 * 12 * 1024 * 1024 * 1536
