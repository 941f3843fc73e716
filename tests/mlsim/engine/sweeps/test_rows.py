"""Rows of a sweep: what the door answers when it is asked alone, whatever door it is."""

from __future__ import annotations

import random
import tomllib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kept
import numpy as np
import pandas
import pytest
from refusals import answered

from mlsim import Engine, Hardware, Models, Systems
from mlsim.engine.sweeps.rows import Rows
from mlsim.errors import InvalidValueError, MlsimError, UnfinishedError, WrongKindError

ASKED: dict[str, dict[str, Any]] = tomllib.loads(
    (kept.FIXTURES / "cases" / "sweeps.toml").read_text("utf-8")
)
SERVED = ASKED["serve"]
SERVED["precision"] = [None, "w4a16"]
LLAMA: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}


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
    picked = random.Random(door).sample(range(len(table)), min(len(table), 25))
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
    assert "time_to_first_token" in Engine.sweep(**LLAMA)
    assert "server_use" in Engine.sweep(**LLAMA, rate=[1], requests=20)
    assert "step_time" in Engine.sweep(**LLAMA, global_batch=1, recompute="full", precision="fp8")
    assert "bottleneck" in Engine.sweep(M=64, N=64, K=64, hardware="H100")
    assert "throughput" in Engine.sweep(model="ResNet50", hardware="H100")
    layers = Engine.sweep(door="gemm", M=[64, 128], N=64, K=64, hardware="H100", precision="fp8")
    assert layers.M.tolist() == [64, 128]


def test_a_footprint_is_swept_over_places() -> None:
    work = Engine.serve(**LLAMA, batch_size=64)
    place = {"data_centre": "Google", "host": False, "embodied": False}
    asked = {"work": work, "grid": ["Sweden", "Poland"], **place}
    table = Engine.sweep(**asked)
    for row, grid in zip(table.itertuples(), asked["grid"], strict=True):
        found = Engine.footprint(work, grid=grid, **place)
        assert row.facility_energy == found.value("facility_energy")
        assert row.total_carbon == found.value("total_carbon")
    assert table.total_carbon[1] > table.total_carbon[0]
    told = Engine.sweep(**asked, pue=[1.1, (1.1, 1.5)]).reason
    assert "results=['low.facility_energy', 'high.facility_energy']" in " ".join(told)
    low, high = "low.total_carbon", "high.total_carbon"
    ends = Engine.sweep(**asked, pue=(1.1, 1.5), results=[low, high])
    assert (ends[low] < ends[high]).all()


def test_results_may_be_named_of_a_phase_too() -> None:
    results = ["decode.memory_bound_share", "decode.bottleneck", "cache_memory"]
    table = Engine.sweep(**LLAMA, batch_size=[1, 512], results=results)
    assert table["decode.bottleneck"].tolist() == ["Memory Bound", "Memory Bound"]
    assert (table["decode.memory_bound_share"] > 0.5).all()
    assert table.attrs["units"]["cache_memory"] == "B"
    one = Engine.serve(**LLAMA, batch_size=512)
    assert table.cache_memory[1] == one.value("cache_memory")


def test_an_encoder_has_a_pass_and_no_tokens() -> None:
    table = Engine.sweep(model=["BERT_Large", "Llama3_8B"], hardware="A100", prompt_tokens=128)
    assert table.feasible.all()
    assert table.time_to_first_token.notna().all()
    assert table.time_per_output_token.isna().tolist() == [True, False]
    assert "is an encoder" in table.reason[0]


def test_units_stand_beside_the_table() -> None:
    table = Engine.sweep(**LLAMA, memory_bandwidth=["2 TB/s", "3 TB/s"])
    assert table.memory_bandwidth.tolist() == [2e12, 3e12]
    units = table.attrs["units"]
    assert units["memory_bandwidth"] == "B/s"
    assert units["time_to_first_token"] == "s"
    assert units["decode_throughput"] == "token/s"


def test_records_and_names_are_the_same() -> None:
    named = Engine.sweep(model="Llama3_8B", hardware="HGX_H100", tensor_parallel=[1, 2])
    given = Engine.sweep(model=Models.Llama3_8B, hardware=Systems.HGX_H100, tensor_parallel=[1, 2])
    assert named.equals(given)


def test_a_search_for_a_layout_may_be_swept() -> None:
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 64, "search": True}
    table = Engine.sweep(**asked, devices=[4, 8])
    one = Engine.train(**asked, devices=8)
    assert table.step_time[1] == one.value("step_time")


