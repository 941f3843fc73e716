"""A figure's number and unit against its quote: a wrong power of ten is found, and no other."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from mlsim import CloudOperators, Clusters, DataCentres, Embodied, Hardware, Models, Systems
from mlsim.records import DATA, Figure
from mlsim.units import factor
from mlsim.workloads.announced_models import announced
from mlsim.zoo.review.figure_rules import quotes, scales
from mlsim.zoo.review.file_report import validate_file

ZOO = (*Hardware, *Systems, *Clusters, *Models, *announced())
PLACES = (*DataCentres, *CloudOperators, *Embodied)


def figure(value: float, unit: str, base: str, quote: str, **fields: str) -> Figure:
    """Make a figure as a data file would."""
    kind = fields.pop("kind", "datasheet")
    si = value * factor(unit, base)
    return Figure("it", value, unit, si, base, kind=kind, quote=quote, **fields)


def said(one: Figure) -> list[str]:
    return [each.message for each in scales(SimpleNamespace(key="Mine", figures={"it": one}))]


def test_no_figure_of_the_zoo_is_off_by_a_power_of_ten() -> None:
    assert [(each.key, list(scales(each))) for each in (*ZOO, *PLACES) if any(scales(each))] == []


def test_each_figure_stands_in_its_quote_or_its_note() -> None:
    """And one that was changed does not, whatever else its note says."""
    wrong, passed = [], []
    for record in (*ZOO, *PLACES):
        wrong += [(record.key, each.figure) for each in quotes(record)]
        figures = {
            name: dataclasses.replace(each, value=each.value * 1.4615, si=each.si * 1.4615)
            for name, each in record.figures.items()
            if each.kind != "given"
        }
        changed = SimpleNamespace(key=record.key, figures=figures)
        noticed = {each.figure for each in quotes(changed)}
        passed += [(record.key, name) for name in figures if name not in noticed]
    assert wrong == passed == []


def test_a_secondary_figure_that_contradicts_its_quote_is_refused(tmp_path) -> None:
    """The T4's 65 TFLOP/s in FP16, made 95: a note that says whose word it is excuses nothing."""
    text = (DATA / "hardware" / "t4.toml").read_text(encoding="utf-8")
    assert text.count("value = 65\n") == 1
    path = tmp_path / "t4.toml"
    path.write_text(text.replace("value = 65\n", "value = 95\n"), encoding="utf-8")
    errors = [each for each in validate_file(path).remarks if each.level == "error"]
    assert [each.line for each in errors] == [text.splitlines().index("[compute.fp16]") + 1]
    assert "95 TFLOP/s is neither in the quote" in errors[0].message


@pytest.mark.parametrize(
    ("value", "unit", "base", "quote", "note"),
    [
        (2_697_554, "tCO2e", "kgCO2e", "Scope 2 Location-Based 2 , 697, 55 4", ""),
        (8.1, "TFLOP/s", "FLOP/s", "torch.float32: 8.1e12", ""),
        (4.531, "TFLOP/s", "FLOP/s", "gflop_s: 4531", "In GFLOP/s."),
        (35.58, "TFLOP/s", "FLOP/s", "{40.f, 80.f}", "40 x 328/336 x 1695/1860 MHz = 35.58."),
    ],
)
def test_a_number_may_be_written_in_several_ways(
    value: float, unit: str, base: str, quote: str, note: str
) -> None:
    one = figure(value, unit, base, quote, note=note)
    assert not list(quotes(SimpleNamespace(key="Mine", figures={"it": one})))


@pytest.mark.parametrize(
    ("value", "unit", "base", "quote", "note", "times"),
    [
        (320_000, "GB/s", "B/s", "memory (320 GB/s bandwidth)", "As printed.", "1,000 times"),
        (320, "TB/s", "B/s", "320 GB/s", "", "1,000 times"),
        (0.32, "GB/s", "B/s", "320 GB/s", "", "1/1,000 of"),
        (3200, "GB/s", "B/s", "320 GB/s", "Ten lanes.", "10 times"),
        (65_000, "TFLOP/s", "FLOP/s", "65 TFLOPS (FP16)", "", "1,000 times"),
        (31.2, "PFLOP/s", "FLOP/s", "torch.float32: 3.12e13", "In code.", "1,000 times"),
        (70, "kW", "W", "70 W", "", "1,000 times"),
        (600, "Ttoken", "token", "using 600B tokens", "Of text.", "1,000 times"),
        (341, "GB/s", "B/s", "LPDDR4X-4266 | 34,1 GB/s", "In Spanish.", "10 times"),
        # No unit beside any number: at least the digits must be in their place.
        (40_000, "W", "W", "TDP | 400 | 350", "", "100 times"),
        (32_110, "TWh", "J", "it bought 32.11 million MWh", "", "1,000 times"),
    ],
)
def test_a_wrong_power_of_ten_is_refused_whatever_the_note(
    value: float, unit: str, base: str, quote: str, note: str, times: str
) -> None:
    (message,) = said(figure(value, unit, base, quote, note=note))
    assert f" is {times}" in message
    assert f'"{quote}"' in message


@pytest.mark.parametrize(
    ("value", "unit", "base", "quote", "note"),
    [
        (320, "GB/s", "B/s", "memory (320 GB/s bandwidth)", ""),
        (7700, "GB/s", "B/s", "Memory bandwidth 7.7 TB/s per GPU", ""),
        (80, "GiB", "B", "80 GB HBM2e", ""),
        (2, "TB/s", "B/s", "2,000 GB/s", ""),
        (20_000, "TFLOP/s", "FLOP/s", "10 | 20 PetaFLOPS | 15", ""),
        (34.1, "GB/s", "B/s", "LPDDR4X-4266 | 34,1 GB/s", ""),
        (1.713, "TFLOP/s", "FLOP/s", "A15 | 8 | 1713", "In GFLOP/s."),
        (32.11, "TWh", "J", "it bought 32.11 million MWh", ""),
        (0.3, "Ttoken", "token", "300 billion tokens", ""),
        # A point that groups thousands: the note gives the number that is meant.
        (1.581, "TFLOP/s", "FLOP/s", "1.581 GFLOPS", "Means 1,581 GFLOP/s."),
        # Other digits are not this rule's matter, nor is text without a number.
        (321, "GB/s", "B/s", "320 GB/s", ""),
        (320, "GB/s", "B/s", "quite a lot", ""),
        (320, "GB/s", "B/s", "lanes 1,2,3", ""),
    ],
)
def test_the_same_number_in_another_unit_passes(
    value: float, unit: str, base: str, quote: str, note: str
) -> None:
    assert said(figure(value, unit, base, quote, note=note)) == []


def test_a_computed_figure_has_digits_of_its_own() -> None:
    """Four links of 10 GB/s are 40 GB/s, which is no misprint of 4."""
    four = {"quote": "4 links of 10 GB/s", "note": "Four times 10."}
    assert said(figure(40, "GB/s", "B/s", kind="derived", **four)) == []
    assert said(figure(40, "GB/s", "B/s", **four)) == []
    assert said(figure(100, "GB/s", "B/s", **four)) != []
