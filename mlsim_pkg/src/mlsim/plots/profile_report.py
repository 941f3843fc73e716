"""A report of a profile: one HTML file, for any browser, without a script and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.plots.profile_svg import roofline_svg
from mlsim.profiling.diagnosis import Diagnosis, Finding, Point, points_of, run_words, unplaced
from mlsim.profiling.measured_profile import MeasuredProfile, printable
from mlsim.profiling.roofs import ceilings_of, main_precision
from mlsim.units import text

_STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--page:#fff;--soft:#5a5a5a;--rule:#d5d5d5;
--m:#0072b2;--c:#c24e00;--f:#007a5a;--u:#6b6b6b}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--page:#16181c;--soft:#b0b0b0;
--rule:#3a3d42;--m:#56b4e9;--c:#f0903c;--f:#2fc79a;--u:#a8a8a8}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);
max-width:70rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;width:100%}
caption{text-align:left;color:var(--soft);padding:.3rem 0}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td.k{overflow-wrap:anywhere;min-width:12rem;max-width:24rem}
svg{width:100%;height:auto;max-height:32rem}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
svg .number{fill:var(--page);font-weight:700}
svg .roof{fill:none;stroke:var(--ink);stroke-width:2}
svg .ceiling{fill:none;stroke:var(--soft);stroke-dasharray:5 4}
svg .grid{stroke:var(--rule)}
circle.m{fill:var(--m)}circle.c{fill:var(--c)}circle.f{fill:var(--f)}circle.u{fill:var(--u)}
ul{padding-left:1.2rem}details{margin:.5rem 0}
@media print{details>*{display:block}}
"""
# What a browser may load: nothing but the style in the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MOST_ROWS = 200
_NO_ROOF = (
    "The device is not known, so there is no roof to draw and nothing to try. Give --hardware, a "
    "name such as A100 or a file of your own (<code>mlsim zoo</code> lists them)."
)


def report(diagnosis: Diagnosis | MeasuredProfile, *, levels: Sequence[str] = ("dram",)) -> str:
    """Return a report as the text of an HTML page.

    It has what limits the run, the roofline, and a row for each kernel with its region, what
    limits it and the two things to try first. Names out of the profile are escaped.

    >>> from mlsim.profiling import MeasuredKernel, MeasuredProfile, diagnose
    >>> kernel = MeasuredKernel("<b>k</b>", 1, 1e-3, {"fp32": 2e8}, {"dram": 1.2e9})
    >>> page = report(diagnose(MeasuredProfile((kernel,), "test"), hardware="A100"))
    >>> "&lt;b&gt;k" in page, "<b>k" in page
    (True, False)
    """
    if isinstance(diagnosis, MeasuredProfile):
        profile, whole, findings = diagnosis, None, unplaced(diagnosis)
        name, words = profile.device_name, run_words(profile)
        figure, points = f"<p>{_NO_ROOF}</p>", list[Point]()
    else:
        profile, whole, findings = diagnosis.profile, diagnosis.whole, diagnosis.findings
        name, words = diagnosis.device.name, list(diagnosis.run)
        figure, points = _figure(diagnosis, levels)
    title = f"Profile on {name}" if name else "Profile"
    files = ", ".join(Path(each).name for each in profile.files)
    run = "".join(f"<li>{_said(each)}</li>" for each in words)
    notes = "".join(f"<li>{_said(each)}</li>" for each in profile.notes)
    return "".join(
        (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_said(title)}</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{_said(title)}</h1><p>{_said(profile.tool)}: {_said(files)}</p>",
            _totals(profile, whole),
            f"<h2>The run</h2><ul>{run}</ul>" if run else "",
            f"<h2>Roofline</h2>{figure}",
            _table(findings, points),
            f"<h2>Notes</h2><ul>{notes}</ul>" if notes else "",
            "</main></body></html>\n",
        )
    )


def write_report(
    diagnosis: Diagnosis | MeasuredProfile, path: str | Path, *, levels: Sequence[str] = ("dram",)
) -> Path:
    """Write a report to a file.

    Raises
    ------
    InvalidValueError
        If there is no such folder.
    """
    file = Path(path).expanduser()
    if not file.parent.is_dir():
        raise InvalidValueError(f"there is no folder {str(file.parent)!r} to write to.")
    file.write_text(report(diagnosis, levels=levels), encoding="utf-8")
    return file


