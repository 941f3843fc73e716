"""Values by name: what `show` finds, what it carries and how it opens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from mlsim import Engine, Hardware, Models, System, measurements, serving_measurements, show
from mlsim.errors import DoesNotFitError, InvalidValueError, UnitError, UnknownNameError
from mlsim.hardware.measured_kernels import in_place
from mlsim.solvers.serving.result_names import RESULTS
from mlsim.values import quantity
from mlsim.zoo import resolve

A100 = Hardware.Cloud.A100
CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"


@pytest.fixture(scope="module")
def profile():
    return Engine.solve(model=Models.ResNet50, hardware=A100)


@pytest.fixture(scope="module")
def serving():
    return Engine.serve(model="Llama3_8B", hardware="H100", batch_size=8, prompt_tokens=1000)


@pytest.fixture(scope="module")
def pair():
    return System("Two A100", A100, devices=2, link_bandwidth="300 GB/s")


@pytest.mark.parametrize(
    ("name", "unit", "form", "text"),
    [
        ("latency", "", "", "55.5 µs"),
        ("latency", "us", ".1f", "55.5 µs"),
        ("latency", "ms", ".3f", "0.055 ms"),
        ("memory_bound_share", "%", ".0f", "84 %"),
        ("throughput", "", "", "18,024"),
        ("throughput", "", ",.1f", "18,023.7"),
        ("total_flops", "GFLOP", ".2f", "8.18 GFLOP"),
    ],
)
def test_a_result_is_printed_as_asked(profile, name, unit, form, text) -> None:
    assert str(show(profile, name, unit=unit, form=form)) == text


def test_a_result_carries_its_derivation(profile) -> None:
    number = show(profile)
    assert number.si == profile.value("latency")
    for part in (r"T = \sum_i n_i\, t_i", "55.48 µs", "[@nvidia2022a100]", "2.039 TB/s"):
        assert part in number.origin.how
    assert "and 22 more kinds of operator" in number.origin.how


def test_in_markdown_it_is_a_span_that_reads_as_the_number(profile) -> None:
    number = show(profile, unit="us", form=".1f")
    span = number._repr_markdown_()
    head, _, rest = span.partition("]{.opens opens=")
    assert re.sub(r"`[^`]*`\{=html\}", "", head) == "[55.5\u00a0µs"
    assert unquote(rest.strip('"}')) == number.origin.how


def test_in_a_notebook_it_is_html_that_opens(profile) -> None:
    html = show(profile)._repr_html_()
    assert ">55.5\u00a0µs</button><span popover id=" in html
    for part in (
        "memory_time = bytes_moved / memory_bandwidth",
        "= 3.646 MB / 2.039 TB/s",
        "[Williams et al. 2009]",
        "[NVIDIA 2022]</span>, specification table",
    ):
        assert part in html


def test_no_sentence_and_no_row_breaks_on_it(profile) -> None:
    figure = show(Hardware.Cloud.A100, "memory.bandwidth")
    counted = show(3, "rows", because="counted in `a | b`")
    for number in (show(profile), figure, counted, figure / figure):
        html = number._repr_html_()
        assert "\n" not in html
        assert "`" not in html
        assert "|" not in html
        several = {"b", "br"} if "<br>" in html else set()  # one line alone has no title
        assert set(re.findall(r"</?(\w+)", html)) == {"span", "button"} | several


@pytest.mark.parametrize(
    ("because", "shown"),
    [
        ("[@nvidia2022a100]", "[NVIDIA 2022]"),
        ("as printed [@nvidia2022a100, section 2.1]", "as printed [NVIDIA 2022, section 2.1]"),
        ("[see -@nvidia2022a100, p. 2; @williams2009roofline]",
         "[see NVIDIA 2022, p. 2; Williams et al. 2009]"),
        ("quoted as \\[\\@nvidia2022a100\\]", "quoted as [@nvidia2022a100]"),
        ("of somebody@example.org [sic]", "of somebody@example.org [sic]"),
    ],
)  # fmt: skip
def test_a_note_names_documents_and_says_which_they_are(because: str, shown: str) -> None:
    html = show(3, "rows", because=because)._repr_html_()
    note = html.partition(">rows = 3, ")[2].removesuffix("</span></span>")
    cited = re.findall(r'data-cite="([^"]*)"', note)
    assert re.sub("<[^>]*>", "", note) == shown
    assert [f"[{each}]" for each in cited] == re.findall(r"(?<!\\)\[[^][]*@n[^][]*\]", because)


def test_two_notes_never_share_an_id(profile) -> None:
    number = show(profile)
    first, second = (re.search(r'id="([^"]+)"', number._repr_html_())[1] for _ in range(2))
    assert first != second


def test_for_a_program_it_is_plain_data(profile) -> None:
    data = json.loads(json.dumps(show(profile).to_dict()))
    assert data["unit"] == "s"
    assert data["value"] == pytest.approx(55.48e-6, rel=1e-3)


def test_a_figure_names_its_document() -> None:
    number = show(A100, "memory.bandwidth")
    assert str(number) == "2,039 GB/s"
    assert "[@nvidia2022a100]" in number.origin.how
    assert "“2,039 GB/s”" in number.origin.how
    ridge = show(A100, "ridge_point", form=".0f")
    assert str(ridge) == "153 FLOP/B"
    assert "312 TFLOP/s" in ridge.origin.how


def test_counts_of_a_model() -> None:
    assert str(show(Models.ResNet50, "parameters")) == "25,557,032"
    assert "56 operators" in show(Models.ResNet50, "inference_flops").origin.how


def test_each_result_of_a_service_shows_its_work(serving) -> None:
    for name in RESULTS:
        number = show(serving, name)
        assert number.si == pytest.approx(serving.value(name), rel=1e-15, abs=0), name
        assert number.origin.how.startswith(f"**{serving.explain(name).name} = "), name
        assert "Llama 3.1 8B on NVIDIA H100 SXM 80 GB" in number.origin.how, name
        assert "8 x 1,000 + 128 tokens, bf16, roofline" in number.origin.brief, name


def test_the_latency_of_a_service_is_that_of_all_its_tokens(serving) -> None:
    assert show(serving).si == serving.value("generation_latency")
    encoder = Engine.serve(model="BERT_Base", hardware="T4", precision="fp16")
    assert show(encoder).si == encoder.value("time_to_first_token")


def test_a_phase_of_a_service_shows_its_work(serving) -> None:
    number = show(serving, "decode.total_bytes")
    assert number.si == pytest.approx(serving.decode.value("total_bytes"))
    assert number.origin.how == show(serving.decode, "total_bytes").origin.how
    assert "decode of Llama 3.1 8B" in number.origin.brief
    assert "1,000 new and 0 cached tokens" in show(serving.prefill, "latency").origin.brief
    used = show(serving.decode, "achieved_flops") / show(Hardware.Cloud.H100, "compute.bf16")
    assert used.base == "1"
    assert 0 < float(used) < 1


def test_a_service_on_several_devices_cites_their_link(pair) -> None:
    both = Engine.serve(model="Llama3_8B", hardware=pair, tensor_parallel=2)
    assert "2 x NVIDIA A100 SXM 80 GB of Two A100 (TP2)" in show(both).origin.brief
    assert "link bandwidth" in show(both, "decode.latency").origin.how


def test_figures_of_a_system(pair) -> None:
    assert str(show(pair, "link.bandwidth")) == "300 GB/s"
    assert show(pair, "link.bandwidth").origin.how == "Two A100 link bandwidth: 300 GB/s, given"
    assert show(pair, "device_bandwidth").si == 300e9


def test_a_rate_both_ways_is_halved_in_the_open(tmp_path) -> None:
    text = """key = "Pair"
