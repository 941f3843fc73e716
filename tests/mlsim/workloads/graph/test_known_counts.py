"""What others count of the models of the zoo, to the last one: `fixtures/known_counts.csv`.

FLOP are those of `torch.utils.flop_counter.FlopCounterMode` of torch 2.13.0: 2 for each
multiply-add, masks ignored. One sample, the models of torchvision 0.28.0, transformers 5.23.0 and
diffusers 0.42.1 with the sizes of the zoo's data files, without memory for their parameters (on
the meta device; Whisper on the processor, with `attn_implementation="eager"`). A picture has 224
pixels. Experts run in batches (`batched_mm`); in groups (`grouped_mm`) the counter has no rule
for them. "Not traced" are counts whose origin nobody wrote down.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from mlsim import Models
from mlsim.workloads import Network
from mlsim.workloads.graph.nodes import Node
from mlsim.workloads.graph.of import graph

KNOWN = Path(__file__).parents[3] / "fixtures" / "known_counts.csv"


def counted(nodes: Iterable[Node]) -> int:
    return 2 * sum(node.multiply_adds + node.masked_multiply_adds for node in nodes)


def found(row: dict[str, str]) -> int:
    model = Models.get(row["model"])
    if row["quantity"] == "parameters":
        return int(model.parameter_count)
    if isinstance(model, Network):
        return counted(graph(model))
    nodes = graph(model, int(row["tokens"]), all_logits="all outputs" in row["quantity"])
    experts = "without experts" not in row["quantity"]
    return counted(node for node in nodes if experts or node.kind != "experts")


def test_counts_are_those_of_others() -> None:
    with KNOWN.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 45
    assert [(row, found(row)) for row in rows if found(row) != int(row["count"])] == []


def test_published_counts_are_held_to_the_last_parameter() -> None:
    """Where a figure is printed in full; `zoo check` compares the rounded ones to their digits."""
    # Eight shards of GPT-J count a copy each of 86 vectors, and one has 8 more; of LeNet-5 ten
    # vectors of 84 are fixed.
    others = {"GPT_J_6B": (7 * 86 + 8) * 4096, "LeNet5": -10 * 84}
    exact = {
        model: model.figures["published_parameters"].value
        for model in Models
        if "published_parameters" in model.figures
        and model.figures["published_parameters"].unit == "parameter"
    }
    assert len(exact) > 40
    more = {each.key: count - each.parameter_count for each, count in exact.items()}
    assert {key: count for key, count in more.items() if count} == others


def test_ours_skips_what_a_mask_hides() -> None:
    """Of the pairs of tokens that GPT-2 has at its full length, nearly half are hidden."""
    whole = graph(Models.GPT2, 1024, all_logits=True)
    pairs = [node for node in whole if node.kind == "attention"]
    # 12 layers, 1024 x 1023 / 2 pairs, 2 x 768 multiply-adds each.
    hidden = 12 * 523_776 * 1536
    assert counted(whole) - 2 * whole.multiply_adds == 2 * hidden
    assert counted(pairs) == 2 * 12 * 1024 * 1024 * 1536
