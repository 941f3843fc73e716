"""Golden files: every number of every page, and what each example of the command line prints.

`make goldens` runs this: it writes them anew, and lists what moved since they were written.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import page_numbers
import shell_examples
from page_numbers import Entry
from what_moved import Move, moves, other_leaves

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "goldens"


def page_file(source: str) -> Path:
    """Return where the numbers of a page are kept."""
    return (FOLDER / "pages" / source).with_suffix(".csv")


def example_file(example: str) -> Path:
    """Return where the answer to an example is kept."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", example.removeprefix("mlsim ")).strip("-")
    return FOLDER / "cli" / f"{name}.json"


def kept_numbers(path: Path) -> list[Entry]:
    """Return the numbers of a page as they were; none if it is new."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Entry(**row) for row in csv.DictReader(file)]


def kept_answer(path: Path) -> dict[str, Any]:
    """Return the answer to an example as it was; nothing if it is new."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def renew_pages(failed: list[str]) -> list[Move]:
    """Write the numbers of each page whose numbers moved; print and return what did.

    A page that raises keeps its file, and is added to `failed`.
    """
    found: list[Move] = []
    wanted = set()
    for source, page in page_numbers.pages(ROOT).items():
        path = page_file(source)
        try:
            new = page_numbers.entries_of(page, ROOT)
        except Exception:  # noqa: BLE001 - a page may raise anything
            failed.append(f"{source}\n{traceback.format_exc(limit=-2)}")
            wanted.add(path)
            continue
        if new:
            wanted.add(path)
        found += _tell(source, moved := moves(kept_numbers(path), new))
        if moved and new:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([Entry._fields, *new])
    for path in sorted({*FOLDER.rglob("pages/**/*.csv")} - wanted):
        source = path.relative_to(FOLDER / "pages").with_suffix(".qmd").as_posix()
        if source not in page_numbers.pages(ROOT):
            found += _tell(source, moves(kept_numbers(path), []))
        path.unlink()
    return found


def _tell(source: str, moved: Sequence[Move]) -> Sequence[Move]:
    if moved:
        print(source, *moved, sep="\n  ")
    return moved


def renew_examples(failed: list[str]) -> int:
    """Write the answers that moved; print what did, and return how many values of them.

    An example that gives no answer keeps its file, and is added to `failed`.
    """
    count, wanted = 0, set()
    for example in shell_examples.examples(ROOT):
        path = example_file(example)
        wanted.add(path)
        try:
            new = {"example": example, **shell_examples.answer(example)}
        except ValueError as error:
            failed.append(f"{example}\n{error}")
            continue
        other = list(other_leaves(kept_answer(path), new))
        if other:
            print(example, *other, sep="\n  ")
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(new, indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")
        count += len(other)
    for path in sorted({*FOLDER.rglob("cli/*.json")} - wanted):
        print(kept_answer(path)["example"], "is no example any more", sep="\n  ")
        path.unlink()
        count += 1
    return count


def main() -> int:
    """Renew all golden files; list what moved, how much of each kind, and what failed."""
    failed: list[str] = []
    moved = renew_pages(failed)
    values = renew_examples(failed)
    kinds = Counter(each for move in moved for each in move.what)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"Numbers of pages: {len(moved)} moved" + (f" ({counts})." if counts else "."))
    print(f"Command line: {values} values of answers moved.")
    for each in failed:
        print(f"FAILED, and left as it was: {each}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
