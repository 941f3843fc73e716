"""Data files are read strictly: each fault is named with its file and its line."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim.errors import DataFileError
from mlsim.hardware.device_files import load_device
from mlsim.records import given
from mlsim.workloads.model_files import load_model
from mlsim.zoo.spaces import index

HEAD = """\
key = "Cloud.Mine"
name = "My chip"
vendor = "Me"
architecture = "Mine"
form = "chip"
"""


def figure(table: str, value: object, unit: str, *extra: str) -> str:
    """Return a complete figure, as a data file has it: nine lines and a blank."""
    lines = [
        f"[{table}]",
        f"value = {value}",
        f'unit = "{unit}"',
        'kind = "datasheet"',
        'source = "williams2009roofline"',
        'where = "page 1"',
        'quote = "as fast as that"',
        "read = 2026-11-21",
        *extra,
    ]
    return "\n".join(lines) + "\n\n"


PEAK = figure("compute.fp16", 100, "TFLOP/s", 'sparsity = "dense"')
SPARSE = figure("sparse.fp16", 200, "TFLOP/s", 'sparsity = "2:4"')
CAPACITY = figure("memory.capacity", 16, "GB")
BANDWIDTH = figure("memory.bandwidth", 1000, "GB/s")
LINK = figure("links.pcie", 32, "GB/s", 'direction = "one-way"')
GOOD = HEAD + "\n" + PEAK + SPARSE + CAPACITY + BANDWIDTH + LINK

Fault = Callable[[str, str], str]


def line_of(text: str, wanted: str) -> int:
    """Return the line on which a text stands."""
    return next(n for n, line in enumerate(text.splitlines(), start=1) if line == wanted)


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_is_read(tmp_path: Path) -> None:
    device = load_device(write(tmp_path, GOOD))
    assert device.bandwidth_si == 1e12
    assert device.capacity_si == 16e9
    assert device.compute.figure("fp16").si == 100e12
    bandwidth = device.figures["memory.bandwidth"]
    assert bandwidth.text == "1,000 GB/s"
    assert bandwidth.read == datetime.date(2026, 11, 21)
    assert bandwidth.origin() == (
        'datasheet, williams2009roofline, page 1, "as fast as that", read 2026-11-21'
    )


def replaced(old: str, new: str, after: str = "") -> str:
    """Replace a text once, behind another one."""
    begin = GOOD.index(after)
    assert old in GOOD[begin:]
    return GOOD[:begin] + GOOD[begin:].replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        pytest.param(
            replaced("vendor =", "vendr ="),
            'vendr = "Me"',
            "unknown key 'vendr'. Did you mean 'vendor'? Allowed here: architecture, ceilings, compute,",
            id="unknown key",
        ),
        pytest.param(
            replaced("quote =", "qoute =", "[memory.bandwidth]"),
            'qoute = "as fast as that"',
            "unknown key 'qoute'. Did you mean 'quote'?",
            id="unknown key of a figure",
        ),
        pytest.param(
            replaced("[memory.bandwidth]", "[memory.bandwith]"),
            "[memory.bandwith]",
            "unknown key 'bandwith'. Did you mean 'bandwidth'? Allowed here: bandwidth, capacity",
            id="unknown table",
        ),
        pytest.param(
            replaced("[compute.fp16]", "[compute.fp7]"),
            "[compute.fp7]",
            "unknown key 'fp7'. Did you mean 'fp8'?",
            id="unknown precision",
        ),
        pytest.param(
            replaced('source = "williams2009roofline"\n', "", "[memory.bandwidth]"),
            "[memory.bandwidth]",
            "memory.bandwidth lacks its source: add it. Every figure needs one.",
            id="missing source",
        ),
        pytest.param(
            replaced('source = "williams2009roofline"', 'source = ""', "[memory.bandwidth]"),
            "[memory.bandwidth]",
            "memory.bandwidth lacks its source: add it. Every figure needs one.",
            id="empty source",
        ),
        pytest.param(
            replaced('source = "williams2009roofline"', "source = 3", "[memory.bandwidth]"),
            "source = 3",
            "memory.bandwidth: source must be text, not 3.",
            id="source that is no text",
        ),
        pytest.param(
            replaced('unit = "GB/s"', 'unit = "GB"', "[memory.bandwidth]").replace(
                CAPACITY, CAPACITY.replace('"GB"', '"GiB"')
            ),
            'unit = "GB"',
            "memory.bandwidth: a value in GB was given where B/s is expected.",
            id="wrong unit",
        ),
        pytest.param(
            replaced('unit = "GB/s"', 'unit = "XB/s"', "[memory.bandwidth]"),
            'unit = "XB/s"',
            "memory.bandwidth: unknown unit 'XB/s'; expected B/s",
            id="unknown unit",
        ),
        pytest.param(
            replaced("value = 1000", "value = -1000"),
            "value = -1000",
            "memory.bandwidth: value must be positive, not -1000.",
            id="negative value",
        ),
        pytest.param(
            replaced("value = 1000", "value = 0"),
            "value = 0",
            "memory.bandwidth: value must be positive, not 0.",
            id="zero",
        ),
        pytest.param(
            replaced("value = 1000", "value = nan"),
            "value = nan",
            "memory.bandwidth: value must be positive, not nan.",
            id="nan",
        ),
        pytest.param(
            replaced("value = 1000", 'value = "1000"'),
            'value = "1000"',
            "memory.bandwidth: value must be a number, not '1000'.",
            id="text for a number",
        ),
        pytest.param(
            replaced("value = 1000", "value = true"),
            "value = true",
            "memory.bandwidth: value must be a number, not True.",
            id="bool for a number",
        ),
        pytest.param(
            replaced("value = 200", "value = 99"),
            "[sparse.fp16]",
            "sparse.fp16: 99 TFLOP/s sparse is less than 100 TFLOP/s dense.",
            id="sparse below dense",
        ),
        pytest.param(
            replaced('sparsity = "dense"', 'sparsity = "2:4"'),
            "[compute.fp16]",
            'compute.fp16: a peak here must say sparsity = "dense"; a sparse one belongs in '
            "[sparse.fp16].",
            id="sparse peak among the dense",
        ),
        pytest.param(
            replaced('sparsity = "2:4"\n', "", "[sparse.fp16]"),
            "[sparse.fp16]",
            'sparse.fp16: say which sparsity, such as "2:4".',
            id="sparse without saying how",
        ),
        pytest.param(
            GOOD.replace(CAPACITY, ""),
            "[memory.bandwidth]",
            "[memory.capacity] is missing: no device can be solved without it.",
            id="missing capacity",
        ),
        pytest.param(
            GOOD.replace(CAPACITY, "").replace(BANDWIDTH, ""),
            'key = "Cloud.Mine"',
            "[memory.capacity] is missing",
            id="no memory at all",
        ),
        pytest.param(
            GOOD.replace(PEAK, "").replace(SPARSE, ""),
            'key = "Cloud.Mine"',
            "there is no peak: add a table such as [compute.fp16].",
            id="no peak",
        ),
        pytest.param(
            replaced('name = "My chip"\n', ""),
            'key = "Cloud.Mine"',
            "name is missing.",
            id="no name",
        ),
        pytest.param(
            replaced('name = "My chip"', "name = 3"),
            "name = 3",
            "name must be text in quotes, not 3.",
            id="name that is no text",
        ),
        pytest.param(
            replaced('form = "chip"', 'form = "chup"'),
            'form = "chup"',
            "form must be one of chip, module, board, system, not 'chup'.",
            id="unknown form",
        ),
        pytest.param(
            replaced('kind = "datasheet"', 'kind = "hearsay"', "[memory.bandwidth]"),
            'kind = "hearsay"',
            "memory.bandwidth: kind 'hearsay' is none of datasheet, measured, derived, estimate, "
            "secondary.",
            id="unknown kind",
        ),
        pytest.param(
            replaced("read = 2026-11-21", 'read = "yesterday"', "[memory.bandwidth]"),
            'read = "yesterday"',
            "memory.bandwidth: read must be a date such as 2026-11-21.",
            id="no date",
        ),
        pytest.param(
            replaced('direction = "one-way"', 'direction = "up"'),
            "[links.pcie]",
            'links.pcie: direction must be "one-way" or "both ways", not \'up\'.',
            id="unknown direction",
        ),
        pytest.param(
            GOOD.replace(CAPACITY + BANDWIDTH, "").replace(HEAD, HEAD + "memory = 3\n"),
            "memory = 3",
            "memory must be a table, not 3.",
            id="number for a table",
        ),
        pytest.param(
            GOOD.replace(BANDWIDTH, "[memory]\nbandwidth = 1000\n\n"),
            "bandwidth = 1000",
            "memory.bandwidth must be a table with value, unit, kind, source, where, quote, read.",
            id="number for a figure",
        ),
        pytest.param(
            replaced("value = 1000", "value = -1").replace(
                "[memory.bandwidth]", "[ memory . bandwidth ]  # spaced"
            ),
            "value = -1",
            "memory.bandwidth: value must be positive, not -1.",
            id="spaces in the header",
        ),
    ],
)
def test_a_fault_in_a_device_is_named(tmp_path: Path, text: str, place: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataFileError) as e:
        load_device(path)
    message = str(e.value)
    assert message.startswith(f"{path}:{line_of(text, place)}: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        # A repeated key is found where it is repeated.
        (GOOD.replace("value = 1000", "value = 1000\nvalue = 2000"), "value = 2000", "Cannot over"),
        (GOOD + "[memory.bandwidth]  # again\n", "[memory.bandwidth]  # again", "Cannot declare"),
        (GOOD + "[links.nvlink", "[links.nvlink", "Expected ']'"),
    ],
    ids=["duplicate key", "duplicate table", "unfinished"],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str, line: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataFileError, match=words) as e:
        load_device(path)
    assert str(e.value).startswith(f"{path}:{line_of(text, line)}: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"nowhere\.toml: can't be read: .*No such file"):
        load_device(tmp_path / "nowhere.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(DataFileError, match=r"binary\.toml:1: this is no UTF-8"):
        load_device(binary)


def test_two_files_of_one_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.toml").write_text(f"# a copy\n\n{GOOD}", encoding="utf-8")
    with pytest.raises(
        DataFileError, match=r"b\.toml:3: the key 'Cloud.Mine' is that of .*a\.toml"
    ):
        index(tmp_path)


def test_a_file_without_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD.replace("key =", "kye ="), encoding="utf-8")
    with pytest.raises(DataFileError, match=r'a\.toml:1: there is no line key = "\.\.\."'):
        index(tmp_path)


def test_a_given_figure_says_so() -> None:
    figure = given("memory.bandwidth", 2e12, "B/s")
    assert (figure.text, figure.origin(), figure.source) == ("2 TB/s", "given", "")


# Models.

MODEL = """\
key = "Mine"
name = "My network"
architecture = "CNN"
source = "he2016resnet"

