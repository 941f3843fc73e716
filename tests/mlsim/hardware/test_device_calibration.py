"""What devices and links were measured to reach: rows, constants, and how well they fit."""

from __future__ import annotations

import csv
import dataclasses
import re
import tomllib
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from kept import FIXTURES
from own_chips import chip

from mlsim import Device, Hardware
from mlsim.equations.calibration import (
    filled_share,
    shared_filled_share,
    shared_waves,
    waves,
)
from mlsim.errors import DataFileError, NotMeasuredError
from mlsim.hardware.device import load_device
from mlsim.hardware.device_calibration import (
    TILE,
    band,
    calibrated_devices,
    calibration,
    filled,
    tiling,
)
from mlsim.hardware.kernel_constants import (
    FILE as RELATIVES,
    LIBRARY,
    MEMORY,
    NOBODY,
    Relatives,
    _memory,
    all_series,
    families,
    kernel_series,
    lend_from,
    relatives,
)
from mlsim.hardware.measured_kernels import (
    FOLDER,
    AllReduceRow,
    AttentionRow,
    InPlaceRow,
    KernelRow,
    LaunchRow,
    ProductRow,
    StreamRow,
    all_reduces,
    in_place,
    launches,
    load,
    products,
    streams,
)

ROWS: tuple[KernelRow, ...] = (
    *products(),
    *streams(),
    *all_reduces(),
    *launches(),
    *in_place(),
)
CALIBRATED = [Hardware.get(key) for key in calibrated_devices()]

each_device = pytest.mark.parametrize("device", CALIBRATED, ids=lambda device: device.key)


@pytest.fixture
def anew() -> None:
    """What a test asks is worked out, whoever asked before."""
    calibration.cache_clear()


# The rows.


def of_id(name: str) -> Any:
    return next(row for row in ROWS if row.id == name)


def test_rows_are_of_the_zoo_and_their_words_hold_their_values() -> None:
    bandwidth = {key: Hardware.get(key).bandwidth_si for key in {row.device for row in ROWS}}
    odd = [
        row.id
        for row in ROWS
        if not 2015 <= row.year <= 2026
        or not (f"{row.value:.10g}" in row.quote or f"{row.value}" in row.quote)
        # No product or stream is faster than the memory.
        or (isinstance(row, ProductRow) and row.bytes_moved / bandwidth[row.device] > row.seconds)
        or (isinstance(row, StreamRow) and row.rate > bandwidth[row.device])
    ]
    assert odd == []
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_rows_by_hand() -> None:
    """4096 cubed at 228.0 TFLOP/s: 2 x 4096^3 / 228e12 = 602.8 us, of three matrices of 2 bytes."""
    row = of_id("GEM-023")
    assert row.seconds == pytest.approx(602.8e-6, rel=1e-4)
    assert row.bytes_moved == 3 * 2 * 4096**2
    assert of_id("GEM-046").seconds == pytest.approx(3.3655e-3)
    # 1 MiB among 8 at 36.22 GB/s is that of a ring: 7/4 x 1,048,576 / 36.22e9 = 50.7 us.
    row = of_id("BW-016")
    assert row.ring_bytes == 1.75 * 2**20
    assert row.seconds == pytest.approx(50.66e-6, rel=1e-3)
    # 64 x 55 x 55 for 128 images of 4 bytes: 99.1 MB, read and written in 145 us: 1.37 TB/s.
    first = in_place()[0]
    assert first.elements == 128 * 64 * 55 * 55
    assert first.tensor_bytes.si == pytest.approx(99.1e6, rel=1e-3)
    assert first.bandwidth.si == pytest.approx(1.367e12, rel=1e-3)
    # 32 x 32 tiles on 108 cores: 10 rounds for 1,024 tiles. One tile more than cores: two rounds.
    # A single row is padded to 16, not to 128: 1/16 of 32 tiles on 108 cores.
    for rows, columns, rounds, share in (
        (4096, 4096, 10, 1024 / 1080),
        (128, 109 * 128, 2, 109 / 216),
        (1, 4096, 1, 32 / 108 / 16),
    ):
        assert waves(rows, columns, TILE, 108) == rounds
        assert filled_share(rows, columns, rounds, 108, TILE) == pytest.approx(share)
    # 130 rows are two tiles of 128, 70 columns one of 80: two tiles on 108 cores, in one round;
    # tiles of 64 take the depth of 4,096 in eight parts.
    lost, small = tiling("Cloud.A100")
    row = dataclasses.replace(of_id("GEM-023"), m=130, n=70, k=4096)
    rounds = shared_waves(130, 70, TILE, 108, lost)
    share = shared_filled_share(130, 70, 4096, rounds, 108, TILE, 512, small)
    assert filled(row, Hardware.Cloud.A100) == pytest.approx(share)
    # A device whose cores nobody counts is full.
    assert {filled(row, Hardware.Cloud.L4) for row in products()} == {1.0}


