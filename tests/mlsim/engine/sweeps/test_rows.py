"""Rows of a sweep: what the door answers when it is asked alone, whatever door it is."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas
import pytest

from mlsim import Engine, Models, Systems
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    UnfinishedError,
    UnitError,
    UnknownArgumentError,
    UnknownNameError,
    WrongKindError,
)

SERVED = {
    "model": ["Llama3_8B", "Mixtral_8x7B", "Gemma2_9B"],
    "hardware": ["HGX_H100", "L40S"],
    "precision": [None, "fp8", "w4a16"],
    "tensor_parallel": [1, 3, 8],
    "batch_size": [1, 7, 64],
    "prompt_tokens": [100, 9_000, 140_000],
    "output_tokens": [1, 200],
}
TRAINED = {
    "model": ["Llama3_8B", "GPT2_XL"],
    "hardware": ["DGX_H100_SuperPOD"],
    "devices": [8, 12],
    "shard": ["none", "zero3"],
    "recompute": ["full", "selective"],
    "global_batch": [8, 12, 96],
    "micro_batch": [1, 2],
    "tokens": [1e9, 2e12],
    "sequence_tokens": [1024],
    "price": ["2 USD/h"],
    "mean_time_to_failure": ["1 min", "50000 h"],
    "checkpoint_bandwidth": ["10 GB/s"],
    "restart_time": ["10 min"],
}
LOADED = {
    "model": ["Llama3_8B"],
    "hardware": ["H100", "L40S"],
    "rate": [1, 20, 5_000],
    "prompt_tokens": ["lognormal 300 0.5"],
    "requests": [60],
    "scheduler": ["vllm", "sglang"],
}
LAYERS = {"M": [16, 4096], "N": [4096], "K": [1024, 8192], "hardware": ["H100"]}
GIVEN = {
    "model": ["ResNet50", "AlexNet"],
    "hardware": ["A100", "V100"],
    "batch_size": [1, 256],
    "memory_bandwidth": ["1 TB/s", "4 TB/s"],
    "estimate": ["roofline", "bound"],
}
ASKED = {
    "serve": SERVED,
    "train": TRAINED,
    "load": LOADED,
    "gemm": LAYERS,
    "solve": GIVEN,
}


def alone(door: str, asked: dict[str, Any], results: list[str]) -> tuple[dict[str, float], str]:
    """Ask a door for one row; return what it says, or why it does not."""
    try:
        answer = getattr(Engine, door)(**asked)
        _ = answer.question
    except MlsimError as error:
        return {}, str(error)
    found = {}
    for name in results:
        try:
            found[name] = float(answer.value(name))
        except MlsimError as error:
            found[name] = float("nan")
            why = str(error)
    return found, "" if found == found and not any(map(np.isnan, found.values())) else why


@pytest.mark.parametrize("door", ASKED)
def test_each_row_is_what_the_door_answers_alone(door: str) -> None:
    asked = ASKED[door]
    table = Engine.sweep(door=door, **asked)
    assert len(table) == np.prod([len(each) for each in asked.values()])
    numbers = [
        name
        for name in table.columns
        if name not in asked and table[name].dtype == float and name in table.attrs["units"]
    ]
    # The last list changes fastest where all are computed alike; the table says which is which.
    index = {name: table[name].drop_duplicates().tolist() for name in asked}
    picked = random.Random(door).sample(range(len(table)), min(len(table), 40))
    for place in picked:
        row = table.iloc[place]
        values = {
            name: each[min(index[name].index(row[name]), len(each) - 1)]
            for name, each in asked.items()
        }
        expected, why = alone(door, values, numbers)
        for name in numbers:
            wanted = expected.get(name, float("nan"))
            assert row[name] == pytest.approx(wanted, rel=1e-12, nan_ok=True) or (
                # How much it would need is known of what does not fit.
                name in ("memory_required", "memory_free", "largest_batch")
                and row.reason == "does not fit"
            ), (values, name)
        assert row.feasible == (not why) or (row.reason and expected)
        if why and "needs" not in why:
            assert row.reason == why, values
        assert bool(row.reason) == bool(why)


def test_what_can_not_run_has_its_reason_and_no_number() -> None:
    table = Engine.sweep(**SERVED)
    stopped = table[~table.feasible]
    assert 0 < len(stopped) < len(table)
    assert stopped.time_to_first_token.isna().all()
    assert stopped.decode_throughput.isna().all()
    assert (stopped.reason != "").all()
    reasons = " ".join(stopped.reason.unique())
    for words in ("does not fit", "does not divide", "longer than the context", "devices; "):
        assert words in reasons
    assert table[table.feasible].notna().all(axis=None)
    assert (table[table.feasible].reason == "").all()


def test_the_door_is_told_by_what_is_given() -> None:
    one = {"model": "Llama3_8B", "hardware": "H100"}
    assert "time_to_first_token" in Engine.sweep(**one)
    assert "server_use" in Engine.sweep(**one, rate=[1], requests=20)
    assert "step_time" in Engine.sweep(**one, global_batch=1, recompute="full", precision="fp8")
    assert "bottleneck" in Engine.sweep(M=64, N=64, K=64, hardware="H100")
    assert "throughput" in Engine.sweep(model="ResNet50", hardware="H100")
    layers = Engine.sweep(door="gemm", M=[64, 128], N=64, K=64, hardware="H100", precision="fp8")
    assert layers.M.tolist() == [64, 128]


def test_a_footprint_is_swept_over_places() -> None:
    work = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=64)
    asked = {
        "work": work,
        "grid": ["Sweden", "Poland"],
        "data_centre": "Google",
        "host": False,
        "embodied": False,
    }
    table = Engine.sweep(**asked)
    for row, grid in zip(table.itertuples(), asked["grid"], strict=True):
        found = Engine.footprint(work, grid=grid, data_centre="Google", host=False, embodied=False)
        assert row.facility_energy == found.value("facility_energy")
        assert row.total_carbon == found.value("total_carbon")
    assert table.total_carbon[1] > table.total_carbon[0]
    ranges = Engine.sweep(**{**asked, "pue": [1.1, (1.1, 1.5)]})
    told = ranges[ranges.reason != ""]
    assert "ask for results=['low.facility_energy', 'high.facility_energy']" in " ".join(
        told.reason
    )
    ends = Engine.sweep(
        **{**asked, "pue": (1.1, 1.5)}, results=["low.total_carbon", "high.total_carbon"]
    )
    assert (ends["low.total_carbon"] < ends["high.total_carbon"]).all()


def test_results_may_be_named_of_a_phase_too() -> None:
    table = Engine.sweep(
        model="Llama3_8B",
        hardware="H100",
        batch_size=[1, 512],
        results=["decode.memory_bound_share", "decode.bottleneck", "cache_memory"],
    )
    assert table["decode.bottleneck"].tolist() == ["Memory Bound", "Memory Bound"]
    assert (table["decode.memory_bound_share"] > 0.5).all()
    assert table.attrs["units"]["cache_memory"] == "B"
    one = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=512)
    assert table.cache_memory[1] == one.value("cache_memory")


def test_an_encoder_has_a_pass_and_no_tokens() -> None:
    table = Engine.sweep(model=["BERT_Large", "Llama3_8B"], hardware="A100", prompt_tokens=128)
    assert table.feasible.all()
    assert table.time_to_first_token.notna().all()
    assert table.time_per_output_token.isna().tolist() == [True, False]
    assert "is an encoder" in table.reason[0]


def test_units_stand_beside_the_table() -> None:
    table = Engine.sweep(model="Llama3_8B", hardware="H100", memory_bandwidth=["2 TB/s", "3 TB/s"])
    assert table.memory_bandwidth.tolist() == [2e12, 3e12]
    units = table.attrs["units"]
    assert units["memory_bandwidth"] == "B/s"
    assert units["time_to_first_token"] == "s"
    assert units["decode_throughput"] == "token/s"


def test_arrays_ranges_and_generators_are_lists() -> None:
    one = {"model": "Llama3_8B", "hardware": "H100"}
    several = [
        [1, 2, 3],
        (1, 2, 3),
        range(1, 4),
        np.arange(1, 4),
        (n for n in (1, 2, 3)),
        {3, 1, 2},
    ]
    tables = [Engine.sweep(**one, batch_size=each) for each in several]
    assert all(table.equals(tables[0]) for table in tables)
    assert tables[0].batch_size.tolist() == [1, 2, 3]


def test_records_and_names_are_the_same() -> None:
    named = Engine.sweep(model="Llama3_8B", hardware="HGX_H100", tensor_parallel=[1, 2])
    given = Engine.sweep(model=Models.Llama3_8B, hardware=Systems.HGX_H100, tensor_parallel=[1, 2])
    assert named.equals(given)


def test_a_search_for_a_layout_may_be_swept() -> None:
    table = Engine.sweep(
        model="Llama3_8B", hardware="HGX_H100", devices=[4, 8], global_batch=64, search=True
    )
    one = Engine.train(
        model="Llama3_8B", hardware="HGX_H100", devices=8, global_batch=64, search=True
    )
    assert table.step_time[1] == one.value("step_time")


def test_networks_and_language_models_are_trained_in_one_table() -> None:
    asked = {"hardware": "HGX_H100", "devices": 8, "global_batch": [800, 1601]}
    network = Engine.sweep(model="ResNet50", **asked, samples=1e6)
    alone = Engine.train(
        model="ResNet50", hardware="HGX_H100", devices=8, global_batch=800, samples=1e6
    )
    assert network.throughput[0] == alone.value("throughput")
    assert network.training_time[0] == alone.value("training_time")
    assert "token_rate" not in network
    assert "no multiple" in network.reason[1] or "divide" in network.reason[1]
    both = Engine.sweep(model=["ResNet50", "GPT2_XL"], **asked, sequence_tokens=1024)
    runs = both[both.feasible]
    assert (runs.token_rate.isna() == (runs.model == alone.model.name)).all()


def test_executors_compute_the_same_rows() -> None:
    asked = {"model": "Llama3_8B", "hardware": ["H100", "A100"], "batch_size": range(1, 40)}
    with ThreadPoolExecutor(2) as pool:
        seen = []
        table = Engine.sweep(**asked, scheduler=pool, block_rows=10, progress=seen.append)
    pandas.testing.assert_frame_equal(table, Engine.sweep(**asked), rtol=1e-14)
    assert [each.rows for each in seen][-1] == 78
    assert len(seen) == 8


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"batch_sizes": 8}, UnknownArgumentError, "Did you mean 'batch_size'"),
        ({"batch": [1, 2]}, UnknownArgumentError, "takes batch_size=..., not batch="),
        ({"memory_bandwith": "1 TB/s"}, UnknownArgumentError, "Did you mean 'memory_bandwidth'"),
        ({"check_memory": False}, UnknownArgumentError, "check_memory"),
        ({"batch_size": []}, InvalidValueError, "batch_size is an empty list"),
        ({"prompt_tokens": range(3, 3)}, InvalidValueError, "prompt_tokens is an empty list"),
        ({"hardware": np.array([])}, InvalidValueError, "hardware is an empty list"),
        ({"batch_size": [1, 0]}, InvalidValueError, "entry 1 of 2"),
        ({"batch_size": [1, 2.5]}, InvalidValueError, "whole number"),
        ({"batch_size": {"from": 1}}, (InvalidValueError, UnitError), "batch_size"),
        ({"memory_bandwidth": [1, 2]}, UnitError, "memory_bandwidth"),
        ({"precision": ["fp8", "fp7"]}, UnknownNameError, "Did you mean 'fp8'"),
        ({"precision": [{"weights": "fp8"}]}, InvalidValueError, "precision must be a number form"),
        ({"hardware": ["H100", "H1000"]}, UnknownNameError, "Did you mean 'H100'"),
        ({"hardware": [["H100"]]}, WrongKindError, "hardware must be"),
        ({"model": [{"layers": 3}]}, WrongKindError, "model must be"),
        ({"estimate": ["bond"]}, InvalidValueError, "Did you mean 'bound'"),
        ({"door": "server"}, InvalidValueError, "Did you mean 'serve'"),
        ({"door": ["serve"]}, InvalidValueError, "door must be one of"),
        ({"results": []}, InvalidValueError, "results is an empty list"),
        ({"results": ["latenci"]}, UnknownNameError, "Did you mean 'latency'"),
        ({"results": "batch_size", "batch_size": 2}, InvalidValueError, "asked and answered"),
        ({"results": ["first.latency"]}, UnknownNameError, "part of this answer"),
        ({"scheduler": 4}, InvalidValueError, "submit"),
        ({"block_rows": 0}, InvalidValueError, "block_rows must be a whole number"),
        ({"reserve": 2}, InvalidValueError, "reserve must be a share"),
        ({"tensor_parallel": {}}, InvalidValueError, "tensor_parallel must be a whole number"),
        (
            {"batch_size": range(1, 10**4), "prompt_tokens": range(1, 10**4)},
            InvalidValueError,
            "Give out=",
        ),
    ],
)
def test_what_is_wrong_of_the_whole_sweep_is_refused(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Engine.sweep(**{"model": "Llama3_8B", "hardware": "H100", **arguments})


def test_a_worker_that_dies_is_told_of() -> None:
    class Broken:
        def submit(self, *_: Any) -> Any:
            raise RuntimeError("cannot schedule new futures")

    with pytest.raises(UnfinishedError, match="cannot schedule new futures"):
        Engine.sweep(model="Llama3_8B", hardware="H100", batch_size=[1, 2], scheduler=Broken())
