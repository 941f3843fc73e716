"""Every answer does the same things in the same way, whatever was asked."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import answered

from mlsim import Engine, Systems, show
from mlsim.equations.registry import EQUATIONS
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer, Band, Form, Report, shown
from mlsim.solvers.load import Load
from mlsim.solvers.question import Known, Question
from mlsim.zoo import resolve


def profile(**given: Any) -> Answer:
    return Engine.solve(model="ResNet50", hardware="A100", **given)


def serving(**given: Any) -> Any:
    return Engine.serve(model="Llama3_8B", hardware="H100", **given)


ANSWERS = {
    "profile": profile,
    "service": serving,
    "calibrated": lambda: serving(estimate="calibrated"),
    "prefill": lambda: serving().prefill,
    "decode": lambda: serving().decode,
    "training": lambda: Engine.train(
        model="Llama3_8B", hardware="HGX_H100", global_batch=8, data_parallel=8, shard="zero3"
    ),
    "footprint": lambda: Engine.footprint(
        serving(), grid="Germany", pue=1.1, host=False, lifetime_use=0.5
    ),
    "size": lambda: Engine.optimal_size(training_flops="1e24 FLOP"),
}


@pytest.fixture(params=ANSWERS)
def answer(request: pytest.FixtureRequest) -> Any:
    return ANSWERS[request.param]()


def test_a_result_has_its_unit_and_its_derivation(answer: Answer) -> None:
    name = answer.first
    assert show(answer, name).to(term(name).unit).magnitude == pytest.approx(answer.value(name))
    data = answer.explain().to_dict()
    assert (data["unit"], data["value"]) == (term(data["quantity"]).unit, answer.value(name))
    assert data["steps"]
    assert all(each["origin"] for each in data["inputs"])


def test_all_that_is_reported_is_in_json_with_its_unit(answer: Answer) -> None:
    data = json.loads(json.dumps(answer.to_dict()))
    for name in answer.reported:
        found = data[name]
        if found is not None:  # what is not known of a footprint
            assert found.items() >= {"value": answer.value(name), "unit": term(name).unit}.items()
            band = {"low", "high", "band"} if answer.band(name) else set()
            assert set(found) == {"value", "unit", *band}


def test_text_and_notebook_say_the_same(answer: Answer) -> None:
    report = answer.report()
    lines, cells = str(answer).splitlines(), answer._repr_markdown_()  # type: ignore[operator]
    assert lines[0] == report.title
    assert report.title in cells.replace("\\", "")
    for _, value in report.rows:
        assert value.split()[0] in str(answer)
        assert value.replace("|", "\\|") in cells.replace("\\*", "*")


def test_the_shown_number_is_the_value_and_wrong_ones_are_refused(answer: Answer) -> None:
    part, name = answer.part("latency")
    assert show(answer).si == pytest.approx(part.value(name))
    assert answer.about in show(answer).origin.brief
    for ask in (answer.value, answer.explain):
        with pytest.raises(UnknownNameError, match=answer.first):
            ask(answer.first[:-1])
    with pytest.raises(InvalidValueError, match="is one point; only an array has an index"):
        answer[0]


def test_many_points_are_explained_one_by_one() -> None:
    for many in (profile(batch_size=[1, 2]), serving(batch_size=[1, 2])):
        with pytest.raises(InvalidValueError, match=r"pick one, such as (profile|serving)\[0\]"):
            many.explain()
        assert many[1].value("activation_memory") == many.value("activation_memory")[1]
        assert many[1].explain().value == many[1].value(many.first)


def test_a_known_quantity_keeps_the_origin_it_was_born_with() -> None:
    plain, faster = profile().question, profile(memory_bandwidth="3 TB/s").question
    assert plain.origin("memory_bandwidth").startswith("NVIDIA A100 SXM 80 GB: ")
    assert faster.origin("memory_bandwidth") == "given"
    assert plain.origin("flops_per_multiply_add") == "definition"


# Reports.


def test_of_many_points_the_ends_are_shown() -> None:
    assert shown(list(range(20)), "...") == list(range(20))
    assert shown(list(range(21)), "...") == [*range(10), "...", *range(11, 21)]
    rows = [(str(each), "x") for each in range(21)]
    report = Report("T", rows, heads=[("batch", 5), ("name", 0)])
    lines = report.text().splitlines()
    assert lines[:3] == ["T", "  batch  name", "      0  x"]
    assert lines[12] == "    ..."
    assert report.markdown().splitlines()[2:5] == ["| batch | name |", "|---|---|", "| 0 | x |"]


def test_a_cell_keeps_what_markdown_would_read() -> None:
    report = Report("a*b", [("name", "x | y")])
    head, row = r"**a\*b**", r"| name | x \| y |"
    assert report.markdown().splitlines() == [head, "", "|  |  |", "|---|---|", row]


def test_a_load_by_hand() -> None:
    """720 device-hours on three devices are 240 hours each; in 1.5 times the time they do less."""
    load = Load.of(hardware=resolve.device("H100"), device_hours="30 d", devices=3,
                   compute_utilisation=0.6, memory_utilisation=0.9, tokens=5e9)  # fmt: skip
    assert (load.time, load.devices, load.tokens) == (864_000, 3, 5e9)
    assert load.label == "720 device-hours"
    assert load.labels["hardware"] == "3 x NVIDIA H100 SXM 80 GB"
    slower = load.within("15 d")
    assert slower.compute_utilisation == pytest.approx(0.4)
    assert slower.memory_utilisation == pytest.approx(0.6)
    assert load.within("9 d").memory_utilisation == pytest.approx(1.0)
    one = Load.of(hardware=Systems.HGX_H100, device_hours=12.5)
    assert (one.time, one.label) == (45_000, "12.5 device-hours")
    assert (one.system, one.device.key) == (Systems.HGX_H100, "Cloud.H100")
    assert one.labels["hardware"] == "NVIDIA H100 SXM 80 GB"
    assert (one.within("2 s").compute_utilisation, one.tokens) == (None, 0)
    for hours, words in ((99.96, "99.96"), (100.5, "100"), (1234.5, "1,234")):
        assert Load.of(hardware=one.device, device_hours=hours).label == f"{words} device-hours"
    bare = Load(one.device, None, 2, 10.0, 1 + 0.9e-9, None)
    assert (bare.label, bare.tokens, bare.labels, bare.load()) == ("a load", 0, {}, bare)
    assert "labels" not in repr(bare)
    assert one.labels["precision"] == "device-hours given"
    assert one.labels["model"] == "12.5 device-hours"
    asked: dict[str, Any] = {"hardware": one.device, "device_hours": 1.0}
    assert answered(lambda **given: Load.of(**asked | given), "held_devices") == []
    short = Load(one.device, None, 1, 0.5, 0.0, 1.0)
    assert (short.time, short.compute_utilisation) == (0.5, 0)
    for wrong in ({"time": 0.0}, {"time": math.inf}, {"tokens": -1.0}, {"tokens": math.nan}):
        with pytest.raises(InvalidValueError, match=f"{next(iter(wrong))} must be positive"):
            replace(short, **wrong)
    with pytest.raises(InvalidValueError, match="memory_utilisation must be a share"):
        load.within("8 d")
    with pytest.raises(InvalidValueError, match="one time, not an array"):
        load.within(["8 d", "9 d"])


# What fits, and what stands beside numbers.


class Short(Answer):
    """6 FLOP at 2 FLOP/s, on a device with so many bytes left."""

    names = ("flops", "compute_time", "memory_free", "memory_capacity")
    first, about, reported = "compute_time", "six FLOP", names[1:]
    assumptions = ("no host",)

    def __init__(self, free: Any) -> None:
        super().__init__(check_memory=True)
        self.free = free

    @cached_property
    def question(self) -> Question:
        known = Known().add("given", flops=6.0, peak_flops=2.0, memory_free=self.free)
        known.add("Mine: estimate, of a driver", memory_capacity=7.0)
        return Question(known, [EQUATIONS["compute_time"]], {}, shape=np.shape(self.free))

    def _lasts(self, name: str) -> bool:
        return name.startswith("memory")

    def too_large(self) -> str:
        return "a byte too much"

    form = Form(inputs={"asked": lambda _: 6})


def test_what_leaves_no_byte_fits_and_a_byte_too_much_does_not() -> None:
    full, over = Short(0.0), Short(-1.0)
    assert (full.feasible, full.shows_times, full.value("compute_time")) == (True, True, 3.0)
    assert (over.feasible, over.shows_times) == (False, False)
    with pytest.raises(DoesNotFitError, match="a byte too much"):
        over.value("compute_time")
    # What was known before it was asked holds all the same.
    assert (over.value("flops"), over.value("memory_free")) == (6.0, -1.0)
    many = Short(np.array([1.0, 0.0, -1.0]))
    assert many.feasible.tolist() == [True, True, False]
    assert many.shows_times
    found = np.broadcast_to(many.value("compute_time"), 3)
    assert found[:2].tolist() == [3.0, 3.0]
    assert math.isnan(found[2])
    assert many.value("memory_free").tolist() == [1.0, 0.0, -1.0]
    assert (many._pick(1)(many.free), many._pick((2,))(many.free)) == (0.0, -1.0)
    for index, words in (
        (True, "1 whole"),
        (1.5, "1 whole"),
        ((0, 0), "1 whole"),
        ("x", "an attr"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            many[index]  # type: ignore[index]
    with pytest.raises(InvalidValueError, match="this answer has no index"):
        many[0]
    with pytest.raises(InvalidValueError, match="many points"):
        many.by_name("compute_time")
    assert (full.by_name().si, full.by_name("memory_capacity").si) == (3.0, 7.0)
    plain = Short(-1.0)
    plain._check_memory = False
    assert (plain.shows_times, plain.value("compute_time")) == (True, 3.0)


def test_bands_loans_and_assumptions_stand_beside_numbers() -> None:
    full, over = Short(0.0), Short(-1.0)
    for each in (full, over):
        each.banding = lambda answer, name: Band(2.0, 5.0, name) if name in answer.first else None
    memory = {"value": 7.0, "unit": "B", "kind": "estimate"}
    time = {"value": 3.0, "unit": "s", "low": 2.0, "high": 5.0, "band": "compute_time"}
    beside = {"asked": 6, "assumptions": ["no host"], "memory_capacity": memory}
    free = {"value": 0.0, "unit": "B"}
    assert full.to_dict() == beside | {"compute_time": time, "memory_free": free}
    assert over.to_dict()["compute_time"] == {"value": None, "unit": "s"}
    assert full._banded("compute_time") == [("band", "2 s to 5 s: compute_time")]
    assert (full._banded("flops"), full.band(), Short(0.0).band()) == (
        [],
        Band(2.0, 5.0, "compute_time"),
        None,
    )
    assert full.noted() == [("assumed", "no host")]
    loans = (SimpleNamespace(words="of A"), SimpleNamespace(words="of B"))
    lent = type("Lent", (Short,), {"loans": loans, "assumptions": ("x", "y")})(0.0)
    assert lent.noted() == [("borrowed", "of A; of B"), ("assumed", "x"), ("assumed", "y")]


def test_what_is_known_of_a_question() -> None:
    first = Known().add("a", flops=2.0, peak_flops=3.0).columns("c", "outputs")
    both = first.joined(Known().add(lambda: "b", flops=5.0).columns("d", "repeats"))
    assert both == {"flops": 5.0, "peak_flops": 3.0}
    origins = [both.origin(each) for each in ("flops", "peak_flops", "outputs", "repeats", "x")]
    assert origins == ["b", "a", "c", "d", "definition"]
    assert first == {"flops": 2.0, "peak_flops": 3.0}
    assert first.doubts() == []
    noisy = Known().add("Mine: estimate, mlsim measure", peak_flops=1.0)
    words = "measured on a noisy machine, and kept"
    assert noisy.doubts() == [("", f"peak: {words}")]
    noisy.add("Mine: estimate, mlsim measure", memory_bandwidth=1.0, memory_capacity=1.0)
    guessed = ("", "the device's memory is an estimate: no list of a driver was read")
    assert noisy.doubts() == [guessed, ("", f"memory bandwidth and peak: {words}")]
    equations = [EQUATIONS["compute_time"]]
    late = Question(lambda: first, equations, lambda: {"model": "M"})
    assert (late.value("compute_time"), late.labels, late.known) == (2 / 3, {"model": "M"}, first)
    none = Question(Known().add("given", flops=0.0, peak_flops=np.float64(0.0)), equations, {})
    with np.errstate(all="raise"):
        assert math.isnan(none.value("compute_time"))
    assert type(none.value("peak_flops")) is float
    assert none.labels == {}
