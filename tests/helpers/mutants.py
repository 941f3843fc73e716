"""Mutants: small errors put into the code of a room, one by one. Do the room's tests notice?

`make mutants ROOM=solvers/plan N=20 SEED=1` runs this. A first run learns which test runs which
line. Each mutant then meets only the tests that run its line, the quick ones first, until one
fails. Those that survive are printed with their diff.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import multiprocessing.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from mutations import Mutation, mutations

ROOT = Path(__file__).parents[2]
SOURCES = {
    "mlsim": "mlsim_pkg/src",
    "mlsim_exercises": "mlsim_pkg/src",
    "mlsim_book": "book_pkg/src",
    "mlsim_grading": "grading_pkg/src",
}
# Loaded once: each mutant starts as a copy of this process.
LIBRARIES = ("numpy", "sympy", "pint", "pandas", "matplotlib.pyplot")
# A mutant that loops for ever is stopped; a busy machine is slow, too.
PATIENCE = 20.0
PATIENCE_FACTOR = 8.0
SUFFICIENT = 120.0


@dataclass(frozen=True)
class Room:
    """A folder or a module of a package, and the tests that are its own."""

    name: str
    root: Path = ROOT

    @property
    def below(self) -> Path:
        """Where its code lies below the folder of sources: `mlsim/solvers/plan`."""
        package = self.name.split("/")[0]
        return Path(self.name if package in SOURCES else f"mlsim/{self.name}")

    @property
    def source(self) -> Path:
        """The folder of sources that holds its package."""
        return self.root / SOURCES[self.below.parts[0]]

    @property
    def modules(self) -> list[Path]:
        """The modules whose lines are changed."""
        path = self.source / self.below
        if path.is_dir():
            return sorted(path.rglob("*.py"))
        if path.with_suffix(".py").is_file():
            return [path.with_suffix(".py")]
        beside = sorted(each.stem for each in path.parent.glob("[a-z]*"))
        raise SystemExit(f"{self.name} is no room of the code. Beside it: {', '.join(beside)}.")

    @property
    def test_files(self) -> list[str]:
        """Its own tests, by their path below the root: those of its mirror, and its examples.

        The mirror of a module is `test_plan.py` and `test_plan_pools.py` for `plan.py`; where
        nothing is named for it, all tests of its folder.
        """
        found = set(self.modules)
        mirror = self.root / "tests" / self.below
        if mirror.is_dir():
            found |= set(mirror.rglob("test_*.py"))
        else:
            named = re.compile(rf"test_{mirror.name}(_.*)?\.py")
            beside = set(mirror.parent.glob("test_*.py"))
            found |= {each for each in beside if named.fullmatch(each.name)} or beside
        return sorted(str(each.relative_to(self.root)) for each in found)


def chosen(room: Room, number: int, seed: int) -> list[Mutation]:
    """Return seeded mutants of a room: lines by chance, and of each line one change."""
    by_line: dict[tuple[Path, int], list[Mutation]] = defaultdict(list)
    for path in room.modules:
        for each in mutations(path):
            by_line[path, each.line].append(each)
    chance = random.Random(f"{room.name} {seed}")
    places = chance.sample(sorted(by_line), min(number, len(by_line)))
    return [chance.choice(by_line[place]) for place in places]


@contextmanager
def copies(number: int, root: Path = ROOT) -> Iterator[list[Path]]:
    """Make copies of all that belongs to the repository, to be changed and thrown away."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [Path(folder) / str(each) for each in range(number)]
        for tree in trees:
            for name in filter(None, listed.split("\0")):
                if (root / name).is_file():
                    (tree / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(root / name, tree / name)
        yield trees


@dataclass
class Known:
    """What a first run found of one test file: how long each test took, which lines it ran."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    starting: list[str] = field(default_factory=list)  # tests that start processes
    collected: dict[str, list[int]] = field(default_factory=dict)  # lines that run before any


class _Watch:
    """A plugin of pytest: tell the tests apart, keep the time of those that pass."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self.now = ""
        self.starting: set[str] = set()
        sys.addaudithook(self._started)
        spawn = multiprocessing.util.spawnv_passfds

        def spawned(*given: Any) -> Any:
            self.starting.add(self.now)
            return spawn(*given)

        multiprocessing.util.spawnv_passfds = spawned

    def _started(self, event: str, _: tuple[Any, ...]) -> None:
        """Note which tests start processes, whose lines nobody counts here."""
        if event in {"subprocess.Popen", "os.fork", "os.posix_spawn"}:
            self.starting.add(self.now)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.now = nodeid
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)


