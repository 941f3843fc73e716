"""Every answer does the same things in the same way, whatever was asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlsim import Engine, show
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.footprint.interval import Interval
from mlsim.solvers.reports import Report, shown


def profile(**given: Any) -> Answer:
    return Engine.solve(model="ResNet50", hardware="A100", **given)


def serving(**given: Any) -> Any:
    return Engine.serve(model="Llama3_8B", hardware="H100", **given)


ANSWERS = {
    "profile": profile,
    "service": serving,
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
    for name in answer._reported():
        found = data[name]
        if found is not None:  # what is not known of a footprint
            assert found == {"value": answer.value(name), "unit": term(name).unit}


def test_text_and_notebook_say_the_same(answer: Answer) -> None:
    report = answer.report()
    lines, cells = str(answer).splitlines(), answer._repr_markdown_()  # type: ignore[operator]
    assert lines[0] == report.title
    assert report.title in cells.replace("\\", "")
    for _, value in report.rows:
        assert value.split()[0] in str(answer)
        assert value.replace("|", "\\|") in cells.replace("\\*", "*")


def test_the_shown_number_is_the_value(answer: Answer) -> None:
    part, name = answer.part("latency")
    assert show(answer).si == pytest.approx(part.value(name))
    assert answer.about in show(answer).origin.brief


def test_an_unknown_name_is_refused_with_the_nearest(answer: Answer) -> None:
    wrong = answer.first[:-1]
    with pytest.raises(UnknownNameError, match=answer.first):
        answer.value(wrong)
    with pytest.raises(UnknownNameError, match=answer.first):
        answer.explain(wrong)


def test_one_point_has_no_index(answer: Answer) -> None:
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


def test_what_does_not_fit_keeps_its_sizes() -> None:
    large = Engine.serve(model="Llama3_70B", hardware="A100")
    data = large.to_dict()
    assert data["generation_latency"]["value"] is None
    assert data["memory_required"]["value"] == large.value("memory_required") > 140e9
    asked = Engine.serve(model="Llama3_70B", hardware="A100", check_memory=False).to_dict()
    assert asked["generation_latency"]["value"] > 0
    assert asked["feasible"] is False


def test_a_range_is_no_index_either() -> None:
    found = Engine.footprint(serving(), grid="Germany", pue=(1.1, 1.3), host=False)
    assert isinstance(found.facility_energy, Interval)
    with pytest.raises(InvalidValueError, match="show one end of it"):
        found.part("latency")


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
