"""The workflow for a public forge does what CI does, and pins what it uses."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
COLAB = yaml.safe_load((ROOT / ".github" / "workflows" / "colab.yml").read_text(encoding="utf-8"))
QUARTO = yaml.safe_load((ROOT / ".github" / "workflows" / "quarto.yml").read_text("utf-8"))
JOBS = yaml.safe_load(TEXT)["jobs"]


def test_it_runs_the_two_commands() -> None:
    steps = [step["run"] for step in JOBS["build"]["steps"] if "run" in step]
    assert steps == ["make book", ".ci/run", "make downloads"]
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_notebooks_are_run_with_what_colab_has() -> None:
    steps = [step["run"] for step in COLAB["jobs"]["notebooks"]["steps"] if "run" in step]
    assert steps == ["make colab"]
    assert COLAB["permissions"] == {"contents": "read"}
    pins = (ROOT / "tests" / "colab" / "requirements.txt").read_text(encoding="utf-8")
    assert {"numpy", "matplotlib", "pandas", "ipykernel", "ipython"} <= set(
        re.findall(r"^(\w+)==", pins, re.MULTILINE)
    )


def test_a_genuine_quarto_renders_the_book_each_week() -> None:
    steps = QUARTO["jobs"]["render"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["make quarto"]
    assert "quarto-dev/quarto-actions/setup@v2" in [step.get("uses") for step in steps]
    assert QUARTO["permissions"] == {"contents": "read"}
    assert "schedule" in QUARTO[True]  # YAML reads `on` as true


def test_actions_are_pinned_by_their_major_version() -> None:
    jobs = {**JOBS, **COLAB["jobs"], **QUARTO["jobs"]}
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    known = r"(actions/[\w-]+|quarto-dev/quarto-actions/setup)@v\d+"
    assert all(re.fullmatch(known, each) for each in used)


def test_only_main_is_published_and_only_after_the_tests() -> None:
    publish = JOBS["publish"]
    assert publish["needs"] == "build"
    assert "refs/heads/main" in publish["if"]
    assert "pull_request" in publish["if"]


def test_no_more_is_allowed_than_needed() -> None:
    assert yaml.safe_load(TEXT)["permissions"] == {"contents": "read"}
    assert JOBS["publish"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert "permissions" not in JOBS["build"]
