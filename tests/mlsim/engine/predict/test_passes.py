"""Cases of models at work: each is one question to a door, and plain arithmetic around it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from mlsim import Engine, Hardware
from mlsim.engine.predict import QUESTIONS
from mlsim.engine.predict.case import Case, cluster_of, reason, system_of
from mlsim.engine.predict.inference import MOST_SEQUENCES
from mlsim.errors import InvalidValueError
from mlsim.zoo import resolve

CELLS = {"model": "llama3-8b", "device": "H100-SXM", "w_dtype": "bf16", "kv_dtype": "bf16"}
CELLS |= {"batch": "6", "input_len": "300", "output_len": "40"}
ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "precision": "bf16"}
ASKED |= {"batch_size": 6, "prompt_tokens": 300, "output_tokens": 40}


def case(extra: dict[str, Any] | None = None, **cells: str) -> Case:
    return Case({**CELLS, "extra": json.dumps(extra or {}), **cells})


def value(kind: str, estimate: str, found: Case, metric: str | None = None) -> Any:
    questions = QUESTIONS[kind]
    return questions[metric or next(iter(questions))](found, estimate)


def served(name: str, estimate: str, **other: Any) -> float:
    return float(Engine.serve(**{**ASKED, "estimate": estimate, **other}).value(name))


@pytest.mark.parametrize("estimate", ["calibrated", "roofline", "bound"])
def test_a_service_is_asked_once_and_its_rates_are_arithmetic(estimate: str) -> None:
    first, decoding = (
        served(each, estimate) for each in ("time_to_first_token", "decode_throughput")
    )
    assert value("ttft", estimate, case()) == pytest.approx(first, rel=1e-12)
    assert value("decode", estimate, case()) == pytest.approx(decoding, rel=1e-12)
    whole = served("output_throughput", estimate)
    for kind in ("static_gen", "serve_offline", "serve_steady"):
        assert value(kind, estimate, case()) == pytest.approx(whole, rel=1e-12)
    # Six sequences of 40 new tokens.
    assert value("gen_e2e", estimate, case()) == pytest.approx(6 * 40 / whole, rel=1e-12)
    for cells, software in (
        ({}, "engine"),
        ({"sw_class": "vllm"}, "vllm"),
        ({"sw_class": "vllm", "software": "vLLM 0.14.0"}, "vllm_async"),
    ):
        own = {"software": software} if estimate == "calibrated" else {}
        rate = served("decode_throughput", estimate, **own)
        assert value("decode", estimate, case(**cells)) == rate, software
    # 300 tokens of each of six prompts, until the first token; and 300 more behind 500.
    prompt = served("time_to_first_token", estimate, output_tokens=1)
    assert value("prefill", estimate, case()) == pytest.approx(1800 / prompt, rel=1e-9)
    long, short = (
        served("time_to_first_token", estimate, output_tokens=1, prompt_tokens=each)
        for each in (800, 500)
    )
    deep = value("prefill", estimate, case({"depth": 500}))
    assert deep == pytest.approx(1800 / (long - short), rel=1e-9)


def test_an_encoder_passes_all_of_its_batch_at_once() -> None:
    """18 texts of 512 tokens are more than a chunk of 8,192; three devices have such a batch each."""
    cells = {"model": "bert-large", "device": "A100-80", "input_len": "512", "a_dtype": "fp16"}
    cells |= {"batch": "18", "w_dtype": "fp16", "kv_dtype": ""}
    own = {"model": "BERT_Large", "hardware": "A100", "batch_size": 18, "prompt_tokens": 512}
    own |= {"output_tokens": 0, "precision": "fp16"}
    found = Engine.serve(**own, chunk_tokens=18 * 512).value("time_to_first_token")
    asked = case(**cells)
    assert value("enc_infer", "roofline", asked, "latency_s") == pytest.approx(found, rel=1e-12)
    three = value("enc_infer", "roofline", case(**cells, count="3"))
    assert three == pytest.approx(3 * 18 / found, rel=1e-12)


def test_devices_of_a_case() -> None:
    """Two copies on two devices each take seven sequences as eight; experts may spread wider."""
    four: dict[str, Any] = {"hardware": system_of(Hardware.Cloud.H100, 4)}
    pairs = {**four, "batch_size": 8, "tensor_parallel": 2, "data_parallel": 2}
    experts = {"model": "Mixtral_8x7B", "expert_parallel": 4}
    mixed = {"model": "mixtral-8x7b", "batch": "8", "ep": "4", "count": "4"}
    seven, uncounted = case(batch="7", tp="2", dp="2", count="4"), case(batch="8", tp="2", dp="2")
    for given, asked in (
        (seven, pairs),
        # Without a count, as many as the layout needs.
        (uncounted, pairs),
        (case(tp="2", pp="2"), {**four, "tensor_parallel": 2, "pipeline_parallel": 2}),
        (case(tp="1", count="4", extra={"layer_split": 1}), {**four, "pipeline_parallel": 4}),
        (case(**mixed, tp="2"), {**pairs, **experts}),
        (case(**mixed, tp="4"), {**pairs, **experts, "tensor_parallel": 4, "data_parallel": 1}),
    ):
        expected = served("decode_throughput", "roofline", **asked)
        assert value("decode", "roofline", given) == expected, asked
    assert "7 sequences on 2 copies counted as 8" in seven.notes
    assert not any("copies" in each for each in uncounted.notes)


def test_what_a_case_says_of_sequences_and_formats() -> None:
    eight = {"precision": None, "weights": "fp8", "activations": "fp8", "kv_cache": "fp16"}
    for cells, asked, notes in (
        ({"batch": "5.6"}, {}, ["an average of 5.6 sequences counted as 6"]),
        ({"batch": "0.3"}, {"batch_size": 1}, ["an average of 0.3 sequences counted as 1"]),
        *(({"input_len": each}, {"prompt_tokens": 1}, None) for each in "01"),
        # Activations like weights, and a cache of 16 bits, unless it is said.
        ({"w_dtype": "fp8", "kv_dtype": ""}, eight, ["kv_dtype not stated: KV cache in fp16"]),
        ({"kv_dtype": ""}, {}, []),
        # 4.5 bits of a weight are 9/16 of a byte.
        ({"w_bits": "4.5"}, {"bytes_per_parameter": "0.5625 B/parameter"}, None),
        *(({"w_bits": each}, {}, None) for each in ("16", "0")),
    ):
        given = case(**cells)
        expected = served("decode_throughput", "roofline", **asked)
        assert value("decode", "roofline", given) == expected, cells
        assert notes is None or given.notes[:1] == notes, given.notes


def test_beams_are_decoded_and_one_of_each_counted() -> None:
    """A time t of the batch, t1 until its first token: of 4 beams, total/4 in t - t1 + t1/4."""
    found = Engine.serve(**ASKED, estimate="roofline")
    rate, first = (found.value(each) for each in ("output_throughput", "time_to_first_token"))
    total = 6 * 40
    expected = total / 4 / (total / rate - first + first / 4)
    four = case({"beam": 4})
    assert value("serve_offline", "roofline", four) == pytest.approx(expected, rel=1e-12)
    assert "4 beams a request, of which one is counted" in four.notes
    bound = value("serve_offline", "bound", case({"beam": 4}))
    assert bound == served("output_throughput", "bound")


def test_as_many_as_fit_are_at_work_where_nobody_says() -> None:
    """24 GB L4, 22.5 GiB or so to use: the cache of 340 tokens in what 16 GB of weights leave."""
    asked = {"device": "L4", "batch": "", "sw_class": "vllm"}
    own = {**ASKED, "hardware": "L4", "batch_size": 1}
    most = int(Engine.serve(**own).value("largest_batch"))
    assert 20 < most < MOST_SEQUENCES
    alone = case(**asked)
    whole = served("output_throughput", "roofline", hardware="L4", batch_size=most)
    assert value("serve_offline", "roofline", alone) == whole
    assert alone.notes[0] == f"batch {most:,}: what the memory holds, at most 2,048 a copy"
    # Room for thousands: two copies take 2,048 each.
    wide = case(batch="", device="B200", input_len="20", dp="2", count="2")
    value("serve_offline", "roofline", wide)
    assert wide.notes[0].startswith("batch 4,096: ")
    with pytest.raises(InvalidValueError, match=r"not one sequence of .* fits on 1 x NVIDIA L4"):
        value("serve_offline", "roofline", case(**asked, model="llama3-70b"))


def test_memory_of_a_service_in_gigabytes_and_sequences() -> None:
    """131,072 bytes of cache a token: 300 and 40 tokens of six sequences, 16.06 GB of weights."""
    service = Engine.serve(**ASKED)
    found = value("memory", "roofline", case())
    assert found == f"{service.value('memory_required') / 1e9:.6g}"
    assert float(found) == pytest.approx(16.0605 + 6 * 340 * 131072 / 1e9, rel=0.02)
    assert value("memory", "roofline", case(batch="100000")) == "OOM"
    # Blocks of 16 tokens: 301 take 304.
    one = Engine.serve(**{**ASKED, "batch_size": 1, "output_tokens": 1})
    found = value("memory", "roofline", case(), "max_concurrency_2048_tokens")
    assert found == pytest.approx(one.value("memory_free") / (304 * 131072), rel=0.01)


def test_energy_of_a_token_is_the_devices_alone() -> None:
    load = Engine.serve(**ASKED, estimate="calibrated").load()
    place = Engine.footprint(load, grid="Poland", data_centre="Google", host=False)
    expected = place.value("device_energy") / load.tokens
    assert value("tok_energy", "calibrated", case()) == pytest.approx(expected, rel=1e-12)
    # Between what an H100 draws idle and its limit of 700 W.
    watts = expected * served("output_throughput", "calibrated")
    assert 60 < watts <= 700
    with pytest.raises(InvalidValueError, match="a power has no bound"):
        value("tok_energy", "bound", case())


NETWORK = {"model": "resnet50", "device": "A100-80", "a_dtype": "fp16", "w_dtype": ""}


def network(batch: int, **other: Any) -> float:
    asked = {"model": "ResNet50", "hardware": "A100", "batch_size": batch, "precision": "fp16"}
    return float(Engine.solve(**asked, **other).value("latency"))


def test_a_network_has_a_batch_on_each_device() -> None:
    three = case(**{**NETWORK, "batch": "12", "count": "3"})
    assert value("cnn_infer", "roofline", three, "latency_s") == network(12)
    assert value("cnn_infer", "roofline", three) == pytest.approx(36 / network(12), rel=1e-12)
    eager = case(**{**NETWORK, "batch": "12", "sw_class": "eager"})
    assert value("cnn_infer", "calibrated", eager) == 12 / network(
        12, estimate="calibrated", software="eager"
    )
    # A case is answered, however much memory it would need.
    huge = case(**{**NETWORK, "batch": "7000000"})
    assert value("cnn_infer", "roofline", huge, "latency_s") == network(
        7_000_000, check_memory=False
    )
    # In the format of its weights where that of activations is not said, else in fp16.
    for other, precision in (({"w_dtype": "int8"}, "int8"), ({}, "fp16")):
        asked = case(**{**NETWORK, "a_dtype": "", "batch": "12", **other})
        alone = Engine.solve("ResNet50", "A100", batch_size=12, precision=precision)
        assert value("cnn_infer", "roofline", asked, "latency_s") == alone.value("latency")


def test_whoever_may_choose_takes_the_fastest_batch() -> None:
    cells = {**NETWORK, "batch": "12", "count": "3", "sw_class": "engine", "assumed": "batch 12"}
    on_chip = {"estimate": "calibrated", "software": "engine", "activations": "on-chip"}
    rates = {each: each / network(each, **on_chip) for each in (1, 2, 4, 8)}
    chosen = case(**cells)
    assert value("cnn_infer", "calibrated", chosen) == pytest.approx(3 * max(rates.values()))
    best = max(rates, key=lambda each: rates[each])
    assert f"batch not stated: the fastest up to 12, {best}" in chosen.notes
    # Not where it is said, of another program, or of another estimate.
    plain = 36 / network(12, estimate="calibrated", software="engine")
    assert value("cnn_infer", "calibrated", case(**{**cells, "assumed": ""})) == plain
    assert value("cnn_infer", "roofline", case(**cells)) == 36 / network(12)
    eager = case(**{**cells, "sw_class": "eager"})
    started = network(12, estimate="calibrated", software="eager")
    assert value("cnn_infer", "calibrated", eager) == pytest.approx(36 / started)


def test_what_is_not_stated_is_one() -> None:
    encoder = {"model": "bert-large", "device": "A100-80", "w_dtype": "fp16", "kv_dtype": ""}
    for kind, cells, names in (
        ("ttft", {}, ("batch", "tp", "pp", "dp", "ep", "count", "output_len")),
        ("prefill", {}, ("batch", "tp")),
        ("enc_infer", encoder, ("batch", "count")),
        ("cnn_infer", NETWORK, ("batch", "count")),
    ):
        for name, metric in product(names, QUESTIONS[kind]):
            left_out, stated = (
                value(kind, "roofline", case(**{**cells, "batch": "1", name: each}), metric)
                for each in ("", "1")
            )
            assert left_out == stated, (kind, name, metric)


def test_numbers_have_limits() -> None:
    """The largest is allowed, anything above is a slip; 0 where it may be."""
    for cell, least in (("batch", "0"), ("input_len", "")):
        assert case(**{cell: "1e15"}).number(cell) == 1e15
        with pytest.raises(InvalidValueError, match=r"must be at most 1e\+15"):
            case(**{cell: "1.0001e15"}).number(cell)
        with pytest.raises(InvalidValueError, match=r"must be positive|is empty"):
            case(**{cell: least}).number(cell)
        with pytest.raises(InvalidValueError, match=r"whole number, not 2\.5"):
            case(**{cell: "2.5"}).whole(cell)
        assert case(**{cell: "0"}).whole(cell, zero=True) == 0
        assert case({cell: 0}).more_whole(cell, zero=True) == 0
        assert case({}).more(cell, 7) == 7
        assert case({cell: "3"}).more_whole(cell) == 3
        for ask in (Case.more, Case.more_whole):
            with pytest.raises(InvalidValueError, match="must be positive"):
                ask(case({cell: 0}), cell)


def test_devices_are_joined_as_in_a_machine() -> None:
    for device, devices, key, rate in (
        # As in its machine, however few; NVLink is 600 GB/s both ways.
        ("A100", 3, "3 x Cloud.A100", 300e9),
        ("A100", 8, "HGX_A100", 300e9),
        # No machine has so many: its own first link.
        ("A100", 9, "9 x Cloud.A100", 300e9),
        ("L4", 2, "2 x Cloud.L4", 31.5e9),
        # Of a mesh each has links to each, so it stays what it is: two of eight talk over one
        # of seven links of 64 GB/s.
        ("MI300X", 2, "MI300X_Platform", 64e9),
        # The smallest of three slices.
        ("TPUv4", 32, "TPUv4_64", None),
        ("P100", 2, "2 x Cloud.P100", 80e9),
    ):
        found = system_of(resolve.device(device), devices)
        assert found.key == key
        assert rate is None or found.link_bandwidth(devices) == rate
        assert found.devices >= devices


def test_nodes_of_a_cluster() -> None:
    """4,500 need 563 nodes of eight."""
    for device, devices, key, total in (
        ("A100", 3, "HGX_A100", 8),
        ("A100", 8, "HGX_A100", 8),
        ("A100", 9, "Selene", 4480),
        ("A100", 4480, "Selene", 4480),
        ("A100", 4500, "4500 of Selene", 4504),
        ("L4", 8, "8 x Cloud.L4", 8),
        ("TPUv4", 64, "TPUv4_64", 64),
        ("TPUv4", 65, "TPUv4_3072", 3072),
    ):
        found = cluster_of(resolve.device(device), devices)
        assert (found.key, found.devices) == (key, total)
    with pytest.raises(InvalidValueError, match=r"no cluster of NVIDIA L4 .* joins 1,009 of them"):
        cluster_of(resolve.device("L4"), 1009)
    with pytest.raises(InvalidValueError, match=r"no link of .* on record to join 2 of it"):
        system_of(resolve.device("TPUv2"), 2)
    assert case().system(1) is case().cluster(1) is resolve.device("H100")


def test_a_reason_is_a_line_of_at_most_300_characters_and_a_note_is_kept_once() -> None:
    assert reason(InvalidValueError("two\n  lines")) == "two lines"
    found = case()
    for words in ("one", "", "one", "two"):
        found.note(words)
    assert found.notes == ["one", "two"]
    assert reason(KeyError()) == "KeyError: KeyError"
    assert reason(ValueError("x" * 400)) == "ValueError: " + "x" * 288
