"""Class lists as programs write them, and as people save them."""

from __future__ import annotations

import contextlib
import csv
import io
import random
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from kept import FIXTURES

from mlsim_book.errors import SourceError
from mlsim_grading.assignment import key_text, make_assignment, read_key
from mlsim_grading.class_lists import Roster, read_roster
from mlsim_grading.tables import read_table

PEOPLE = [
    ("Ada", "Lovelace", "ada@uni.example", "s100"),
    ("José", "García Márquez", "jose@uni.example", "s101"),
    ("Jörg", "Müller", "jm@uni.example", "s102"),
]
FULL = ["Ada Lovelace", "José García Márquez", "Jörg Müller"]
LISTS = tomllib.loads((FIXTURES / "cases" / "class_lists.toml").read_text(encoding="utf-8"))


def roster(tmp_path: Path, data: bytes | str, column: str = "") -> Roster:
    path = tmp_path / "class.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_roster(path, column)


def table(rows: list[list[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]
)
def test_delimiters_and_encodings(tmp_path: Path, encoding: str) -> None:
    head = ["First name", "Surname", "Email address", "ID number"]
    for delimiter in (",", ";", "\t", "|"):
        text = table([head, *map(list, PEOPLE)], delimiter)
        found = roster(tmp_path, text.encode(encoding))
        assert found.names == FULL
        assert found.students[1].ids == ("jose@uni.example", "s101")
        assert found.columns == tuple(head)
        assert found.row("Jörg Müller") == ["Jörg", "Müller", "jm@uni.example", "s102"]
        told = " ".join(found.notes)
        assert ("read as" in told) == (not encoding.startswith("utf-8"))
        assert ("split at" in told) == (delimiter != ",")


def test_headers(tmp_path: Path) -> None:
    for head in [  # as Moodle's language packs, Canvas and Gradescope have them
        ["First name", "Last name", "Email address", "ID number"],
        ["Vorname", "Nachname", "E-Mail-Adresse", "ID-Nummer"],
        ["Prénom", "Nom", "Adresse de courriel", "Numéro d'identification"],
        ["Nombre", "Apellido(s)", "Dirección de correo", "Número de ID"],
        ["Nome", "Cognome", "Indirizzo email", "Codice identificativo"],
        ["FirstName", "LastName", "Email", "SIS Login ID"],
        ["First Name", "Last Name", "Email", "SID"],
    ]:
        for order in [(0, 1, 2, 3), (1, 0, 2, 3), (3, 2, 1, 0)]:
            rows = [[row[place] for place in order] for row in [head, *map(list, PEOPLE)]]
            found = roster(tmp_path, table(rows))
            assert (found.names, found.notes) == (FULL, ()), rows
            assert set(found.students[0].ids) == {"ada@uni.example", "s100"}, rows


def test_lists_of_programs_and_people(tmp_path: Path) -> None:
    for case in LISTS["list"]:
        found = roster(tmp_path, case["text"], case.get("column", ""))
        got = {
            "names": found.names, "ids": list(found.students[0].ids), "id": found.students[0].id,
            "columns": list(found.columns), "row": found.row(found.names[0]),
            "notes": list(found.notes),
        }  # fmt: skip
        for part in got.keys() & case.keys():
            assert got[part] == case[part], case["name"]
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"1\n2",3\n4,5\n')
    assert [line for line, _ in read_table(path).rows] == [1, 2, 4]


def test_wrong_lists(tmp_path: Path) -> None:
    (refused,) = LISTS["refused"]
    odd = [
        [b"name\n" + b"x" * 300, "", 2, "300 characters"],
        [b"a\0\0\0b\0,", "", 0, "no table of text"],
        [b'name\n"' + b"x" * 200_000, "", 0, "field larger"],
    ]
    for data, column, line, words in [*refused["cases"], *odd]:
        with pytest.raises(SourceError) as caught:
            roster(tmp_path, data, column)
        assert words in str(caught.value), data
        assert (caught.value.line or 0) == line, data
    for none in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(SourceError, match="no such list"):
            read_roster(none)
    path = tmp_path / "class.csv"
    path.write_text("student\na b\na/b\n")
    with pytest.raises(SourceError, match="gets the same file as 'a b'") as caught:
        read_roster(path)
    assert caught.value.line == 3


def test_the_key_keeps_the_class_list(tmp_path: Path) -> None:
    found = roster(tmp_path, "student,group,also\nada,1,Augusta King; A. A. L.\n")
    assert found.students[0].also == ("Augusta King", "A. A. L.")
    path = tmp_path / "key.json"
    path.write_text(key_text(replace(make_assignment("A", [], ["ada"]), roster=found)))
    assert read_key(path).roster == found


def test_any_table_is_read_or_refused_in_words(tmp_path: Path) -> None:
    """Bytes of every kind give a class list or a `SourceError`, and nothing else."""
    seed = random.Random(22)
    good = table([["student", "x"], *[[name, "1"] for name in FULL]]).encode()
    for _ in range(150):
        data = bytearray(seed.choice([good, good.decode().encode("utf-16"), b"a;b\n\xff;2\n"]))
        for _ in range(seed.randrange(1, 12)):
            data[seed.randrange(len(data))] = seed.choice([0, 10, 34, 44, 59, seed.randrange(256)])
        with contextlib.suppress(SourceError):
            assert roster(tmp_path, bytes(data[: seed.randrange(1, len(data) + 1)])).names
