"""The workflows for a public forge: what runs, what waits for what, what is allowed, what is said.

actionlint and zizmor read them too; what those ask for and can be asked without them is here.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXTS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
FLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
JOBS = FLOWS["book"]["jobs"]
ALL_JOBS = [job for flow in FLOWS.values() for job in flow["jobs"].values()]
MAIN = "github.ref == 'refs/heads/main'"


def runs(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def step_with(job: dict[str, Any], text: str) -> dict[str, Any]:
    (found,) = (step for step in job["steps"] if text in step.get("uses", step.get("run", "")))
    return dict(found)


def run_step(step: dict[str, Any], **environment: str | Path) -> str:
    """Run a step's script as the runner does; return what it prints."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={"GITHUB_REPOSITORY": "a/b", **environment}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def dry_run(*asked: str, **environment: str) -> str:
    command = ["make", "--dry-run", *asked]
    given = {**os.environ, **environment}
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=given, check=True
    ).stdout


def test_the_site_is_built_checked_and_published_without_waiting_for_tests() -> None:
    """From main alone; that of a request is kept for a look."""
    said = [
        step.get("run", step.get("uses", "")).partition("@")[0] for step in JOBS["build"]["steps"]
    ]
    order = ["make book", ".venv/bin/mlsim-book check", "actions/upload-pages-artifact"]
    assert [each for each in said if each in order] == order
    assert not any("test" in each for each in said)
    assert JOBS["publish"]["needs"] == "build"
    assert "needs" not in JOBS["test"]
    assert step_with(JOBS["build"], "upload-pages-artifact")["if"] == MAIN
    kept = step_with(JOBS["build"], "actions/upload-artifact")
    assert kept["if"] == "github.ref != 'refs/heads/main'"
    assert kept["with"] == {"name": "site", "path": "_book"}
    # A group of the whole run would let the next site wait for the tests of this commit.
    assert "concurrency" not in FLOWS["book"]
    groups = [job["concurrency"]["group"] for job in JOBS.values()]
    assert groups == [f"{name}-${{{{ github.ref }}}}" for name in JOBS]
    assert JOBS["publish"]["concurrency"]["cancel-in-progress"] is False


@pytest.mark.parametrize(("source", "address"), [("legacy", "https://a.github.io/b/"), ("off", "")])
def test_the_site_is_built_for_the_address_that_pages_has(
    tmp_path: Path, source: str, address: str
) -> None:
    """Run the step as the runner does, beside a `gh` that answers as Pages would."""
    ask = step_with(JOBS["build"], "gh api")
    gh = tmp_path / "gh"
    known = f"echo {source} {address}" if address else "echo '{}'; exit 1"
    gh.write_text(f"#!/bin/sh\n{known}\n")
    gh.chmod(0o755)
    said = tmp_path / "output"
    run_step(ask, PATH=f"{tmp_path}:{os.environ['PATH']}", GITHUB_OUTPUT=said)
    assert said.read_text() == f"source={source}\nurl={address}\n"
    for command in ("make book", "make downloads"):
        given = step_with(JOBS["build"], command)["env"]
        assert given == {"SITE_URL": f"${{{{ steps.{ask['id']}.outputs.url }}}}"}
        shown = dry_run(command.split()[1], SITE_URL=address)
        assert ("--site-url https://a.github.io/b/" in shown) == bool(address)


def test_pages_that_is_not_set_is_told_in_words(tmp_path: Path) -> None:
    """The job that names the environment of Pages, which would make one, does not start then."""
    ask = step_with(JOBS["build"], "gh api")
    tell = step_with(JOBS["build"], "::warning")
    found = f"steps.{ask['id']}.outputs.source"
    assert tell["if"] == f"{MAIN} && {found} != 'workflow'"
    assert tell["env"] == {"FOUND": f"${{{{ {found} }}}}"}
    assert JOBS["build"]["outputs"] == {"pages": f"${{{{ {found} }}}}"}
    assert JOBS["publish"]["if"] == f"{MAIN} && needs.build.outputs.pages == 'workflow'"
    assert [name for name, job in JOBS.items() if "environment" in job] == ["publish"]
    summary = tmp_path / "summary"
    told = run_step(tell, PATH=os.environ["PATH"], FOUND="legacy", GITHUB_STEP_SUMMARY=summary)
    assert told.startswith("::warning")
    for said in (told, summary.read_text()):
        assert "set Source to 'GitHub Actions'" in said
        assert "Pages is 'legacy'" in said


