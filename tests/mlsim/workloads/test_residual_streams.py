"""Residuals of several streams, and a path through few numbers, beside attention."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from config_files import write
from language_models import tiny
from real_configs import REAL
from told import rows

from mlsim import Models, load_config
from mlsim.workloads.blocks import FeedForward
from mlsim.workloads.graph.fuse import fused
from mlsim.workloads.graph.language import language_graph
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

# Two layers, 4 wide: a token is three vectors, and two numbers lie on a path beside attention.
STREAMS = {"residual_streams": 3, "residual_rank": 2}


def operators(model: Transformer) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in model.operators():
        found.setdefault(each.name, []).append(each)
    return found


def test_what_they_hold_by_hand() -> None:
    """Two matrices of 4 x 4 at each end; in a layer 4 x 3, 3 x 9, 3 x 3, a norm and a scale."""
    streams = 2 * 2 * 16 + 2 * (12 + 27 + 9 + 4 + 4)
    path = 2 * (4 * 2 + 2 * 4 + 4)
    plain = tiny().parameter_count
    assert tiny(residual_streams=3).parameter_count == plain + streams
    assert tiny(residual_rank=2).parameter_count == plain + path
    assert tiny(**STREAMS).parameter_count == plain + streams + path


def test_what_they_compute_by_hand() -> None:
    """The router runs twice; each of three streams is a sum of three, 4 numbers wide."""
    ends = 2 * 2 * 16
    layer = 2 * 12 + 27 + 9 + 4 * 3 * 3 + (4 * 2 + 2 * 4)
    more = tiny(**STREAMS).flop_count(5) - tiny().flop_count(5)
    assert more == 2 * 5 * (ends + 2 * layer)


def test_what_is_run_twice_is_held_and_read_once() -> None:
    found = operators(tiny(**STREAMS))
    for name, held in (("streams, router", 12), ("streams, norm", 4)):
        assert [each.parameters for each in found[name]] == [held, 0]
        assert [each.parameters_streamed for each in found[name]] == [held, 0]


def test_the_other_streams_lie_in_memory_while_a_layer_works() -> None:
    plain, model = operators(tiny()), operators(tiny(**STREAMS))
    for name in ("attention", "feed-forward, up"):
        assert model[name][0].live_elements == plain[name][0].live_elements + 2 * 4


def test_devices_share_the_ends_and_the_path() -> None:
    """As vLLM divides them; what mixes streams is on each device."""
    model = tiny(**STREAMS)
    one, two = (
        {each.name: each for each in model.operators(Parallelism(tensor=size))} for size in (1, 2)
    )
    for name in ("streams, made", "streams, joined", "low-rank residual, in"):
        assert 2 * two[name].parameters == one[name].parameters
    for name in ("streams, predicted", "streams, weights to predict", "streams, corrected"):
        assert two[name] == one[name]
    path, ends = two["all-reduce of low-rank residuals"], two["gather of streams"]
    # A vector of four, half of it twice; two vectors of which one half comes from elsewhere.
    assert (path.link_elements, path.repeats) == (4, 2)
    assert (ends.link_elements, ends.repeats) == (4, 2)


def test_one_stream_has_no_ends() -> None:
    found = [each.name for each in tiny(residual_streams=1).operators(Parallelism(tensor=2))]
    assert not {"streams, made", "gather of streams"}.intersection(found)
    graph = language_graph(tiny(residual_streams=1, layer_embedding=3), 3)
    assert graph.parameters == tiny(residual_streams=1, layer_embedding=3).parameter_count


def test_a_step_moves_what_its_layers_move() -> None:
    """Three tokens: the same numbers read and written, kernel by kernel."""
    model = tiny(**STREAMS, layer_embedding=3, norms=5)
    moved: Counter[str] = Counter()
    for kernel in fused(language_graph(model, 3)):
        name = kernel.anchor.name
        moved[name] = kernel.operator.activations_read + kernel.operator.activations_written
    told = {
        name: [3 * each.token_elements for each in ones] for name, ones in operators(model).items()
    }
    for node, name in rows("stream_kernels"):
        assert moved[node] in told[name], node


# ---- Gemma 3n -----------------------------------------------------------------------------


def test_the_counts_that_were_published(tmp_path: Path) -> None:
    """Ollama's of the file's text part; Google's effective ones, without tables of embeddings."""
    for size, (sharing, file, effective) in {
        "E2B": (10, 4.46, 1.91),
        "E4B": (15, 6.87, 3.98),
    }.items():
        model = getattr(Models, f"Gemma3n_{size}")
        held = model.parameter_count + sharing * (2 * 2048 * 512 + 256)
        assert round(held / 1e9, 2) == file
        tables = 262_400 * 2048 + 262_144 * model.layers * 256
        assert round((held - tables) / 1e9, 2) == effective
        told = load_config(write(tmp_path, REAL[f"Gemma-3n-{size}"][0]))
        assert (told.operators(), told.mixers) == (model.operators(), model.mixers)


def test_a_gate_that_is_cut_is_written_and_read_again() -> None:
    """Of 5 numbers in each of two branches: both are written, read, and one row is put out."""
    found = operators(tiny(feed_forward=FeedForward(size=5, gated=True, cut=True)))
    up, cut = found["feed-forward, up"][0], found["feed-forward, cut"][0]
    plain = operators(tiny(feed_forward=FeedForward(size=5, gated=True)))["feed-forward, up"][0]
    assert (up.token_elements, plain.token_elements) == (4 + 10, 4 + 5)
    assert (cut.token_elements, cut.token_multiply_adds, cut.parameters) == (15, 0, 0)
