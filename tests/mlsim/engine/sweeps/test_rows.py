"""Rows of a sweep: what the door answers when it is asked alone, whatever door it is."""

from __future__ import annotations

import random
import tomllib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import kept
import numpy as np
import pandas
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine, Hardware, Models
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
    # How much it would need is known of what does not fit.
    assert stopped[stopped.reason == "does not fit"].memory_required.notna().all()


def test_reasons_of_networks_are_as_short_as_their_own_tables_have_them() -> None:
    asked: dict[str, Any] = {"model": "ResNet50", "memory_bandwidth": ["2 TB/s", "3 TB/s"]}
    table = Engine.sweep(hardware=["A100", "T4"], precision="bf16", **asked)
    assert table.reason.tolist() == ["", "", *["no bf16 peak on record"] * 2]
    own = chip("Bare", fp16="5 TFLOP/s")
    table = Engine.sweep(hardware=["A100", own], activations="on-chip", **asked)
    assert table.reason.tolist() == ["", "", *["no cache on record"] * 2]
    served = Engine.sweep(model="Llama3_8B", hardware=["H100", "T4"], precision="bf16")
    assert served.reason[0] == "" != served.reason[1] != "no bf16 peak on record"
    assert "bf16" in served.reason[1]


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
    """Units stand beside the table; records and their names are the same."""
    results = ["decode.memory_bound_share", "decode.bottleneck", "cache_memory"]
    asked = {"batch_size": [1, 512], "results": results, "memory_bandwidth": ["3 TB/s"]}
    table = Engine.sweep(**LLAMA, **asked)
    assert table["decode.bottleneck"].tolist() == ["Memory Bound", "Memory Bound"]
    assert (table["decode.memory_bound_share"] > 0.5).all()
    assert table.memory_bandwidth.tolist() == [3e12, 3e12]
    units = table.attrs["units"]
    assert (units["cache_memory"], units["memory_bandwidth"]) == ("B", "B/s")
    one = Engine.serve(**LLAMA, batch_size=512)
    assert table.cache_memory[1] == one.value("cache_memory")
    assert table.equals(Engine.sweep(Models.Llama3_8B, Hardware.Cloud.H100, **asked))
    encoder = Engine.sweep(["BERT_Large", "Llama3_8B"], "A100", prompt_tokens=128)
    assert encoder.feasible.all()
    assert encoder.time_to_first_token.notna().all()
    assert encoder.time_per_output_token.isna().tolist() == [True, False]
    assert "is an encoder" in encoder.reason[0]


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
    # A search for a layout may be swept, too.
    searched = {**LLAMA, "hardware": "HGX_H100", "global_batch": 64, "search": True}
    one = Engine.train(**searched, devices=8)
    assert Engine.sweep(**searched, devices=[4, 8]).step_time[1] == one.value("step_time")


def test_executors_compute_the_same_rows() -> None:
    asked = {**LLAMA, "hardware": ["H100", "A100"], "batch_size": range(1, 40)}
    with ThreadPoolExecutor(2) as pool:
        seen = []
        table = Engine.sweep(**asked, scheduler=pool, block_rows=10, progress=seen.append)
    pandas.testing.assert_frame_equal(table, Engine.sweep(**asked), rtol=1e-14)
    assert [each.rows for each in seen][-1] == 78
    assert len(seen) == 8
    broken = SimpleNamespace(submit=dict)
    with pytest.raises(UnfinishedError, match="a worker stopped: TypeError: dict expected"):
        Engine.sweep(**LLAMA, batch_size=[1, 2], scheduler=broken)


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
    wide = Engine.sweep("GPT2_XL", "HGX_A100", devices=8, global_batch=512, micro_batch=64)
    assert wide.reason.tolist() == ["does not fit"]
    assert wide.memory_required[0] > 100e9
