"""How large each room is, beside its budget; and what a question to each door reaches.

`make sizes` prints both. `make check` runs it with `--check`: a room above its budget fails, and so
does a budget far above its room. Budgets stand in `budget.toml`.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BUDGET = "budget.toml"
# Where each package's code lies; a room is a folder right below it, "(top)" what lies beside them.
PACKAGES = {
    "mlsim": "mlsim_pkg/src/mlsim",
    "mlsim_exercises": "mlsim_pkg/src/mlsim_exercises",
    "mlsim_course": "mlsim_pkg/src/mlsim_course",
    "mlsim_book": "book_pkg/src/mlsim_book",
    "mlsim_grading": "grading_pkg/src/mlsim_grading",
    "tests": "tests",
    "benchmarks": "benchmarks",
}
# A budget that is larger than its room by more than this (and ten statements) is to be lowered.
SLACK = 0.05
DOORS = {
    "solve": 'Engine.solve(model="ResNet50", hardware="A100")',
    "serve": 'Engine.serve(model="Llama3_8B", hardware="H100")',
    "load": 'Engine.load(model="Llama3_8B", hardware="H100", rate=3, requests=20)',
    "train": 'Engine.train(model="Llama3_8B", hardware="HGX_H100", global_batch=8)',
    "gemm": 'Engine.gemm(M=4096, N=4096, K=4096, hardware="H100")',
    "plan": 'Engine.plan(model="Llama3_8B", hardware="H100", rate=3)',
    "footprint": 'Engine.footprint(hardware="H100", device_hours=9, grid="Germany", pue=1.1, host=False)',
}
_SILENT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
)


class Size(NamedTuple):
    """Statements, modules, and lines of code: without blanks, comments and docstrings."""

    statements: int = 0
    modules: int = 0
    lines: int = 0

    def and_of(self, other: Size) -> Size:
        """Return the sum of two."""
        return Size(*(one + more for one, more in zip(self, other, strict=True)))


def size_of(source: str) -> Size:
    """Return how large a module is.

    >>> size_of('\"\"\"About it.\"\"\"\\n\\nX = [\\n    1,  # one\\n]\\n')
    Size(statements=1, modules=1, lines=3)
    """
    nodes = list(ast.walk(ast.parse(source)))
    about = {id(each.body[0]) for each in nodes if _has_docstring(each)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for each in nodes:
        if id(each) in about:
            lines.difference_update(range(each.lineno, each.end_lineno + 1))  # type: ignore[attr-defined]
    statements = sum(isinstance(each, ast.stmt) and id(each) not in about for each in nodes)
    return Size(statements, 1, len(lines))


def _has_docstring(node: ast.AST) -> bool:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None


def rooms(root: Path = ROOT) -> dict[str, Size]:
    """Return the size of each room, by its name."""
    found: dict[str, Size] = defaultdict(Size)
    for package, folder in PACKAGES.items():
        for path in sorted((root / folder).rglob("*.py")):
            first, *rest = path.relative_to(root / folder).parts
            found[f"{package}/{first if rest else '(top)'}"] = found[
                f"{package}/{first if rest else '(top)'}"
            ].and_of(size_of(path.read_text("utf-8")))
    return dict(found)


def budgets(root: Path = ROOT) -> dict[str, Size]:
    """Return what each room may have; lines have no budget."""
    read = tomllib.loads((root / BUDGET).read_text("utf-8"))
    return {
        f"{package}/{room}": Size(statements, modules)
        for package, rooms_of in read.items()
        for room, (statements, modules) in rooms_of.items()
    }


def broken(found: Mapping[str, Size], allowed: Mapping[str, Size]) -> Iterator[str]:
    """Yield what is to be done about each room that doesn't keep its budget."""
    for room in sorted({*found, *allowed}):
        size, most = found.get(room), allowed.get(room)
        if size is None:
            yield f"{room} is gone: take it out of {BUDGET}."
            continue
        if most is None:
            yield f"{room} has no budget. Add [{size.statements}, {size.modules}] to {BUDGET}."
            continue
        for what, has, may in (
            ("statements", size.statements, most.statements),
            ("modules", size.modules, most.modules),
        ):
            if has > may:
                yield (
                    f"{room} has {has:,} {what}, and its budget is {may:,}. Take {has - may:,} out, "
                    f"or raise it in {BUDGET} and say in the commit why readers need more."
                )
            elif has < (1 - SLACK) * may - 10:
                yield f"{room} has {has:,} {what} only: lower its budget of {may:,} in {BUDGET}."


def reached(call: str) -> Size:
    """Return how much code a new process has imported when it has answered a question."""
    code = (
        "import sys; from mlsim import Engine; " + call + "\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] == 'mlsim'),"
        " sep='\\n')"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    total = Size()
    for path in out.stdout.split("\n"):
        if path.endswith(".py"):
            total = total.and_of(size_of(Path(path).read_text("utf-8")))
    return total


def table() -> Iterator[str]:
    """Yield the lines of the table of rooms, and of the one of doors."""
    allowed = budgets()
    yield f"{'room':34}{'statements':>11}{'budget':>8}{'modules':>9}{'budget':>8}{'lines':>8}"
    of_package: dict[str, Size] = defaultdict(Size)
    for room, size in rooms().items():
        most = allowed.get(room, Size())
        yield f"{room:34}{size[0]:11,}{most[0]:8,}{size[1]:9,}{most[1]:8,}{size[2]:8,}"
        package = room.partition("/")[0]
        of_package[package] = of_package[package].and_of(size)
    yield from (
        f"{name:34}{size[0]:11,}{'':8}{size[1]:9,}{'':8}{size[2]:8,}"
        for name, size in of_package.items()
    )
    yield ""
    yield f"{'a question to':34}{'reaches':>11}{'':8}{'modules':>9}{'':8}{'lines':>8}"
    for door, call in DOORS.items():
        size = reached(call)
        yield f"{door:34}{size[0]:11,}{'':8}{size[1]:9,}{'':8}{size[2]:8,}"


def main(*words: str) -> int:
    """Print the tables; with `--check`, only what breaks a budget."""
    if "--check" not in words:
        print(*table(), sep="\n")
        return 0
    found = list(broken(rooms(), budgets()))
    if not found:
        print("Each room keeps its budget.")
        return 0
    print(*found, sep="\n", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
