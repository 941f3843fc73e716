"""JavaScript in Node, asked many things at once; and numbers of both languages compared."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mlsim.live import Figure
from mlsim_book.render.assets import find_node
from mlsim_book.render.live_figures import scripts_of

# Inputs that a plain run tries of each question, and those that `make judge` tries.
FEW, MANY = 200, 10_000
TRIED = MANY if os.environ.get("MLSIM_JUDGE") else FEW
CLOSE = 1e-12

_ASKING = """
import {{readFileSync, writeFileSync}} from "node:fs";
import * as module from {module};
const said = x => typeof x === "number" && !Number.isFinite(x) ? String(x) : x;
const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = asked.map(([name, values]) => module[name](...values));
writeFileSync(1, JSON.stringify(answers, (_, value) => said(value)));
"""


def ask_node(source: str, asked: Sequence[tuple[str, Sequence[Any]]], folder: Path) -> list[Any]:
    """Return what functions of a module answer, each asked by its name and its arguments.

    Numbers that are not finite are text.
    """
    (folder / "module.mjs").write_text(source, encoding="utf-8")
    script = _ASKING.format(module=json.dumps("./module.mjs"))
    (folder / "asking.mjs").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [find_node(), "asking.mjs"],
        cwd=folder,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


_IN_PAGE = """async ([source, asked]) => {
const module = await import("data:text/javascript," + encodeURIComponent(source));
const said = x => typeof x === "number" && !Number.isFinite(x) ? String(x) : x;
const answers = asked.map(([name, values]) => module[name](...values));
return JSON.stringify(answers, (_, value) => said(value));
}"""


def ask_chromium(source: str, asked: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
    """Return what functions of a module answer in Chromium; skips where there is none."""
    api = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        text = page.evaluate(_IN_PAGE, [source, [[name, list(values)] for name, values in asked]])
        browser.close()
    answers: list[Any] = json.loads(text)
    return answers


def view_of(made: Figure) -> str:
    """Return a live figure's modules as one, whose `ask` calls what its view exports, by name."""
    scripts = scripts_of({"entry": made.entry, "modules": made.modules})
    *_, entry = scripts
    ask = f'export const ask = (name, ...values) => bookModules["{entry}"][name](...values);\n'
    return "".join(scripts.values()) + ask


def differ(ours: Any, theirs: Any, whole: float = 0.0) -> float:
    """Return the part of the larger by which two numbers differ; 0 where neither is finite.

    Of a part of something, which may be next to nothing, it is the part of the `whole`.
    """
    if isinstance(theirs, str) or not math.isfinite(ours):
        return 0.0 if isinstance(theirs, str) and not math.isfinite(ours) else math.inf
    larger = max(abs(ours), abs(theirs), whole)
    return abs(ours - theirs) / larger if larger else 0.0
