"""Class lists as programs write them, and as people save them."""

from __future__ import annotations

import contextlib
import csv
import io
import random
import unicodedata
from pathlib import Path

import pytest

from mlsim_book.errors import SourceError
from mlsim_book.grading.assignment import make_assignment
from mlsim_book.grading.class_lists import read_roster
from mlsim_book.grading.key import key_text, read_key
from mlsim_book.grading.roster import Roster
from mlsim_book.grading.tables import read_table

PEOPLE = [
    ("Ada", "Lovelace", "ada@uni.example", "s100"),
    ("José", "García Márquez", "jose@uni.example", "s101"),
    ("Jörg", "Müller", "jm@uni.example", "s102"),
]
FULL = ["Ada Lovelace", "José García Márquez", "Jörg Müller"]


def roster(tmp_path: Path, data: bytes | str, column: str = "") -> Roster:
    path = tmp_path / "class.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_roster(path, column)


def table(rows: list[list[str]], delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]
)
def test_delimiters_and_encodings(tmp_path: Path, delimiter: str, encoding: str) -> None:
    head = ["First name", "Surname", "Email address", "ID number"]
    text = table([head, *map(list, PEOPLE)], delimiter)
    found = roster(tmp_path, text.encode(encoding))
    assert found.names == FULL
    assert found.students[1].ids == ("jose@uni.example", "s101")
    assert found.columns == tuple(head)
    assert found.row("Jörg Müller") == ["Jörg", "Müller", "jm@uni.example", "s102"]
    told = " ".join(found.notes)
    assert ("read as" in told) == (not encoding.startswith("utf-8"))
    assert ("split at" in told) == (delimiter != ",")


HEADS = [  # as Moodle's language packs, Canvas and Gradescope have them
    ["First name", "Last name", "Email address", "ID number"],
    ["Vorname", "Nachname", "E-Mail-Adresse", "ID-Nummer"],
    ["Prénom", "Nom", "Adresse de courriel", "Numéro d'identification"],
    ["Nombre", "Apellido(s)", "Dirección de correo", "Número de ID"],
    ["Nome", "Cognome", "Indirizzo email", "Codice identificativo"],
    ["FirstName", "LastName", "Email", "SIS Login ID"],
    ["First Name", "Last Name", "Email", "SID"],
]


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head[0])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_headers(tmp_path: Path, head: list[str], order: tuple[int, ...]) -> None:
    rows = [[row[place] for place in order] for row in [head, *map(list, PEOPLE)]]
    found = roster(tmp_path, table(rows))
    assert found.names == FULL
    assert set(found.students[0].ids) == {"ada@uni.example", "s100"}
    assert found.notes == ()


def test_canvas_gradebook(tmp_path: Path) -> None:
    found = roster(
        tmp_path,
        'Student,ID,SIS User ID,SIS Login ID,Section,"Week 1 (33)",Final Score\n'
        ",,,,,Manual Posting,\n"
        '"    Points Possible",,,,,10.00,(read only)\n'
        '"Lovelace, Ada",4711,u1,ada1,A,9.00,90\n'
        '"García Márquez, José",4712,u2,jose2,B,,\n'
        '"Student, Test",4799,,0f3c,A,,\n',
    )
    assert found.names == ["Lovelace, Ada", "García Márquez, José"]
    assert found.students[0].ids == ("4711", "u1", "ada1")
    assert found.students[0].columns["Week 1 (33)"] == "9.00"
    assert found.notes == ("line 6, Canvas's test student, was left out",)


def test_gradescope_roster_leaves_staff_out(tmp_path: Path) -> None:
    found = roster(
        tmp_path,
        "Name,SID,Email,Role\nAda Lovelace,7,a@x,Student\nGrace Hopper,8,g@x,Instructor\n"
        "Alan Turing,9,t@x,TA\n",
    )
    assert found.names == ["Ada Lovelace"]
    assert found.notes[0] == "line 3 ('Grace Hopper') was left out: Instructor"


def test_moodle_worksheet_has_the_numbers_of_its_folders(tmp_path: Path) -> None:
    found = roster(
        tmp_path,
        "Identifier,Full name,Email address,Status,Grade\n"
        "Participant 998,Ada Lovelace,a@x,Submitted for grading,\n",
    )
    assert found.names == ["Ada Lovelace"]
    assert found.students[0].ids == ("998", "a@x")


def test_without_a_header_nobody_is_lost(tmp_path: Path) -> None:
    found = roster(tmp_path, "ada\nalan\n\n  \ngrace\n")
    assert found.names == ["ada", "alan", "grace"]
    assert "line 1 ('ada') was taken for a student" in found.notes[0]
    found = roster(tmp_path, "Lovelace, Ada\nTuring, Alan\n")
    assert found.names == ["Lovelace", "Turing"]
    # a role is no name of a column
    found = roster(tmp_path, "Ada L,Student\nAlan T,Student\n")
    assert found.names == ["Ada L", "Alan T"]
    found = roster(tmp_path, "student\nLovelace, Ada\n")
    assert found.names == ["Lovelace, Ada"]


