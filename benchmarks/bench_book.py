"""How fast a book is built: 11 pages with one Matplotlib cell each.

    python benchmarks/bench_book.py
    python benchmarks/bench_book.py preview

`preview` measures how soon edits of prose are shown (see bench_preview.py). Otherwise,
the book is written into a temporary folder. Timed is `mlsim-book build`, a process of
its own each time:

cold     no site, and no result of a cell or of a page kept; the packages from npm are
         installed before, as Quarto is when its time is taken
nothing  the same again, with nothing changed
prose    after a sentence of one page was changed

Each time is the median of `--repeats`. Then the book is built in two folders of
different names, each with nothing kept, and the two sites are compared byte by byte.
Beside them stand the times of Quarto 1.10.18 that were taken on a 2-core machine before
the builder was written; Quarto is not run here. The load of the machine in the last five
minutes is printed: this run alone makes about 1.5, and more than that slows it; the
column CPU, seconds of all processes of a build together, hardly depends on it. The exit
code is 1 if a limit is missed or the sites differ.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import bench_preview
from tables import lay_out

from mlsim_book.render.assets import assets_folder, load_assets

PAGES = 11
COLD, AGAIN = 15.0, 1.5  # seconds: the limits
QUARTO = {"cold": "42 s", "nothing": "42 s (5.6 s with freeze)", "prose": ""}

PAGE = """# Chapter {number} {{#sec-{number}}}

The figure below is number {number}; @fig-{number} shows a wave. See also @sec-{other}.

```{{python}}
#| label: fig-{number}
#| fig-cap: "Wave {number}"
#| fig-alt: "A wave that rises and falls"
import matplotlib.pyplot as plt
import numpy as np

time = np.linspace(0, 6.28, 200)
plt.plot(time, np.sin({number} * time))
plt.xlabel("time")
plt.ylabel("height")
plt.show()
```

Its frequency is `{{python}} {number}`, and $\\omega = {number}$.
"""


def write_book(root: Path) -> Path:
    """Write the book of 11 pages; return its folder."""
    root.mkdir(parents=True)
    names = ["index.qmd", *(f"page{number}.qmd" for number in range(2, PAGES + 1))]
    chapters = "".join(f"    - {name}\n" for name in names)
    (root / "_quarto.yml").write_text(
        f"project:\n  type: book\nbook:\n  title: Waves\n  chapters:\n{chapters}"
        "format:\n  html:\n    fig-format: svg\n"
    )
    for number, name in enumerate(names, start=1):
        text = PAGE.format(number=number, other=number % PAGES + 1)
        (root / name).write_text(text, encoding="utf-8")
    return root


Times = tuple[float, float]  # seconds by the clock, and of all processors


def build(root: Path, cache: Path) -> Times:
    """Build the book with a cache of its own; return the seconds that took."""
    started, used = time.perf_counter(), processor_seconds()
    run = subprocess.run(
        [sys.executable, "-m", "mlsim_book.cli", "build", str(root)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    taken = time.perf_counter() - started
    if run.returncode:
        sys.exit(f"the build failed:\n{run.stdout}{run.stderr}")
    return taken, processor_seconds() - used


def processor_seconds() -> float:
    """Return the seconds that ended processes of this one have computed (0 on Windows)."""
    times = os.times()
    return times.children_user + times.children_system


def fresh_cache(folder: Path) -> Path:
    """Return an empty cache that has the packages from npm, and nothing else."""
    theirs = load_assets().folder
    target = folder / "mlsim-book" / "assets" / assets_folder().name
    target.parent.mkdir(parents=True)
    target.symlink_to(theirs)
    return folder


def measure(work: Path, repeats: int, say: Callable[[str], None]) -> dict[str, Times]:
    """Return the median seconds of each kind of build."""
    times: dict[str, list[Times]] = {"cold": [], "nothing": [], "prose": []}
    for turn in range(repeats):
        place = work / f"turn{turn}"
        book, cache = write_book(place / "book"), fresh_cache(place / "cache")
        times["cold"].append(build(book, cache))
        times["nothing"].append(build(book, cache))
        page = book / "page5.qmd"
        page.write_text(page.read_text(encoding="utf-8").replace("shows a wave", "has a wave"))
        times["prose"].append(build(book, cache))
        say(
            f"{turn + 1}: "
            + ", ".join(f"{name} {all_[-1][0]:.2f} s" for name, all_ in times.items())
        )
        shutil.rmtree(place)
    return {
        name: (
            statistics.median(each[0] for each in all_),
            statistics.median(each[1] for each in all_),
        )
        for name, all_ in times.items()
    }


def differing(work: Path) -> list[str]:
    """Return the files that two builds with nothing kept, in different folders, differ in."""
    sites = []
    for name in ("here", "a longer name/there"):
        book, cache = write_book(work / name / "book"), fresh_cache(work / name / "cache")
        build(book, cache)
        site = book / "_book"
        files = (path for path in site.rglob("*") if path.is_file())
        sites.append({path.relative_to(site).as_posix(): path.read_bytes() for path in files})
    one, other = sites
    return sorted(name for name in one.keys() | other if one.get(name) != other.get(name))


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["preview"]:
        return bench_preview.main(given[1:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="of each time (default: 3)")
    options = parser.parse_args(given)
    if options.repeats < 1:
        parser.error(f"--repeats is {options.repeats}; it must be 1 or more")
    with tempfile.TemporaryDirectory(prefix="bench-book-") as folder:
        work = Path(folder)
        found = measure(work, options.repeats, lambda line: print(line, flush=True))
        different = differing(work)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    today = datetime.datetime.now(tz=datetime.UTC).date()
    load = f", load {os.getloadavg()[1]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"\n{today}, {cores} cores{load}, Python {platform.python_version()}")
    print(f"medians of {options.repeats}\n")
    limits = {"cold": COLD, "nothing": AGAIN}
    rows = []
    for name, (taken, processors) in found.items():
        limit = limits.get(name)
        reached = "" if limit is None else "yes" if taken <= limit else "no"
        shown = "" if limit is None else f"<= {limit:g} s"
        rows.append((name, f"{taken:.2f} s", f"{processors:.1f} s", QUARTO[name], shown, reached))
    print(lay_out(("build", "mlsim-book", "CPU", "Quarto 1.10.18", "limit", "reached"), rows))
    verdict = f"DIFFERENT in {', '.join(different)}" if different else "byte-equal"
    print(f"\nTwo builds in different folders: {verdict}")
    return int(bool(different) or any(row[-1] == "no" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