def test_a_fork_runs_the_tests_of_a_course_and_we_run_all() -> None:
    course, everything = (
        step for step in JOBS["test"]["steps"] if step.get("run") in {"make course", ".ci/run"}
    )
    assert course["if"] == "env.COURSE == 'true'"
    assert everything["if"] == "env.COURSE != 'true'"
    # A private copy and one from a template are no fork to the forge: they say `course`.
    asked = "vars.TESTS == 'course' || (github.event.repository.fork && vars.TESTS != 'all')"
    assert JOBS["test"]["env"]["COURSE"] == f"${{{{ {asked} }}}}"
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    files = re.findall(r"tests/\S+\.py", made.partition("\ncourse:")[2].partition("\n\n")[0])
    assert files
    for name in files:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "torch" not in text, "a course is tested without PyTorch"
        assert "built_book" not in text, "`mlsim-book check` looks at the site"


def test_what_pip_downloads_is_kept() -> None:
    """In a container root's home belongs to another user, and pip keeps nothing there."""
    for steps in (list(map(str, job["steps"])) for job in JOBS.values() if "container" in job):
        (ours,) = (n for n, each in enumerate(steps) if "mkdir -p ~/.cache/pip" in each)
        assert ours < next(n for n, each in enumerate(steps) if "cache@" in each)
        assert "safe.directory" in steps[ours]
    keys = re.findall(r"path: ~/.cache/pip\n\s+key: (.+)", TEXTS["book"])
    assert len(keys) == 2
    assert not any("sha" in key for key in keys)


def test_each_week_what_is_sampled_runs_in_full_and_quarto_and_colab_are_tried() -> None:
    assert runs(FLOWS["colab"]["jobs"]["notebooks"]) == ["make colab"]
    pins = (ROOT / "tests" / "colab" / "requirements.txt").read_text(encoding="utf-8")
    assert {"numpy", "matplotlib", "pandas", "ipykernel", "ipython"} <= set(
        re.findall(r"^(\w+)==", pins, re.MULTILINE)
    )
    quarto, judge = FLOWS["quarto"], FLOWS["judge"]
    assert runs(quarto["jobs"]["render"]) == ["make quarto"]
    assert step_with(quarto["jobs"]["render"], "quarto-dev/quarto-actions/setup")
    assert runs(judge["jobs"]["judge"])[-1] == 'make judge SEED="$(date +%G%V)"'
    assert "schedule" in quarto[True]  # YAML reads `on` as true
    assert "schedule" in judge[True]
    made = dry_run("judge", "SEED=202648")
    assert re.search(r"MLSIM_JUDGE=1 \S+ -m pytest ", made)
    mutants = r"mutants\.py equations .* mlsim_book/run .*-n 4 --seed 202648 --least 0"
    assert re.search(mutants, made)


def test_actions_are_pinned_by_commit_and_say_which_version_that_is() -> None:
    used = re.findall(r"uses: (.+)", "\n".join(TEXTS.values()))
    assert used
    known = r"(actions/[\w-]+|quarto-dev/quarto-actions/setup)@[0-9a-f]{40} # v\d+\.\d+\.\d+"
    assert [each for each in used if not re.fullmatch(known, each)] == []
    # one action, one commit
    assert len({each.partition("@")[0] for each in used}) == len(set(used))


def test_no_more_is_allowed_than_needed() -> None:
    assert all(flow["permissions"] == {"contents": "read"} for flow in FLOWS.values())
    allowed = [job["permissions"] for job in ALL_JOBS if "permissions" in job]
    assert allowed == [JOBS["build"]["permissions"], JOBS["publish"]["permissions"]]
    assert allowed[0] == {"contents": "read", "pages": "read"}
    assert allowed[1] == {"pages": "write", "id-token": "write"}
    checkouts = [
        step for job in ALL_JOBS for step in job["steps"] if "checkout@" in step.get("uses", "")
    ]
    assert len(checkouts) == 5
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    # What a request or a branch is called must not become a part of a shell's command.
    assert [run for job in ALL_JOBS for run in runs(job) if "${{" in run] == []
    assert all("timeout-minutes" in job for job in ALL_JOBS)