[input]
channels = 3
size = 8

[[layers]]
kind = "convolution"
name = "first"
out_channels = 4
kernel = 3

[[layers]]
kind = "linear"
name = "last"
out_features = 10
"""


def test_a_good_model_is_read(tmp_path: Path) -> None:
    model = load_model(write(tmp_path, MODEL))
    # 4 * 27 weights; then 6 * 6 * 4 = 144 elements to 10, and 10 biases.
    assert model.parameter_count == 108 + 1440 + 10


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("architecture", "architektur", 3, "unknown key 'architektur'. Did you mean 'arch"),
        ('source = "he2016resnet"\n', "", 1, "source is missing."),
        ("size = 8", "size = -8", 8, "input.size must be 1 or more, not -8."),
        ("channels = 3", "channels = 0", 7, "input.channels must be 1 or more, not 0."),
        ("size = 8", "size = true", 8, "input.size must be a whole number, not True."),
        ("size = 8", "sice = 8", 8, "unknown key 'sice'. Did you mean 'size'?"),
        ('kind = "linear"', 'kind = "liner"', 16, "layer 2: kind 'liner' is none of convolution,"),
        ('kind = "linear"\n', "", 16, "layer 2: kind None is none of convolution,"),
        ("kernel = 3", "kernal = 3", 10, "layer 1: unknown key 'kernal'. Did you mean 'kernel'?"),
        ("kernel = 3", "kernel = -3", 10, "layer 1: kernel must be positive, not -3."),
        ("kernel = 3", "kernel = 3.5", 10, "layer 1: kernel must be a whole number, not 3.5."),
        ("kernel = 3", "kernel = true", 10, "layer 1: kernel must be a whole number, not True."),
        ("out_channels = 4\n", "", 10, "layer 1: out_channels is missing."),
        ("kernel = 3", "kernel = 3\nstride = 0", 10, "layer 1: stride must be positive, not 0."),
    ],
)
def test_a_fault_in_a_model_is_named(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in MODEL
    path = write(tmp_path, MODEL.replace(old, new, 1))
    with pytest.raises(DataFileError) as e:
        load_model(path)
    assert str(e.value).startswith(f"{path}:{line}: ")
    assert words in str(e.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MODEL.partition("[[layers]]")[0], "layers is missing."),
        ("layers = []\n" + MODEL.partition("[[layers]]")[0], "1: layers is empty"),
        ("layers = [3]\n" + MODEL.partition("[[layers]]")[0], "1: layer 1 must be a table, not 3."),
        (MODEL.replace("kernel = 3", "kernel = 30"), "layer first: a window of 30 does not fit"),
        (MODEL.replace("kernel = 3", "kernel = 3\ngroups = 2"), "layer first: 2 groups don't div"),
        (MODEL + "\n[figures]\nrelease_year = 2015\n", "22: figures.release_year must be a table"),
        (MODEL + "\n[figures]\nyear = 2015\n", "22: unknown key 'year'."),
    ],
)
def test_a_model_that_cannot_be_lowered_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataFileError) as e:
        load_model(path)
    assert str(e.value).startswith(str(path))
    assert words in str(e.value)
