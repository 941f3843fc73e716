"""A machine whose rates are known, measured: what is found, what is refused, what is saved."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import os
import re
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest
from made_machine import CACHES, MACHINE, PRODUCTS, RATES, START, MadeMachine
from refusals import answered
from sampled import sampled

from mlsim import Engine, Hardware
from mlsim.errors import DataFileError, NotMeasuredError, UnknownNameError
from mlsim.hardware.device import load_device
from mlsim.hardware.this_machine import Machine
from mlsim.profiling import Measurement, measure
from mlsim.profiling.measuring import cpu
from mlsim.profiling.measuring.cpu import Processor, _no_slower_together
from mlsim.profiling.measuring.measurement import device_text
from mlsim.profiling.measuring.parts import DiskError
from mlsim.profiling.measuring.rounds import FEWEST_ROUNDS, MOST_ROUNDS, judged
from mlsim.zoo.catalogue import as_dict, as_text
from mlsim.zoo.review.file_report import validate_file


def measured(
    made: MadeMachine, seconds: float = 1e6, machine: Machine = MACHINE, **options: Any
) -> Measurement:
    made_up = {"machine": machine, "worker": made.worker, "waits": made.waits}
    made_up |= {"clock": made.clock, "today": datetime.date(2026, 11, 23)}
    return Processor(made.numpy, made, made.now + seconds, **{**made_up, **options}).measure()


@pytest.fixture(scope="module")
def found() -> Measurement:
    return measured(MadeMachine())


def test_figures_are_those_of_the_machine_within_their_intervals(found: Measurement) -> None:
    expected = {f"compute.{name}": PRODUCTS[name] for name in ("fp64", "fp32", "bf16")}
    expected |= {
        "memory.bandwidth": RATES[-1],
        "memory.l1_bandwidth": RATES[0],
        "one_core.l2_bandwidth": RATES[1],
        "starts.call": START,
    }
    values = {name: each.value for name, each in found.figures.items()}
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=0.01)
    # Caches are found within a step of the sweep.
    sizes = {f"memory.l{cache.level}": cache.size for cache in CACHES}
    assert {name: values[name] for name in sizes} == pytest.approx(sizes, rel=0.2)
    assert values["memory.last_level"] == values["memory.l2"]
    # A format without units of its own is no ceiling.
    assert "compute.fp16" not in values
    assert "less than in wider numbers" in found.refused["compute.fp16"]
    assert "compute.int8" in found.refused
    assert found.rounds == 18
    for figure in found.figures.values():
        assert figure.spread.low <= figure.value <= figure.spread.high
        assert figure.spread.confidence >= 0.95
        # A steady machine: half a step of its clock to either side, or of the sizes.
        least, most = (0.15, 0.2) if figure.base == "B" else (0.0299, 0.0301)
        wide = (figure.spread.high - figure.spread.low) / figure.value
        assert least <= wide <= most, figure.name
    for team, words in (("memory", "all cores"), ("one_core", "one core")):
        for name in ("bandwidth", "l1", "l2_bandwidth"):
            assert f", {words}" in found.figures[f"{team}.{name}"].how
    # What is measured is not refused.
    assert not set(values) & set(found.refused)


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
    seeds = sampled(range(6), 2)
    drifting = [MadeMachine(0.03, seed, drift=0.015, memory=20.0) for seed in seeds]
    assert sum(not apart(made) for made in drifting) >= len(seeds) - 1


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
    for load, cores, words in ((0.49, 1, ""), (0.5, 1, "its 1 core"), (9.0, 2, "its 2 cores")):
        machine = dataclasses.replace(MACHINE, cores=cores)
        said = dataclasses.replace(found, load=load, machine=machine).busy
        assert (words in said, bool(said)) == (True, bool(words))
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
    hurried = measured(MadeMachine(neighbor=0.5), seconds=1e-3)
    assert (hurried.rounds, hurried.figures, hurried.noisy) == (0, {}, True)


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
    guest = measured(MadeMachine(), machine=dataclasses.replace(MACHINE, virtual=True))
    rate = guest.figures["compute.fp32"].spread
    assert (rate.high - rate.low) / rate.median == pytest.approx(0.12)
    assert guest.figures["memory.l1"].spread == found.figures["memory.l1"].spread
    assert "no rate is\ngiven closer than 6 %" in str(guest)
    assert "virtual" not in str(found)


def test_a_disk_is_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """7 GB are written in 2 s and read in 4; where that can't be, it is said."""
    disk = SimpleNamespace(size=7e9, write=lambda: 2.0, read=lambda: 4.0)
    monkeypatch.setattr(cpu, "DiskFile", lambda folder, clock: contextlib.nullcontext(disk))
    found = measured(MadeMachine(), disk_folder=tmp_path)
    rates = [found.figures[f"disk.{way}"] for way in ("write", "read")]
    assert [each.value for each in rates] == pytest.approx([3.5e9, 1.75e9])
    assert all("past the system's cache" in each.how for each in rates)

    def refuse() -> float:
        raise DiskError("it lies in memory")

    disk.read = refuse
    found = measured(MadeMachine(), disk_folder=tmp_path)
    assert found.refused["disk"] == "it lies in memory"
    assert not [name for name in found.figures if name.startswith("disk")]


