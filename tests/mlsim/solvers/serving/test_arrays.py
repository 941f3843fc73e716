"""Services of many points, and where NumPy is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from services import MEMORY, NODE, TIMES, llama

from mlsim import Models
from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.solvers import question
from mlsim.solvers.serving import serving as serving_module
from mlsim.solvers.serving.result_names import RESULTS
from mlsim.values import quantity

# Arrays.


def test_a_service_of_many_points() -> None:
    serving = llama(batch_size=[1, 8, 1000])
    assert serving.shape == (3,)
    assert serving.time_per_output_token.shape == serving.decode_throughput.shape == (3,)
    assert serving.feasible.tolist() == [True, True, False]
    assert np.isnan(serving.value("generation_latency")).tolist() == [False, False, True]
    assert np.isfinite(serving.value("memory_required")).all()
    assert serving.largest_batch.tolist() == [llama().largest_batch] * 3
    assert serving.bottleneck["decode"].tolist()[:2] == [MEMORY, MEMORY]
    assert (
        repr(serving)
        == "<Serving Llama 3.1 8B on NVIDIA H100 SXM 80 GB, (3,) points, bf16, roofline>"
    )


GRID = {
    "batch_size": [[1], [7], [600]],
    "prompt_tokens": [1, 100, 5000, 9000],
    "output_tokens": np.array([[1], [2], [130]]),
}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"model": Models.Gemma3_27B, "precision": "w4a16"},
        {
            "model": Models.Mixtral_8x7B,
            "hardware": NODE,
            "data_parallel": 4,
            "expert_parallel": 8,
            "tensor_parallel": 2,
            "batch_size": [[1], [7], [60]],
        },
        {"memory_bandwidth": quantity(np.array([[1.0, 2.0, 3.0, 4.0]]), "TB/s")},
    ],
    ids=lambda each: ", ".join(each) or "default",
)
def test_arrays_equal_points(arguments: dict[str, Any]) -> None:
    together = llama(**{**GRID, **arguments})
    assert together.shape == (3, 4)
    names = (*RESULTS, "feasible", "longest_context", "largest_batch")
    found = {
        name: np.broadcast_to(
            together.value(name) if name in RESULTS else getattr(together, name), (3, 4)
        )
        for name in names
    }
    bottleneck = together.bottleneck
    for index in np.ndindex(3, 4):
        alone = together[index]
        assert alone.shape == ()
        asked = {
            name: value if np.ndim(value) == 0 else np.broadcast_to(value, (3, 4))[index]
            for name, value in {**GRID, **arguments}.items()
            if name in GRID
        }
        for name, value in asked.items():
            assert alone.value(name) == value
        for name in names:
            value = found[name][index]
            if (name in TIMES or name.endswith("_time")) and not alone.feasible:
                assert np.isnan(value), name
                with pytest.raises(DoesNotFitError):
                    alone.value(name)
                continue
            expected = alone.value(name) if name in RESULTS else getattr(alone, name)
            assert value == pytest.approx(expected, rel=1e-12), name
        if alone.feasible:
            for phase in ("prefill", "decode"):
                assert bottleneck[phase][index] == alone.bottleneck[phase]


def test_an_index_that_cannot_be() -> None:
    with pytest.raises(InvalidValueError, match=r"is one point; only an array has an index"):
        llama()[0]
    many = llama(batch_size=[1, 2])
    with pytest.raises(InvalidValueError, match=r"is 1 whole number\(s\), not \(0, 1\)"):
        many[0, 1]
    with pytest.raises(InvalidValueError, match=r"is 1 whole number\(s\), not slice"):
        many[:1]
    with pytest.raises(IndexError):
        many[2]


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(InvalidValueError) as e:
        llama(batch_size=[1, 2, 3], prompt_tokens=[1, 2])
    assert str(e.value) == ("these shapes don't broadcast: batch_size (3,), prompt_tokens (2,).")


def test_many_points_are_explained_one_at_a_time() -> None:
    many = llama(batch_size=[1, 2])
    for call in (many.explain, many.prefill.explain, many.decode.explain):
        with pytest.raises(
            InvalidValueError, match=r"pick one, such as serving\[0\]\S*\.explain\(\)"
        ):
            call()
    with pytest.raises(
        InvalidValueError, match=r"pick one, such as serving\[0\]\.decode\.operators"
    ):
        many.decode.operators  # noqa: B018
    assert many[0].explain().value == many.value("generation_latency")[0]


# Without NumPy, as in a browser.


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"estimate": "bound"},
        {"memory_bandwidth": "1 TB/s", "bytes_per_parameter": "1 B/parameter"},
        {"model": Models.DeepSeek_V3, "hardware": NODE, "tensor_parallel": 8, "weights": "int4"},
        {"model": Models.Gemma2_9B, "precision": "w4a16"},
        {"hardware": NODE, "pipeline_parallel": 4, "data_parallel": 2},
        {"model": Models.BERT_Base, "prompt_tokens": 384},
    ],
    ids=lambda each: ", ".join(each) or "default",
)
def test_lists_equal_arrays(monkeypatch, arguments: dict[str, Any]) -> None:
    decoder = arguments.get("model") is not Models.BERT_Base
    names = RESULTS if decoder else ("time_to_first_token", "weight_memory", "memory_free")
    phases = ("prefill", "decode") if decoder else ("prefill",)
    of_step = ("latency", "total_flops", "total_bytes", "total_network_time", "memory_bound_share")
    with_arrays = llama(batch_size=8, **arguments)
    expected = {name: with_arrays.value(name) for name in names}
    steps = {
        (phase, name): getattr(with_arrays, phase).value(name)
        for phase in phases
        for name in of_step
    }
    bottleneck, shown = with_arrays.bottleneck, str(with_arrays)
    monkeypatch.setattr(question, "ARRAYS", False)
    monkeypatch.setattr(serving_module, "ARRAYS", False)
    with_lists = llama(batch_size=8, **arguments)
    for name in names:
        assert not isinstance(with_lists.value(name), np.ndarray)
        assert with_lists.value(name) == pytest.approx(expected[name], rel=1e-12)
    for (phase, name), value in steps.items():
        found = getattr(with_lists, phase).value(name)
        assert found == pytest.approx(value, rel=1e-12)
    assert with_lists.bottleneck == bottleneck
    assert str(with_lists) == shown
    if decoder:
        assert "generation latency" in str(with_lists.explain()).replace("_", " ")
        assert "latency = " in str(with_lists.decode.explain())


def test_a_service_runs_where_numpy_is_not_installed() -> None:
    program = """
import sys
for name in ("numpy", "pandas", "sympy", "matplotlib"):
    sys.modules[name] = None  # importing it fails
from mlsim import Engine
serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=8, prompt_tokens=2048)
print(serving.value("generation_latency"), serving.largest_batch, serving.longest_context)
print(serving.bottleneck["decode"], len(serving.decode.operators))
print(len(str(serving)) > 0, len(serving.explain().to_json()) > 0, len(serving.to_dict()) > 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    latency, batch, context, *rest = done.stdout.split()
    here = llama(batch_size=8)
    assert float(latency) == pytest.approx(here.value("generation_latency"), rel=1e-12)
    assert (int(batch), int(context)) == (here.largest_batch, here.longest_context)
    assert rest == ["Memory", "Bound", "8", "True", "True", "True"]
