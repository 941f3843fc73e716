"""A class with hostile students: nothing is read, nobody else is harmed, nothing is left.

As root and as an ordinary user. `MLSIM_JUDGE=1` (or `make judge`) tries every attack as both; the
plain run tries a third of each kind as whoever runs it, and a few as the other. No test here is
skipped where walls are missing: it fails.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import kept
import pytest
from attacks import ATTACKS, GROUPS
from handed_in import notebook, running_notebooks, wait_for
from ordinary_user import USER, as_ordinary_user

from mlsim_book.cli import main

QUESTIONS = kept.text("attacked.exercises.toml")
HONEST = "answer_boil = 271.828182\nanswer_sort_them = ['cup', 'kettle', 'bath']"
CANARY = "CANARY-7f3a"
# what the instructor's files hold and nobody may be shown
SECRETS = (CANARY, '"tolerance"', "271.828")
WALLS = os.environ.get("MLSIM_WALLS", "auto")  # such as podman, where its image has been made
WHOLE = bool(os.environ.get("MLSIM_JUDGE"))
ROOT = os.geteuid() == 0


@dataclass
class Class:
    """An instructor's folder, with a class that hands in."""

    root: Path
    user: str
    victim: subprocess.Popen[bytes]
    socket: Path
    port: int
    said: list[str] = field(default_factory=list)

    @property
    def homework(self) -> Path:
        return self.root / "week"

    def hand_in(self, name: str, text: str | bytes) -> None:
        path = self.homework / "submissions" / f"{name}.ipynb"
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def attack(self, name: str) -> None:
        """Hand in an attack, with the instructor's places in it."""
        places = {
            "KEY": self.homework / "key.json", "HOME": self.homework,
            "PRIVATE": self.root / "private.txt", "EXAM": self.root / "exam.exercises.toml",
            "LAST": self.root / "week1" / "results.csv", "SOCKET": self.socket,
            "VICTIM": self.victim.pid, "PORT": self.port,
        }  # fmt: skip
        code = ATTACKS[name]
        for word, place in places.items():
            code = code.replace(word, str(place))
        self.hand_in(name, notebook("answer_sort_them = ['bath']", code))

    def grade(self, *options: str) -> dict[str, dict[str, str]]:
        """Grade by the command; return the rows of the results by file."""
        command = [
            sys.executable, "-m", "mlsim_book.cli", "grade", str(self.homework),
            "--cell-seconds", "3", "--seconds", "12", "--memory", "1500", "--walls", WALLS, *options,
        ]  # fmt: skip
        if self.user != "root" and ROOT:
            for path in (self.root, *self.root.rglob("*")):
                os.lchown(path, USER, USER)
            ran = as_ordinary_user(command, self.root)
        else:
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        self.said.append(ran.stdout + ran.stderr)
        assert (self.homework / "results").stat().st_uid == (
            USER if self.user != "root" and ROOT else os.geteuid()
        )
        with (self.homework / "results" / "results.csv").open(encoding="utf-8") as file:
            return {row["file"].removesuffix(".ipynb"): row for row in csv.DictReader(file)}

    def shown(self) -> Iterator[tuple[Path, str]]:
        """All that the grader wrote, by file."""
        for path in (self.homework / "results").rglob("*"):
            if path.is_file():
                yield path, path.read_text(encoding="utf-8")


@pytest.fixture(params=["here", "other"] if ROOT else ["here"])
def school(request: pytest.FixtureRequest) -> Iterator[Class]:
    """A class whose folder both users can reach: as whoever runs this, then as the other."""
    root = Path(tempfile.mkdtemp(prefix="school-"))
    root.chmod(0o755)
    (root / "index.qmd").write_text("# A\n")
    (root / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [index.qmd]}\n")
    (root / "x.exercises.toml").write_text(QUESTIONS)
    (root / "private.txt").write_text(f"{CANARY} private\n")
    (root / "exam.exercises.toml").write_text(f'# {CANARY} "tolerance"\n')
    (root / "week1").mkdir()
    (root / "week1" / "results.csv").write_text(f"ada,{CANARY}\n")
    assert main(["assign", "x", "--out", str(root / "week"), "--root", str(root)]) == 0
    path = root / "s"
    with socket.socket(socket.AF_UNIX) as plain, socket.socket() as local:
        plain.bind(str(path))
        path.chmod(0o777)
        local.bind(("127.0.0.1", 0))
        for each in (plain, local):
            each.listen()
            threading.Thread(target=_tell, args=(each,), daemon=True).start()
        user = "root" if ROOT and request.param == "here" else "ordinary"
        victim = subprocess.Popen(["sleep", "600"], user=USER if ROOT and user != "root" else None)
        yield Class(root, user, victim, path, local.getsockname()[1])
        victim.kill()
        victim.wait()
    shutil.rmtree(root, ignore_errors=True)


def _tell(server: socket.socket) -> None:
    """Tell whoever calls a secret."""
    while True:
        try:
            caller, _ = server.accept()
        except OSError:
            return
        with caller:
            caller.sendall(CANARY.encode())


