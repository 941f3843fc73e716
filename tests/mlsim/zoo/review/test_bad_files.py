"""Every kind of mistake in a user's file: said with its line, what is allowed, and the nearest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlsim.cli.command import main
from mlsim.records import DATA
from mlsim.zoo.review.file_report import validate_file

FILES = {
    "device": "hardware/t4.toml",
    "system": "systems/hgx_h100.toml",
    "cluster": "clusters/selene.toml",
    "network": "workloads/lenet5_variant.toml",
    "language": "workloads/llama3_8b.toml",
}
BANDWIDTH = r"\[memory\.bandwidth\]\n"
FIELD = r"(?P<keep>\[memory\.bandwidth\]\n.*?^){} = [^\n]*\n"


def field(name: str) -> str:
    """Return what finds a field of the bandwidth."""
    return FIELD.format(name)


# A kind of file, what is replaced by what, the line that begins so, and words of the message.
MISTAKES = [
    # Not TOML, or twice.
    ("device", r"key = ", "key ", "key ", "Expected '=' after a key"),
    ("device", r"\Z", "[memory.bandwidth]\n", "LAST", "twice"),
    ("device", r"^vendor = .*?\n", 'vendor = "x"\nvendor = "y"\n', 'vendor = "y"', "Cannot over"),
    # Keys.
    ("device", r"^vendor", "vendro", "vendro", "unknown key 'vendro'. Did you mean 'vendor'? All"),
    ("device", r"^\[power\.tdp\]", "[powr.tdp]", "[powr.tdp]", "Did you mean 'power'?"),
    ("device", r"^\[power\.tdp\]", "[power.tpd]", "[power.tpd]", "Did you mean 'tdp'? Allowed"),
    ("device", r"^\[compute\.fp16\]", "[compute.fp61]", "[compute.fp61]", "Allowed here: bf16"),
    ("device", r"^quote", "qoute", "qoute", "unknown key 'qoute'. Did you mean 'quote'?"),
    ("device", r"^vendor = .*?\n", "", 1, "vendor is missing."),
    ("device", r"^vendor = .*?\n", "vendor = 3\n", "vendor", "must be text in quotes, not 3."),
    ("device", r"^form = .*?\n", 'form = "bored"\n', "form", "module, board, system, not 'bored'"),
    ("device", r"^form = .*?\n", 'form = "bored"\n', "form", "Did you mean 'board'?"),
    # A figure.
    ("device", field("where"), r"\g<keep>", "[memory.bandwidth]", "lacks its where"),
    ("device", field("source"), r'\g<keep>source = ""\n', "[memory.bandwidth]", "lacks its source"),
    ("device", field("kind"), r'\g<keep>kind = "datashet"\n', 'kind = "datashet"', "'datasheet'?"),
    ("device", field("value"), r'\g<keep>value = "fast"\n', 'value = "fast"', "must be a number"),
    ("device", field("value"), r"\g<keep>value = true\n", "value = true", "must be a number"),
    ("device", field("value"), r"\g<keep>value = -1\n", "value = -1", "must be positive, not -1"),
    ("device", field("value"), r"\g<keep>value = 0\n", "value = 0", "must be positive, not 0"),
    (
        "device",
        field("value"),
        r"\g<keep>value = nan\n",
        "value = nan",
        "must be positive, not nan",
    ),
    (
        "device",
        field("value"),
        r"\g<keep>value = inf\n",
        "value = inf",
        "must be positive, not inf",
    ),
    ("device", field("unit"), r'\g<keep>unit = "GBps"\n', 'unit = "GBps"', "such as 'GB/s'"),
    ("device", field("unit"), r'\g<keep>unit = "GB"\n', 'unit = "GB"', "where B/s is expected"),
    ("device", field("read"), r'\g<keep>read = "May"\n', 'read = "May"', "date such as 2026-11-21"),
    (
        "device",
        BANDWIDTH + r".*?(?=^\[)",
        "[memory]\nbandwidth = 3\n",
        "bandwidth = 3",
        "value, un",
    ),
    # What a device needs, and what must be told apart.
    ("device", r"\[memory\.capacity\]\n.*?(?=^\[)", "", "[memory.", "[memory.capacity] is missing"),
    ("device", r'sparsity = "dense"', 'sparsity = "2:4"', "[compute.", "belongs in [sparse."),
    ("device", r'sparsity = "dense"\n', "", "[compute.", 'must say sparsity = "dense"'),
    ("device", r"direction = .*?\n", 'direction = "up"\n', "[links.", '"one-way" or "both ways"'),
    # What a checker knows.
    (
        "device",
        field("quote"),
        r'\g<keep>quote = "a b c d e f g h i j k l m n o p"\n',
        "[memory.bandwidth]",
        "16 words; 15",
    ),
    ("device", field("note"), r"\g<keep>", "[memory.bandwidth]", "needs a note"),
    ("device", field("unit"), r'\g<keep>unit = "TB/s"\n', "[memory.bandwidth]", "ridge point"),
    # A system and a cluster.
    ("system", r'^device = "', 'device = "Cloud.H1000', "device", "no device is called"),
    ("system", r'^device = "Cloud.H100"', 'device = "Cloud.H1000"', "device", "mean 'H100'?"),
    ("system", r"^devices = .*?\n", "devices = 1.5\n", "devices", "a whole number, not 1.5."),
    ("system", r"^devices = .*?\n", "devices = 0\n", "devices", "from 2 up, not 0"),
    ("system", r"^topology = .*?\n", 'topology = "swich"\n', "topology", "Did you mean 'switch'?"),
    ("system", r"^\[link\.bandwidth\]", "[link.bandwith]", "[link.bandwith]", "mean 'bandwidth'?"),
    ("system", r"^direction = .*?\n", "", "[link.bandwidth]", '"one-way" or "both ways"'),
    ("cluster", r'^node = "', 'node = "X', "node", "Did you mean"),
    ("cluster", r"^nodes = .*?\n", "nodes = true\n", "nodes", "a whole number, not True."),
    ("cluster", r"^nodes", "nods", "nods", "Did you mean 'nodes'?"),
    # A model.
    ("network", r'kind = "convolution"', 'kind = "convolutoin"', "[[layers]]", "'convolution'?"),
    ("network", r"out_channels = 6", "out_chanels = 6", "[[layers]]", "mean 'out_channels'?"),
    ("network", r"out_channels = 6", "out_channels = -6", "[[layers]]", "must be positive, not -6"),
    ("network", r"out_channels = 6", "out_channels = 6.5", "[[layers]]", "a whole number, not 6.5"),
    ("network", r"^size = .*?\n", "size = 2\n", 'name = "conv1"', "a window of 5 does not fit"),
    ("network", r"^size = .*?\n", "", "[input]", "input needs a size"),
    ("language", r"^kv_heads = .*?\n", "kv_heads = 7\n", "[attention]", "must divide heads = 32"),
    ("language", r"^kv_heads", "kv_head", "kv_head", "Did you mean 'kv_heads'?"),
    ("language", r"^hidden = .*?\n", 'hidden = "4096"\n', "hidden", "whole number, not '4096'"),
    ("language", r"^layers = .*?\n", "layers = -1\n", "layers", "must be 1 or more, not -1"),
]


def write(folder: Path, kind: str, old: str, new: str) -> tuple[Path, list[str]]:
    """Write a file of the zoo with one mistake; return its path and lines."""
    text = (DATA / FILES[kind]).read_text(encoding="utf-8")
    text, count = re.subn(old, new, text, count=1, flags=re.MULTILINE | re.DOTALL)
    assert count == 1, f"there is no {old!r} to be replaced"
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path, text.splitlines()


@pytest.mark.parametrize(("kind", "old", "new", "start", "words"), MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path, kind, old, new, start, words) -> None:
    path, lines = write(tmp_path, kind, old, new)
    remarks = [each for each in validate_file(path).remarks if each.level == "error"]
    told = [each for each in remarks if words in each.message]
    assert told, [str(each) for each in remarks]
    line = told[0].line
    assert line is not None
    if start == "LAST":
        assert line == len(lines)
    elif isinstance(start, int):
        assert line == start
    else:
        assert lines[line - 1].startswith(start)
    # The path is said once, by the report, and no Python type is named.
    assert str(tmp_path) not in told[0].message
    assert not re.search(r"\bmust be (int|str|bool|dict|list|float)\b", told[0].message)


def test_the_command_says_file_and_line_and_fails(tmp_path, capsys) -> None:
    path, lines = write(tmp_path, "device", r"^form = .*?\n", 'form = "bored"\n')
    line = next(n for n, text in enumerate(lines, 1) if text.startswith("form"))
    assert main(["zoo", "check", str(path)]) == 1
    said = f"{path}:{line}: form must be one of chip, module, board, system, not 'bored'."
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"\n\n", b'key = "A\xff"\n', b"\x00", b"[[[", b"key = 3"])
def test_what_is_hardly_a_file_is_refused_on_a_line(tmp_path, content: bytes) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    (remark,) = validate_file(path).remarks
    assert remark.level == "error"
    assert remark.line is not None


def test_what_is_no_text_is_said_with_its_line(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'key = "A"\nname = "\xff"\n')
    (remark,) = validate_file(path).remarks
    assert remark.line == 2
    assert "this is no UTF-8" in remark.message
