"""What runs inside the walls, called here: its guard, what it sends, and what it may take."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kept import cases

from mlsim_grading import runner
from mlsim_grading.walls import choose, enter, supervise
from mlsim_grading.walls.supervise import Limits, Watch


# ------------------------------------------------------------------ the guard
def guarded(tmp_path: Path) -> Callable[..., str]:
    """Ask the guard of a notebook that lives in `home`, of which `week` is hidden."""
    hook = runner._hook(str(tmp_path / "home"), (str(tmp_path / "week"),))

    def said(event: str, *args: Any) -> str:
        try:
            hook(event, args)
        except runner.WallError as error:
            return str(error).partition(" is not allowed")[0]
        return ""

    return said


def test_the_guard_lets_pass_and_refuses(tmp_path: Path) -> None:
    said = guarded(tmp_path)
    places = {each: str(tmp_path / each) for each in ("home", "week")}
    places["near"] = places["week"] + "2"

    def told(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.startswith("O_"):
            return getattr(os, value)
        return None if value == "none" else value.format(**places)

    for event, given, words in cases("guarded.toml"):
        assert said(event, *map(told, given)) == words, (event, given)
    assert said("os.utime", b"/b", None, None, -1) == "writing outside the notebook's own folder"


def test_the_guard_counts_files(tmp_path: Path) -> None:
    said = guarded(tmp_path)
    place = str(tmp_path / "home" / "a")
    assert {said("open", place, "w", 0) for _ in range(500)} == {""}
    assert said("open", 7, "w", 0) == ""  # a file that is open already is no file more
    assert said("open", place, "w", 0) == "writing more than 500 files"


@pytest.mark.parametrize("limit", [runner.limit, lambda one: enter._limit(*_numbered(one))])
def test_a_limit_is_never_above_the_systems_own(
    monkeypatch: pytest.MonkeyPatch, limit: Callable[[dict[str, int]], None]
) -> None:
    for hard, allowed in [(resource.RLIM_INFINITY, 70), (100, 70), (70, 70), (20, 20)]:
        now: dict[int, tuple[int, int]] = {}
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (5, hard))
        monkeypatch.setattr(resource, "setrlimit", now.__setitem__)
        limit({"RLIMIT_NOFILE": 70})
        limit({"RLIMIT_OF_NO_SYSTEM": 70})
        assert now == {resource.RLIMIT_NOFILE: (allowed, allowed)}


def _numbered(limits: dict[str, int]) -> tuple[int | None, int]:
    ((name, value),) = limits.items()
    return getattr(resource, name, None), value


def test_arguments_go_through_a_pipe_of_any_size() -> None:
    for size in (3, 65_536, 70_000):
        read = enter._pipe_of(b"x" * size)
        assert os.get_inheritable(read)
        with os.fdopen(read, "rb") as pipe:
            assert len(pipe.read()) == size


# ------------------------------------------------------------------ what is sent
def test_an_error_is_told_by_a_kind_that_python_knows() -> None:
    own = type("ValueError", (KeyError,), {})  # a name that is not what it says
    for error, kind in [
        (ValueError("x"), "ValueError"), (own("x"), "KeyError"), (SystemExit(), "SystemExit"),
        (runner.CellTimeout("x"), "CellTimeout"), (runner.WallError("x"), "WallError"),
        (type("Mine", (), {})(), "object"),
    ]:  # fmt: skip
        assert runner._kind(error) == kind


def test_what_a_cell_ended_with() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def shell(before: Any = None, within: Any = None, raises: Any = None) -> Any:
        def run(source: str, *, silent: bool) -> Any:
            assert (source, silent) == ("1", True)
            if raises:
                raise raises
            return SimpleNamespace(error_before_exec=before, error_in_exec=within)

        return SimpleNamespace(run_cell=run)

    long = ValueError("x" * 400)
    for made, ended in [
        (shell(), ("", "")),
        (shell(before=SyntaxError("a")), ("SyntaxError", "SyntaxError: a")),
        (shell(within=KeyError("a")), ("KeyError", "KeyError: 'a'")),
        (shell(raises=SystemExit(3)), ("SystemExit", "SystemExit: 3")),
        (shell(within=MuteError()), ("Exception", "")),
        (shell(within=long), ("ValueError", f"ValueError: {'x' * 288}")),  # 300 in all
    ]:
        assert runner._run(made, "1", 20) == ended


def test_what_is_sent_of_a_value() -> None:
    for value, sent in [
        (None, None), (..., None), ("", None), (" ..\n", None), ([], None),
        ("a" * 6000, {"text": "a" * 5001}),  # one more than is read
        (True, {"other": "True"}), (1j, {"other": "1j"}), (b"x", {"other": "b'x'"}),
        (b"x" * 400, {"other": repr(b"x" * 400)[:300]}),
        ([1, "a"], {"list": ["1", "a"]}), (("b" * 120,) * 60, {"list": ["b" * 100] * 50}),
        (2.5, {"number": 2.5}), (7, {"number": 7}), ({"a": 1}, {"other": "dict"}),
        (10**400, {"other": "1" + "0" * 39}), (type("A" * 60, (), {})(), {"other": "A" * 40}),
    ]:  # fmt: skip
        assert runner._as_json(value, "s") == sent, value


def test_only_what_is_new_is_sent() -> None:
    class Odd:
        def __float__(self) -> float:
            raise SystemExit

    told: list[tuple[str, Any]] = []
    task = {"answers": {"a": "", "b": "", "c": ""}, "cell_seconds": 30}
    seen: dict[str, Any] = {}
    for names in ({"a": 2, "c": Odd()}, {"a": 2, "b": ...}, {"a": 3, "b": "x"}, {}):
        runner._look(names, task, seen, lambda name, value: told.append((name, value)))
    assert told == [
        ("a", {"number": 2}), ("c", {"other": "SystemExit"}), ("a", {"number": 3}),
        ("b", {"text": "x"}),
    ]  # fmt: skip


# ------------------------------------------------------------------ what is taken
def test_what_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bound to the last thread, file and byte. Two processes share what each seems to have."""
    limits = Limits(processes=6, files=9, memory=2**20)
    most = {"threads": 6 + 4, "files": 9, "written": 2**19, "waiting": 2**18, "own": 2**18}
    slowed: list[int] = []

    def said(**more: int) -> str:
        taken = {**most, "shared": 0, **more}
        monkeypatch.setattr(supervise, "descendants", lambda _: [1, 2])
        monkeypatch.setattr(
            supervise, "_threads", lambda pid: range(taken["threads"] - 1) if pid == 1 else [9]
        )
        written = {"/home": (taken["written"], taken["files"])}
        monkeypatch.setattr(supervise, "_written", lambda _, home: written[home])
        monkeypatch.setattr(supervise, "_waiting", lambda _: taken["waiting"])
        both = {1: taken["own"], 2: 0}
        monkeypatch.setattr(supervise, "_proportional", both.__getitem__)
        monkeypatch.setattr(supervise, "_private", lambda pid: both[pid] + taken["shared"])
        monkeypatch.setattr(os, "setpriority", lambda _, tid, __: slowed.append(tid))
        return Watch(1, limits, "/home").excess()

    assert (said(), len(slowed)) == ("", 10)
    slowed.clear()
    assert (said(threads=8), slowed) == ("", [])
    assert said(threads=11) == "more than 6 processes"
    assert said(files=10) == "more than 9 files"
    assert said(own=2**18 + 1) == "more than 1 MiB of memory"
    assert said(shared=2**18) == ""  # each of the two shows it, and together they have no more
    assert said(waiting=2**18 + 1) == said(written=2**19 + 1) == "more than 1 MiB of memory"


def test_an_old_kernel_counts_what_else_its_user_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("12/task/1", "12/task/2", "13/task/3", "self/task/4", "14/empty"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(choose, "Path", lambda _: tmp_path)
    owner = tmp_path.stat().st_uid
    for release, user, root, count in [
        ("5.13.1-x", owner, 1, 3), ("4.19.0", owner, 1, 3), ("5.13.0", owner + 1, 1, 0),
        ("5.13.0", owner, 0, 0), ("5.14.0", owner, 1, 0), ("6.1", owner, 1, 0),
    ]:  # fmt: skip
        monkeypatch.setattr(choose.platform, "release", lambda release=release: release)
        monkeypatch.setattr(choose.os, "getuid", lambda user=user: user)
        monkeypatch.setattr(choose.os, "geteuid", lambda root=root: root)
        assert choose._others() == count, (release, user, root)