class _Only:
    """A plugin of pytest: of what is collected, run what runs the changed line."""

    def __init__(self, wanted: dict[str, float], unknown: Callable[[str], bool]) -> None:
        self.wanted = wanted
        self.unknown = unknown

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            each for each in items if each.nodeid in self.wanted or self.unknown(each.nodeid)
        ]


def _in_tree(tree: Path, work: Callable[[], int], log: Path) -> int:
    """Start a copy of this process that works in a tree; return its number."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.chdir(tree)
        folders = [str(tree / folder) for folder in dict.fromkeys(SOURCES.values())]
        sys.path[:0] = folders
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        os.environ["HOME"] = str(tree.parent)
        sys.dont_write_bytecode = False
        status = work()
    except BaseException:  # noqa: BLE001 - a copy never goes on as the process it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


OPTIONS = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]


def _learn(room: Room, files: Sequence[str], found: Path) -> int:
    """Run test files; write which lines of the room each test runs."""
    import coverage

    included = [str(Path.cwd() / path.relative_to(room.root)) for path in room.modules]
    counted = coverage.Coverage(data_file=None, include=included, config_file=False)
    watch = _Watch(counted)
    counted.start()
    status = pytest.main([*OPTIONS, *files], plugins=[watch])
    counted.stop()
    if status not in {0, 1, 5}:
        return int(status)  # not collected: nothing is known, and what was printed says why
    data = counted.get_data()
    known: dict[str, Known] = {file: Known() for file in files}
    for test, seconds in watch.seconds.items():
        if test not in watch.failed:
            known[test.partition("::")[0]].seconds[test] = seconds
            if test in watch.starting:
                known[test.partition("::")[0]].starting.append(test)
    for path in data.measured_files():
        name = str(Path(path).relative_to(Path.cwd()))
        for line, tests in data.contexts_by_lineno(path).items():
            if "" in tests:
                for each in known.values():
                    each.collected.setdefault(name, []).append(line)
            for test in filter(None, set(tests) - watch.failed):
                lines = known[test.partition("::")[0]].lines.setdefault(test, {})
                lines.setdefault(name, []).append(line)
    found.write_text(json.dumps({file: vars(each) for file, each in known.items()}), "utf-8")
    return 0


def _digest(paths: Iterable[Path]) -> str:
    parts = hashlib.sha256()
    for path in sorted(paths):
        parts.update(path.read_bytes())
    return parts.hexdigest()[:16]


def learned(
    room: Room, files: Sequence[str], trees: Sequence[Path], cache: Path
) -> dict[str, Known]:
    """Return what is known of each test file; run those that changed since they were last run."""
    package = _digest(room.source.rglob("*.py"))
    kept = {
        file: cache
        / f"{room.name.replace('/', '-')}-{package}-{_digest([room.root / file])}-{Path(file).stem}.json"
        for file in files
    }
    new = [file for file in files if not kept[file].is_file()]
    new.sort(key=lambda file: -(room.root / file).stat().st_size)
    if new:
        print(f"learning what {len(new)} test files run", flush=True)
    shares = [new[part :: len(trees)] for part in range(len(trees))]
    cache.mkdir(parents=True, exist_ok=True)
    children = {}
    for tree, share in zip(trees, shares, strict=True):
        if share:
            found = tree.parent / f"{tree.name}.json"
            found.unlink(missing_ok=True)
            work = lambda share=share, found=found: _learn(room, share, found)  # noqa: E731
            children[_in_tree(tree, work, tree.parent / f"{tree.name}.log")] = found
    for child, found in children.items():
        os.waitpid(child, 0)
        if not found.is_file():
            raise SystemExit(found.with_suffix(".log").read_text("utf-8")[-3000:])
        for file, each in json.loads(found.read_text("utf-8")).items():
            kept[file].write_text(json.dumps(each), "utf-8")
    return {file: Known(**json.loads(path.read_text("utf-8"))) for file, path in kept.items()}


def tests_of(mutation: Mutation, known: dict[str, Known], root: Path) -> dict[str, float]:
    """Return the tests that may notice a change, likely and quick ones first, until there are enough.

    Those that run the statement come first, then all that run anything of its module: what is
    cached is run by one test and read by others. What runs on import may be read anywhere in the
    room; a statement that no test runs in this process, by all that start processes.
    """
    name, at = str(mutation.path.relative_to(root)), mutation.statement
    early = at is None or any(at in each.collected.get(name, ()) for each in known.values())
    hit = any(at in lines.get(name, ()) for each in known.values() for lines in each.lines.values())
    ranked = []
    for each in known.values():
        for test, seconds in each.seconds.items():
            lines = each.lines.get(test, {}).get(name, ())
            if lines:
                ranked.append((1 if at not in lines else 0, seconds, test))
            elif early or (not hit and test in each.starting):
                ranked.append((2, seconds, test))
    found, total = {}, 0.0
    for _, seconds, test in sorted(ranked):
        if total < SUFFICIENT:
            found[test] = seconds
            total += seconds
    return found


def _meet(mutation: Mutation, tests: dict[str, float], known: dict[str, Known]) -> int:
    """Run the tests of a mutant, in its tree; 0 if it survives."""
    if not tests:
        return 0
    cost: dict[str, float] = defaultdict(float)
    for test, seconds in tests.items():
        cost[test.partition("::")[0]] += seconds
    everything = {test for each in known.values() for test in each.seconds}

    functions = {test.partition("[")[0] for test in tests}

    def unknown(test: str) -> bool:
        """Whether the change has brought a test: another case of a function that runs its line."""
        return test not in everything and test.partition("[")[0] in functions

    files = sorted(cost, key=lambda file: cost[file])
    status = pytest.main([*OPTIONS, "-x", *files], plugins=[_Only(tests, unknown)])
    # 5: the change left nothing to run, which nobody noticed
    return 0 if status in {0, 5} else 1


@dataclass
class Outcome:
    """What became of a mutant."""

    mutation: Mutation
    tests: int
    survived: bool


_TIMES = count(1_000_000_000)


def _write(path: Path, text: str) -> None:
    """Write a module, at a time of its own: compiled files know their source by it and its size."""
    path.write_text(text, "utf-8")
    time_of_its_own = next(_TIMES)
    os.utime(path, (time_of_its_own, time_of_its_own))


def tried(
    mutants: Sequence[Mutation], known: dict[str, Known], room: Room, trees: Sequence[Path]
) -> Iterator[Outcome]:
    """Put each mutant into a tree of its own and run its tests, as many at once as trees."""
    waiting, free = list(mutants), list(trees)
    running: dict[int, tuple[Mutation, Path, int, float]] = {}
    while waiting or running:
        while waiting and free:
            mutation, tree = waiting.pop(0), free.pop()
            _write(tree / mutation.path.relative_to(room.root), mutation.applied())
            tests = tests_of(mutation, known, room.root)
            work = lambda m=mutation, t=tests: _meet(m, t, known)  # noqa: E731
            child = _in_tree(tree, work, tree.parent / f"{tree.name}.log")
            limit = PATIENCE + PATIENCE_FACTOR * sum(tests.values())
            running[child] = (mutation, tree, len(tests), time.monotonic() + limit)
        time.sleep(0.02)
        for child, (mutation, tree, number, end) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                ended, status = os.waitpid(child, 0)
            if ended:
                del running[child]
                original = mutation.path.read_text("utf-8")
                _write(tree / mutation.path.relative_to(room.root), original)
                free.append(tree)
                yield Outcome(mutation, number, status == 0)


def tell(room: Room, ends: Sequence[Outcome]) -> None:
    """Print how many mutants of a room were noticed, and of which kinds the others were."""
    died = sum(not each.survived for each in ends)
    kinds = Counter(each.mutation.kind for each in ends if each.survived)
    said = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    print(
        f"{room.name}: {died} of {len(ends)} noticed" + (f"; not: {said}" if said else ""),
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Try seeded mutants of rooms; print who survived, and how many were noticed."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("rooms", nargs="+", help="such as solvers/plan, or mlsim_book/run")
    parser.add_argument("-n", type=int, default=20, help="how many in each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--tests", nargs="*", default=[], help="test files besides the room's own")
    parser.add_argument("--least", type=float, default=0.0, help="share that must be noticed")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    given = parser.parse_args(arguments)
    rooms = [Room(name.strip("/").removesuffix(".py"), given.root) for name in given.rooms]
    work = {room: chosen(room, given.n, given.seed) for room in rooms}
    for library in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)
    everywhere = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    ended: list[Outcome] = []
    with copies(given.jobs, given.root) as trees:
        for room, mutants in work.items():
            files = [*room.test_files, *given.tests]
            known = learned(room, files, trees, everywhere / "mlsim-mutants")
            of_room = []
            for each in tried(mutants, known, room, trees):
                of_room.append(each)
                if each.survived:
                    print(
                        f"survived {each.tests} tests: {each.mutation.diff(given.root)}\n",
                        flush=True,
                    )
            tell(room, of_room)
            ended += of_room
    share = sum(not each.survived for each in ended) / max(len(ended), 1)
    print(f"All: {share:.0%} of {len(ended)} noticed")
    if share < 1:
        print(
            "For each that survived: in the room's tests, hold what it changes to a value worked by "
            "hand. If nobody could see the change, say why in the pull request."
        )
    return int(share < given.least)


if __name__ == "__main__":
    sys.exit(main())