# Constants of devices.


@pytest.mark.usefixtures("anew")
def test_the_a100_by_hand() -> None:
    """Copy, mul, add, triad, dot: 1.61, 1.61, 1.70, 1.70, 1.75 of 2.039 TB/s."""
    found = calibration(Hardware.Cloud.A100, "fp16")
    assert found.memory_fraction == pytest.approx(1.70 / 2.039)
    assert (found.tile, found.cores, found.kernel_overhead) == (128, 108, 2e-6)
    assert 0.75 < found.compute_fraction < 0.85
    assert "11 products in bf16/fp16; 1 of them the best" in found.origins["compute_fraction"]
    used = {row.id for row in found.rows if isinstance(row, ProductRow)}
    # One row of a matrix takes as long as its weights take to arrive.
    assert ("GEM-046" in used, "GEM-053" in used) == (True, False)
    # GEM-023: 137.44 GFLOP in 602.8 - 2.0 us, of 312 TFLOP/s in 9.48 rounds of ten.
    lost, _ = tiling("Cloud.A100")
    part = 1024 / 108 / (1024 / 108 + lost * (10 - 1024 / 108))
    rate = 137.438953472e9 / (312e12 * part * found.compute_fraction)
    assert found.product_time(of_id("GEM-023")) == pytest.approx(rate + 2e-6)


@each_device
def test_constants_are_made_of_rows(device: Device) -> None:
    for name in set(device.compute.figures) & {"fp16", "bf16", "fp8"}:
        found = calibration(device, name)
        assert 0 < found.compute_fraction <= 1
        assert 0 < found.memory_fraction <= 1
        rates = [row.rate for row in found.rows if isinstance(row, StreamRow)]
        if rates:
            assert found.memory_fraction == pytest.approx(median(rates) / device.bandwidth_si)
        else:
            fitted = kernel_series(device.key, "product", "bf16").values["memory_fraction"]
            assert found.memory_fraction == fitted
        assert {row.device for row in found.rows if not isinstance(row, LaunchRow)} <= {device.key}
        assert {each.constant for each in found.loans} <= {"tiling"}
        for row in found.rows:
            assert row.source in " ".join(found.origins.values())


def test_half_of_the_products_are_within_a_tenth() -> None:
    """But for the RTX 5090, which gains with the size as no other: a quarter."""
    errors = {}
    for device in CALIBRATED:
        found = calibration(device, "fp16")
        rows = [row for row in found.rows if isinstance(row, ProductRow)]
        assert rows or "off by" in found.origins["compute_fraction"]
        if rows:
            errors[device.key] = median(
                abs(found.product_time(row) / row.seconds - 1) for row in rows
            )
    assert 0.1 < errors.pop("Workstation.RTX5090") < 0.26
    assert {key: error for key, error in errors.items() if not 0 <= error <= 0.1} == {}


def test_sixteen_bits_stand_for_each_other_and_for_what_is_not_measured() -> None:
    a100, h100, l4 = Hardware.Cloud.A100, Hardware.Cloud.H100, Hardware.Cloud.L4
    same = [calibration(l4, name).compute_fraction for name in ("fp16", "bf16", "int8")]
    assert len(set(same)) == 1
    assert "same is assumed" not in calibration(l4, "bf16").origins["compute_fraction"]
    assert (
        "no products in int8 are on record, so the same is assumed"
        in (calibration(l4, "int8").origins["compute_fraction"])
    )
    # Of the A100 the atlas has products in int8: 0.8 of the peak, less what starts a tile.
    c = kernel_series("Cloud.A100", "product", "int8").values
    reached = c["compute_fraction"] * 4096 / (4096 + c["depth_start"])
    assert calibration(a100, "int8").compute_fraction == pytest.approx(reached)
    # The H100 has rows in fp8, the L4 has none.
    assert calibration(h100, "fp8").compute_fraction != calibration(h100, "fp16").compute_fraction
    assert calibration(l4, "fp8").compute_fraction == calibration(l4, "fp16").compute_fraction