def test_half_a_roof_is_none(tmp_path: Path) -> None:
    found = measured(MadeMachine(noisy=("memory",)))
    with pytest.raises(
        NotMeasuredError, match=r"Made Chip 1 has no roof: memory\.bandwidth: too noisy"
    ):
        found.save(tmp_path / "chip.toml")
    assert list(tmp_path.iterdir()) == []


def test_it_keeps_its_time_and_says_what_it_would_need() -> None:
    cpu = measured(MadeMachine(), seconds=1e-3)
    assert cpu.figures == {}
    assert cpu.refused["the rest"].startswith("time was up before it was measured: give")
    needed = float(cpu.refused["the rest"].split(" --seconds ")[1].removesuffix(" or more"))
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
    assert "peak: measured on a noisy machine, and kept" in answer
    assert "noisy" not in str(Engine.solve(model="ResNet50", hardware="A100"))


def test_a_busy_machine_has_a_marked_roof_and_not_none(tmp_path: Path) -> None:
    """Where nothing is a ceiling, more is measured and kept; where a roof stands, nothing is."""
    busy = measured(MadeMachine(neighbor=0.5), accept_noisy=None)
    assert busy.rounds > MOST_ROUNDS
    assert busy.figures["memory.bandwidth"].value == pytest.approx(RATES[-1] / 2, rel=0.05)
    assert busy.figures["memory.bandwidth"].noise
    assert "Figures with a ~ are no ceilings" in str(busy)
    device = load_device(busy.save(tmp_path / "busy.toml"))
    assert "measured on a noisy machine" in str(Engine.solve(model="ResNet50", hardware=device))
    hurried = measured(MadeMachine(neighbor=0.5), seconds=1.0, accept_noisy=None)
    hurried.require_roof()
    quiet = measured(MadeMachine(noisy=("fp64",)), accept_noisy=None)
    assert (quiet.rounds, quiet.kept) == (MOST_ROUNDS, False)
    assert "compute.fp64" in quiet.refused


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


