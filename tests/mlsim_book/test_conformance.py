"""The fixtures that Quarto itself has rendered, held against our rendering of them.

What they cover `test_ground` holds on books of our own; here stand the recordings, for whoever has
them. The plain run takes twelve of them by chance, `MLSIM_JUDGE=1` all.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from kept import text
from recorded_pages import lay_out

from mlsim_book.check.quarto import compare_numbers, pages_of

REQUIRED = text("required_recordings.txt").split()
if not os.environ.get("MLSIM_JUDGE"):
    REQUIRED = sorted(random.Random(33).sample(REQUIRED, 12))

# Where a recorded page shows other numbers than ours, each a quirk of Quarto's: expressions that
# it leaves unrun or runs where they are shown, options of a foreign cell that it prints, and
# references without their section's number.
OTHERWISE = {
    "inline-broken-lines", "inline-expr", "inline-places", "other-languages", "shortcodes-vars",
    "xref-chapters",
}  # fmt: skip


@pytest.fixture
def runs(conformance: Path, with_assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our rendering of each fixture that is required, made once."""
    folder = tmp_path_factory.getbasetemp() / "conformance"
    if folder.is_dir():
        return folder
    folder.mkdir()
    books = [str(conformance / name) for name in REQUIRED]
    command = f"{sys.executable} -m mlsim_book.cli build {{src}} --lenient"
    script = str(conformance.parent / "render.py")
    subprocess.run(
        [sys.executable, script, str(folder), "--cmd", command, *books],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    return folder


def test_required_fixtures(conformance: Path, runs: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(conformance.parent / "check.py"), str(conformance), str(runs), "-q",
         "--only", *REQUIRED],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    failures = [line for line in run.stdout.splitlines() if line.startswith("FAIL")]
    assert run.returncode == 0, "\n".join(failures)


def test_no_number_differs_where_a_reader_finds_none(
    conformance: Path, runs: Path, tmp_path: Path
) -> None:
    differ, pages = set(), 0
    for name in REQUIRED:
        ours, theirs = runs / name / "_book", tmp_path / name
        if (conformance / name / "expected.html").is_file() and ours.is_dir():
            lay_out(conformance / name, theirs)
            pages += len(pages_of(theirs))
            if compare_numbers(theirs, ours):
                differ.add(name)
    assert pages > len(REQUIRED) / 2
    assert differ == OTHERWISE & set(REQUIRED)