@pytest.mark.usefixtures("anew")
def test_a_device_without_rows_borrows_from_the_nearest_and_says_so() -> None:
    """The same chip, else the family, else the class: each named, with what a loan is worth."""
    a100, a40gb = (
        calibration(each, "fp16") for each in (Hardware.Cloud.A100, Hardware.Cloud.A100_40GB)
    )
    pcie = calibration(Hardware.Cloud.A100_PCIe, "fp16")
    # Two devices have this chip: the middle of both; streams were measured on one.
    both = (a100.compute_fraction + pcie.compute_fraction) / 2
    assert a40gb.compute_fraction == pytest.approx(both)
    assert a40gb.memory_fraction == a100.memory_fraction
    assert {each.level for each in a40gb.kin.values()} == {"sibling"}
    words = a40gb.origins["compute_fraction"]
    assert "borrowed from Cloud.A100, Cloud.A100_PCIe, of the same chip" in words
    assert "80 % of measured products took 0.8" in words
    assert "the median over 2 devices" in words
    # Own products, and streams of the same chip.
    v100 = calibration(Hardware.Cloud.V100, "fp16")
    own, borrowed = (v100.kin[each].level for each in ("compute_fraction", "memory_fraction"))
    assert (own, borrowed) == ("own", "sibling")
    assert "borrowed from Cloud.V100_32GB" in v100.origins["memory_fraction"]
    assert "over 1 devices" not in v100.origins["memory_fraction"]
    tpu = calibration(Hardware.Cloud.TPUv4, "bf16")
    assert {each.level for each in tpu.kin.values()} == {"class"}
    assert "of a class: accelerators with HBM" in tpu.origins["compute_fraction"]


def test_a_farther_loan_has_a_wider_band() -> None:
    bands = [band(level, "bf16") for level in ("own", "class")]
    (near_low, near_high), (far_low, far_high) = (each for each in bands if each)
    assert near_low < 1 < near_high
    assert near_high / near_low < far_high / far_low
    assert band("nobody", "bf16") is None
    # Formats of 16 bits share one, and who has none takes it; fp8 has the middle of its series.
    assert band("own", "bf16") == band("own", "fp16") == band("own", "fp64")
    series = [each for key, each in all_series().items() if key[1:3] == ("product", "fp8")]
    lows, highs = ([getattr(each.errors["own"], end) for each in series] for end in ("low", "high"))
    assert band("own", "fp8") == (median(lows), median(highs))


def test_what_has_no_relatives_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for device in (chip(fp16="100 TFLOP/s"), Hardware.Wafer.WSE3, Hardware.Server.EPYC9654):
        with pytest.raises(NotMeasuredError) as e:
            calibration(device, device.compute.precisions[0])
        assert f"needs measurements of {device.name}" in str(e.value)
        assert "no relatives either" in str(e.value)
        assert [key for key in calibrated_devices() if key not in str(e.value)] == []
    # Products alone give no share of the memory's rate.
    monkeypatch.setattr("mlsim.hardware.device_calibration.with_streams", tuple)
    with pytest.raises(NotMeasuredError, match="needs measurements of"):
        calibration.__wrapped__(Hardware.Cloud.A100, "fp16")


def test_what_was_measured_oddly_gives_way_to_the_atlas() -> None:
    """Two streams of the H200 reached 0.70 of its bandwidth; its products reach more."""
    found = calibration(Hardware.Cloud.H200, "bf16")
    rates = [row.rate for row in streams() if row.device == "Cloud.H200"]
    assert median(rates) / Hardware.Cloud.H200.bandwidth_si < 0.7
    fitted = kernel_series("Cloud.H200", "product", "bf16").values["memory_fraction"]
    assert found.memory_fraction == fitted > 0.75
    assert "2 streams on record reached 0.70 only" in found.origins["memory_fraction"]
    # One B200 row is the best of a search; the atlas has 29,000 other shapes to fit.
    found = calibration(Hardware.Cloud.B200, "bf16")
    c = kernel_series("Cloud.B200", "product", "bf16").values
    reached = c["compute_fraction"] * 4096 / (4096 + c["depth_start"])
    assert found.compute_fraction == pytest.approx(reached)
    best = next(row for row in products() if row.device == "Cloud.B200")
    assert "search" in best.note
    assert best.flops / best.seconds / 2250e12 > found.compute_fraction


def test_everybody_in_the_table_of_relatives_is_of_the_zoo() -> None:
    """A device is one chip, and of one family at most; who has tensor cores is of a class."""
    for groups in families().values():
        named = frozenset().union(*groups)
        assert named <= set(Hardware.keys())
        assert sum(map(len, groups)) == len(named)
    named = frozenset().union(*families()["classes"])
    units = {each.key: {figure.unit_used for figure in each.figures.values()} for each in Hardware}
    alone = {key for key, used in units.items() if "tensor cores" in used} - named
    assert not alone, f"add {', '.join(sorted(alone))} to a class of {RELATIVES}"
    keys = ("Cloud.A100", "Cloud.A10", "Workstation.RTX3060", "Workstation.M1", "Wafer.WSE3")
    assert [_memory(key) for key in keys] == ["hbm", "gddr", "gddr", "lpddr", ""]


