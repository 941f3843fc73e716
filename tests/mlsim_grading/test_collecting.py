"""What is handed in, as platforms, systems and students name and pack it; and whose it is."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import stat
import time
import tomllib
import tracemalloc
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import zips
from kept import FIXTURES, text

from mlsim_book.cli import main
from mlsim_book.errors import SourceError
from mlsim_grading.archives import Archive, ArchiveError
from mlsim_grading.assignment import make_assignment
from mlsim_grading.class_lists import Roster, Student
from mlsim_grading.grade import _result
from mlsim_grading.matching import Matcher, Named, People, Whose, as_known, read_matches
from mlsim_grading.process import Ran
from mlsim_grading.submissions import Claim, Collected, Handed, find_submissions, read_submission

JUDGE = bool(os.environ.get("MLSIM_JUDGE"))
NOTEBOOK = b'{"cells": []}'
CLASS = Roster(
    (
        Student("Ada Lovelace", ids=("4711", "ada@uni.example")),
        Student("José García Márquez", ids=("4712",)),
        Student("Ann Lee", ids=("4713",)),
        Student("Müller, Jörg", ids=("4714",), also=("Joerg Mueller",)),
        Student("Week", ids=("4715",)),
        Student("Anna Lee Smith", ids=("4716",)),
        Student("O'Brien, Pat", ids=("4717",)),
    )
)


def folder(tmp_path: Path, *names: str, data: bytes = NOTEBOOK) -> Path:
    """A folder with notebooks of these names."""
    place = tmp_path / "submissions"
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


def matched(
    found: Collected,
    inside: Mapping[str, str] | None = None,
    roster: Roster = CLASS,
    title: str = "Week 2",
) -> dict[str, Whose]:
    """Whose each file is."""
    matcher = Matcher([], roster, title)
    return {
        each.name: matcher.whose(each, (inside or {}).get(each.name, "")) for each in found.handed
    }


def students(found: Collected) -> dict[str, str]:
    """The student of each file."""
    return {name: whose.student for name, whose in matched(found).items()}


WHOSE = tomllib.loads((FIXTURES / "cases" / "whose_files.toml").read_text(encoding="utf-8"))


# -------------------------------------------------------------------- as platforms do
MOODLE = {
    "Ada Lovelace_998_assignsubmission_file_/Week 2.ipynb": "Ada Lovelace",
    "Lee Ann_997_assignsubmission_file/homework/mine.IPYNB": "Ann Lee",
    "Jörg Müller_996_assignsubmission_file_Week 2.ipynb": "Müller, Jörg",
    "García Márquez José_995_assignsubmission_file_/a.ipynb": "José García Márquez",
    "Week_994_assignsubmission_file_/Ada Lovelace.ipynb": "Week",
    "Pat OBrien_993_assignsubmission_file_/b.ipynb": "O'Brien, Pat",
}


@pytest.mark.parametrize("how", ["folder", "zip", "zip in a folder", "zip with a folder around"])
def test_moodle(tmp_path: Path, how: str) -> None:
    text = "Ada Lovelace_998_assignsubmission_onlinetext_/onlinetext.html"
    around = "CS1-Week 2-4711/" if how == "zip with a folder around" else ""
    for form in ("NFC", "NFD"):
        names = [unicodedata.normalize(form, around + name) for name in (*MOODLE, text)]
        if how == "folder":
            place = folder(tmp_path / form, *names)
        else:
            within = folder(tmp_path / form, *([] if how == "zip in a folder" else ["other/x"]))
            within.mkdir(parents=True, exist_ok=True)
            place = zips.write(within / "CS1-Week 2-4711.zip", dict.fromkeys(names, NOTEBOOK))
            place = within if how == "zip in a folder" else place
        found = find_submissions(place)
        said = {Path(name).name: student for name, student in students(found).items()}
        assert said == {Path(name).name: student for name, student in MOODLE.items()}
        assert all(whose.by == "platform" for whose in matched(found).values())
        assert [each.reason for each in found.passed] == ["no notebook (.ipynb)"]


def test_whose_files_are(tmp_path: Path) -> None:
    for number, case in enumerate(WHOSE["folder"]):
        passed = case.get("passed", [])
        found = find_submissions(folder(tmp_path / str(number), *case["whose"], *passed))
        assert [each.name for each in found.passed] == passed
        listed = (Student(name, ids=(own,)) for name, own in case.get("class", ()))
        roster = Roster(tuple(listed)) if "class" in case else CLASS
        said = matched(found, case.get("inside"), roster)
        assert {
            name: each.student or [each.undecided, *each.candidates] for name, each in said.items()
        } == case["whose"], case["name"]
        claims = {each.name: each.claim for each in found.handed if each.claim}
        assert {name for name, each in claims.items() if each.late} == {*case.get("late", ())}
        for name, counted in case.get("attempts", {}).items():
            assert [claims[name].attempt, claims[name].order] == counted
        assert {each.by for each in said.values()} >= {*case.get("by", ())}


METADATA = text("submission_metadata.yml")


@pytest.mark.parametrize("around", ["", "assignment_55_export/"])
def test_gradescope(tmp_path: Path, around: str) -> None:
    files = {
        "submission_metadata.yml": METADATA, "submission_101/hw.ipynb": NOTEBOOK,
        "submission_102/Ada Lovelace.ipynb": NOTEBOOK, "submission_103/hw.ipynb": NOTEBOOK,
        # a student's own list says nothing
        "submission_101/submission_metadata.yml": METADATA,
    }  # fmt: skip
    place = zips.write(tmp_path / "x.zip", {around + name: data for name, data in files.items()})
    found = find_submissions(place)
    matcher = Matcher([], CLASS)
    said = [
        (each.claim and each.claim.handed_at, matcher.whose(each).student) for each in found.handed
    ]
    assert said == [
        ("2026-11-02T10:01:02-07:00", "Ada Lovelace"),
        ("2026-11-02T18:00:00+00:00", "José García Márquez"),  # one file, two who handed it in
        ("2026-11-02T18:00:00+00:00", "Ann Lee"),
        (None, ""),
    ]
    assert len({each.key for each in found.handed}) == 4


def test_gradescope_lists_that_say_nothing(tmp_path: Path) -> None:
    for said in ["[", "a: &x [*x]", "submission_101: 3", "- 1", "\0", "x: {:submitters: 3}"]:
        files = {"submission_metadata.yml": said, "submission_101/Ann Lee.ipynb": NOTEBOOK}
        found = find_submissions(zips.write(tmp_path / "x.zip", files))
        assert list(students(found).values()) == ["Ann Lee"], said


# ------------------------------------------------------------------ as people name them
def test_names(tmp_path: Path) -> None:
    """Also with accents apart from their letters, as macOS writes them."""
    cases = [each.split("\t") for each in text("names_of_files.tsv").splitlines() if "\t" in each]
    assert len(cases) > 30
    for number, (name, student) in enumerate(cases):
        for form in ("NFC", "NFD"):
            place = folder(tmp_path / f"{number}{form}", unicodedata.normalize(form, name))
            (found,) = matched(find_submissions(place)).values()
            assert found.student == student, (name, found)
            assert bool(found.undecided) == (not student)


def test_names_in_names_and_addresses_in_addresses(tmp_path: Path) -> None:
    lees = People([Student("Ann Lee"), Student("Lee")])
    assert lees.named("Lee, Ann - hw2") == Named(frozenset({"Ann Lee"}))
    assert lees.named("Lee - hw2") == Named(frozenset({"Lee"}))
    mails = People([Student("Bo", ids=("ada@u.x",)), Student("Xi", ids=("x_ada@u.x",))])
    assert mails.named("hw_x_ada@u.x").students == {"Xi"}
    assert mails.named("hw_ada@u.x").students == {"Bo"}
    # who has no accents in the file's name, and is said to have some on the list
    found = matched(find_submissions(folder(tmp_path, "Jorg Muller.ipynb", "Joerg Mueller.ipynb")))
    assert {name: each.notes for name, each in found.items()} == {
        "Joerg Mueller.ipynb": (),  # the list has it so, too
        "Jorg Muller.ipynb": ("taken for Müller, Jörg, whose name has accents",),
    }


def test_what_a_platform_says_by_name_and_numbers() -> None:
    """Both must say the same of a student; numbers of two students say nothing of either."""
    ada, jose = "Ada Lovelace", "José García Márquez"
    nobody = "no student of the list is named by the file or in it"
    for name, ids, student, undecided, candidates in [
        (ada, ("4711",), ada, "", ()),
        ("", ("4711", "ada@uni.example"), ada, "", ()),
        ("", ("4711", "none"), ada, "", ()),  # a number that nobody has says nothing
        ("Ann Lee", ("9999",), "Ann Lee", "", ()),
        ("", ("4711", "4712"), "", "X gives numbers of different students", (ada, jose)),
        (ada, ("4711", "4712"), "", "X gives numbers of different students", (ada, jose)),
        (ada, ("4712",), "", f"X's name is {ada}'s, its number {jose}'s", (ada, jose)),
        ("Ada Eve", (), "", "X says Ada Eve, who is not on the class list", (ada,)),
        ("", ("9999",), "", nobody, ()),
    ]:
        claim = Claim("X", name, ids)
        found = Matcher([], CLASS).whose(Handed(Path("x"), ("x",), b"x", name="x", claim=claim))
        said = (found.student, found.undecided, found.candidates)
        assert said == (student, undecided, candidates), (name, ids)
        assert found.by == ("platform" if student else "")
    # a notebook that was made for another
    claim = Claim("X", ada, ("4711",))
    handed = Handed(Path("x"), ("x",), b"x", name="x", claim=claim)
    differs = Matcher([], CLASS).whose(handed, "Ann Lee")
    assert differs.undecided == f"X says {ada}, the notebook was made for Ann Lee"
    within = replace(handed, parts=("Ann Lee", "x"), claimed_at=1)
    differs = Matcher([], CLASS).whose(within, "Eve")
    assert differs.undecided == f"'Ann Lee' says Ann Lee, X says {ada}"
    named = replace(handed, parts=(ada, "x"), claimed_at=1)
    differs = Matcher([], CLASS).whose(named, "Eve")  # the folder says so, not the platform
    assert differs.undecided == f"the file's name says {ada}, the notebook was made for Eve"


def test_a_student_cant_pass_for_another_by_a_name_within(tmp_path: Path) -> None:
    forged = zips.zipped({"Ada Lovelace_998_assignsubmission_file_/x.ipynb": NOTEBOOK})
    place = folder(tmp_path, "Ann Lee_2_assignsubmission_file_/mine.zip", data=forged)
    assert list(students(find_submissions(place)).values()) == ["Ann Lee"]
    # where the outer name is the instructor's, the two are shown to differ
    place = folder(tmp_path / "b", "Ann Lee.zip", data=forged)
    (place / "Pat O'Brien.ipynb").write_bytes(NOTEBOOK)
    whose = matched(find_submissions(place))[
        "Ann Lee.zip/Ada Lovelace_998_assignsubmission_file_/x.ipynb"
    ]
    assert whose.undecided == "'Ann Lee.zip' says Ann Lee, Moodle says Ada Lovelace"


def test_without_a_list_folders_tell_apart_what_names_do_not(tmp_path: Path) -> None:
    def labels(*names: str) -> list[str]:
        place = folder(tmp_path / names[0].replace("/", "-"), *names)
        matcher = Matcher([])
        return [matcher.whose(each).student for each in find_submissions(place).handed]

    assert labels("ada.ipynb", "week3_bo.ipynb") == ["ada", "week3_bo"]
    assert labels("in/ada/hw.ipynb", "in/bo/hw.ipynb") == ["ada", "bo"]
    assert labels("in/late/ada.ipynb", "in/bo.ipynb") == ["bo", "ada"]
    assert labels("Ada L_7_assignsubmission_file_/hw.ipynb") == ["Ada L"]


def test_the_instructor_decides(tmp_path: Path) -> None:
    path = tmp_path / "matches.csv"
    assert read_matches(path, ["Ada"]) == {}
    path.write_bytes(
        "File;Student;why\nJosé.ipynb;ADA;mail\n'=x.ipynb;Ada\n;;\ny.ipynb;\n;Ada;\n".encode(
            "cp1252"
        )
    )
    decided = read_matches(path, ["Ada"])
    assert decided == {"José.ipynb": "Ada", "=x.ipynb": "Ada"}
    found = find_submissions(folder(tmp_path, "José.ipynb"))
    matcher = Matcher(["Ada", "Bo"], decided=decided)
    assert matcher.whose(found.handed[0], "Bo") == Whose("Ada", "matches.csv")
    assert matcher.hopeless(found.handed[0]) == ""
    path.write_text("file,student\nx,Eve\n")
    with pytest.raises(SourceError, match="'Eve' is not on the class list") as caught:
        read_matches(path, ["Ada"])
    assert caught.value.line == 2
    path.write_text("file,who\nx,Eve\n")
    with pytest.raises(SourceError, match="there is no column student"):
        read_matches(path, ["Ada"])


# ---------------------------------------------------------------------- what is left
def test_what_systems_leave_is_listed(tmp_path: Path) -> None:
    names = [
        "Ann Lee/hw.ipynb", "Ann Lee/._hw.ipynb", "Ann Lee/.DS_Store", "Thumbs.db", "desktop.ini",
        "Ann Lee/.ipynb_checkpoints/hw-checkpoint.ipynb", "__MACOSX/Ann Lee/._hw.ipynb",
        "__MACOSX/b", "essay.pdf", "work.tar.gz", "hw.ipynb.txt", ".hidden.ipynb",
    ]  # fmt: skip
    wanted = {
        "Ann Lee/._hw.ipynb": "macOS's own file", "Ann Lee/.DS_Store": "macOS's own file",
        "Thumbs.db": "Windows's own file", "desktop.ini": "Windows's own file",
        "Ann Lee/.ipynb_checkpoints": "Jupyter's own copies", "__MACOSX": "macOS's own folder",
        "essay.pdf": "no notebook (.ipynb)", "hw.ipynb.txt": "no notebook (.ipynb)",
        "work.tar.gz": "this kind of archive is not opened: make a zip", ".hidden.ipynb": "hidden",
    }  # fmt: skip
    packed = zips.write(tmp_path / "all.zip", dict.fromkeys(names, NOTEBOOK))
    for place in (folder(tmp_path, *names), packed):
        found = find_submissions(place)
        assert [each.name for each in found.handed] == ["Ann Lee/hw.ipynb"]
        assert {each.name.rstrip("/"): each.reason for each in found.passed} == wanted


def test_a_thousand_files_are_summed_up(tmp_path: Path) -> None:
    files = {f"Ann Lee/venv/lib/{number}.py": b"" for number in range(1000)}
    found = find_submissions(zips.write(tmp_path / "x.zip", {**files, "Ann Lee/a.ipynb": NOTEBOOK}))
    assert len(found.passed) == 31
    assert found.passed[-1].name == "Ann Lee/ and 970 more files"


def test_no_notebook_says_what_there_was(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no notebook.*\n.*essay\.pdf: no notebook"):
        find_submissions(folder(tmp_path, "essay.pdf"))
    with pytest.raises(SourceError, match="no such folder or zip"):
        find_submissions(tmp_path / "none")
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(SourceError, match="no zip that can be read"):
        find_submissions(tmp_path / "x.zip")


# ------------------------------------------------------------------------------ zips
def test_students_zips(tmp_path: Path) -> None:
    place = folder(tmp_path, "4711.zip", data=zips.zipped({"deep/er/hw.IPYNB": NOTEBOOK}))
    inner = zips.zipped({"hw.ipynb": NOTEBOOK})
    (place / "Ann Lee.ZIP").write_bytes(zips.zipped({"again.zip": inner}))
    (place / "O'Brien Pat.zip").write_bytes(zips.zipped({"a.zip": zips.zipped({"b.zip": inner})}))
    found = find_submissions(place)
    assert students(found) == {
        "4711.zip/deep/er/hw.IPYNB": "Ada Lovelace",
        "Ann Lee.ZIP/again.zip/hw.ipynb": "Ann Lee",
        "O'Brien Pat.zip/a.zip/b.zip": "O'Brien, Pat",
    }
    assert [read_submission(each) for each in found.handed] == [
        (NOTEBOOK, ""), (NOTEBOOK, ""), (b"", "a zip in a zip in a zip is not opened"),
    ]  # fmt: skip


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no zip that can be read"),
    "text": (b"hello", "no zip that can be read"),
    "no notebook": (zips.zipped({"a.txt": "x"}), "no notebook (.ipynb) in this zip"),
    "traversal": (zips.zipped({"../../a.ipynb": "{}"}), "leads out of the zip"),
    "backslashes": (zips.zipped({"..\\..\\a.ipynb": "{}"}), "leads out of the zip"),
    "absolute": (zips.zipped({"/etc/a.ipynb": "{}"}), "leads out of the zip"),
    "drive": (zips.zipped({"C:\\a.ipynb": "{}"}), "leads out of the zip"),
    "link": (zips.link("a.ipynb"), "a link is not followed"),
    "pipe": (zips.special("a.ipynb", stat.S_IFIFO), "this is no file"),
    "device": (zips.special("a.ipynb", stat.S_IFCHR), "this is no file"),
    "encrypted": (zips.encrypted("a.ipynb"), "encrypted"),
    "checksum": (zips.damaged("a.ipynb"), "isn't what its checksum says"),
    "method": (zips.patched(zips.zipped({"a.ipynb": "{}"}), 10, 14), "packed in an unusual way"),
    "swells": (zips.zipped({"a.ipynb": b"0" * 20_000_000}), "it swells more"),
    "says less": (zips.patched(zips.zipped({"a.ipynb": b"0" * 10**6}), 24, 9, "<L"), "checksum"),
    "says more": (zips.patched(zips.zipped({"a.ipynb": b"ab"}), 24, 9, "<L"), "checksum"),
    "64 bits": (zips.wide_lies("a.ipynb"), ""),
    "elsewhere": (zips.patched(zips.zipped({"a.ipynb": "{}"}), 42, 2**31, "<L"), "damaged"),
    "many": (zips.zipped({f"{n}.ipynb": "{}" for n in range(21)}), "21 notebooks: hand in one"),
    "zips": (zips.zipped({f"{n}.zip": zips.zipped({"a.ipynb": "{}"}) for n in range(2)}), "zips in"),
    "many by another's name": (
        zips.zipped({
            "Ada Lovelace_1_assignsubmission_file_/a.ipynb": "{}",
            **{f"{n}.ipynb": "{}" for n in range(21)},
        }),
        "21 notebooks",
    ),
    "overlap": (zips.overlapping(50, 10**6), "overlap"),
    "cut off": (zips.zipped({"a.ipynb": "{}"})[-60:], "zip"),
    "huge directory": (
        zips.zipped({"a.ipynb": "{}"})[:-10] + b"\xff\xff\xff\x7f" + bytes(6), "directory has"),
}  # fmt: skip


def test_zips_that_nobody_should_make(tmp_path: Path) -> None:
    """Each gives its own student a note, and nobody else anything."""
    for case, (data, words) in BAD.items():
        place = folder(tmp_path, "Ann Lee.zip", data=data)
        (place / "Ada Lovelace.ipynb").write_bytes(NOTEBOOK)
        fine, *bad = find_submissions(place).handed
        assert read_submission(fine) == (NOTEBOOK, "")
        assert bad, case
        for each in bad:
            content, trouble = read_submission(each)
            assert (content, words in trouble) == (b"", True), case
            assert trouble, case
            assert Matcher([], CLASS).whose(each).student == "Ann Lee", case
        assert [each.name for each in tmp_path.iterdir()] == ["submissions"], case


def test_two_files_of_one_name_and_many_of_one_student(tmp_path: Path) -> None:
    path = zips.write(tmp_path / "x.zip", {"Ann Lee.ipynb": "1", "Ann Lea.ipynb": "2"})
    path.write_bytes(path.read_bytes().replace(b"Lea", b"Lee"))
    found = find_submissions(path).handed
    assert len({each.key for each in found}) == 2
    assert {read_submission(each)[1] for each in found} == {"the zip holds two files of this name"}
    many = {f"Ann Lee_1_assignsubmission_file_/{n}.ipynb": NOTEBOOK for n in range(500)}
    many["Ada Lovelace_2_assignsubmission_file_/a.ipynb"] = NOTEBOOK
    found = find_submissions(zips.write(path, many)).handed
    assert len(found) == 2
    assert read_submission(found[1])[1] == "500 notebooks were handed in: hand in one"


def test_names_without_end_cost_no_time(tmp_path: Path) -> None:
    long = ["lee_" * 15_000, "a_1_1_" + "-1." * 20_000, "a/" * 30_000 + "b", "_1" * 30_000]
    place = folder(tmp_path, "Ann Lee.zip", data=zips.zipped({f"{n}.ipynb": b"{}" for n in long}))
    started = time.process_time()
    assert set(students(find_submissions(place)).values()) == {"Ann Lee"}
    assert time.process_time() - started < 5


def test_names_in_zips_of_any_program(tmp_path: Path) -> None:
    name = "Jörg Müller.ipynb"
    apart = unicodedata.normalize("NFD", name).encode()
    for raw in (apart, *map(name.encode, ("utf-8", "cp437", "cp850", "cp1252"))):
        (tmp_path / "x.zip").write_bytes(zips.with_raw_name(raw, NOTEBOOK))
        found = find_submissions(tmp_path / "x.zip")
        assert students(found) == {name: "Müller, Jörg"}
        assert read_submission(found.handed[0]) == (NOTEBOOK, "")
    # one odd name does not lose a class's zip: it is flagged as UTF-8, and isn't
    data = zips.zipped({"Ann Lee.ipynb": NOTEBOOK, "é.ipynb": NOTEBOOK})
    (tmp_path / "x.zip").write_bytes(data.replace("é.ipynb".encode(), b"\xff\xfe.ipynb"))
    assert sorted(students(find_submissions(tmp_path / "x.zip")).values()) == ["", "Ann Lee"]


def test_bombs_take_no_memory_and_no_time(tmp_path: Path) -> None:
    place = folder(tmp_path, "Ann Lee.zip", data=zips.zipped({"a.ipynb": b"0" * 20_000_000}))
    (place / "4711.zip").write_bytes(
        zips.patched(zips.zipped({"a.ipynb": b"0" * 20_000_000}), 24, 60_000, "<L")
    )
    tracemalloc.start()
    started = time.process_time()
    for each in find_submissions(place).handed:
        assert read_submission(each)[1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert time.process_time() - started < 5


def test_any_zip_is_read_or_refused_in_words(tmp_path: Path) -> None:
    """Zips with bytes changed, cut and joined give files or an `ArchiveError`, and nothing else."""
    seed = random.Random(2207)
    good = [
        zips.zipped({"Ann Lee.ipynb": NOTEBOOK, "b/é.ipynb": os.urandom(300), "c.txt": "x" * 900}),
        zips.wide_lies("a.ipynb"), zips.with_raw_name(b"\xe9\xfc.ipynb"), zips.link("l.ipynb"),
        zips.zipped({"in.zip": zips.zipped({"x.ipynb": NOTEBOOK})}),
    ]  # fmt: skip
    for _ in range(5000 if JUDGE else 500):
        data = bytearray(seed.choice(good))
        for _ in range(seed.randrange(1, 8)):
            at = seed.randrange(len(data))
            data[at : at + seed.choice([1, 1, 2, 4])] = seed.randbytes(seed.choice([1, 1, 1, 4, 0]))
        with contextlib.suppress(ArchiveError):
            archive = Archive(bytes(data))
            for entry in archive.entries:
                with contextlib.suppress(ArchiveError):
                    assert len(archive.read(entry.number, 10**6)) <= 10**6


# ---------------------------------------------------------------------- the command
def test_a_newer_list_may_write_names_in_another_way() -> None:
    newer = Roster((
        Student("Lovelace, Ada"), Student("Somebody", ids=("4712",)), Student("New, Bo"),
        Student("Lee, Ann"), Student("ann lee"),
    ))  # fmt: skip
    known = as_known(newer, CLASS.names, CLASS)
    # two that could be one are left as they are
    assert known.names == ["Ada Lovelace", "José García Márquez", "New, Bo", "Lee, Ann", "ann lee"]
    assert known.students[1].also == ("Somebody",)


QUESTION = text("litres.exercises.toml")


def test_from_a_class_list_to_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [index.qmd]}\n")
    (tmp_path / "index.qmd").write_text("# A\n")
    (tmp_path / "x.exercises.toml").write_text(QUESTION)
    (tmp_path / "class.csv").write_bytes(
        "Vorname;Nachname;E-Mail-Adresse;Gruppe\nAda;Lovelace;a@x;1\nJosé;Díaz;j@x;2\n"
        "Bo;Li;b@x;2\n".encode("cp1252")
    )
    week = tmp_path / "week"
    listed = ["--variant-by", str(tmp_path / "class.csv"), "--id", "e-mail-adresse"]
    command = ["assign", str(tmp_path / "x.exercises.toml"), "--out", str(week), *listed]
    assert main([*command, "--root", str(tmp_path)]) == 0
    assert "read as CP1252" in capsys.readouterr().out
    solved = {path.stem: path.read_bytes() for path in (week / "solutions").iterdir()}
    place = zips.write(
        tmp_path / "A-1.zip",
        {
            "Ada Lovelace_1_assignsubmission_file_/hw.ipynb": solved["Ada_Lovelace"],
            "Díaz José_2_assignsubmission_file_/hw.ipynb": solved["Bo_Li"],
            "Eve_3_assignsubmission_file_/hw.ipynb": solved["Bo_Li"],
            "__MACOSX/._x": b"",
        },
    )
    command = ["grade", str(week), "--submissions", str(place)]
    assert main(command) == 0
    assert "1 of 3 submissions graded, 1 with all points" in capsys.readouterr().out
    rows = (week / "results" / "results.csv").read_text().splitlines()
    assert rows[0].endswith("notes,Vorname,Nachname,E-Mail-Adresse,Gruppe")
    assert re.match("Ada Lovelace,Ada Lovelace_1_.*Ada,Lovelace,a@x,1$", rows[1])
    perhaps = "Díaz José_2_assignsubmission_file_/hw.ipynb may be theirs: see not_graded.csv"
    assert f"Bo Li,,0,2,,,{perhaps},Bo,Li,b@x,2" in rows
    table = (week / "results" / "not_graded.csv").read_text().splitlines()
    assert table[0] == "file,reason,may be from,student"
    assert table[1].endswith(",Bo Li; José Díaz,")
    assert table[2].startswith('Eve_3_assignsubmission_file_/hw.ipynb,"Moodle says Eve, who is')
    assert table[3] == "__MACOSX/,macOS's own folder,,"
    # a word of the instructor's, and the file is judged, by the numbers of whoever it is
    (week / "matches.csv").write_text(
        "file,student\nDíaz José_2_assignsubmission_file_/hw.ipynb,Bo Li\n"
    )
    assert main(command) == 0
    assert "2 of 3 submissions graded, 2 with all points" in capsys.readouterr().out
    (tmp_path / "newer.csv").write_text('Student,Section\n"Lovelace, Ada",B\n"Late, Zoe",C\n')
    assert main([*command, "--students", str(tmp_path / "newer.csv")]) == 0
    rows = (week / "results" / "results.csv").read_text().splitlines()
    assert rows[0].endswith("notes,Student,Section")
    assert re.match('Ada Lovelace,.*,"Lovelace, Ada",B$', rows[1])
    assert rows[-1].startswith('"Late, Zoe",,0,2,')
    assert main([*command, "--id", "Group"]) == 1
    assert "no column 'Group'" in capsys.readouterr().err


def test_a_result_says_when_it_was_handed_in(tmp_path: Path) -> None:
    files = {"submission_metadata.yml": METADATA, "submission_101/hw.ipynb": NOTEBOOK}
    (handed,) = find_submissions(zips.write(tmp_path / "x.zip", files)).handed
    result = _result(handed, make_assignment("A", []), Ran(), Matcher([], CLASS))
    assert (result.student, result.by, result.late) == ("Ada Lovelace", "platform", False)
    assert result.handed_at == "2026-11-02T10:01:02-07:00"
    assert result.packed_at[:4].isdigit()


def test_odd_files_do_not_stop_the_others(tmp_path: Path) -> None:
    """A pipe, a link and a folder without rights among submissions, found without waiting."""
    place = folder(tmp_path, "Ann Lee.ipynb")
    os.mkfifo(place / "Ada Lovelace.zip")
    os.mkfifo(place / "O'Brien Pat.ipynb")
    (place / "loop").symlink_to(place)
    (place / "Week.zip").symlink_to("/etc/passwd")
    found = find_submissions(place)
    said = {each.name: read_submission(each)[1] for each in found.handed}
    assert said == {
        "Ada Lovelace.zip": "this is no file",
        "Ann Lee.ipynb": "",
        "O'Brien Pat.ipynb": "this is no file",
        "Week.zip": "a link is not followed: hand in the file itself",
    }
    assert [each.name for each in found.passed] == ["loop"]
    assert json.loads(read_submission(found.handed[1])[0]) == {"cells": []}
