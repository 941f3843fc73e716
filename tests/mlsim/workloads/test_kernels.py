"""The kernels of one micro-batch: their work, bytes and times, by hand."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from training_runs import LAYERS, MIXTURE, TOKENS, WIDE, WORDS, gpt, train

from mlsim import Models, QLoRA, Training
from mlsim.errors import InvalidValueError
from mlsim.workloads.blocks import FeedForward
from mlsim.workloads.kernels import Kernel, Recipe
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import exchanges, kernels

EXACT = 1e-12
PEAK, MEMORY = 100e12, 1e12


def exactly(value: float) -> object:
    return pytest.approx(value, rel=EXACT)


def rows(model: Any, parallelism: Parallelism | None = None, **recipe: Any) -> dict[str, Kernel]:
    found = kernels(model, parallelism or Parallelism(), Recipe(**{"recompute": "none", **recipe}))
    return {row.name: row for row in found}


def of(run: Training, quantity: str) -> dict[str, float]:
    names = [row.name for row in run.run.table.operators]
    return dict(zip(names, run.value(quantity), strict=True))


# Each matrix of a layer: inputs and outputs.
MATRICES = {
    "queries, keys, values": (WIDE, 3 * WIDE),
    "attention output": (WIDE, WIDE),
    "feed-forward, up": (WIDE, 4 * WIDE),
    "feed-forward, down": (4 * WIDE, WIDE),
    "output layer": (WIDE, WORDS),
}


def test_a_matrix_has_three_products_of_equal_work_in_the_shapes_of_the_calculus() -> None:
    run = train()
    flops, height, width = (of(run, each) for each in ("flops", "product_rows", "outputs"))
    moved, time = of(run, "bytes_moved"), of(run, "kernel_time")
    for name, (inputs, outputs) in MATRICES.items():
        shapes = {
            name: (TOKENS, outputs),
            f"{name}: input gradient": (TOKENS, inputs),
            f"{name}: weight gradient": (inputs, outputs),
        }
        for kernel, shape in shapes.items():
            assert (height[kernel], width[kernel]) == shape
            assert flops[kernel] == exactly(2 * TOKENS * inputs * outputs)
            # It takes the longer of computing and moving.
            assert time[kernel] == exactly(max(flops[kernel] / PEAK, moved[kernel] / MEMORY))


def test_products_move_both_sides_and_the_weights() -> None:
    moved = of(train(gradients="fp32"), "bytes_moved")
    for name in ("queries, keys, values", "feed-forward, up"):
        inputs, outputs = MATRICES[name]
        sides, weights = 2 * TOKENS * (inputs + outputs), inputs * outputs
        assert moved[name] == exactly(sides + 2 * weights)
        assert moved[f"{name}: input gradient"] == exactly(sides + 2 * weights)
        # Gradients of weights are read and written, four bytes each.
        assert moved[f"{name}: weight gradient"] == exactly(sides + 2 * 4 * weights)


def test_elementwise_kernels_read_and_write() -> None:
    moved = of(train(), "bytes_moved")
    for name, elements in {
        "norm": 2 * WIDE,
        "residual": 3 * WIDE,
        "activation function": 2 * 4 * WIDE,
        "activation function: gradient": 3 * 4 * WIDE,
        "loss: gradient": 3 * WORDS,
    }.items():
        assert moved[name] == exactly(2 * TOKENS * elements), name


def test_flash_attention_moves_queries_keys_values_and_its_output() -> None:
    run = train(attention="flash")
    assert of(run, "bytes_moved")["attention"] == exactly(2 * TOKENS * 4 * WIDE)


def test_standard_attention_writes_and_reads_its_scores() -> None:
    few, many = (
        of(train(attention="standard", sequence_tokens=length), "bytes_moved")
        for length in (TOKENS, 2 * TOKENS)
    )
    scores = 8 * TOKENS**2
    # Products: written by one, read by the other. Softmax: read and written.
    # What grows with tokens doubles, and what grows with pairs quadruples.
    for name in ("attention, products", "attention, softmax"):
        assert many[name] - 2 * few[name] == exactly(2 * 2 * 2 * scores)


def test_each_kernel_runs_once_a_layer() -> None:
    found = rows(gpt())
    assert found["feed-forward, up"].forward_repeats == LAYERS
    assert found["feed-forward, up: weight gradient"].backward_repeats == LAYERS
    assert found["norm"].forward_repeats == 2 * LAYERS
    assert found["residual"].forward_repeats == 2 * LAYERS
    assert found["output layer"].forward_repeats == 1
    assert not any(row.recompute_repeats for row in found.values())
    assert not any("dropout" in name for name in rows(gpt(), attention="standard"))


def test_what_runs_again() -> None:
    """Selective: what lies between products; full: all layers, but not the output."""
    core = {"attention, products", "attention, softmax", "attention, dropout"}
    for attention, again in (("flash", set()), ("standard", core)):
        found = rows(gpt(), recompute="selective", attention=attention, dropout=True)
        assert {name for name, row in found.items() if row.recompute_repeats} == again
    found = rows(gpt(), recompute="full")
    once = {name for name, row in found.items() if row.forward_repeats > row.recompute_repeats}
    assert once == {"output layer", "loss", "embedding"}


def test_tensor_parallelism_divides_products_and_not_norms() -> None:
    whole, part = rows(gpt()), rows(gpt(), Parallelism(tensor=4))
    for name in MATRICES:
        assert part[name].token_multiply_adds == whole[name].token_multiply_adds / 4
    assert part["norm"].token_elements == whole["norm"].token_elements
    shared = rows(gpt(), Parallelism(tensor=4, sequence=True))
    for name in ("norm", "residual"):
        assert shared[name].token_elements == whole[name].token_elements / 4


def test_a_stage_has_its_share_of_the_layers_and_the_output() -> None:
    found = rows(gpt(), Parallelism(pipeline=2))
    assert found["feed-forward, up"].forward_repeats == LAYERS / 2
    assert found["output layer"].forward_repeats == 1
    assert "embedding" not in found


def test_a_gate_doubles_the_first_matrix() -> None:
    found = rows(gpt(feed_forward=FeedForward(size=3 * WIDE, gated=True)))
    assert found["feed-forward, up"].outputs == 6 * WIDE
    assert found["feed-forward, down"].token_multiply_adds == 3 * WIDE**2
    # Gate and branch are read, their product written.
    assert found["activation function"].token_elements == 3 * 3 * WIDE


def test_tokens_go_through_the_experts_that_they_meet() -> None:
    found = rows(MIXTURE)
    assert found["experts, up"].token_multiply_adds == 2 * 4 * WIDE**2
    assert found["router"].token_multiply_adds == 8 * WIDE
    # Two copies of each token go through: that many inputs are kept.
    assert found["experts, up"].saved_elements == 2 * WIDE


def test_an_adapter_is_two_products_and_four_on_the_way_back() -> None:
    """Of rank 3 beside the last matrix of a layer, 256 x 64, which is frozen in few bits."""
    found = rows(gpt(), adapters=QLoRA(rank=3, targets="down_proj"))
    names = ("token_multiply_adds", "outputs", "parameters_streamed", "token_elements")
    names += ("gradients_accumulated", "saved_elements", "row_tokens", "fixed_rows")
    columns = attrgetter(*names)
    wide, narrow = 3 * 256, 3 * 64
    for name, numbers in {
        "in": (wide, 3, wide, 256 + 3, 0, 0, 1, 0),
        # It is added to what the matrix has written; its own input is kept.
        "out": (narrow, 64, narrow, 3 + 64 + 64, 0, 3, 1, 0),
        "out: input gradient": (narrow, 3, narrow, 3 + 64, 0, 0, 1, 0),
        "out: weight gradient": (narrow, 64, 0, 3 + 64, narrow, 0, 0, 3),
        "in: input gradient": (wide, 256, wide, 256 + 3 + 256, 0, 0, 1, 0),
        "in: weight gradient": (wide, 3, 0, 256 + 3, wide, 0, 0, 256),
    }.items():
        row = found[f"adapter of down_proj, {name}"]
        assert (row.kind, *columns(row)) == ("product", *numbers), name
        assert (row.forward_repeats, row.backward_repeats) == (
            (0, LAYERS) if "gradient" in name else (LAYERS, 0)
        )
    for name in ("dequantization", "dequantization again"):
        row = found[f"feed-forward, down: {name}"]
        assert (row.kind, row.parameters_dequantized) == ("elementwise", 256 * 64)
    assert "feed-forward, down: weight gradient" not in found


def test_what_devices_send_in_a_layer() -> None:
    """Elements of a token, neighbours that it passes, forward, once more, and on the way back."""
    columns = attrgetter("link_elements", "link_hops", "link_span", "link_stride", *(
        f"{each}_repeats" for each in ("forward", "recompute", "backward")))  # fmt: skip
    for sizes, model, again, told in (
        # Three quarters of 64 numbers there and back; or in two halves, gathered once more.
        ({"tensor": 4}, gpt(), True, (2 * 48, 6, 4, 1, 2, 2, 2)),
        ({"tensor": 4, "sequence": True}, gpt(), False, (48, 3, 4, 1, 4, 0, 6)),
        # Keys and values of all heads, 128 numbers, go round three others, and their gradients.
        ({"context": 4}, gpt(), True, (3 * 128, 3, 4, 1, 1, 1, 2)),
        # Of 28 pairs of eight experts, 13 have one on a given device of four.
        ({"data": 4, "expert": 4}, MIXTURE, True, (3 * 13 / 28 * 64, 3, 4, 1, 2, 2, 2)),
    ):
        (sent,) = exchanges(model, Parallelism(**sizes), again=again)
        assert columns(sent) == pytest.approx(told, rel=EXACT)


def test_work_of_all_products_is_that_of_the_active_parameters() -> None:
    for name in ("Llama3_8B", "Mixtral_8x7B", "GPT_OSS_20B", "Gemma2_9B"):
        model = getattr(Models, name)
        found = kernels(model, Parallelism(), Recipe(recompute="none"))
        work = sum(row.token_multiply_adds * row.all_repeats for row in found)
        # Without vectors, such as norms, which are a thousandth, and the embedding.
        tables = model.vocabulary * model.hidden * (1 - model.tied_embeddings)
        assert work / 3 == pytest.approx(model.active_parameter_count - tables, rel=2e-3)


def test_a_pooler_of_one_token_is_not_counted_for_all() -> None:
    run = train(model="BERT_Large", attention="standard", sequence_tokens=512)
    by_row = zip(run.value("flops"), run.run.table.operators, strict=True)
    done = sum(each * row.all_repeats for each, row in by_row) * run.value("micro_batches")
    assert done == pytest.approx(run.value("model_flops"), rel=1e-4)


def test_a_spread_that_does_not_divide_is_refused() -> None:
    for sizes, words in (({"tensor": 3}, "attention heads"), ({"expert": 2}, "no experts")):
        with pytest.raises(InvalidValueError, match=words):
            kernels(gpt(), Parallelism(**sizes), Recipe())


def test_only_matrices_of_layers_compute_in_eight_bits() -> None:
    run = train(model="Llama3_8B", hardware="HGX_H100", precision="fp8", check_memory=False)
    peaks = of(run, "peak_flops")
    compute = run.device.compute
    narrow, wide = compute.figure("fp8").si, compute.figure("bf16").si
    assert peaks["feed-forward, up"] == peaks["feed-forward, up: weight gradient"] == narrow
    assert peaks["output layer"] == peaks["attention"] == wide
    # Kept and sent in 16 bits.
    assert run.value("bytes_per_parameter") == run.value("bytes_per_element") == 2


def test_the_last_of_unequal_stages_has_a_layer_less() -> None:
    """Four layers on three stages: two, one and one; the last one has the output layer too."""
    last = kernels(gpt(), Parallelism(pipeline=3), Recipe())
    whole = kernels(gpt(), Parallelism(), Recipe())
    rows = [[row for row in each if row.name == "feed-forward, up"] for each in (last, whole)]
    assert [sum(row.forward_repeats for row in each) for each in rows] == [1, 4]
    # The first stage keeps what two layers read.
    assert sum(row.saved_repeats for row in rows[0]) == 2
    assert sum(row.output_repeats for row in last) == sum(row.output_repeats for row in whole)