def test_a_class_has_one_kind_of_memory_in_one_place() -> None:
    """What the figures of the zoo call a memory is what its class is called."""
    table = tomllib.loads(RELATIVES.read_text(encoding="utf-8"))["classes"]
    for name, keys in table.items():
        for key in keys:
            device = Hardware.get(key)
            told = " ".join(
                f"{each.quote} {each.where} {each.note}"
                for title, each in device.figures.items()
                if title in ("memory.capacity", "memory.bandwidth")
            )
            kinds = set(re.findall("HBM|LPDDR|GDDR|unified", told))
            kind = {"lpddr": {"LPDDR", "unified"}}.get(name, {name.partition("_")[0].upper()})
            # The GPU of a superchip has a memory of its own beside the processor's.
            assert not kinds or kinds & kind, (key, kinds)
            place = key.partition(".")[0]
            assert (place == "Cloud") is (name in ("hbm", "gddr_data_center")) or (
                key == "Workstation.TitanV"
            )


def test_who_lends_is_of_one_kind_and_of_about_its_years() -> None:
    """No laptop lends to an accelerator of a data center, and no GDDR to HBM."""
    table = tomllib.loads(RELATIVES.read_text(encoding="utf-8"))["classes"]
    memory = {key: name.partition("_")[0] for name, keys in table.items() for key in keys}
    for device in Hardware:
        if device.key not in memory:
            continue
        for loan in calibration(device, device.compute.precisions[-1]).loans:
            lenders = loan.kin.keys
            assert device.key not in lenders
            if loan.constant == "memory_fraction":
                assert {memory[each] for each in lenders} == {memory[device.key]}
            # Tiles are a library's; and what units reach, those of its maker that are as wide.
            if loan.kin.level == "class" and loan.constant == "memory_fraction":
                assert any({device.key, *lenders} <= set(keys) for keys in table.values())
    # The MI300X is of 2023: who came out from 2022 to 2024 lends what memory reaches.
    found = calibration(Hardware.Cloud.MI300X, "bf16").kin["memory_fraction"]
    assert found.keys == (
        *("Cloud.B200", "Cloud.GB200", "Cloud.H100", "Cloud.H100_PCIe", "Cloud.H200"),
    )
    # Of 2017, nobody of whom streams are on record is nearer than a year.
    titan = relatives("Workstation.TitanV", ["Cloud.A100", "Cloud.H100"])
    assert titan == Relatives("class", ("Cloud.A100",))
    # A library's class is everybody of any; a memory is lent to its own kind alone.
    near, far = ["Cloud.A100", "Workstation.M1"], ["Workstation.M1", "Cloud.A10"]
    for key, measured, kind, level, keys in (
        ("Cloud.A100_40GB", near, LIBRARY, "sibling", {"Cloud.A100"}),
        ("Cloud.TPUv4", near, LIBRARY, "class", {*near}),
        ("Cloud.TPUv4", near, MEMORY, "class", {"Cloud.A100"}),
    ):
        found = relatives(key, measured, kind)
        assert found == Relatives(level, tuple(sorted(keys))), (key, kind)
    assert relatives("Cloud.A100", far, MEMORY) is None
    assert relatives("Wafer.WSE3", near, LIBRARY) is None


def test_loans_are_scored_by_letting_nobody_nearer_lend() -> None:
    measured = ["Cloud.A100", "Cloud.A100_PCIe", "Cloud.A40", "Cloud.H100"]
    try:
        assert relatives("Cloud.A100", measured) == Relatives("own", ("Cloud.A100",))
        lend_from("sibling", "device")
        assert relatives("Cloud.A100", measured) == Relatives("sibling", ("Cloud.A100_PCIe",))
        assert relatives("Cloud.A100", measured, what="links").level == "own"
        lend_from("class", "device")
        # Out in 2020: the H100 of 2022 is the nearest that is no nearer relative.
        assert relatives("Cloud.A100", measured) == Relatives("class", ("Cloud.H100",))
        lend_from(NOBODY, "links")
        assert relatives("Cloud.A100", measured, what="links") is None
    finally:
        lend_from("own", "device")
        lend_from("own", "links")