def test_no_attack_gets_anything(school: Class) -> None:
    names = list(ATTACKS)
    if not WHOLE:
        part = 12 if school.user == "ordinary" and ROOT else 3
        chance = random.Random(22)
        names = [
            name
            for group in GROUPS.values()
            for name in chance.sample([*group], len(group) // part)
        ]
    for name in names:
        school.attack(name)
    for name in ("ada", "bob"):
        school.hand_in(name, notebook(HONEST))
    handed = {p: p.read_bytes() for p in (school.homework / "submissions").iterdir()}
    kept = {
        p: p.read_bytes() for p in (*school.root.glob("*.*"), school.root / "week1/results.csv")
    }
    for _ in range(2):
        rows = school.grade()
        assert set(rows) == {*names, "ada", "bob"}
        for name in ("ada", "bob"):
            assert (rows[name]["points"], rows[name]["notes"]) == ("9", ""), rows[name]
        assert {name: rows[name]["points"] for name in names} == dict.fromkeys(names, "0")
        for path, text in school.shown():
            if "kept" not in path.parts and path.stem not in {"ada", "bob"}:
                lines = [
                    each for each in text.splitlines() if not each.startswith(("ada,", "bob,"))
                ]
                for secret in SECRETS:
                    assert secret not in "\n".join(lines), (path, secret)
                assert "WORDS OF ITS OWN" not in text
        assert {p: p.read_bytes() for p in handed} == handed
        assert {p: p.read_bytes() for p in kept} == kept
        assert school.victim.poll() is None
    # Gradings of another test end by themselves, and others begin.
    left = running_notebooks()
    assert wait_for(lambda: not left & running_notebooks(), 60)
    results = school.homework / "results"
    assert not [each for each in results.rglob("*") if not (each.is_file() or each.is_dir())]


def test_odd_files(school: Class) -> None:
    """Whatever lies among the submissions gets its student a note, and others their grades."""
    folder = school.homework / "submissions"
    honest = notebook(HONEST)
    for name, text in {
        "ada": honest, "n" * 244: honest, "closed": honest, "line\nbreak": honest,
        "metadata": notebook(HONEST, assignment={"student": "x" * 3_000_000}),
        "metadata-half": notebook(HONEST, assignment={"student": "\ud800"}),
        "brackets": "[" + "[]," * 10_000_000 + "[]]", "deep": "[" * 10**6,
        "digits": '{"cells": ' + "1" * 10**6 + "}", "latin": honest.encode("utf-16"),
        "bytes": bytes(range(256)),
        "cells": json.dumps({"cells": [{"cell_type": "code", "source": "1"}] * 100_000}),
        "odd-cells": '{"cells": [{"cell_type": "code", "source": ["x", 3]}, 4, null]}',
        "error": notebook("raise ValueError('WORDS-OF-THE-ERROR')"),
        "evil": notebook(
            "class Evil(KeyError): pass\nEvil.__name__ = 'OTHER-WORDS'\nraise Evil('x')"
        ),
        "half": '{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}',
    }.items():  # fmt: skip
        school.hand_in(name, text)
    with (folder / "large.ipynb").open("wb") as file:
        file.truncate(500_000_000)
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "link.ipynb").symlink_to(folder / "ada.ipynb")
    (folder / "link-to-key.ipynb").symlink_to(school.homework / "key.json")
    (folder / "nowhere.ipynb").symlink_to(folder / "none")
    with socket.socket(socket.AF_UNIX) as each:
        here = Path.cwd()
        os.chdir(folder)
        each.bind("socket.ipynb")
        os.chdir(here)
    (folder / "closed.ipynb").chmod(0)
    (folder / "closed-folder").mkdir(mode=0)
    for name in (b"Jos\xe9.ipynb", b"Andr\xe9/week.ipynb"):
        odd = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        odd.parent.mkdir(exist_ok=True)
        odd.write_text(honest)
    for _ in range(2):
        rows = school.grade()
        well = {"ada", "metadata", "metadata-half", "n" * 244, "José", "André/week", "line break"}
        well |= {"latin"} | ({"closed"} if school.user == "root" else set())
        assert {name for name, row in rows.items() if row["points"] == "9"} == well
        for name in set(rows) - well - {"half"}:
            assert rows[name]["notes"], name
    noted = {
        "brackets": "no notebook", "deep": "that can be read", "digits": "that can be read",
        "bytes": "that can be read", "cells": "more than 5,000", "odd-cells": "no notebook",
        "large": "larger than 64 MB", "pipe": "no file", "link": "a link", "socket": "can't be read",
        "link-to-key": "a link", "nowhere": "a link",
    }  # fmt: skip
    for name, words in noted.items():
        assert words in rows[name]["notes"], (name, rows[name]["notes"])
    if school.user == "ordinary":
        assert "Permission denied" in rows["closed"]["notes"]
        assert "can't be opened" in rows["closed-folder"]["notes"]
    (folder / "closed-folder").chmod(0o700)
    # a student's page has the kind of an error; its text is for whoever grades
    pages = school.homework / "results" / "feedback"
    error, evil = ((pages / f"{name}.html").read_text() for name in ("error", "evil"))
    assert "code cell 1: ValueError" in error
    assert "WORDS" not in error + evil
    assert "WORDS-OF-THE-ERROR" in rows["error"]["notes"]
    assert "code cell 1: KeyError" in evil