def test_quotes_blank_lines_and_lines_in_cells(tmp_path: Path) -> None:
    text = '\n\nsep\n"student","note"\n\n"O\'Brien, ""Pat""","two\nlines"\n,\nada,x\n'
    found = roster(tmp_path, text.replace("sep\n", ""))
    assert found.names == ['O\'Brien, "Pat"', "ada"]
    assert found.students[0].columns["note"] == "two\nlines"
    assert roster(tmp_path, 'sep=;\nstudent;x\n"a;b";1\n').names == ["a;b"]
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"1\n2",3\n4,5\n')
    assert [line for line, _ in read_table(path).rows] == [1, 2, 4]


def test_columns_without_a_name_of_their_own(tmp_path: Path) -> None:
    found = roster(tmp_path, "student,,Group,Group,group,Group\nAda,a,1,2,3,4\n")
    assert found.columns == ("student", "column 2", "Group", "Group (2)", "group", "Group (3)")
    assert found.row("Ada") == ["Ada", "a", "1", "2", "3", "4"]


def test_names_with_commas_among_other_delimiters(tmp_path: Path) -> None:
    for delimiter in ";|\t":
        text = f"Name, Vorname{delimiter}Matrikelnummer\nMüller, Jörg{delimiter}12\n"
        found = roster(tmp_path, text, "Matrikelnummer")
        assert found.columns == ("Name, Vorname", "Matrikelnummer")
        assert found.students[0].id == "12"


def test_two_of_one_name_need_a_column_that_tells_them_apart(tmp_path: Path) -> None:
    text = "Name,Student ID\nAnna Schmidt,1\nBo,2\nanna  schmidt,3\n"
    with pytest.raises(SourceError, match=r"written twice \(line 2\)") as caught:
        roster(tmp_path, text)
    assert caught.value.line == 4
    assert "--id COLUMN" in str(caught.value)
    found = roster(tmp_path, text, "student id")
    assert found.names == ["Anna Schmidt (1)", "Bo", "anna schmidt (3)"]
    assert [each.id for each in found.students] == ["1", "2", "3"]
    assert found.id_column == "Student ID"
    # composed or not, it is one name
    twice = "student\nJosé\n" + unicodedata.normalize("NFD", "José") + "\n"
    with pytest.raises(SourceError, match="written twice"):
        roster(tmp_path, twice)


@pytest.mark.parametrize(
    ("data", "column", "line", "words"),
    [
        (b"", "", None, "no student in this file"),
        (b"\n\n;;\n", "", None, "no student in this file"),
        (b"name,login\nada,x\n", "logins", 1, "Did you mean 'login'?"),
        (b"ada\nbo\n", "login", 1, "no header"),
        (b"name,login\nada,\n", "login", 2, "'ada' has no login"),
        (b"name,login\nada,x\nbo,X\n", "login", 3, r"'X' is written twice \(line 2\)"),
        (b"name,login\nada,x,y,z\n", "", 2, "4 cells, and there are 2 columns"),
        (b"name,login\n,x\n", "", 2, "names no student"),
        (b"name\n" + b"x" * 300, "", 2, "300 characters"),
        (b"PK\x03\x04rest", "", None, "workbook"),
        (b"a\0\0\0b\0,", "", None, "no table of text"),
        (b'name\n"' + b"x" * 200_000, "", None, "field larger"),
    ],
)
def test_wrong_lists(
    tmp_path: Path, data: bytes, column: str, line: int | None, words: str
) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        roster(tmp_path, data, column)
    assert caught.value.line == line


def test_no_list_at_all(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such list"):
        read_roster(tmp_path / "none.csv")
    with pytest.raises(SourceError, match="no such list"):
        read_roster(tmp_path)


def test_the_key_keeps_the_class_list(tmp_path: Path) -> None:
    found = roster(tmp_path, "student,group,also\nada,1,Augusta King; A. A. L.\n")
    assert found.students[0].also == ("Augusta King", "A. A. L.")
    made = make_assignment("A", [], ["ada"])
    path = tmp_path / "key.json"
    from dataclasses import replace

    path.write_text(key_text(replace(made, roster=found)))
    assert read_key(path).roster == found


def test_any_table_is_read_or_refused_in_words(tmp_path: Path) -> None:
    """Bytes of every kind give a class list or a `SourceError`, and nothing else."""
    seed = random.Random(22)
    good = table([["student", "x"], *[[name, "1"] for name in FULL]]).encode()
    path = tmp_path / "class.csv"
    for _ in range(150):
        data = bytearray(seed.choice([good, good.decode().encode("utf-16"), b"a;b\n\xff;2\n"]))
        for _ in range(seed.randrange(1, 12)):
            data[seed.randrange(len(data))] = seed.choice([0, 10, 34, 44, 59, seed.randrange(256)])
        path.write_bytes(bytes(data[: seed.randrange(1, len(data) + 1)]))
        with contextlib.suppress(SourceError):
            assert read_roster(path).names