def test_cores_must_be_whole(tmp_path: Path) -> None:
    assert (Hardware.Cloud.A100.cores, Hardware.Cloud.L4.cores) == (108, None)
    source = Path(FOLDER.parents[1] / "hardware" / "a100_sxm_80gb.toml").read_text("utf-8")
    path = tmp_path / "chip.toml"
    path.write_text(source.replace("[cores]\nvalue = 108", "[cores]\nvalue = 107.5"), "utf-8")
    with pytest.raises(DataFileError, match=r"chip\.toml:\d+: cores must be a whole number"):
        load_device(path)


def test_figures_of_a_file_and_what_each_is_measured_in(tmp_path: Path) -> None:
    """What is no such figure, or in another unit, is refused."""
    source = Path(FOLDER.parents[1] / "hardware" / "a100_sxm_80gb.toml").read_text("utf-8")
    path = tmp_path / "chip.toml"
    rest = 'kind = "estimate"\nsource = "nvidia2022a100"\nwhere = "x"\nquote = "7"\n'
    rest += 'read = 2026-11-21\nnote = "An estimate."\n'

    def load_with(name: str, unit: str) -> Any:
        path.write_text(f'{source}\n[{name}]\nvalue = 7\nunit = "{unit}"\n{rest}', "utf-8")
        return load_device(path).figures[name]

    for name, unit, si in (
        *(("one_core.fp32", "GFLOP/s", 7e9), ("one_core.bandwidth", "GB/s", 7e9)),
        *(("one_core.l1", "KiB", 7 * 2**10), ("one_core.l3_bandwidth", "GB/s", 7e9)),
        *(("ceilings.fp64_no_fma", "GFLOP/s", 7e9), ("memory.l3", "MiB", 7 * 2**20)),
        *(("memory.last_level", "MiB", 7 * 2**20), ("memory.l1_bandwidth", "GB/s", 7e9)),
        *(("starts.call", "us", 7e-6), ("starts.kernel", "us", 7e-6)),
        *(("disk.read", "GB/s", 7e9), ("disk.write", "GB/s", 7e9)),
    ):
        assert load_with(name, unit).si == pytest.approx(si), name
        for wrong in ((name, "year"), (f"{name}_of_some", unit)):
            with pytest.raises(DataFileError, match=r"chip\.toml:\d+: "):
                load_with(*wrong)


@pytest.mark.usefixtures("anew")
def test_attention_reaches_a_part_of_its_own() -> None:
    a100 = calibration(Hardware.Cloud.A100, "fp16")
    assert a100.attention_fraction == pytest.approx(179.5 / 312)
    assert "FlashAttention-2" in a100.origins["attention_fraction"]
    # The median of 292, 327.9, 370, 595, 616 and 648 TFLOP/s, of 989.
    h100 = calibration(Hardware.Cloud.H100, "bf16")
    assert h100.attention_fraction == pytest.approx((370 + 595) / 2 / 989)
    # B200, heads of 128: at its peak, and 0.18 ps for each pair of 512 FLOP at 2.25 PFLOP/s.
    b200 = calibration(Hardware.Cloud.B200, "bf16")
    assert b200.attention_fraction == pytest.approx(1 / (1 + 1.8e-13 * 2.25e15 / (4 * 128)))
    words = "fitted, for long prompts and heads of 128: prefill"
    assert words in b200.origins["attention_fraction"]
    # Where nobody measured it, it is taken for a product.
    for device, precision in ((Hardware.Cloud.A40, "fp16"), (Hardware.Cloud.A100, "int8")):
        found = calibration(device, precision)
        assert found.attention_fraction == found.compute_fraction
        assert "that of products is assumed" in found.origins["attention_fraction"]


# Files.


def test_a_bad_row_is_refused(tmp_path: Path) -> None:
    """The first row of a table with other cells."""
    kinds = {"gemm": ProductRow, "bandwidth": StreamRow, "attention": AttentionRow}
    kinds |= {"all_reduce": AllReduceRow, "overhead": LaunchRow, "in_place": InPlaceRow}
    cases = tomllib.loads((FIXTURES / "cases" / "bad_kernel_rows.toml").read_text("utf-8"))
    for kind, changes, words in cases["cases"]:
        with (FOLDER / f"{kind}.csv").open(encoding="utf-8", newline="") as file:
            row = {**next(csv.DictReader(file)), **changes}
        path = tmp_path / f"{kind}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows((row, row.values()))
        with pytest.raises(DataFileError) as e:
            load(path, kinds[kind])
        assert f"{path}:2: " in str(e.value)
        assert words in str(e.value), changes
