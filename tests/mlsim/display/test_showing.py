"""Values by name: what `show` finds, what it carries and how it opens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import kept
import pytest
import refusals

from mlsim import Clusters, Engine, Hardware, Models, System, Training, show
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.hardware.measured_kernels import in_place
from mlsim.measured import (
    failures,
    measurements,
    power_measurements,
    prices,
    published_runs,
    serving_measurements,
    training_measurements,
)
from mlsim.solvers.serving.steps import RESULTS
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


def test_a_result_is_printed_as_asked(profile) -> None:
    for name, unit, form, text in kept.cases("shown.toml"):
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


def test_a_note_names_documents_and_says_which_they_are() -> None:
    for because, shown in kept.cases("shown.toml", "notes"):
        html = show(3, "rows", because=because)._repr_html_()
        note = html.partition(">rows = 3, ")[2].removesuffix("</span></span>")
        cited = re.findall(r'data-cite="([^"]*)"', note)
        assert re.sub("<[^>]*>", "", note) == shown
        assert [f"[{each}]" for each in cited] == re.findall(r"(?<!\\)\[[^][]*@n[^][]*\]", because)


def test_two_notes_never_share_an_id_and_a_program_gets_plain_data(profile) -> None:
    number = show(profile)
    first, second = (re.search(r'id="([^"]+)"', number._repr_html_())[1] for _ in range(2))
    assert first != second
    data = json.loads(json.dumps(number.to_dict()))
    assert (data["unit"], data["value"]) == ("s", pytest.approx(55.48e-6, rel=1e-3))


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
    (tmp_path / "pair.toml").write_text(kept.text("pair_both_ways.toml"), encoding="utf-8")
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


def test_bad_input_is_no_number(profile, serving, pair) -> None:
    served, network = ({"hardware": "T4", "model": each} for each in ("Llama3_8B", "ResNet50"))
    two = Engine.serve(**served | {"hardware": A100}, batch_size=[1, 2])
    there = {"profile": profile, "A100": A100, "pair": pair, "serving": serving, "two": two}
    there |= {"two decoded": two.decode, "too much": Engine.serve(**served)}
    there |= {"too many": Engine.solve(**network, batch_size=10**6)}
    there |= {"profiles": Engine.solve(**network, batch_size=[1, 2])}

    def ask(what: object, **given: str) -> object:
        found = there.get(what, what) if isinstance(what, str) else what
        return show(
            getattr(Models, what[7:]) if f"{what}".startswith("Models.") else found, **given
        )

    assert refusals.answered(ask, "shown") == []


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


@pytest.fixture(scope="module")
def run() -> Training:
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
    return Engine.train(**asked, shard="zero3", recompute="full", tokens=1e12)


def test_a_run_shows_its_step(run: Training) -> None:
    number = show(run)
    assert number.si == run.value("step_time")
    assert "training Llama 3.1 8B on 8 x NVIDIA H100" in number.origin.brief
    assert "narayanan2021megatron" in number.origin.how
    days = show(run, "training_time", unit="day", form=".0f")
    assert str(days) == f"{run.value('training_time') / 86400:.0f} d"


def test_a_footprint_shows_its_energy(run: Training) -> None:
    found = Engine.footprint(run, grid="Germany", data_centre="Google", embodied=False)
    carbon = show(found, "operational_carbon", unit="tCO2e", form=".2f")
    assert str(carbon).endswith("tCO2e")
    assert show(found).si == pytest.approx(found.value("facility_energy"))
    assert "Germany" in show(found).origin.brief


def test_a_range_is_shown_by_its_ends(run: Training) -> None:
    found = Engine.footprint(run, grid="Germany", pue=(1.1, 1.3), embodied=False)
    with pytest.raises(InvalidValueError, match=r"show\(footprint\.high, 'facility_energy'\)"):
        show(found)
    assert show(found.high).si == pytest.approx(show(found.low).si * 1.3 / 1.1)


def test_published_rows_carry_their_words() -> None:
    hours = next(row for row in published_runs() if row.metric == "device_hours")
    number = show(hours)
    assert f"[@{hours.source}]" in number.origin.brief
    assert hours.quote[:10] in number.origin.how or "in these words" in number.origin.how
    step = training_measurements(series="megatron_tab5")[0]
    assert str(show(step)) == "1.42 s"
    power = next(row for row in power_measurements() if row.metric == "device_power")
    assert str(show(power)).endswith("W")
    assert str(show(prices(device="A100", provider="Lambda")[0])) == "2.79 USD/h"


def test_failures_and_clusters() -> None:
    row = failures()[0]
    assert str(show(row, "failures")) == "419"
    assert show(row).si == pytest.approx(row.mean_time_to_failure.to("s").magnitude)
    with pytest.raises(UnknownNameError, match="faults"):
        show(row, "faults")
    assert str(show(Clusters.Selene, "link.bandwidth")) == "200 Gb/s"
    assert str(show(Clusters.Selene, "devices")) == f"{Clusters.Selene.devices:,}"
    with pytest.raises(UnknownNameError, match=r"link\.bandwith"):
        show(Clusters.Selene, "link.bandwith")


def test_the_optimal_size_opens() -> None:
    size = Engine.optimal_size(training_flops="5.88e23 FLOP")
    assert float(show(size)) == pytest.approx(70e9)
    assert "hoffmann2022training" in show(size, "optimal_tokens").origin.how