def test_networks_and_language_models_are_trained_in_one_table() -> None:
    asked = {"hardware": "HGX_H100", "devices": 8, "global_batch": [800, 1601]}
    network = Engine.sweep(model="ResNet50", **asked, samples=1e6)
    alone = Engine.train("ResNet50", **{**asked, "global_batch": 800}, samples=1e6)
    assert network.throughput[0] == alone.value("throughput")
    assert network.training_time[0] == alone.value("training_time")
    assert "token_rate" not in network
    assert "no multiple" in network.reason[1] or "divide" in network.reason[1]
    both = Engine.sweep(model=["ResNet50", "GPT2_XL"], **asked, sequence_tokens=1024)
    runs = both[both.feasible]
    assert (runs.token_rate.isna() == (runs.model == alone.model.name)).all()


def test_executors_compute_the_same_rows() -> None:
    asked = {**LLAMA, "hardware": ["H100", "A100"], "batch_size": range(1, 40)}
    with ThreadPoolExecutor(2) as pool:
        seen = []
        table = Engine.sweep(**asked, scheduler=pool, block_rows=10, progress=seen.append)
    pandas.testing.assert_frame_equal(table, Engine.sweep(**asked), rtol=1e-14)
    assert [each.rows for each in seen][-1] == 78
    assert len(seen) == 8


def test_what_is_wrong_of_the_whole_sweep_is_refused() -> None:
    assert answered(lambda **given: Engine.sweep(**{**LLAMA, **given}), "sweep") == []
    network, chip = Models.ResNet50, Hardware.Cloud.T4
    long = {"batch_size": range(1, 10**4), "prompt_tokens": range(1, 10**4)}
    for given, error, words in (
        (long, InvalidValueError, "Give out="),
        ({"prompt_tokens": range(3, 3)}, InvalidValueError, "prompt_tokens is an empty list"),
        ({"hardware": np.array([])}, InvalidValueError, "hardware is an empty list"),
        ({"model": network, "hardware": [chip, network]}, WrongKindError, "hardware must be a"),
        ({"model": chip}, WrongKindError, "model must be a model"),
    ):
        with pytest.raises(error, match=words):
            Engine.sweep(**{**LLAMA, **given})


def test_what_is_as_long_as_the_context_still_fits() -> None:
    """1,000 and 24 tokens fill the 1,024 of GPT-2; a token more is too long, trained as served."""
    table = Engine.sweep("GPT2", "A100", prompt_tokens=[1000, 1001], output_tokens=24)
    assert table.feasible.tolist() == [True, False]
    assert "longer than the context" in table.reason[1]
    asked = {"hardware": "HGX_A100", "devices": 8, "global_batch": [8, 16]}
    runs = Engine.sweep(model=["GPT2", "Llama3_8B"], sequence_tokens=2048, recompute="full",
                        shard="zero3", **asked)  # fmt: skip
    assert runs.feasible.tolist() == [False, False, True, True]
    too_long = runs.reason.str.contains("longer than the context")
    assert too_long.tolist() == [True, True, False, False]
    usual = Engine.sweep("ResNet50", "A100")
    assert usual.batch_size.tolist() == [1]
    assert usual.batch_size.dtype == np.int64


def test_a_worker_that_dies_is_told_of() -> None:
    class Broken:
        def submit(self, *_: Any) -> Any:
            raise RuntimeError("cannot schedule new futures")

    with pytest.raises(UnfinishedError, match="cannot schedule new futures"):
        Engine.sweep(**LLAMA, batch_size=[1, 2], scheduler=Broken())


class Picky(Rows):
    """Answers rows together, unless one of them is a 3."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def ask(self, numbers: Any, *, alone: bool = False) -> Any:
        if 3 in numbers["n"]:
            raise WrongKindError("three")
        return numbers["n"].tolist()

    def reason(self, error: MlsimError) -> str:
        return str(error)

    def write(self, answer: Any, rows: Any) -> None:
        self.written.append((answer, rows.tolist()))

    def refuse(self, rows: Any, why: str, kind: type[MlsimError] = MlsimError) -> None:
        self.written.append((why, kind, rows.tolist()))


def test_rows_are_halved_until_what_is_refused_stands_alone() -> None:
    rows = Picky()
    rows.fill({"n": np.arange(1, 7)}, np.arange(10, 16))
    refused = ("three", WrongKindError, [12])
    assert rows.written == [([1], [10]), ([2], [11]), refused, ([4, 5, 6], [13, 14, 15])]


def test_runs_without_a_result_say_so_unless_they_can_not_run_at_all() -> None:
    """Of 8 devices 64 sequences each are 512, which do not fit; and no multiple of them is 8."""
    asked = {"devices": 8, "global_batch": [8, 512], "micro_batch": [1, 64]}
    table = Engine.sweep("GPT2_XL", "HGX_A100", **asked, results=["step_time", "training_cost"])
    words = ["training_cost needs training_tokens", "no multiple of"] * 2
    words[3] = "does not fit"
    assert [each in said for each, said in zip(words, table.reason, strict=True)] == [True] * 4
    assert table.step_time.notna().tolist() == table.feasible.tolist() == [True, False] * 2
    assert table.training_cost.isna().all()
