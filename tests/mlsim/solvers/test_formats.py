"""Which number format holds what, and in which one a product computes."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from own_chips import chip
from sampled import sampled

from mlsim import Engine, Hardware
from mlsim.errors import InvalidValueError, UnknownNameError, UnsupportedPrecisionError
from mlsim.precision import precision
from mlsim.solvers.formats import Formats, formats
from mlsim.workloads.model import Released
from mlsim.zoo.spaces import Models

ANY = chip(bf16="1 TFLOP/s", fp8="2 TFLOP/s", int8="2 TOP/s", fp32="0.5 TFLOP/s")


GROUPED = "int4 in groups of 128"
PARTS, T = ("router", "experts", "gate"), "1 TFLOP/s"


def names(found: Formats) -> tuple[str, str, str]:
    return found.weights.name, found.activations.name, found.kv_cache.name


def test_short_names() -> None:
    for short, expected in (
        *(("bf16", ("bf16",) * 3), ("fp8", ("fp8",) * 3), ("mxfp4", ("mxfp4",) * 3)),
        *(("w4a16", (GROUPED, "bf16", "bf16")), ("W4A16", (GROUPED, "bf16", "bf16"))),
        *(("w8a8", ("int8", "int8", "bf16")), ("w8a8kv8", ("int8",) * 3)),
        *(("w4a8kv4", (GROUPED, "int8", "int4")), ("w16a16kv8", ("bf16", "bf16", "int8"))),
    ):
        assert names(formats(short)) == expected


def test_one_format_set_apart() -> None:
    assert names(formats("bf16", weights="int4")) == (GROUPED, "bf16", "bf16")
    assert names(formats("bf16", activations="fp8")) == ("bf16", "fp8", "bf16")
    assert names(formats("w8a8", kv_cache="fp8")) == ("int8", "int8", "fp8")
    assert names(formats(precision("fp8"), weights=precision("nvfp4"))) == ("nvfp4", "fp8", "fp8")


def test_a_name_for_all_or_one_for_each() -> None:
    assert formats("bf16").name == "bf16"
    assert formats("w16a16").name == "bf16"
    assert formats("w4a16").name == f"weights {GROUPED}, activations bf16, KV cache bf16"
    assert formats("bf16", kv_cache="fp8").name == "weights bf16, activations bf16, KV cache fp8"


def test_no_format_of_that_name() -> None:
    for name in ("fp7", "w8", "a8w8", "w8a8kv", "", 16, ["fp8"], {"bf16"}):
        with pytest.raises(UnknownNameError, match="no precision is called") as e:
            formats(name)
        assert repr(name) in str(e.value)
        with pytest.raises(UnknownNameError, match="no precision is called"):
            formats("bf16", kv_cache=name)
    for short, bits in (("w3a16", 3), ("w4a32", 32), ("w8a8kv2", 2)):
        with pytest.raises(InvalidValueError) as refused:
            formats(short)
        words = f"precision {short!r}: bits must be 4, 8 or 16, not {bits}."
        assert str(refused.value) == words


def test_16_bits_are_what_the_device_has() -> None:
    """16 bits are bf16, or fp16 where a device has no bf16; a name is taken by its word."""
    for short, device, expected in (
        *((None, None, ("bf16",) * 3), (None, "A100", ("bf16",) * 3), (None, "T4", ("fp16",) * 3)),
        *(("w4a16", "T4", (GROUPED, "fp16", "fp16")), ("w8a8", "T4", ("int8", "int8", "fp16"))),
        *(("W16A16KV8", "V100", ("fp16", "fp16", "int8")), ("bf16", "T4", ("bf16",) * 3)),
        *(("w8a8", "H100", ("int8", "int8", "bf16")), ("fp16", "H100", ("fp16",) * 3)),
    ):
        found = formats(short, device=Hardware.find(device) if device else None)
        assert names(found) == expected


def test_a_product_takes_the_wider_of_its_factors() -> None:
    """Of matrices, of attention, and of what is kept wide."""
    wide, eight = ("bf16", "bf16", "bf16"), ("int8", "int8", "bf16")
    for short, kv_cache, expected in (
        *(("bf16", None, wide), ("fp32", None, ("fp32",) * 3)),
        # Weights only: they are widened before the product.
        *(("w4a16", None, wide), ("w8a16", "fp8", wide)),
        # Weights and activations: matrices compute in 8 bits; what is kept in 16, in 16.
        *(("fp8", None, ("fp8", "fp8", "bf16")), ("fp8", "bf16", ("fp8", "bf16", "bf16"))),
        *(("w8a8", None, ("int8", "bf16", "bf16")), ("w8a8kv8", None, eight)),
        ("w4a8", "int8", eight),
        # The cache only: queries are in 16 bits.
        ("bf16", "fp8", wide),
    ):
        found = formats(short, kv_cache=kv_cache).computing(ANY)
        assert tuple(each.name for each in found) == expected, (short, kv_cache)
    # Of two that are as wide it is that of the activations; without bf16, fp16 is kept.
    assert formats("bf16", weights="fp16").computing(ANY)[0].name == "bf16"
    bare = formats("int8").computing(chip(fp16="1 TFLOP/s", int8="2 TFLOP/s"))
    assert [each.name for each in bare] == ["int8", "int8", "fp16"]


def test_what_was_released_is_taken_as_far_as_the_device_computes_in_it() -> None:
    """Weights stay as they are; products, the cache and what is apart fall back to 16 bits."""
    apart = tuple(zip(PARTS, map(precision, ("bf16", "fp8", "fp32")), strict=True))
    said = {"activations": "fp8", "kv_cache": "int8", "operators": apart, "where": "a file"}
    released = Released(weights=precision("nvfp4"), **said)
    for device, activations, cache, router, of_each in (
        (chip(bf16=T, fp8=T, fp32=T), "fp8", "bf16", "bf16", ["bf16", "fp8", "bf16"]),
        (chip(fp16=T, int8=T), "fp16", "int8", "fp16", ["fp16"] * 3),
    ):
        found = formats(None, device=device, released=released)
        assert names(found) == ("nvfp4", activations, cache)
        assert [each.name for _, each in found.apart] == [router, "fp8", "fp32"]
        computing = found.computing_apart(device)
        assert [computing[name].name for name in PARTS] == of_each
        assert found.why.endswith("as it was released (a file)")
    # Where no device decides, all of it is taken; what is given takes its place.
    assert names(formats(None, released=released)) == ("nvfp4", "fp8", "int8")
    assert names(formats(None, kv_cache="fp8", released=released)) == ("nvfp4", "fp8", "fp8")
    assert names(formats(None, activations="bf16", released=released)) == ("nvfp4", "bf16", "int8")


def test_scales_shared_by_a_block_compute_as_their_values_do() -> None:
    linear, _, kept = formats("nvfp4", kv_cache="fp8").computing(Hardware.Cloud.B200)
    assert (linear.name, linear.computes_as, kept.name) == ("nvfp4", "fp4", "bf16")


def test_a_format_that_the_device_cannot_compute_in() -> None:
    for device, short in (("A100", "fp8"), ("V100", "bf16"), ("H100", "mxfp4")):
        with pytest.raises(UnsupportedPrecisionError) as e:
            Engine.serve(model="GPT2", hardware=device, precision=short)
        name = Hardware.find(device).name
        assert str(e.value).startswith(f"{name} can't compute in {short}: no peak is on record.")
        assert str(e.value).endswith(
            "set activations= (and with it the arithmetic) to one of these."
        )


def test_8_bits_on_a_device_without_bf16() -> None:
    """On a T4 matrices compute in int8; attention and what is kept wide in fp16."""
    serving = Engine.serve(model="GPT2", hardware="T4", precision="w8a8")
    t4 = Hardware.find("T4").compute
    table = serving.service.table
    names = [operator.name for operator in table]
    found = dict(zip(names, table.extra["peak_flops"], strict=True))
    assert found["queries, keys, values"] == t4.figure("int8").si
    assert found["attention"] == found["output layer"] == t4.figure("fp16").si


# What a format takes in memory.


def test_what_is_kept_wide_by_hand() -> None:
    """Llama 2 7B with 4-bit weights: the matrices of its layers, and the rest in 16 bits.

    Embedding, output layer and norms stay: 2 x 131,072,000 + 65 x 4,096 =
    262,410,240 parameters of 2 B; the other 6,476,005,376 take half a byte, and 20 bits
    of scale and zero point for each 128 of them: 126,484,480 B more.
    """
    model = Models.Llama2_7B
    kept = 2 * 131_072_000 + 65 * 4_096
    assert model.parameter_count - kept == 6_476_005_376
    serving = Engine.serve(model=model, hardware="H100", precision="w4a16")
    groups = 6_476_005_376 // 128
    expected = 6_476_005_376 / 2 + groups * (2 + 1 / 2) + 2 * kept
    assert serving.value("weight_memory") == expected == 3_889_307_648
    # In 16 bits nothing differs, and in 32 all is wide.
    assert Engine.serve(model=model, hardware="H100").value("weight_memory") == 6_738_415_616 * 2
    wide = Engine.serve(model=model, hardware="H100", precision="fp32")
    assert wide.value("weight_memory") == 6_738_415_616 * 4


def test_only_experts_are_quantised_where_the_model_says_so() -> None:
    """gpt-oss-20b: 24 layers x 32 experts in MXFP4, all else in 16 bits.

    Of 20,914,757,184 parameters 24 x 32 x 3 x 2,880^2 = 19,110,297,600 are
    weights of experts; their biases are released in bf16, as all else.
    """
    model = Models.GPT_OSS_20B
    experts = 24 * 32 * 3 * 2_880 * 2_880
    assert experts == 19_110_297_600
    serving = Engine.serve(model=model, hardware="H100", precision="bf16", weights="mxfp4")
    rest = model.parameter_count - experts
    assert serving.value("weight_memory") == experts * 4.25 / 8 + rest * 2
    # The checkpoint has 12.8 GiB, in OpenAI's model card as fitmygpu.com quotes it.
    assert serving.value("weight_memory") / 2**30 == pytest.approx(12.8, abs=0.1)


def test_a_router_stays_wide() -> None:
    serving = Engine.serve(model="Mixtral_8x7B", hardware="B200", precision="fp8")
    row = {each["name"]: each for each in serving.prefill.operators}
    # 4,096 x 8 weights of 2 B, and 4,104 elements of 1 B for each of 512 tokens.
    assert row["router"]["bytes_moved"] == 2 * 4_096 * 8 + 512 * 4_104


def test_more_bits_are_never_faster_or_smaller() -> None:
    """Nor is narrower arithmetic slower."""
    models, sizes = ("Llama3_8B", "Mixtral_8x7B", "GPT_OSS_20B", "DeepSeek_V3"), (1, 17, 256)
    ladder, whole = ("int4", "mxfp4", "nvfp4", "int8", "bf16"), ("fp8", "bf16", "fp32")
    asked = itertools.product(models, ("roofline", "bound"), sizes, (1, 4000))
    for model, estimate, batch, prompt in sampled(asked, 12):
        ask = partial(Engine.serve, model=model, hardware="H100", check_memory=False)
        ask = partial(ask, estimate=estimate, batch_size=batch, prompt_tokens=prompt)
        for part, names in (("weights", ladder), ("kv_cache", ladder), ("precision", whole)):
            found = [ask(**{part: name}) for name in names]
            for name in ("time_to_first_token", "time_per_output_token", "memory_required"):
                values = [each.value(name) for each in found]
                assert values == sorted(values), (model, part, name)
