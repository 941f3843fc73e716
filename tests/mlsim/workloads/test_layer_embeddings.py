"""Embeddings of each layer, and layers that read the cache of an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_files import load, write
from language_models import tiny
from real_configs import REAL

from mlsim import Device, Engine, Models, load_config
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.workloads import residuals
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

HEADS: dict[str, Any] = {"heads": 2, "kv_heads": 1, "head_size": 2}
MAKES, READS = Attention(**HEADS), Attention(**HEADS, shared_cache=True)
SLOW = Device(
    "Slow", peak_flops={"fp16": "1 TFLOP/s"}, memory_bandwidth="1 GB/s", memory_capacity="1 GB"
)


def sharing(**changes: Any) -> Transformer:
    """Return two layers, 4 wide, of which the second reads what the first has cached."""
    kinds = {"attention": MAKES, "mixer_layers": ((1, MAKES), (1, READS))}
    return tiny(**{"context": 4096, **kinds, **changes})


def serve(model: Transformer, prompt: int = 16) -> Any:
    asked = {"precision": "fp16", "prompt_tokens": prompt, "output_tokens": 16}
    return Engine.serve(model=model, hardware=SLOW, **asked)


def rows(model: Transformer, **sizes: int) -> dict[str, Any]:
    found = model.operators(Parallelism(**sizes))
    assert len({each.name for each in found}) >= len(found) - 2
    return {each.name: each for each in found}


# ---- an embedding for each layer ----------------------------------------------------------


def test_what_they_add_by_hand() -> None:
    """Two layers of three numbers: a table of 6 columns, a matrix 4 x 6, two of 4 x 3 in each."""
    plain, model = tiny(), tiny(layer_embedding=3, layer_vocabulary=7)
    table = 7 * 2 * 3
    assert residuals.table_parameters(model) == table
    added = table + 4 * 6 + 3 + 2 * (4 * 3 + 3 * 4)
    assert model.parameter_count - plain.parameter_count == added
    # Without a count of its own the table has a row for each token.
    assert residuals.table_parameters(tiny(layer_embedding=3)) == plain.vocabulary * 6


def test_the_table_is_looked_up_and_the_matrices_are_read() -> None:
    found = rows(tiny(layer_embedding=3, layer_vocabulary=7))
    table = found["layer embeddings"]
    assert (table.parameters, table.parameters_streamed, table.token_elements) == (42, 0, 12)
    assert table.unquantised
    matrix = found["layer embeddings, from the token's"]
    assert (matrix.token_multiply_adds, matrix.parameters_streamed) == (24, 27)
    for name in ("layer embedding, to its width", "layer embedding, back"):
        each = found[name]
        assert (each.token_multiply_adds, each.parameters, each.repeats) == (12, 12, 2)
    more = tiny(layer_embedding=3).flop_count(1, 5) - tiny().flop_count(1, 5)
    assert more == 2 * (24 + 2 * (12 + 12))


def test_devices_share_the_rows_and_each_has_the_matrices() -> None:
    model = tiny(layer_embedding=4, layer_vocabulary=8)
    one, two = rows(model), rows(model, tensor=2)
    assert two["layer embeddings"].parameters == one["layer embeddings"].parameters // 2
    for name in ("layer embeddings, from the token's", "layer embedding, back"):
        assert two[name] == one[name]
    # Its eight numbers are brought together, as the four of the usual embedding are.
    usual = two["all-reduce"].link_elements / model.hidden
    assert two["all-reduce of layer embeddings"].link_elements == 8 * usual
    assert two["all-reduce of layer embeddings"].repeats == 1


# ---- a cache that layers share ------------------------------------------------------------


def test_a_layer_that_reads_has_queries_only() -> None:
    assert (MAKES.parameters(4), READS.parameters(4)) == (4 * 8 + 4 * 4, 4 * 4 + 4 * 4)
    normed = Attention(**HEADS, qk_norm=True, shared_cache=True)
    assert normed.parameters(4) == READS.parameters(4) + 2
    makes, reads = (list(each.operators(4, Parallelism())) for each in (MAKES, READS))
    assert [each.name for each in reads] == ["queries", "attention", "attention output"]
    assert reads[1].pair_multiply_adds == makes[1].pair_multiply_adds
    assert (makes[1].cached_elements, makes[1].written_elements) == (4, 4)
    assert (reads[1].cached_elements, reads[1].written_elements) == (4, 0)


def test_it_is_kept_once() -> None:
    model = sharing()
    assert model.model_cached_elements == MAKES.cached_elements == 4
    held = [each.resident_repeats for each in model.operators() if each.kind == "attention"]
    assert held == [1.0, 0.0]
    kept, alone = serve(model), serve(tiny(context=4096, attention=MAKES))
    assert 2 * kept.value("cache_memory") == alone.value("cache_memory")
    assert kept.largest_batch > alone.largest_batch


def test_it_is_read_by_both_and_written_by_one() -> None:
    """Two bytes, 4 elements: 10 tokens and the new one read twice, one written once."""
    step = serve(sharing()).decode_at(10)
    read = [row for row in step.operators if row["name"] == "attention"]
    # What attention reads and writes of its own: queries, and what it mixes.
    own = 2 * (4 + 4)
    moved = [row["bytes_moved"] - own for row in read]
    assert moved == [2 * 4 * (11 + 1), 2 * 4 * 11]
    # Nor is a prompt written twice.
    prefill = serve(sharing(), prompt=16).prefill
    moved = [row["bytes_moved"] for row in prefill.operators if row["name"] == "attention"]
    assert moved[0] - moved[1] == 2 * 4 * 16
    told = step.explain("total_bytes").to_dict()
    assert "shared_cache_bytes" in {each["equation"] for each in told["steps"]}


def test_what_is_not_counted_is_refused() -> None:
    for model, sent, kept in (
        (sharing(), "another stage; what would be sent is not", "an embedding of their own"),
        (tiny(layer_embedding=3), "another stage; what would be sent", "an embedding of their own"),
        (tiny(residual_streams=3), "which may lie on another", "several residual streams"),
    ):
        with pytest.raises(InvalidValueError, match=sent):
            Engine.serve(model=model, hardware="HGX_H100", pipeline_parallel=2)
        with pytest.raises(WrongKindError, match=kept):
            Engine.train(model=model, hardware="H100", global_batch=1)


# ---- Gemma 4 E2B and E4B ------------------------------------------------------------------

# What nobody reads in the released file, llama.cpp's count of it, and the elements of a token:
# E2B has 12 layers of 2 x 256 and 3 of 2 x 512; E4B 20 of 2 x 512 and 4 of 2 x 1,024.
SMALL = {"E2B": (18_880_512, 4.65, 9_216), "E4B": (55_055_616, 7.52, 28_672)}


@pytest.mark.parametrize("size", SMALL)
def test_the_small_ones_are_their_released_files_and_configs(tmp_path: Path, size: str) -> None:
    unused, printed, elements = SMALL[size]
    model = getattr(Models, f"Gemma4_{size}")
    # Keys, values and the norm of keys in the layers that read, which the file holds too.
    left = sum(
        each * (2 * model.hidden * one.kv_heads * one.head_size + one.head_size)
        for each, one in model.mixers
        if one.shared_cache
    )
    assert left == unused
    # The layers' own scales are a number each.
    assert round((model.parameter_count + left) / 1e9, 2) == printed
    told = load_config(write(tmp_path, REAL[f"Gemma-4-{size}"][0]))
    assert told.operators() == model.operators()
    assert told.mixers == model.mixers
    assert told.model_cached_elements == model.model_cached_elements == elements


def test_a_config_may_have_experts_and_layer_embeddings(tmp_path: Path) -> None:
    more = {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 16}
    changes = {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 50}
    model = load(tmp_path, "gemma4_text", enable_moe_block=True, **more, **changes)
    assert (model.norms, model.layer_vocabulary) == (9, 50)
    assert FeedForward(size=128, gated=True) in [each for _, each in model.feeds]
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == model.parameter_count
