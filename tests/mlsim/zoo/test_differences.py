"""`mlsim zoo diff`: what was added, removed and changed between two folders of data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mlsim.cli.command import main
from mlsim.errors import DataFileError
from mlsim.records import DATA
from mlsim.zoo.catalogue import differences, differences_as_text as as_text


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    """Return two copies of a device, a system and a network."""
    for name in ("old", "new"):
        for file in ("hardware/t4.toml", "systems/hgx_h100.toml", "workloads/lenet5_variant.toml"):
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(DATA / file, path)
    return tmp_path / "old", tmp_path / "new"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_equal_folders_do_not_differ_wherever_a_file_lies(folders) -> None:
    old, new = folders
    (new / "hardware" / "t4.toml").rename(new / "t4_of_nvidia.toml")
    assert differences(old, new) == differences(DATA, DATA) == []
    assert as_text([]) == "no differences"


def test_files_without_a_key_are_the_same_whatever_the_folders_are_called(folders) -> None:
    old, new = folders
    for folder in folders:
        shutil.copy(DATA / "scaling.toml", folder / "scaling.toml")
    assert differences(old, new) == []
    edit(new / "scaling.toml", "value = 1.69", "value = 1.96")
    assert [each.record for each in differences(old, new)] == ["data scaling"]
    for folder, size in {old: 3, new: 5}.items():
        (folder / "scaling.toml").write_text(f"layers = [2, {{ size = {size} }}]", encoding="utf-8")
    (found,) = differences(old, new)
    assert (found.record, str(found)) == ("model scaling", "~ layers.2: size 3 -> 5")


def test_a_changed_figure_tells_value_unit_and_source(folders) -> None:
    old, new = folders
    path = new / "hardware" / "t4.toml"
    head, table, rest = path.read_text(encoding="utf-8").partition("[memory.bandwidth]")
    rest = rest.replace("value = 320", "value = 0.3", 1).replace('"GB/s"', '"TB/s"', 1)
    was = rest.partition('source = "')[2].partition('"')[0]
    rest = rest.replace(f'source = "{was}"', 'source = "other2026"', 1)
    path.write_text(head + table + rest, encoding="utf-8")
    (found,) = differences(old, new)
    told = (found.record, found.entry, found.kind)
    assert told == ("device Cloud.T4", "memory.bandwidth", "changed")
    assert set(found.fields) == {"value", "unit", "source"}
    assert str(found) == (f"~ memory.bandwidth: 320 GB/s -> 0.3 TB/s, source {was} -> other2026")
    assert as_text([found]).splitlines() == ["device Cloud.T4", f"  {found}", "1 changed"]


def test_figures_that_came_and_went(folders) -> None:
    old, new = folders
    path = new / "hardware" / "t4.toml"
    text = path.read_text(encoding="utf-8")
    start = text.index("[power.tdp]")
    end = text.find("\n[", start)
    path.write_text(text[:start] + (text[end + 1 :] if end > 0 else ""), encoding="utf-8")
    (found,) = differences(old, new)
    assert found.kind == "removed"
    assert str(found).startswith("- power.tdp: 70 W [")
    (back,) = differences(new, old)
    assert back.kind == "added"
    assert str(back).startswith("+ power.tdp: 70 W [")


def test_records_layers_and_plain_keys(folders) -> None:
    old, new = folders
    (new / "systems" / "hgx_h100.toml").unlink()
    lenet = new / "workloads" / "lenet5_variant.toml"
    edit(lenet, "out_features = 60", "out_features = 84")
    edit(lenet, "size = 28", "size = 32")
    found = differences(old, new)
    lines = as_text(found).splitlines()
    assert "  ~ layers.fc2: out_features 60 -> 84" in lines
    assert "  ~ input.size: 28 -> 32" in lines
    gone = [each for each in found if each.record == "system HGX_H100"]
    assert {each.kind for each in gone} == {"removed"}
    assert {"link.bandwidth", "device", "devices"} <= {each.entry for each in gone}
    assert lines[-1] == f"{len(gone)} removed, 2 changed"


def test_json_and_text_from_the_shell(folders, capsys) -> None:
    old, new = map(str, folders)
    edit(Path(new) / "workloads" / "lenet5_variant.toml", "value = 1998", "value = 1989")
    assert main(["zoo", "diff", old, new]) == 0
    assert "  ~ figures.release_year: 1998 year -> 1989 year" in capsys.readouterr().out
    assert main(["zoo", "diff", old, new, "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert data["record"] == "model LeNet5_Variant"
    assert (data["kind"], data["fields"]) == ("changed", ["value"])
    assert (data["old"]["value"], data["new"]["value"]) == (1998, 1989)
    assert data["new"]["read"] == "2026-11-21"


def test_what_cannot_be_compared_is_refused(folders, tmp_path) -> None:
    old, new = folders
    with pytest.raises(DataFileError, match=r"there are no data files \(\*\.toml\)"):
        differences(old, tmp_path / "nowhere")
    shutil.copy(new / "hardware" / "t4.toml", new / "hardware" / "twice.toml")
    with pytest.raises(DataFileError, match=r"another file of device Cloud\.T4"):
        differences(old, new)
    (new / "hardware" / "twice.toml").write_text("key = ", encoding="utf-8")
    with pytest.raises(DataFileError, match=r"twice\.toml:1: "):
        differences(old, new)
