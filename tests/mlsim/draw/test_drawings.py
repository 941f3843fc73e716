"""Drawings: they can be read, in both looks, and say nothing but what the package says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from xml.etree import ElementTree

import pytest

from mlsim import Engine, Hardware, Models, draw
from mlsim.draw.canvas import ACCENT, MID, WIDTH, Drawing, Word
from mlsim.errors import InvalidValueError, NotMeasuredError, UnknownNameError
from mlsim.hardware import memory_levels
from mlsim_book.run import figures

SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "chip": lambda: draw.chip("A100"),
    "chip, energies": lambda: draw.chip("H100", energies=True),
    "chip, little known": lambda: draw.chip("TPUv4"),
    "SM": lambda: draw.sm("A100"),
    "SM, more units": lambda: draw.sm("V100"),
    "CPU and GPU": draw.cpu_and_gpu,
    "bits": draw.bits,
    "number line": draw.number_line,
    "ring": draw.ring,
    "ring of two": lambda: draw.ring(2),
    "cluster": lambda: draw.cluster("DGX_H100_SuperPOD"),
    "shards": lambda: draw.shards("Llama3_8B"),
    "shards of experts": lambda: draw.shards("Mixtral_8x7B", devices=2),
    "decoder layer": lambda: draw.decoder_layer("Llama3_8B"),
    "cache": lambda: draw.kv_cache("Llama3_8B", "H100", users=16),
    "tile": draw.tile,
    "coalescing": draw.coalescing,
    "blocks": draw.blocks,
    "carbon": lambda: draw.carbon(
        Engine.footprint(hardware="HGX_A100", device_hours=8, grid="Germany", pue=1.2)
    ),
    "batches": draw.batching,
    "prefill": lambda: draw.prefill_and_decode(
        Engine.serve("Llama3_8B", "H100", prompt_tokens=1024, output_tokens=65)
    ),
    "queue": draw.queue,
    "latency": draw.latency_hiding,
    "launches": lambda: draw.launches("ResNet50", "A100"),
    "launches, GPU behind": lambda: draw.launches("ResNet50", "A100", batch_size=256),
}


@pytest.fixture(params=DRAWINGS, scope="module")
def drawing(request: pytest.FixtureRequest) -> Drawing:
    return DRAWINGS[request.param]()


def rectangle(element: ElementTree.Element) -> tuple[float, float, float, float]:
    x, y, wide, tall = (float(element.get(name, 0)) for name in ("x", "y", "width", "height"))
    return x, y, x + wide, y + tall


def box(root: ElementTree.Element) -> list[str]:
    return root.get("viewBox", "").split()


def inside(word: Word, box: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = box
    return left <= word.left and word.right <= right and top <= word.top and word.bottom <= bottom


def apart(word: Word, box: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = box
    return word.right <= left or right <= word.left or word.bottom <= top or bottom <= word.top


def grounds(drawing: Drawing) -> Iterator[tuple[Word, str, bool]]:
    """Yield each word, the color of the last box drawn below it, and whether an edge crosses it."""
    words, boxes = iter(drawing.words), []
    for element in ElementTree.fromstring(drawing.svg):
        if element.tag == f"{SVG}rect":
            boxes.append((rectangle(element), element.get("fill")))
        elif element.get("transform"):
            word = next(words)
            below = [fill for box, fill in boxes if inside(word, box)]
            crossed = any(not inside(word, box) and not apart(word, box) for box, _ in boxes)
            yield word, below[-1] or "", crossed
    assert next(words, None) is None


def test_says_what_it_is_in_valid_svg(drawing: Drawing) -> None:
    root = ElementTree.fromstring(drawing.svg)
    title, told = list(root)[:2]
    assert (title.tag, title.text) == (f"{SVG}title", drawing.title)
    assert (told.tag, told.text) == (f"{SVG}desc", drawing.alt)
    wide, tall = (float(root.get(side, "").removesuffix("pt")) for side in ("width", "height"))
    assert (0, 0, wide, tall) == pytest.approx([0.8 * float(each) for each in box(root)], abs=0.01)
    assert drawing._repr_mimebundle_()["image/svg+xml"] == drawing.svg


def test_words_stay_on_the_sheet_and_out_of_each_others_way(drawing: Drawing) -> None:
    height = float(box(ElementTree.fromstring(drawing.svg))[3])
    outside = [each.text for each in drawing.words if not inside(each, (0, 0, WIDTH, height))]
    meeting = [
        (one.text, other.text)
        for one, other in combinations(drawing.words, 2)
        if not apart(one, (other.left - 2, other.top - 2, other.right + 2, other.bottom + 2))
    ]
    assert (outside, meeting) == ([], [])


def test_words_can_be_read_in_both_looks(drawing: Drawing) -> None:
    """On a phone of 390 pixels, whose text is 358 wide, letters are 11 pixels high."""
    pale = []
    for word, ground, crossed in grounds(drawing):
        assert (word.text, ground, crossed) == (word.text, word.ground, False)
        assert (word.bottom - word.top) / 0.73 * 358 / WIDTH >= 11
        for look in (str, figures.dark_colour):
            colors = (figures._linear(look(each)) for each in (word.color, ground))
            if figures.contrast(*colors) < figures.READABLE:
                pale.append((word.text, look))
    assert pale == []


def test_numbers_stand_in_the_drawing_and_in_its_words(drawing: Drawing) -> None:
    assert drawing.facts
    for fact in drawing.facts:
        assert any(fact.value in word.text for word in drawing.words), fact
        assert fact.value in drawing.alt, fact
        assert fact.source, fact
    numbers = {
        each.rstrip(".,") for word in drawing.words for each in re.findall(r"\d[\d,.]*", word.text)
    }
    told = set(re.findall(r"\d[\d,.]*\d|\d", drawing.alt))
    assert numbers - told == set()


def values(drawing: Drawing) -> dict[tuple[str, str], str]:
    return {(each.part, each.what): each.value for each in drawing.facts}


def test_a_chip_has_the_figures_of_its_device() -> None:
    a100 = Hardware.Cloud.A100
    assert values(draw.chip("A100")) == {
        ("chip", "peak in FP16"): a100.compute.peak("fp16").text,
        ("chip", "SMs"): str(a100.cores),
        ("L2 cache", "capacity"): a100.memory.l2.show(",g", "MiB").text,
        ("HBM2e", "capacity"): a100.memory.capacity.show(".3g").text,
        ("HBM2e", "bandwidth"): a100.memory.bandwidth.text,
        ("PCIe", "bandwidth each way"): "32 GB/s",  # 64 both ways
    }
    assert "156 TFLOP/s" in draw.chip(a100, precision="tf32").alt
    energies = draw.chip("A100", energies=True).alt
    multiply, add = (memory_levels.energy(f"{each}_fp16").value for each in ("multiply", "add"))
    assert f"A multiply-add takes {multiply + add:g} pJ" in energies


def test_pipes_are_as_wide_as_rates() -> None:
    h100 = Hardware.Cloud.H100
    boxes = ElementTree.fromstring(draw.chip(h100).svg).iter(f"{SVG}rect")
    pipes = [each for each in boxes if each.get("rx") == "0"]
    memory, link = float(pipes[0].get("width", 0)), float(pipes[1].get("height", 0))
    wanted = h100.figures["links.pcie"].one_way / h100.bandwidth_si
    assert link / memory == pytest.approx(wanted, rel=0.01)


def areas(drawing: Drawing, fill: str) -> list[float]:
    boxes = ElementTree.fromstring(drawing.svg).iter(f"{SVG}rect")
    return [
        float(each.get("width", 0)) * float(each.get("height", 0))
        for each in boxes
        if each.get("fill") == fill
    ]


def test_units_of_an_sm_are_as_large_as_their_work() -> None:
    found = areas(draw.sm("A100"), ACCENT)
    assert found == [pytest.approx(16)] * 64 + [pytest.approx(256 * 16)] * 4
    assert "shared memory holds up to 164 KiB" in draw.sm("A100").alt
    assert "shared" not in draw.sm("V100").alt  # not on record
    with pytest.raises(
        NotMeasuredError, match=r"TPU v4 is made of is not on record\. It is of: A100"
    ):
        draw.sm("TPUv4")


def test_memories_of_two_chips_are_as_large_as_what_they_hold() -> None:
    drawing = draw.cpu_and_gpu("AMD Ryzen 9 5950X", "NVIDIA GeForce RTX 3090")
    registers, caches = areas(drawing, ACCENT), areas(drawing, MID)
    assert registers[1] / registers[0] == pytest.approx(20.5 * 1024 / 80, rel=0.01)
    assert caches[2] / caches[1] == pytest.approx(64 / 8, rel=0.01)  # L3 and L2 of the CPU
    assert caches[1] / caches[4] == pytest.approx(8 / 6, rel=0.01)  # L2 of both
    with pytest.raises(UnknownNameError, match=r"Did you mean .*Ryzen"):
        draw.cpu_and_gpu("AMD Ryzen")


def test_formats_have_the_bits_and_numbers_of_their_definition() -> None:
    assert values(draw.bits("FP16"))["FP16", "bits of mantissa"] == "10"
    # E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6
    assert [draw.number_line("NVFP4", most=most).facts[0].value for most in (1, 4, 6)] == list(
        "378"
    )
    assert draw.number_line("FP8 E4M3", most=2**-7).facts[0].value == "5"  # steps of 2**-9
    with pytest.raises(InvalidValueError, match="too many numbers"):
        draw.number_line("FP16")
    with pytest.raises(UnknownNameError, match=r"Did you mean .*BF16"):
        draw.bits("BF17")


def test_a_ring_ends_with_the_sum_everywhere() -> None:
    for devices in (2, 3, 4, 5):
        full = 14 * 14
        # One part each after the first half, drawn in both rows, and all at the end.
        done = [area for area in areas(draw.ring(devices), ACCENT) if area == pytest.approx(full)]
        passing = sum(devices * n for n in range(1, devices + 1))
        assert len(done) == devices + passing
    assert draw.ring(4).facts[1].value == "1.5"


def test_bytes_of_a_model_are_those_of_its_parameters() -> None:
    llama = Models.Llama3_8B
    layer = draw.decoder_layer("Llama3_8B")
    weights = 2 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336)
    assert values(layer)["layer", "weights"] == f"{weights / 2**20:.0f} MiB"
    cache = values(draw.kv_cache("Llama3_8B", "H100", users=16, tokens=[4096]))
    assert cache["4,096 tokens", "cache"] == "8 GiB"  # 131,072 bytes a token
    assert "does not fit" in draw.kv_cache(llama, "T4").alt
    held = values(draw.shards(llama))
    assert (
        held["Data parallel", "weights of a device"] == f"{2 * llama.parameter_count / 1e9:.1f} GB"
    )
    assert ("Expert parallel", "weights of a device") not in held
    mixtral = Models.Mixtral_8x7B
    routed = 32 * 8 * 3 * 4096 * 14336
    half = 2 * (mixtral.parameter_count - routed / 2)
    there = values(draw.shards(mixtral, devices=2))
    assert there["Expert parallel", "weights of a device"] == f"{half / 1e9:.1f} GB"


def test_a_warp_moves_whole_sectors_and_a_block_whole_tiles() -> None:
    # 32 threads, 8 numbers of 4 bytes in a sector: strides of 1, 2 and 8 touch 4, 8 and 32.
    found = values(draw.coalescing())
    assert [each for (_, what), each in found.items() if what == "sectors"] == ["4", "8", "32"]
    assert found["every 8th number", "part that is used"] == "12.5 %"
    assert values(draw.coalescing([16]))["every 16th number", "bytes moved"] == "1,024 B"
    assert values(draw.coalescing([1], bytes_per_element=8))["neighbors", "sectors"] == "8"
    assert values(draw.blocks(12, 3))["in tiles", "reads of main memory"] == "1,152"  # 2 x 12^3 / 3
    with pytest.raises(InvalidValueError, match="not 8 and 3"):
        draw.blocks(8, 3)
    with pytest.raises(InvalidValueError, match="strides are from 1 to 16"):
        draw.coalescing([])


def test_slots_are_filled_as_soon_as_they_are_free() -> None:
    assert [each.value for each in draw.batching([4, 1, 1, 4], slots=2).facts] == ["8", "6"]
    assert [each.value for each in draw.batching([1, 3, 2], slots=2).facts] == ["5", "3"]
    with pytest.raises(InvalidValueError, match="slots"):
        draw.batching(slots=0)


def test_lines_are_as_long_as_theory_says() -> None:
    waits = values(draw.queue(0.5, 0.9))
    assert (waits["50 %", "wait"], waits["90 %", "wait"]) == ("1", "9")
    # Waiting are load times wait: a half, and 8.1 marks of 9 by 12 points.
    assert sum(areas(draw.queue(0.5, 0.9), MID)) == pytest.approx((0.5 + 8.1) * 9 * 12, rel=1e-3)
    with pytest.raises(InvalidValueError, match="a load is between"):
        draw.queue(1.0)
    h100 = Hardware.Cloud.H100
    flying = memory_levels.level("h100_hbm")["latency"].si * h100.bandwidth_si
    assert values(draw.latency_hiding(h100))["in flight", "bytes"] == f"{flying / 1e6:.2f} MB"
    with pytest.raises(NotMeasuredError, match="latency of the memory of NVIDIA A100"):
        draw.latency_hiding("A100")


def test_what_is_not_on_record_is_not_drawn() -> None:
    tpu = draw.chip("TPUv4")
    assert not Hardware.Cloud.TPUv4.memory.last_level
    assert {part for part, _ in values(tpu)} == {"chip", "main memory"}
    assert not re.search("cache|PCIe|cores", " ".join(each.text for each in tpu.words))
    with pytest.raises(UnknownNameError, match=r"Did you mean .*A100"):
        draw.chip("A1000")


def test_every_device_can_be_drawn() -> None:
    wide = [
        (device.name, word.text)
        for device in map(Hardware.get, Hardware.keys())
        for word in draw.chip(device).words
        if not 0 <= word.left < word.right <= WIDTH
    ]
    assert wide == []


def test_launches_take_the_times_of_the_estimates() -> None:
    eager, graph = (
        Engine.solve("ResNet50", "A100", estimate="calibrated", software=each)
        for each in ("eager", "engine")
    )
    drawing = draw.launches("ResNet50", "A100")
    found = values(drawing)
    assert found["kernel by kernel", "time of the network"] == eager.latency.text
    assert found["as a graph", "time of the network"] == graph.latency.text
    assert found["kernel by kernel", "launches"] == "162"  # 53 convolutions of three, and three
    assert found["as a graph", "part that launches take"] == (
        f"{100 * graph.causes['launches']:.0f} %"
    )
    # All launches one after the other take the time of the network: the host decides.
    assert 162 * eager.value("host_launch_time") == pytest.approx(eager.value("latency"), rel=1e-6)
    with pytest.raises(InvalidValueError):
        draw.launches("ResNet50", "A100", batch_size=0)
