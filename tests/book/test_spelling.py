"""American spelling in all that a person reads: pages, exercises, messages, descriptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mlsim_exercises.data import read_texts

ROOT = Path(__file__).parents[2]
BRITISH = re.compile(
    r"(?<![\w.@#/`=-])(?:(?:de|un)?(?:quantis|normalis|utilis|optimis|initialis|organis|synchronis"
    r"|serialis|parallelis|vectoris|generalis|summaris|amortis|recognis|minimis|maximis)"
    r"(?:e[drs]*|ing|ations?|able)|\w*(?:colour|neighbour|behaviour|favour|honour|labour)\w*"
    r"|(?:centre|litre|metre|fibre)s?"
    r"|centred|per cent|grey\w*|(?:un)?(?:label|model|cancel|travel|signal)l(?:ed|ing)|licence[ds]?"
    r"|analyse[ds]?|defence|practise[ds]?|artefacts?|towards|afterwards|whilst|learnt|spelt)"
    r"(?![\w(=`/])",
    re.IGNORECASE,
)
# What is no prose of ours: code, values in it, addresses, and the words of others.
OTHERS = re.compile(
    r"^```.*?^```|`[^`]*`|\{[^{}]*\}|“[^”]*”|\]\([^)]*\)|^---\n.*?^---$|https?://\S+",
    re.MULTILINE | re.DOTALL,
)

# Names of fields and files of the package, where its own texts say them.
NAMES = {
    "accounts.py: utilisation", "file_report.py: utilisation", "lab.py: unquantised",
    "surfaces.py: neighbours", "plots/__init__.py: COLOURS", "language.py: quantised",
    "steps.py: unquantised",
}  # fmt: skip


def written() -> Iterator[tuple[str, int, str]]:
    """Yield all texts for people, with their file and line."""
    for path in sorted(ROOT.glob("*.qmd")) + sorted(ROOT.glob("[tpz]*/*.qmd")):
        yield str(path), 1, path.read_text(encoding="utf-8")
    for path in sorted(ROOT.glob("mlsim_pkg/src/mlsim_course/questions/*.toml")):
        yield from ((str(path), each.line, each.text) for each in read_texts(path))
    for path in sorted(ROOT.glob("*_pkg/src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield str(path), node.lineno, node.value


def test_the_spelling_is_american() -> None:
    found = []
    for file, line, text in written():
        plain = OTHERS.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), text)
        for match in BRITISH.finditer(plain):
            place = line + plain.count("\n", 0, match.start())
            if not any(f"{file}: {match[0]}".endswith(f"/{name}") for name in NAMES):
                found.append(f"{Path(file).relative_to(ROOT)}:{place}: {match[0]}")
    assert found == []
