"""Values by hand: names, counts among numbers, units, how they print, what they refuse."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlsim import Engine, Hardware, given
from mlsim.errors import InvalidValueError, MlsimError, UnitError
from mlsim.units import BEYOND_PREFIXES
from mlsim.values import Origin, as_share, counts, of_base, quantity, registry, scaled
from mlsim.values.kinds import Plain, Quantity

A, B, C, D = (given(n, name) for n, name in ((8, "a"), (2, "b"), (3, "c"), (4, "d")))
TIME, ANOTHER = given("60 ms", "t"), given("0.02 s", "u")
A100 = Hardware.Cloud.A100
BANDWIDTH = A100.memory.bandwidth
CHOSEN = "chosen for this page"


@pytest.fixture(scope="module")
def profile() -> Any:
    return Engine.solve(model="ResNet50", hardware="A100")


@pytest.fixture(scope="module")
def serving() -> Any:
    return Engine.serve(model="Llama3_8B", hardware="H100", prompt_tokens=2048)


# Arithmetic, and names.


def test_the_classes_are_the_registrys_own() -> None:
    """A mere subclass would be lost at the first result that Pint makes."""
    assert issubclass(registry().Quantity, Quantity)
    made = (TIME, TIME * TIME, TIME.to("s"), quantity(np.ones(2), "s")[0], registry()("3 ms"))
    assert {type(each) for each in made} == {type(TIME)}
    assert type(TIME / ANOTHER) is type(A / B) is type(A)
    assert isinstance(A, Plain)
    assert not isinstance(TIME, float)


@pytest.mark.parametrize(
    ("made", "number", "name", "brief"),
    [
        (lambda: (A - B) / (C + D), 6 / 7, "(a − b) / (c + d)", "6 / 7 = 0.8571"),
        (lambda: A - (B - C), 9, "a − (b − c)", "8 − (-1) = 9"),
        (lambda: A - B - C, 3, "a − b − c", "6 − 3 = 3"),
        (lambda: A / (B * C), 8 / 6, "a / (b × c)", "8 / 6 = 1.333"),
        (lambda: A / B / C, 4 / 3, "a / b / c", "4 / 3 = 1.333"),
        (lambda: (A / B) / (C / D), 16 / 3, "a / b / (c / d)", "4 / 0.75 = 5.333"),
        (lambda: A * (B + C), 40, "a × (b + c)", "8 × 5 = 40"),
        (lambda: 2 * (A + B), 20, "2 × (a + b)", "2 × 10 = 20"),
        (lambda: 1 - A / B, -3, "1 − a / b", "1 − 4 = -3"),
        (lambda: A + B + C, 13, "a + b + c", "8 + 2 + 3 = 13"),
        (lambda: sum([A, B, C]), 13, "a + b + c", "8 + 2 + 3 = 13"),
        (lambda: (A * B) ** 2, 256, "(a × b) ^ 2", "16 ^ 2 = 256"),
        (lambda: -(A - B), -6, "−(a − b)", "−(a − b) = -6"),
        (lambda: abs(B - A), 6, "−(b − a)", "−(b − a) = 6"),
        (lambda: A - (-B), 10, "a − (−b)", "8 − (-2) = 10"),
        (lambda: (-A) * B, -16, "(−a) × b", "-8 × 2 = -16"),
        (lambda: TIME - ANOTHER, 0.04, "t − u", "60 ms − 20 ms = 40 ms"),
        (lambda: TIME / ANOTHER, 3, "t / u", "60 ms / 20 ms = 3"),
        (lambda: sum([ANOTHER, TIME]), 0.08, "u + t", "20 ms + 60 ms = 80 ms"),
        (lambda: 3 / TIME, 50, "3 / t", "3 / 60 ms = 50 1/s"),
        (lambda: A + 5, 13, "a + 5", "8 + 5 = 13"),
        (lambda: 5 + A, 13, "5 + a", "5 + 8 = 13"),
        (lambda: 5 - A, -3, "5 − a", "5 − 8 = -3"),
        (lambda: A + 0, 8, "a", f"8, {CHOSEN}"),
        (lambda: TIME - 0, 0.06, "t − 0", "60 ms − 0 = 60 ms"),
        (lambda: abs(0 * TIME), 0, "0 × t", "0 × 60 ms = 0 s"),
        (lambda: 17 / given("4 token/s", "r"), 4.25, "17 / r", "17 / 4 token/s = 4.25 s/token"),
        (lambda: min(TIME, ANOTHER), 0.02, "u", f"20 ms, {CHOSEN}"),
        (lambda: max(A, B, C), 8, "a", f"8, {CHOSEN}"),
        (lambda: TIME.to("s"), 0.06, "t", f"60 ms, {CHOSEN}"),
        (TIME.to_base_units, 0.06, "t", f"60 ms, {CHOSEN}"),
        (lambda: round(TIME / 7, 1), 0.0086, "t / 7", "60 ms / 7 = 8.6 ms"),
        (lambda: round(A / C, 1), 2.7, "a / c", "8 / 3 = 2.7"),
        (lambda: abs(TIME), 0.06, "t", f"60 ms, {CHOSEN}"),
        (lambda: np.float64(2) * A, 16, "2 × a", "2 × 8 = 16"),
        (lambda: A * np.int64(2), 16, "a × 2", "8 × 2 = 16"),
        (lambda: np.float64(2) * TIME, 0.12, "2 × t", "2 × 60 ms = 120 ms"),
    ],
)
def test_a_result_of_arithmetic_says_what_it_was_made_of(
    made: Callable[[], Any], number: float, name: str, brief: str
) -> None:
    found = made()
    assert isinstance(found, Quantity)
    assert (found.si, found.name) == (pytest.approx(number), name)
    assert found.origin.brief.startswith(f"{name} = ")
    assert found.origin.brief.endswith(brief)


def test_where_it_comes_from_lists_what_went_in_once() -> None:
    squared = (A + B) * A
    assert squared.origin.how.splitlines() == [
        "(a + b) × a = 10 × 8 = 80",
        "",
        "- a + b = 8 + 2 = 10",
        f"- a = 8, {CHOSEN}",
    ]
    assert (A + A).origin.how.count(CHOSEN) == 1
    assert squared.to_dict() == {
        "value": 80.0,
        "unit": "1",
        "name": "(a + b) × a",
        "derivation": squared.origin.how,
    }


def test_a_long_sum_is_shortened() -> None:
    assert sum([A] * 10).name == "a + a + a + ... (6 more) + a"  # type: ignore[union-attr]
    assert sum([A] * 6).name == "a + a + a + a + a + a"  # type: ignore[union-attr]


def test_numbers_without_an_origin_make_none() -> None:
    plain = quantity(3.0, "s") + quantity(2.0, "s")
    assert (plain.name, plain.origin.brief, plain.text) == ("5 s", "", "5 s")


def test_in_place_makes_another_value() -> None:
    total = kept = TIME
    total += ANOTHER
    assert (total.name, kept.name, kept.si) == ("t + u", "t", 0.06)
    total -= TIME
    assert (total.name, total.si) == ("t + u − t", pytest.approx(0.02))
    total = TIME
    total *= ANOTHER
    assert (total.name, total.si) == ("t × u", pytest.approx(0.0012))
    total /= ANOTHER
    assert (total.name, total.si, kept.si) == ("t × u / u", pytest.approx(0.06), 0.06)


def test_units_are_called_as_the_vocabulary_calls_them() -> None:
    """Joules per second are watts, operations a second FLOP/s, and carbon keeps its name."""
    energy, carbon = given("6 J", "energy"), given("3 kg_CO2e", "carbon")
    made = (energy / ANOTHER, given("5 OP", "work") / ANOTHER, carbon)
    assert [each.base for each in made] == ["W", "FLOP/s", "kg_CO2e"]
    assert (energy / ANOTHER).text == "300 W"
    assert (carbon / energy).base == "kg_CO2e/J"
    assert (carbon / given("2 token", "tokens")).base == "kg_CO2e/token"
    assert [quantity(1.0, each).base for each in ("token/s/sample", "second")] == [
        "token/s/sample", "s",
    ]  # fmt: skip
    assert (given("3 token", "k") ** 2).base == "token**2"
    counted = ("token", "token/s", "1/s", "s*token", "token/s**2", "%", "sample/ms", "B/token")
    assert [each for each in counted if counts(each)] == ["token", "token/s", "1/s"]
    assert ((TIME**2).name, (TIME**2).base, (TIME**2).si) == ("t ^ 2", "s**2", 0.0036)
    numbers = [quantity(each, "s").magnitude for each in (3, 3.0, np.float64(3))]
    assert [type(each) for each in numbers] == [int, float, float]
    # GiB over GB/s are seconds: 6 × 2³⁰ / 2 × 10⁹.
    waiting = given("6 GiB", "memory") / given("2 GB/s", "rate")
    assert (f"{waiting.units:~}", waiting.magnitude) == ("s", pytest.approx(3 * 1.073741824))


def test_what_memory_and_shares_are_made_of_they_stay() -> None:
    """GiB are kept by sums and by products with what has no unit; a rate of them is in GB/s."""
    held, moved = of_base(3 * 2**30, "memory"), of_base(5e9, "B")
    sums = (held + moved, moved + held, held - moved, -held, round(held, 1))
    for made in (*sums, 2 * held, held * 2, held / 7, A * held, held * A):
        assert made.text.endswith("iB"), made
    for made in (moved + moved, moved * 2, held / TIME, held * TIME):
        assert "iB" not in made.text, made
    share, other = of_base(0.5, "1", share=True), of_base(0.25, "1")
    shown = (share + other, other + share, share - other, -share, other + other, share * other)
    assert [each.text for each in shown] == ["75 %", "75 %", "25 %", "-50 %", "0.50", "0.12"]
    assert [each.text for each in (share.without_unit(), round(share, 1))] == ["50", "50 %"]


def test_a_share_is_a_part_of_a_whole() -> None:
    """A whole is none, nor nothing: a ratio is in per cent between 0 and 1, or less 1."""
    three, eight = given("3 GB", "three"), given("8 GB", "eight")
    assert [(each / three).text for each in (three, 0 * three, -three)] == ["1", "0", "-1"]
    assert (eight / three - 2).text == "0.67"
    assert (1 + three / eight).text == "138 %"  # sums of shares are shares
    assert (of_base(0.375, "1") - 1).text == "-0.62"
    assert (A / 16).text == "0.50"
    assert (as_share(eight, three).text, as_share(eight, three).name) == ("267 %", "eight / three")
    assert [of_base(each, "1", share=True).text for each in (0.0041, 0.0149, 0.996, 1.0)] == [
        "0.41 %", "1 %", "100 %", "100 %",
    ]  # fmt: skip


def test_the_origin_is_made_when_somebody_asks() -> None:
    """A card takes milliseconds, and an attribute microseconds."""
    asked: list[Any] = []

    def origin(value: Any) -> Origin:
        asked.append(value)
        return Origin("lazy", "brief")

    value = of_base(2.0, "s", origin)
    made = (value + value) / value * 3
    assert (made.text, value.text, f"{value:.1f}") == ("6", "2 s", "2.0 s")
    assert asked == []
    assert value.origin is value.origin
    assert (made.name, len(asked)) == ("(lazy + lazy) / lazy × 3", 1)


def test_an_answer_makes_no_card_before_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = Engine.solve(model="ResNet50", hardware="A100")
    explained: list[str] = []
    ask = type(profile).explain
    monkeypatch.setattr(
        type(profile), "explain", lambda self, name="": explained.append(name) or ask(self, name)
    )
    ratio = profile.latency / Engine.solve(model="ResNet50", hardware="H100").latency
    assert (f"{ratio}", ratio.name, explained) == ("1.7", "latency / latency", [])
    assert "[@nvidia2022a100]" in profile.latency.origin.how
    assert explained == ["latency"]


# Units.


def test_per_second_is_plain_whatever_the_time_was_in(profile: Any) -> None:
    rate = given("128 token", "tokens") / given("2 ms", "time")
    assert isinstance(rate, float)
    assert (rate, rate.base, f"{rate}", rate.name) == (64_000, "token/s", "64,000", "tokens / time")
    back = rate * given("2 ms", "time")
    assert (back, back.base) == (128, "token")
    assert profile.throughput * profile.latency == pytest.approx(1)
    for alike in (A + 1, 1 + A, A - 1, 2 * A, A / 2, A * B, A**2, round(A / C, 2), -A, A.to("1")):
        assert isinstance(alike, Plain)


def test_memory_is_in_gib_and_figures_are_as_printed(serving: Any) -> None:
    both = serving.weight_memory + serving.cache_memory
    assert (serving.weight_memory.text, both.text) == ("15.0 GiB", "15.2 GiB")
    assert (both / 2).text == "7.61 GiB"
    assert serving.prefill.total_bytes.text.endswith(" GB")
    assert (BANDWIDTH.text, BANDWIDTH.si) == ("2,039 GB/s", 2.039e12)
    assert (2 * BANDWIDTH).text == "4.08 TB/s"
    assert BANDWIDTH.to("TB/s").text == "2.04 TB/s"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: TIME + 1, TypeError),
        (lambda: 1 + TIME, TypeError),
        (lambda: TIME - A, TypeError),
        (lambda: TIME + given("1 B", "x"), TypeError),
        (lambda: given("1 B", "x") + given("1 parameter", "y"), TypeError),
        (lambda: given("1 token", "x") + given("1 sample", "y"), TypeError),
        (lambda: TIME < 3, UnitError),
        (lambda: given("1 token", "x") < given("1 sample", "y"), TypeError),
        (lambda: float(TIME), UnitError),
        (lambda: math.sqrt(TIME), UnitError),
        (lambda: TIME.to("GB"), TypeError),
        (lambda: range(A / C), TypeError),  # type: ignore[call-overload]
        (lambda: len(A), TypeError),
        (lambda: list(A), TypeError),  # type: ignore[call-overload]
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_refusals_say_what_to_write() -> None:
    with pytest.raises(UnitError, match=r"60 ms is no plain number: \.to\('ms'\)\.magnitude is"):
        float(TIME)
    with pytest.raises(UnitError, match=r"60 ms can't be compared with 3, which has no unit: .*to"):
        _ = TIME < 3


# Counts, shares and rates among numbers.


def test_a_count_is_a_number_wherever_one_is_expected() -> None:
    count = given(199, "users")
    assert count == 199 == count
    assert count != 200
    assert (count < 200, count > 198, count >= 199, count <= 198.5) == (True, True, True, False)
    assert count == given(199, "others")
    assert {199: "found"}[count] == "found"
    assert hash(count) == hash(199)
    assert list(range(count))[-1] == 198
    assert ["x"] * 300 != "x"
    assert list(range(300))[count] == 199
    assert sorted([given(3, "x"), 1, given(2, "y")]) == [1, 2, 3]
    assert (int(count), float(count), bool(given(0, "none"))) == (199, 199.0, False)
    assert (divmod(7, given(2, "x")), count // 2, count % 2, 2 ** given(3, "x")) == (
        (3, 1),
        99,
        1,
        8,
    )
    assert math.floor(A / C) == math.trunc(A / C) == 2
    assert math.ceil(A / C) == round(A / C) == 3
    assert math.sqrt(D) == 2
    assert math.isclose(count, 199)
    assert json.dumps({"users": count}) == '{"users": 199.0}'
    assert (count.is_integer(), isinstance(count, float)) == (True, True)
    assert complex(count) == 199


def test_numpy_and_pandas_take_it_for_a_float(profile: Any) -> None:
    pandas = pytest.importorskip("pandas")
    rate = profile.throughput
    for made in (np.array([rate, rate]), np.asarray(rate), rate * np.ones(2), np.ones(2) * rate):
        assert (type(made), made.dtype) == (np.ndarray, float)
    assert np.isclose(rate, float(rate))
    assert np.maximum(rate, 3) == np.where(True, rate, 3) == float(rate)
    assert math.log(rate) == np.log(rate)
    assert pandas.DataFrame({"rate": [rate, rate]}).rate.dtype == np.dtype("float64")
    assert pandas.DataFrame({"n": [1, 2]}).assign(rate=rate).rate.tolist() == [float(rate)] * 2
    assert rate == pytest.approx(float(rate)) == rate
    assert not isinstance(rate, (list, tuple))
    # Beside an array with a unit it keeps its own.
    sizes = quantity(np.array([1.0, 2.0]), "B")
    assert (sizes * rate).units == (rate * sizes).units == sizes.units * rate.units
    assert np.maximum(sizes, quantity(1.5, "B")).tolist() == [quantity(1.5, "B"), sizes[1]]


def test_arrays_have_units_and_no_origin() -> None:
    many = Engine.solve(model="ResNet50", hardware="A100", batch_size=[1, 8])
    assert many.latency.check("[time]")
    assert many.latency.to("us").magnitude == pytest.approx(1e6 * many.value("latency"))
    for counted in (many.throughput, many.memory_bound_share):
        assert type(counted) is np.ndarray
    assert many[1].latency.si == pytest.approx(many.value("latency")[1])
    assert (many.latency / many.latency.sum()).check("")
    assert many.latency._repr_markdown_() is None


# How it prints.


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (of_base(55.48e-6, "s"), "55.5 µs"),
        (of_base(8e-6, "s"), "8 µs"),
        (quantity(7.999999999999999, "us"), "8 µs"),
        (of_base(90_000, "s"), "25 h"),
        (of_base(1.5 * 2**30, "memory"), "1.50 GiB"),
        (of_base(1.5e9, "B"), "1.50 GB"),
        (of_base(18023.66, "sample/s"), "18,024"),
        (of_base(2.345, "1"), "2.3"),
        (of_base(99.6, "1"), "100"),
        (of_base(0.0123, "1"), "0.012"),
        (of_base(199, "sample"), "199"),
        (of_base(25_557_032, "parameter"), "25,557,032"),
        (of_base(0.8397, "1", share=True), "84 %"),
        (of_base(3.14e23, "FLOP"), "3.14 × 10²³ FLOP"),
        (of_base(-BEYOND_PREFIXES, "FLOP"), "-1 × 10¹⁸ FLOP"),
        (of_base(math.nan, "s"), "nan s"),
        (of_base(math.inf, "1"), "inf"),
        (of_base(-3e-6, "s"), "-3 µs"),
        (of_base(2.039e12, "B/s", unit="GB/s", form=",.0f"), "2,039 GB/s"),
    ],
)
def test_who_asks_for_no_form_reads_this(value: Any, shown: str) -> None:
    assert value.text == f"{value}" == str(value) == repr(value) == shown


@pytest.mark.parametrize(
    ("value", "asked", "shown"),
    [
        (TIME, {"form": ".1f"}, f"{TIME.to('ms').magnitude:.1f} ms"),
        (TIME, {"form": ".1f", "unit": "ms"}, "60.0 ms"),
        (TIME, {"unit": "s"}, "0.0600 s"),
        (TIME, {"unit": "us"}, "60,000 µs"),
        (TIME, {"form": ".2f", "unit": None}, "0.06"),
        (TIME, {"unit": None}, "0.0600"),
        (A / B, {"unit": None}, "4"),
        (B / A, {"form": ".0%"}, "25 %"),
        (1 - B / C, {"form": ".1%"}, "33.3 %"),
        (of_base(0.84, "1", share=True), {"form": ".2f"}, "0.84"),
        (of_base(0.84, "1", share=True), {"unit": "1"}, "0.84"),
        (BANDWIDTH, {"unit": "TB/s", "form": ".1f"}, "2.0 TB/s"),
        (of_base(18023.66, "sample/s"), {"form": ",.1f", "unit": "sample/s"}, "18,023.7 sample/s"),
        (of_base(3 * 2**30, "memory"), {"unit": "GB", "form": ".1f"}, "3.2 GB"),
    ],
)
def test_the_same_value_is_shown_otherwise(value: Any, asked: dict[str, Any], shown: str) -> None:
    made = value.show(**asked)
    assert (made.text, made.si, made.name) == (shown, value.si, value.name)
    assert made == value
    assert value.text != shown or asked.get("unit") is None


def test_below_a_heading_with_the_unit_it_stands_alone() -> None:
    shown = BANDWIDTH.show(",.0f", "GB/s").without_unit()
    assert (shown.text, BANDWIDTH.without_unit().text) == ("2,039", "2,039")
    assert "GB/s" in shown.origin.how


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        (("ms",), InvalidValueError, "the format comes first, such as .show('.1f', 'ms')"),
        ((3,), InvalidValueError, "3 is none"),
        (("x",), InvalidValueError, "'.1f' has one digit after the point"),
        ((".1f", "GB"), UnitError, "a value in GB was given where s is expected"),
        ((".1f", "mss"), UnitError, "unknown unit 'mss'; expected s, such as 'ms'"),
        ((".0%",), UnitError, "a value in % was given where s is expected"),
    ],
)
def test_a_wrong_form_or_unit_is_refused(
    asked: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        TIME.show(*asked)
    assert words in str(caught.value)


def test_in_text_of_a_program_it_is_formatted_as_a_number(profile: Any, serving: Any) -> None:
    rate, share, most = profile.throughput, profile.memory_bound_share, serving.largest_batch
    assert f"{rate:,.0f} {rate:.1f} {rate}" == "18,024 18023.7 18,024"
    assert f"{share:.0%} {share:.2f} {share}" == "84% 0.84 84 %"
    assert f"{most:d} {most:,} {most:>6}|{most:6}|{most:<6}|" == "211 211    211|   211|211   |"
    assert (
        f"{TIME:.1f} {TIME.to('s'):.2f} {TIME:>8}|{TIME:*^9}" == "60.0 ms 0.06 s    60 ms|**60 ms**"
    )
    assert "%.2f %d" % (share, most) == "0.84 211"  # noqa: UP031
    assert f"{profile.latency:~.1f}" == "55.5 µs"


# Names of one's own, and assumptions.


def test_a_sum_of_ones_own_gets_a_name_and_a_reason() -> None:
    eight = (8 * BANDWIDTH).named("eight GPUs", because="nothing is shared")
    assert eight.name == "eight GPUs"
    assert eight.origin.brief == "eight GPUs = 16.31 TB/s, nothing is shared"
    first, _, rest = eight.origin.how.partition("\n\n")
    assert first == eight.origin.brief
    assert rest == (8 * BANDWIDTH).origin.how
    only = (8 * BANDWIDTH).named("eight GPUs")
    assert (only.name, only.origin.brief) == ("eight GPUs", (8 * BANDWIDTH).origin.brief)
    assert BANDWIDTH.name == "NVIDIA A100 SXM 80 GB memory bandwidth"
    assert (eight / BANDWIDTH).name == f"eight GPUs / {BANDWIDTH.name}"


@pytest.mark.parametrize(
    ("value", "number", "base", "shown"),
    [
        (26_250, 26_250, "1", "26,250"),
        ("26,250", 26_250, "1", "26,250"),
        (0.5, 0.5, "1", "0.50"),
        (np.float64(2), 2, "1", "2"),
        ("30 ms", 0.03, "s", "30 ms"),
        ("1.5 GB", 1.5e9, "B", "1.50 GB"),
        ("3 USD/h", 3 / 3600, "USD/s", "3 USD/h"),
        ("12 token/s", 12, "token/s", "12"),
        (quantity(2.0, "GB"), 2e9, "B", "2 GB"),
        (TIME, 0.06, "s", "60 ms"),
        (2 * A, 16, "1", "16"),
    ],
)
def test_an_assumption_is_given(value: Any, number: float, base: str, shown: str) -> None:
    made = given(value, "mine")
    assert (made.si, made.base, made.text) == (pytest.approx(number), base, shown)
    assert made.name == "mine"
    assert made.origin.brief.endswith(f", {CHOSEN}")
    assert given(value, "mine", because="a guess").origin.brief.endswith(", a guess")
    assert given(3, "mine", unit="ms").si == 0.003
    assert given("3 s", "mine", unit="ms").si == given(3, "mine").si == 3  # it has its own, or none
    assert [scaled(each, "B/s").text for each in (7e12, 7e3)] == ["7 TB/s", "7 kB/s"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((True, "x"), "given takes a number, a quantity, or text with a unit such as '30 ms', not"),
        ((None, "x"), "not None"),
        (([1, 2], "x"), r"not [1, 2]"),
        ((np.ones(2), "x"), "not array"),
        ((quantity(np.ones(2), "s"), "x"), "given takes a number"),
        (("many", "x"), "text must be a number with a unit such as '30 ms', not 'many'"),
        (("30 msx", "x"), "unknown unit 'msx' in '30 msx'"),
        ((3, ""), "say in words what 3 is: given(3, 'people')"),
        ((3, None), "say in words what 3 is"),
        ((3, " "), "say in words what 3 is"),
        ((math.inf, "x"), "x must be finite, not inf"),
        ((3, "x", "ms"), "'ms' is a unit, and the third argument says where"),
    ],
)
def test_an_assumption_that_is_none_is_refused(asked: tuple[Any, ...], words: str) -> None:
    with pytest.raises(MlsimError) as caught:
        given(*asked)
    assert words in str(caught.value)


# Kept and shown.


def test_copies_are_the_same_and_a_pickle_the_number(profile: Any) -> None:
    for value in (TIME, A, profile.latency, profile.throughput):
        for made in (copy.copy(value), copy.deepcopy(value), copy.deepcopy({"x": value})["x"]):
            assert (made, made.name, type(made)) == (value, value.name, type(value))
        assert pickle.loads(pickle.dumps(value)) == value


def test_a_notebook_and_a_page_open_it(profile: Any) -> None:
    for value in (profile.latency, profile.throughput, A / B, BANDWIDTH):
        for page in (value.markdown(), value._repr_markdown_()):
            assert "]{.opens opens=" in page
        html = value._repr_html_()
        assert "popovertarget" in html
        assert value.text.replace(" ", "\u00a0") in html
    assert quantity(5.0, "s")._repr_html_() == "<span>5\u00a0s</span>"


def test_a_part_of_a_whole_and_a_change_are_in_per_cent() -> None:
    """3 of 8 GB is 38 %; 8 over 3 is a ratio; 8 is 167 % more than 3, 3 is 62 % less than 8."""
    three, eight = given("3 GB", "three"), given("8 GB", "eight")
    assert (three / eight).text == "38 %"
    assert (eight / three).text == "2.7"
    assert (eight / three - 1).text == "167 %"
    assert (1 - three / eight).text == "62 %"  # 62.5, to the even one
    assert (three / eight).show(".2f").text == "0.38"
    assert f"{three / eight:.2f}" == "0.38"
    assert (three / given("1 s", "a second")).text == "3 GB/s"


def test_a_count_less_one_is_a_count() -> None:
    tokens = given(256, "output tokens")
    assert ((tokens - 1).text, (1 - tokens).text, (given(1, "one") / 2).text) == (
        "255",
        "-255",
        "0.50",
    )