name = "Pair"
device = "Cloud.A100"
devices = 2
topology = "switch"
source = "nvidia2022a100"
[link.bandwidth]
value = 600
unit = "GB/s"
kind = "datasheet"
source = "nvidia2022a100"
where = "a table"
quote = "600 GB/s"
direction = "both ways"
read = 2026-11-21
"""
    (tmp_path / "pair.toml").write_text(text, encoding="utf-8")
    number = show(resolve.hardware(str(tmp_path / "pair.toml")), "device_bandwidth")
    assert number.si == 300e9
    assert "600 GB/s / 2 = 300 GB/s" in number.origin.how
    assert "600 GB/s both ways, datasheet, [@nvidia2022a100]" in number.origin.how


def test_counts_of_a_language_model() -> None:
    model = Models.Mixtral_8x7B
    assert float(show(model, "parameters")) == model.parameter_count
    share = show(model, "active_parameters") / show(model, "parameters")
    assert float(share) == pytest.approx(12_879_925_248 / 46_702_792_704)
    cache = show(Models.Llama3_8B, "cache_bytes_per_token", unit="KiB", form=".0f")
    assert str(cache) == "128 KiB"
    assert "65,536 elements" in cache.origin.how
    assert f"[@{Models.Llama3_8B.source}]" in cache.origin.how


def test_a_model_of_your_own_names_its_file() -> None:
    model = resolve.model(str(CONFIGS / "llama3-8b.json"))
    how = show(model, "parameters").origin.how
    assert "llama3-8b.json" in how
    assert "[@" not in how


def test_a_measurement_quotes_its_source() -> None:
    row = measurements(model="ResNet50", hardware="T4", precision="fp32")[0]
    assert (str(show(row)), show(row).show(unit="image/s").text) == ("98", "98 image/s")
    assert show(row) == row.published == row.value
    assert f"[@{row.source}]" in show(row).origin.how


def test_a_measured_service_quotes_its_source() -> None:
    row = serving_measurements(model="Llama2_7B", metric="decode_throughput")[0]
    number = show(row)
    assert float(number) == row.value
    assert (number.base, number == row.published) == ("token/s", True)
    assert f"[@{row.source}], in these words: “" in number.origin.how
    ratio = number / row.prediction("roofline")
    assert (ratio.base, isinstance(ratio, float)) == ("1", True)


def test_one_cell_of_a_sweep_can_be_opened() -> None:
    table = Engine.sweep(model="ResNet50", hardware=["A100", "T4"], batch_size=[1, 8])
    row = table.loc[3]
    number = show(row, "throughput")
    assert float(number) == pytest.approx(row.throughput)
    assert "NVIDIA T4" in number.origin.how


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda p: show(p, "latenci"), UnknownNameError, "latency"),
        (lambda p: show(A100, "memory.bandwith"), UnknownNameError, "memory.bandwidth"),
        (lambda p: show(Models.ResNet50, "params"), UnknownNameError, "parameters"),
        (lambda p: show(Models.Llama3_8B, "params"), UnknownNameError, "parameters"),
        (lambda p: show(Models.Llama3_8B, "inference_flops"), UnknownNameError, "parameters"),
        (lambda p: show(Models.BERT_Base, "cache_bytes_per_token"), InvalidValueError, "encoder"),
        (
            lambda p: show(System("Two", A100, devices=2, link_bandwidth="1 GB/s"), "bandwidth"),
            UnknownNameError,
            "link.bandwidth",
        ),
        (lambda p: show(_served(), "latensy"), UnknownNameError, "no result of a service"),
        (lambda p: show(_served(), "decode.latensy"), UnknownNameError, "latency"),
        (lambda p: show(_served(batch_size=[1, 2])), InvalidValueError, "serving[0]"),
        (
            lambda p: show(_served(batch_size=[1, 2]).decode),
            InvalidValueError,
            "serving[0].decode",
        ),
        (lambda p: show(_served(model="Llama3_70B")), DoesNotFitError, "too much"),
        (lambda p: show("55"), InvalidValueError, "not '55'"),
        (lambda p: show(True), InvalidValueError, "not True"),
        (lambda p: show(p, unit="GB"), UnitError, "GB"),
        (
            lambda p: show(Engine.solve(model="ResNet50", hardware="T4", batch_size=10**6)),
            DoesNotFitError,
            "too much",
        ),
        (
            lambda p: show(Engine.solve(model="ResNet50", hardware="T4", batch_size=[1, 2])),
            InvalidValueError,
            "profile[0]",
        ),
    ],
)
def test_bad_input_is_no_number(profile, ask, error, message) -> None:
    with pytest.raises(error) as raised:
        ask(profile)
    assert message in str(raised.value)


def _served(**given):
    return Engine.serve(**{"model": "Llama3_8B", "hardware": A100, **given})


def test_a_number_of_your_own_says_because() -> None:
    number = show(quantity(2, "GB"), "cache", because="twice one gigabyte")
    assert number.text == "2 GB"
    assert number.origin.how == "cache = 2 GB, twice one gigabyte"


def test_a_measured_kernel() -> None:
    number = show(in_place()[0])
    assert (f"{number}", number.si) == ("145 µs", pytest.approx(145e-6))
    assert "AlexNet's first ReLU" in number.origin.how
    assert "@meta2023alexnet" in number.origin.how


def test_an_answer_with_activations_on_chip_says_so() -> None:
    profile = Engine.solve(model="ResNet50", hardware="A100", activations="on-chip")
    assert "roofline, activations on chip" in show(profile).origin.how


def test_a_row_whose_activations_stay_on_chip_is_solved_so_again() -> None:
    table = Engine.sweep(model="ResNet50", hardware="A100", activations="on-chip")
    number = show(table.loc[0])
    assert number.si == pytest.approx(table.latency[0], rel=1e-12)
    assert number < Engine.solve(model="ResNet50", hardware="A100").latency
