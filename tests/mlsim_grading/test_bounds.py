"""What is bounded, at its bound and one beyond: names, folders, files and tables of strangers."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import pytest
import zips

from mlsim_book.errors import SourceError
from mlsim_grading.archives import Archive, ArchiveError, _name, directory
from mlsim_grading.class_lists import Student, forms, read_roster
from mlsim_grading.grade import Left, told
from mlsim_grading.matching import People
from mlsim_grading.runner import read_notebook
from mlsim_grading.submissions import canvas, find_submissions, gradescope, moodle, read_submission
from mlsim_grading.tables import read_table
from mlsim_grading.walls import choose
from mlsim_grading.walls.supervise import Limits


def test_names_of_files_and_people() -> None:
    words = [f"w{chr(97 + each)}" for each in range(13)]
    assert len(forms(" ".join(words[:12]))) == 12  # each surname may be first
    assert len(forms(" ".join(words))) == 1
    rest = "_7_assignsubmission_file_"
    assert moodle("a" * (500 - len(rest)) + rest)
    assert moodle("a" * (501 - len(rest)) + rest) is None
    rest = "_7_815_hw.ipynb"
    assert canvas("a" * (500 - len(rest)) + rest)
    assert canvas("a" * (501 - len(rest)) + rest) is None
    ann = People([Student("Ann Lee", ids=("123", "4711"))])
    filler = "Ann Lee" + "-" * 493
    assert (len(filler), ann.named(filler).students) == (500, {"Ann Lee"})
    assert ann.named(f"{filler}-").students == frozenset()
    # a number of three digits may be anything
    assert ann.named("hw 4711").students == {"Ann Lee"}
    assert ann.named("hw 123").students == frozenset()
    # of many who share a word, four are named; of two letters, none
    same = People([Student(f"Bo Li{letter}") for letter in "abcdef"] + [Student("Li Bo Xyz")])
    assert same.like(["xyz"]) == ("Li Bo Xyz",)
    assert same.like(["bo"]) == ()
    many = People([Student(f"Lee {letter * 3}") for letter in "fedcba"])
    assert many.like(["lee"]) == ("Lee aaa", "Lee bbb", "Lee ccc", "Lee ddd")


def test_what_is_usual_and_what_a_zip_may_say() -> None:
    assert Limits() == Limits(10, 30, 4 * 2**30, 64 * 2**20, 256 * 2**20, 32, 2000)
    for many, more in [(10, 0), (11, 1)]:
        lines = list(told([Left(f"{number}.ipynb", "empty") for number in range(many)], "p"))
        assert lines.count("WARN: and 1 more notebooks") == more
    for size, said in [(64_000_000, "the zip is cut off"), (64_000_001, "has 64,000,001 bytes")]:
        end = struct.pack("<4s8xLLH", b"PK\x05\x06", size, 0, 0)
        with pytest.raises(ArchiveError, match=said):
            directory(io.BytesIO(end))
    for version, name in [
        (1, "Jörg"),
        (2, "J"),
    ]:  # Unicode's own field, of the one version there is
        extra = struct.pack("<BL", version, zlib.crc32(b"J")) + "Jörg".encode()
        extra = struct.pack("<HH", 0x7075, len(extra)) + extra
        assert _name(b"J", extra, utf_8=False) == name


def test_who_handed_one_file_in_on_gradescope() -> None:
    people = "".join(f"  - :name: N{number}\n" for number in range(21))
    (claims,) = gradescope(f"submission_1:\n  :submitters:\n{people}".encode()).values()
    assert [claims[0].name, len(claims), claims[-1].name] == ["N0", 20, "N19"]
    for given, at in [
        ("2026-11-02 10:01:02 -07:00", "2026-11-02T10:01:02-07:00"),
        ("2026-11-02 10:01:02 +0530", "2026-11-02T10:01:02+05:30"),
        ("2026-11-02T10:01:02.5 UTC", "2026-11-02T10:01:02+00:00"),
        ("2026-11-02 10:01:02", "2026-11-02T10:01:02"),
        ("yesterday", ""),
    ]:
        text = f"submission_1:\n  :submitters:\n  - :name: A\n  :created_at: {given}\n"
        ((claim,),) = gradescope(text.encode()).values()
        assert claim.handed_at == at


def test_folders_in_folders(tmp_path: Path) -> None:
    for depth, words in [(20, ""), (21, "too many folders in folders")]:
        place = tmp_path / str(depth)
        (place / "/".join("f" * depth)).mkdir(parents=True)
        (place / "/".join("f" * depth) / "a.ipynb").write_text("{}")
        (found,) = find_submissions(place).handed
        assert found.trouble == words
    for depth, words in [(39, ""), (40, "too many folders in folders")]:
        (entry,) = Archive(zips.zipped({"f/" * depth + "a.ipynb": "{}"})).entries
        assert entry.trouble == words
        assert len(entry.parts) == (1 if words else 40)


def test_bytes_of_a_notebook_and_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "hw").mkdir()
    for path, size, words in [
        (tmp_path / "hw" / "a.ipynb", 64_000_000, ""),
        (tmp_path / "hw" / "a.ipynb", 64_000_001, "the file is larger than 64 MB"),
        (tmp_path / "a.csv", 32_000_000, "no table of text"),
        (tmp_path / "a.csv", 32_000_001, "larger than 32 MB"),
    ]:
        with path.open("wb") as file:
            file.truncate(size)
        if path.suffix == ".ipynb":
            assert read_submission(find_submissions(path.parent).handed[0])[1] == words
        else:
            with pytest.raises(SourceError, match=words):
                read_table(path)


def test_notebooks_of_one_zip_and_letters_of_a_name(tmp_path: Path) -> None:
    place = tmp_path / "hw"
    place.mkdir()
    for count, words in [(20, ""), (21, "the zip holds 21 notebooks: hand in one; if it is a")]:
        data = zips.zipped({f"{number}.ipynb": "{}" for number in range(count)})
        (place / "Ann Lee.zip").write_bytes(data)
        (place / "Bo.ipynb").write_text("{}")
        found = find_submissions(place).handed
        assert len(found) == (2 if words else 21)
        assert found[0].trouble.startswith(words)
    path = tmp_path / "class.csv"
    path.write_text(f"student\n{'x' * 200}\n")
    assert read_roster(path).names == ["x" * 200]
    path.write_text(f"student\n{'x' * 201}\n")
    with pytest.raises(SourceError, match="201 characters"):
        read_roster(path)


def test_brackets_of_a_notebook() -> None:
    for count, said in [(10**6, "the file is JSON, but no notebook"), (10**6 + 1, "too many")]:
        assert said in read_notebook(b"[" + b"[]," * (count - 2) + b"[]]").trouble


def test_where_there_is_no_linux_an_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose.sys, "platform", "darwin")
    for engines, named in [([], "docker"), (["podman", "docker"], "podman")]:
        monkeypatch.setattr(choose, "engines", lambda engines=engines: engines)
        assert choose._advice([]).startswith(f"Install {named}, start it, then: ")
