"""A machine whose rates are known, measured: what is found, what is refused, what is saved."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from pathlib import Path

import pytest
from made_machine import CACHES, MACHINE, PRODUCTS, RATES, START, MadeMachine

from mlsim import Engine, Hardware
from mlsim.errors import DataFileError, InvalidValueError, NotMeasuredError, UnknownNameError
from mlsim.hardware.device_files import load_device
from mlsim.profiling import Measurement, measure
from mlsim.profiling.measuring.device_file import device_text
from mlsim.profiling.measuring.rounds import FEWEST_ROUNDS, MOST_ROUNDS, judged
from mlsim.profiling.measuring.whole import _no_slower_together, measure_cpu
from mlsim.zoo.catalogue import as_dict, as_text
from mlsim.zoo.review.file_report import validate_file


def measured(made: MadeMachine, seconds: float = 1e6, **options: bool) -> Measurement:
    return measure_cpu(made.numpy, kernels=made, deadline=made.now + seconds, disk=False, disk_folder=None,
        say=lambda _: None, today=datetime.date(2026, 11, 23), clock=made.clock,
        machine=MACHINE, worker=made.worker, waits=made.waits, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def found() -> Measurement:
    return measured(MadeMachine())


def test_rates_are_those_of_the_machine(found: Measurement) -> None:
    assert found.figures["memory.bandwidth"].value == pytest.approx(RATES[-1], rel=0.01)
    assert found.figures["memory.l1_bandwidth"].value == pytest.approx(RATES[0], rel=0.01)
    assert found.figures["one_core.l2_bandwidth"].value == pytest.approx(RATES[1], rel=0.01)
    assert found.figures["starts.call"].value == pytest.approx(START, rel=0.01)
    for name in ("fp64", "fp32", "bf16"):
        assert found.figures[f"compute.{name}"].value == pytest.approx(PRODUCTS[name], rel=0.01)


def test_caches_are_found_within_a_step_of_the_sweep(found: Measurement) -> None:
    for cache in CACHES:
        assert found.figures[f"memory.l{cache.level}"].value == pytest.approx(cache.size, rel=0.2)
    assert found.figures["memory.last_level"].value == found.figures["memory.l2"].value


def test_a_format_without_units_of_its_own_is_no_ceiling(found: Measurement) -> None:
    assert "compute.fp16" not in found.figures
    assert "less than in wider numbers" in found.refused["compute.fp16"]
    assert "compute.int8" in found.refused


def test_intervals_hold_the_figure_and_say_how_sure(found: Measurement) -> None:
    assert found.rounds == 18
    for figure in found.figures.values():
        assert figure.spread.low <= figure.value <= figure.spread.high
        assert figure.spread.confidence >= 0.95
        # A steady machine: half a step of its clock to either side, or of the sizes.
        most = 0.2 if figure.base == "B" else 0.0301
        assert figure.spread.high - figure.spread.low <= most * figure.value, figure.name


def apart(made: MadeMachine) -> list[str]:
    """Return the figures of which the intervals of three runs on one machine do not all meet."""
    runs = [measured(made) for _ in range(3)]
    names = set.intersection(*(set(run.figures) for run in runs))
    assert {"memory.bandwidth", "memory.l2", "compute.fp32", "starts.call"} < names
    return [
        name
        for name in names
        for a, b in itertools.combinations(runs, 2)
        if not a.figures[name].spread.agrees(b.figures[name].spread)
    ]


def test_three_runs_agree_within_their_intervals() -> None:
    """One after the other on one machine; where it drifts, in nine of ten cases or more."""
    assert apart(MadeMachine(noise=0.03)) == []
    drifting = [MadeMachine(0.03, seed, drift=0.015, memory=20.0) for seed in range(6)]
    assert sum(not apart(made) for made in drifting) >= 5


def test_a_noisy_figure_is_left_out_and_said() -> None:
    found = measured(MadeMachine(noisy=("fp32",)))
    assert "compute.fp32" not in found.figures
    assert found.refused["compute.fp32"].startswith("too noisy: its stretches of time ")
    said = str(found)
    assert "products of matrices, fp32: too noisy" in said
    assert "To quiet the machine: close other programs" in said
    assert "compute.fp32" not in found.device.figures


def test_a_machine_that_others_use_says_so(found: Measurement) -> None:
    """Steady work of others makes figures lower, and no interval shows it."""
    assert found.busy == ""
    busy = dataclasses.replace(found, load=3.2)
    assert "3.2 programs wanted its 1 core before" in str(busy)
    assert "To quiet the machine" in str(busy)
    assert "# The machine was busy: 3.2 programs" in device_text(busy)


def test_a_program_that_works_all_the_time_beside_it_is_seen() -> None:
    """It halves every sample alike: the spread is narrow, and a ceiling of half would be wrong."""
    found = measured(MadeMachine(neighbor=0.5))
    assert found.figures == {}
    for name in ("compute.fp32", "memory.bandwidth", "starts.call"):
        assert found.refused[name] == "too noisy: other programs took its cores in 18 of 18 rounds"
    assert found.refused["memory.l1"] == "too noisy: other programs took its cores in every round"
    assert "To quiet the machine" in str(found)
    with pytest.raises(NotMeasuredError, match="other programs took its cores"):
        found.save()


def test_a_measurement_that_can_not_succeed_ends_in_its_time() -> None:
    found = measured(MadeMachine(neighbor=0.5), seconds=1e-3)
    assert found.rounds == 0
    assert found.figures == {}
    assert found.noisy


def test_a_program_that_comes_and_goes_beside_it_changes_no_figure(found: Measurement) -> None:
    """What it disturbed is left out, and the rest is whole: no figure is lower."""
    often = measured(MadeMachine(neighbor=0.5, comes=True))
    both = {name for name in often.figures if name in found.figures}
    assert {"memory.bandwidth", "compute.fp32"} <= both
    for name in both:
        assert often.figures[name].spread.agrees(found.figures[name].spread), name
    least = min(often.figures["compute.fp64"].spread.values)
    assert least == pytest.approx(PRODUCTS["fp64"], rel=0.01)


def test_a_guest_gives_no_rate_closer_than_its_neighbors_move_it(found: Measurement) -> None:
    made = MadeMachine()
    guest = measure_cpu(made.numpy, kernels=made, deadline=1e6, disk=False, disk_folder=None,
        say=lambda _: None, today=datetime.date(2026, 11, 23), clock=made.clock,
        machine=dataclasses.replace(MACHINE, virtual=True), worker=made.worker, waits=made.waits,
    )  # fmt: skip
    rate = guest.figures["compute.fp32"].spread
    assert (rate.high - rate.low) / rate.median == pytest.approx(0.12)
    assert guest.figures["memory.l1"].spread == found.figures["memory.l1"].spread
    assert "no rate is\ngiven closer than 6 %" in str(guest)
    assert "virtual" not in str(found)


def test_half_a_roof_is_none(tmp_path: Path) -> None:
    found = measured(MadeMachine(noisy=("memory",)))
    with pytest.raises(
        NotMeasuredError, match=r"Made Chip 1 has no roof: memory\.bandwidth: too noisy"
    ):
        found.save(tmp_path / "chip.toml")
    assert list(tmp_path.iterdir()) == []


def test_it_keeps_its_time_and_says_what_it_would_need() -> None:
    whole = measured(MadeMachine(), seconds=1e-3)
    assert whole.figures == {}
    assert whole.refused["the rest"].startswith("time was up before it was measured: give")
    needed = float(whole.refused["the rest"].split(" --seconds ")[1].removesuffix(" or more"))
    assert measured(MadeMachine(), seconds=needed).figures
    for seconds in (needed / 5, needed / 2, needed):
        # half as long again, and the part that was being measured
        assert measured(MadeMachine(), seconds).seconds < 1.5 * seconds + needed / 6


def test_too_little_time_is_no_noise() -> None:
    """Nobody is told to quiet a machine that was only given too few seconds."""
    needed = measured(MadeMachine(), seconds=1e6).seconds / MOST_ROUNDS * FEWEST_ROUNDS
    found = measured(MadeMachine(), seconds=needed / 2)
    assert 0 < found.rounds < FEWEST_ROUNDS
    reason = f"time was up after {found.rounds} of 6 rounds: give --seconds "
    assert found.refused["memory.bandwidth"].startswith(reason)
    enough = float(found.refused["memory.bandwidth"].removeprefix(reason).removesuffix(" or more"))
    assert "memory.bandwidth" in measured(MadeMachine(), seconds=enough).figures
    assert (found.noisy, found.hurried) == (False, True)
    assert "To quiet the machine" not in str(found)
    with pytest.raises(NotMeasuredError, match="time was up after") as refused:
        found.require_roof()
    assert "To quiet the machine" not in str(refused.value)


def test_noisy_figures_are_kept_on_request_and_answers_say_so(tmp_path: Path) -> None:
    """Others take half of the core all the time: nothing is a ceiling."""
    assert "mlsim measure --accept-noisy" in str(measured(MadeMachine(neighbor=0.5)))
    found = measured(MadeMachine(neighbor=0.5, noisy=("fp32",)), accept_noisy=True)
    figure = found.figures["compute.fp32"]
    assert figure.noise.startswith("too noisy: its stretches of time differ by ")
    assert figure.spread.high - figure.spread.low > 0.2 * figure.value
    # who is slowed down all the time is no noisier for it: `busy` tells
    assert found.figures["memory.bandwidth"].value == pytest.approx(RATES[-1] / 2, rel=0.05)
    assert "~ fp32 " in str(found)
    assert "Figures with a ~ are no ceilings" in str(found)
    assert "--accept-noisy" not in str(found)
    assert found.to_dict()["figures"]["compute.fp32"]["noise"] == figure.noise
    device = load_device(found.save(tmp_path / "noisy.toml"))
    assert device.figures["compute.fp32"].kind == "estimate"
    answer = str(Engine.solve(model="ResNet50", hardware=device, precision="fp32"))
    assert "peak: measured on a noisy machine, and kept (--accept-noisy)" in answer
    assert "noisy" not in str(Engine.solve(model="ResNet50", hardware="A100"))


def test_all_cores_are_not_slower_than_one_of_them() -> None:
    """A program beside it keeps the second core from the product of both."""
    values = {"one_core.fp32": [100e9], "compute.fp32": [3e9], "compute.fp64": [5e9]}
    hows = dict.fromkeys(values, "A product.")
    _no_slower_together(values, hows)
    assert (values["compute.fp32"], values["compute.fp64"]) == ([100e9], [5e9])
    assert hows["compute.fp32"].endswith("All cores together were slower, since others used them.")
    assert hows["compute.fp64"] == "A product."


def test_few_stretches_make_wide_intervals() -> None:
    """One stretch of six: as wide as six of them together may be, and a reason."""
    values = {"compute.fp32": [1e9], "starts.call": list[float]()}
    figures, refused = judged(values, str, 1, wanted=120.0, accept_noisy=True)
    reason = "time was up after 1 of 6 rounds: give --seconds 120 or more"
    assert refused == {"starts.call": reason}
    found = figures["compute.fp32"]
    assert (found.spread.low, found.spread.high) == pytest.approx((0.4e9, 1.6e9))
    assert found.noise == reason
    assert judged(values, str, 1, wanted=120.0)[0] == {}


def test_what_it_says_of_itself(found: Measurement) -> None:
    said = str(found)
    assert said.startswith(
        "Made Chip 1, 1 core, Linux 6 x86_64\nmeasured on 2026-11-23 in 18 rounds"
    )
    assert "  L1 cache, size" in said
    plain = found.to_dict()
    assert plain["figures"]["compute.fp32"]["unit"] == "FLOP/s"
    assert len(plain["curves"]["one core"]["rate"]) == len(
        plain["curves"]["one core"]["working_set"]
    )


def test_the_file_is_one_of_the_zoo(found: Measurement, tmp_path: Path) -> None:
    path = found.save(tmp_path / "machines" / "chip.toml")
    assert [each.name for each in path.parent.iterdir()] == ["chip.toml"]
    device = load_device(path)
    assert device.key == "Local.CPU"
    assert device.name == "Made Chip 1"
    assert device.bandwidth_si == pytest.approx(RATES[-1], rel=0.01)
    assert device.figures["compute.fp32"].kind == "measured"
    assert device.figures["compute.fp32"].read == datetime.date(2026, 11, 23)
    assert "Product of two matrices of " in device.figures["compute.fp32"].note
    assert validate_file(path).errors == 0, str(validate_file(path))
    assert "Made Chip 1" in as_text(device)
    assert as_dict(device)["figures"]["memory.l1"]["source"]["title"] == "mlsim measure"


def test_a_file_is_swapped_in_whole(found: Measurement, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "chip.toml"
    path.write_text("the old one")

    def refuse(_: Path) -> None:
        raise DataFileError("half")

    monkeypatch.setattr("mlsim.profiling.measuring.device_file.load_device", refuse)
    with pytest.raises(DataFileError, match="half"):
        found.save(path)
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_can_t_be_written_is_said(found: Measurement, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match="can't be written"):
        found.save(tmp_path / "file" / "chip.toml")


@pytest.fixture
def own(found: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLSIM_MACHINES", str(tmp_path))
    monkeypatch.setattr("mlsim.zoo.local.this_machine", lambda: MACHINE)
    return found.save()


def test_every_question_can_be_asked_of_it(own: Path) -> None:
    assert own.name == "made-chip-1-1-cores-cpu.toml"
    device = Hardware.local()
    by_record = Engine.solve(model="resnet50", hardware=device)
    by_name = Engine.solve(model="resnet50", hardware="local")
    assert by_record.latency == by_name.latency
    # There is no fp16; bf16 has as many bits. No operator beats the roof.
    assert by_record.precision == "bf16"
    assert by_record.latency.to("s").magnitude > 8.178e9 / PRODUCTS["bf16"]
    assert Engine.solve(model="resnet50", hardware=device, precision="fp32").bottleneck
    table = Engine.sweep(model="resnet50", hardware=device, batch_size=[1, 2], precision="fp32")
    assert table.feasible.all()
    kept = Engine.solve(model="resnet50", hardware=device, activations="on-chip", precision="fp32")
    assert kept.latency <= Engine.solve(model="resnet50", hardware=device, precision="fp32").latency


def test_a_calibrated_estimate_is_not_made_up(own: Path) -> None:
    with pytest.raises(NotMeasuredError):
        _ = Engine.solve(model="resnet50", hardware="local", estimate="calibrated").latency


def test_a_machine_that_nobody_measured(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotMeasuredError, match=r"run `mlsim measure --device gpu`"):
        Hardware.local("gpu")
    with pytest.raises(UnknownNameError, match="kind of local device"):
        Hardware.local("tpu")
    other = type(MACHINE)("Other", "", 4, 0, (), "")
    monkeypatch.setattr("mlsim.zoo.local.this_machine", lambda: other)
    with pytest.raises(
        NotMeasuredError, match=r"\(other-4-cores-cpu\).*Other machines were: made-chip"
    ):
        Engine.solve(model="resnet50", hardware="local")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"device": "tpu"}, UnknownNameError, "cpu, gpu"),
        ({"kernels": "fortran"}, UnknownNameError, "auto, c, numba, numpy"),
        ({"seconds": 0}, InvalidValueError, "positive"),
        ({"seconds": float("nan")}, InvalidValueError, "positive"),
    ],
)
def test_arguments_are_checked(arguments, error, said: str) -> None:
    with pytest.raises(error, match=said):
        measure(**arguments)