def _said(words: str) -> str:
    return escape(printable(words), quote=True)


def _totals(profile: MeasuredProfile, placed: Finding | None) -> str:
    """Return time, work and bytes of all kernels; what is not known says why."""
    whole = profile.total
    facts = [("Kernels", f"{sum(each.calls for each in profile.kernels):,} launches")]
    facts.append(("Time of kernels", _or_why(whole.seconds, "s", whole.missing.get("seconds"))))
    work = whole.flop_count if whole.counted else None
    facts.append(("Work", _or_why(work, "FLOP", whole.missing.get("flops"))))
    moved = whole.traffic.get("dram")
    facts.append(("Main memory", _or_why(moved, "B", whole.missing.get("dram"))))
    if placed is not None and placed.rate is not None:
        facts.append(("All together", f"{placed.region}. {placed.limit}"))
    rows = "".join(
        f'<tr><th scope="row">{_said(name)}</th><td>{_said(value)}</td></tr>'
        for name, value in facts
    )
    return f"<table><caption>All kernels added up</caption><tbody>{rows}</tbody></table>"


def _or_why(value: float | None, unit: str, why: str | None) -> str:
    return text(value, unit) if value is not None else f"not known: {why or 'not in the file'}"


def _figure(diagnosis: Diagnosis, levels: Sequence[str]) -> tuple[str, list[Point]]:
    device = diagnosis.device
    try:
        points = points_of(diagnosis, levels)
    except NotMeasuredError as error:
        return f"<p>{_said(str(error))}</p>", []
    points = sorted(points, key=lambda each: -each.time_share)[:_MOST_ROWS]
    precision = main_precision(diagnosis.profile.kernels, device)
    peak = device.compute.figure(precision).si
    svg = roofline_svg(points, device, peak, ceilings_of(device, precision))
    said = (
        f"The roof is that of {precision}. A point is a kernel, as large as its part of the time; "
        "its number is that of the table."
    )
    return f"<figure>{svg}<figcaption>{_said(said)}</figcaption></figure>", points


def _table(findings: Sequence[Finding], points: Sequence[Point]) -> str:
    numbers: dict[int, list[str]] = {}
    for number, point in enumerate(points, start=1):
        numbers.setdefault(id(point.finding), []).append(str(number))
    columns = ("Point", "Kernel", "Calls", "Time", "Work", "FLOP/byte", "Rate", "Region")
    head = "".join(f'<th scope="col">{each}</th>' for each in (*columns, "What to try first"))
    rows = "".join(_row(each, numbers.get(id(each), [])) for each in findings[:_MOST_ROWS])
    more = len(findings) - _MOST_ROWS
    caption = "Kernels, the longest first"
    caption += f"; {more:,} shorter ones are left out" if more > 0 else ""
    return (
        '<h2>Kernels</h2><div class="scroll" role="region" aria-label="Kernels" tabindex="0">'
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(finding: Finding, numbers: list[str]) -> str:
    kernel = finding.kernel
    share = "" if finding.time_share is None else f" ({finding.time_share:.0%})"
    seconds = "-" if kernel.seconds is None else text(kernel.seconds, "s", 3) + share
    work = text(kernel.flop_count, "FLOP", 3) if kernel.counted else "-"
    intensity = "-" if finding.intensity is None else f"{finding.intensity:.3g}"
    rate = "-" if finding.rate is None else text(finding.rate, "FLOP/s", 3)
    tries = "".join(
        f"<li>{_said(each.words)}: {each.speedup:.3g} times faster ({_said(each.basis)})</li>"
        for each in finding.remedies
    )
    advice = f"<p>{_said(finding.limit)}</p>" + (f"<ul>{tries}</ul>" if tries else "")
    name = f'<th scope="row" class="k">{_said(kernel.short)}'
    if kernel.short != kernel.name:
        name += f"<details><summary>full name</summary>{_said(kernel.name[:2000])}</details>"
    cells = "".join(
        f'<td class="n">{_said(each)}</td>' for each in (seconds, work, intensity, rate)
    )
    return (
        f'<tr><td class="n">{", ".join(numbers) or "-"}</td>{name}</th>'
        f'<td class="n">{kernel.calls:,}</td>{cells}<td>{_said(finding.region)}</td>'
        f"<td>{advice}</td></tr>"
    )
