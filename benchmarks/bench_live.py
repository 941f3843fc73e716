"""How soon a figure that moves is drawn, and how long it takes to follow a reader.

Chromium opens each page that has one, with a processor four times slower than this machine's, and
moves each slider and each choice. What is counted of an update is the time that the page's thread
works, as Chromium's own counters have it, not the wait for the next frame: script, style, layout,
and what is left, which is mostly painting. The first drawing is what starting the figures of a page
takes that is there. Of each number the median of seven; of updates, of seven times six.

    python benchmarks/bench_live.py            # the book of this repository
    python benchmarks/bench_live.py _book      # a site that is built already
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench_pages import ROOT, SCREEN, chromium, gzip_server, pages_of
from tables import lay_out

from mlsim_book.render.live_figures import names_on

SLOWER, TIMES, MOVES = 4, 7, 6
FIRST, NEXT = 100, 16  # ms: the limits
COSTS = {"script": "ScriptDuration", "style": "RecalcStyleDuration", "layout": "LayoutDuration"}
LOADER = re.compile(r"site_libs/live-\w+\.js$")
# Start the page's figures, which waited for this script, and wait until they are shown.
START = """async (url) => {
  const script = document.createElement("script");
  await new Promise((done) => {
    Object.assign(script, { src: url, onload: done });
    document.head.append(script);
  });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
OPEN = """() => document.querySelectorAll(".live-gate button").forEach((each) => each.click())"""
# Move a control to other places, one after the other, and wait until each is shown.
MOVE = """async (control, times) => {
  for (let left = times; left; left -= 1) {
    if (control.type === "range") {
      const [low, high] = [Number(control.min), Number(control.max)];
      const next = Number(control.value) + Math.max(Number(control.step), (high - low) / 7);
      control.value = next > high ? low : next;
      control.dispatchEvent(new Event("input"));
    } else {
      const all = [...control.querySelectorAll("input")];
      all[(all.findIndex((each) => each.checked) + 1) % all.length].click();
    }
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
}"""
WORDS = "(each) => (each.labels?.[0] ?? each.querySelector('legend')).innerText.trim()"


def first_drawing(browser: Any, address: str) -> dict[str, float]:
    """Return the ms in which a page that is there starts its figures and shows them, by cause."""
    context = browser.new_context(viewport=SCREEN)
    page = context.new_page()
    session = slowed(page)
    held: list[str] = []

    def hold(route: Any) -> None:
        held.append(route.request.url)
        route.fulfill(body="")

    page.route(LOADER, hold, times=1)
    page.goto(address)
    page.wait_for_timeout(500)  # what else the page does when it begins
    before = counted(session)
    page.evaluate(START, f"{held[0]}?")
    after = counted(session)
    context.close()
    return {cause: after[cause] - before[cause] for cause in before}


def slowed(page: Any) -> Any:
    """Make a page's processor slower; return what counts its work."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def counted(session: Any) -> dict[str, float]:
    """Return the ms that the page's thread has worked so far, by cause."""
    found = session.send("Performance.getMetrics")["metrics"]
    metrics = {each["name"]: 1e3 * each["value"] for each in found}
    return {"all": metrics["TaskDuration"]} | {name: metrics[key] for name, key in COSTS.items()}


def updates(browser: Any, address: str) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield figure, control and the ms of an update by cause, of each control of a page."""
    context = browser.new_context(viewport=SCREEN)
    page = context.new_page()
    session = slowed(page)
    page.goto(address)
    page.evaluate(OPEN)
    for figure in page.locator(".live-figure").all():
        name = figure.evaluate("(each) => each.closest('[id^=fig-]')?.id ?? ''")
        for control in figure.locator("input[type=range], .live-choice").all():
            control.evaluate(MOVE, 1)
            runs = []
            for _ in range(TIMES):
                before = counted(session)
                control.evaluate(MOVE, MOVES)
                after = counted(session)
                runs.append({cause: (after[cause] - before[cause]) / MOVES for cause in before})
            yield name, control.evaluate(WORDS), middle(runs)
    context.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, nargs="?", help="a built site (default: build it)")
    options = parser.parse_args(arguments)
    rows, kept = [], True
    with tempfile.TemporaryDirectory(prefix="bench-live-") as folder:
        site = options.site
        if site is None:
            from mlsim_book.build import build

            site = build(ROOT, out=Path(folder) / "site", progress=str)
        pages = [path for path in pages_of(site) if names_on((site / path).read_text("utf-8"))]
        if not pages:
            parser.error(f"{site} has no figure that moves; name the folder of a built site")
        with gzip_server(site) as url, chromium() as browser:
            for path in pages:
                address = f"{url}/{path}"
                drawn = middle([first_drawing(browser, address) for _ in range(TIMES)])
                costs = [(path, "first drawing", drawn, FIRST)]
                costs += [(*each, NEXT) for each in updates(browser, address)]
                for figure, words, cost, limit in costs:
                    kept &= cost["all"] <= limit
                    rest = cost["all"] - sum(cost[each] for each in COSTS)
                    numbers = [f"{each:.1f}" for each in (*cost.values(), rest)]
                    rows.append((figure, words, *numbers, "yes" if cost["all"] <= limit else "NO"))
    print(f"ms at a processor {SLOWER} times slower; limits {FIRST} (first drawing) and {NEXT}\n")
    print(lay_out(("figure", "moved", "in all", *COSTS, "rest", "reached"), rows))
    return int(not kept)


def middle(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median of each cause."""
    return {cause: median(each[cause] for each in runs) for cause in runs[0]}


if __name__ == "__main__":
    sys.exit(main())