def test_what_it_says_of_itself_and_in_a_file_of_the_zoo(
    found: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = str(found)
    assert said.startswith("Made Chip 1, 1 core, Linux 6 x86_64\nmeasured on 2026-11-23 in 18")
    assert re.search(r"^  L1 cache, size +3\d(\.\d)? kB ", said, re.MULTILINE)
    assert re.search(r"^  fp32 +(99\.\d|100) GFLOP/s +98\.\d to 101$", said, re.MULTILINE)
    plain = found.to_dict()
    assert plain["figures"]["compute.fp32"]["unit"] == "FLOP/s"
    assert len(set(map(len, plain["curves"]["one core"].values()))) == 1
    path = found.save(tmp_path / "machines" / "chip.toml")
    assert [each.name for each in path.parent.iterdir()] == ["chip.toml"]
    device = load_device(path)
    assert (device.key, device.name) == ("Local.CPU", "Made Chip 1")
    assert device.bandwidth_si == pytest.approx(RATES[-1], rel=0.01)
    figure = device.figures["compute.fp32"]
    assert (figure.kind, figure.read) == ("measured", datetime.date(2026, 11, 23))
    assert "Product of two matrices of " in figure.note
    assert validate_file(path).errors == 0, str(validate_file(path))
    assert "Made Chip 1" in as_text(device)
    assert as_dict(device)["figures"]["memory.l1"]["source"]["title"] == "mlsim measure"
    # It is swapped in whole, and a place that can't be written is said.
    path.write_text("the old one")

    def refuse(_: Path) -> None:
        raise DataFileError("half")

    with pytest.raises(DataFileError, match="can't be written"):
        found.save(path / "chip.toml")
    monkeypatch.setattr("mlsim.profiling.measuring.measurement.load_device", refuse)
    with pytest.raises(DataFileError, match="half"):
        found.save(path)
    assert path.read_text() == "the old one"
    assert list(path.parent.iterdir()) == [path]


def test_every_question_can_be_asked_of_it(
    found: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLSIM_MACHINES", str(tmp_path))
    monkeypatch.setattr("mlsim.zoo.local.this_machine", lambda: MACHINE)
    assert found.save().name == "made-chip-1-1-cores-cpu.toml"
    device = Hardware.local()
    by_name = Engine.solve(model="resnet50", hardware="local")
    assert Engine.solve(model="resnet50", hardware=device).latency == by_name.latency
    # There is no fp16; bf16 has as many bits. No operator beats the roof.
    assert by_name.precision == "bf16"
    assert by_name.latency.si > 8.178e9 / PRODUCTS["bf16"]
    asked = {"model": "resnet50", "hardware": device, "precision": "fp32"}
    assert Engine.sweep(batch_size=[1, 2], **asked).feasible.all()
    kept = Engine.solve(activations="on-chip", **asked)
    assert kept.latency <= Engine.solve(**asked).latency
    with pytest.raises(NotMeasuredError):
        _ = Engine.solve(model="resnet50", hardware="local", estimate="calibrated").latency
    with pytest.raises(NotMeasuredError, match=r"run `mlsim measure --device gpu`"):
        Hardware.local("gpu")
    with pytest.raises(UnknownNameError, match="kind of local device"):
        Hardware.local("tpu")
    other = Machine("Other", "", 4, 0, (), "")
    monkeypatch.setattr("mlsim.zoo.local.this_machine", lambda: other)
    words = r"\(other-4-cores-cpu\).*Other machines were: made-chip"
    with pytest.raises(NotMeasuredError, match=words):
        Engine.solve(model="resnet50", hardware="local")


def test_arguments_are_checked_and_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(measure, "measure") == []
    given: list[Processor] = []
    monkeypatch.setattr(Processor, "measure", lambda asked, *_: given.append(asked))
    begin = perf_counter()
    measure(seconds=70, kernels="numpy", disk_folder="here", accept_noisy=True)
    measure(seconds=1e9, progress=print)
    measure(disk=False)
    first, second, _ = given
    assert begin + 70 <= first.deadline <= perf_counter() + 70
    folders = [each.disk_folder for each in given]
    assert folders == [Path("here"), Path(os.path.expanduser("~")), None]  # noqa: PTH111
    assert [each.kernels for each in given] == ["numpy", "auto", "auto"]
    assert [each.accept_noisy for each in given] == [True, None, None]
    assert (first.say("nothing"), second.say) == (None, print)
