"""Drawings: they can be read, in both looks, and say nothing but what the package says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from xml.etree import ElementTree

import pytest

from mlsim import Engine, Hardware, draw
from mlsim.draw.canvas import WIDTH, Drawing, Word
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.hardware import memory_levels
from mlsim_book.run import figures

SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "chip": lambda: draw.chip("A100"),
    "chip, energies": lambda: draw.chip("H100", energies=True),
    "chip, little known": lambda: draw.chip("TPUv4"),
    "launches": lambda: draw.launches("ResNet50", "A100"),
    "launches, GPU behind": lambda: draw.launches("ResNet50", "A100", batch_size=256),
}


@pytest.fixture(params=DRAWINGS, scope="module")
def drawing(request: pytest.FixtureRequest) -> Drawing:
    return DRAWINGS[request.param]()


def rectangle(element: ElementTree.Element) -> tuple[float, float, float, float]:
    x, y, wide, tall = (float(element.get(name, 0)) for name in ("x", "y", "width", "height"))
    return x, y, x + wide, y + tall


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
    assert root.get("width") == f"{WIDTH:g}pt"
    assert drawing._repr_mimebundle_()["image/svg+xml"] == drawing.svg


def test_words_stay_on_the_sheet_and_out_of_each_others_way(drawing: Drawing) -> None:
    height = float(ElementTree.fromstring(drawing.svg).get("height", "").removesuffix("pt"))
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
    assert found["as a graph", "part that starts of kernels take"] == (
        f"{100 * graph.causes['starts']:.0f} %"
    )
    # All launches one after the other take the time of the network: the host decides.
    assert 162 * eager.value("host_launch_time") == pytest.approx(eager.value("latency"), rel=1e-6)
    with pytest.raises(InvalidValueError):
        draw.launches("ResNet50", "A100", batch_size=0)
