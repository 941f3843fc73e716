"""The instructor's page: what a class got, and what needs a decision. One file, without scripts."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from mlsim_grading.alike import Alike
from mlsim_grading.cells import number, some
from mlsim_grading.gradebook import Entry, Gradebook
from mlsim_grading.left import NOTHING
from mlsim_grading.tallies import Mistake, Tally, mistakes, tally

_BARS = 10  # of the histogram
_WIDE, _HIGH = 640, 220  # of a figure
_MOST_ROWS = 2000  # students whose rows are shown; the table has all
_MOST_MISTAKES = 6  # of a question
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --bar: #2f6fb5; --soft: #8882; --muted: #595f69; }
@media (prefers-color-scheme: dark) { :root { --bar: #79b2ee; --muted: #aab2bd; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; } caption, figcaption { color: var(--muted); }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--bar); }
table { border-collapse: collapse; min-width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .25rem 0; }
caption span { display: block; position: sticky; left: 0; max-width: min(100%, 90vw); }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th[scope=col] { white-space: nowrap; } .n { text-align: right; white-space: nowrap; }
tbody th { font-weight: 500; } figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
svg text { font: 13px system-ui, sans-serif; fill: currentColor; } rect { fill: var(--bar); }
.track { fill: var(--soft); } .axis { stroke: currentColor; opacity: .5; }
@media (forced-colors: active) { rect { fill: CanvasText; }
  .track { fill: none; stroke: CanvasText; } }
@media print { .scroll { overflow: visible; } tr, figure { break-inside: avoid; } }
""".strip()


def overview(
    book: Gradebook, alike: Sequence[Alike], exported: Sequence[str] = (), passed: int = 0
) -> str:
    """Return the page.

    Parameters
    ----------
    exported
        What must be known of an export.
    passed
        How many files were no submissions; `not_graded.csv` lists them.
    """
    tallies = tally(book)
    parts = [
        f"<h1>{_text(book.title)}: results</h1>",
        "<p>This page is for the instructor. It names students and shows what was asked.</p>",
        _summary(book),
        _needed(book, alike, exported, passed),
        "<h2>How the class did</h2>", _histogram(book), _by_question(tallies),
        "<h2>Questions</h2>", _questions(tallies),
        "<h2>Mistakes</h2>", _mistakes(mistakes(book)),
        _alike(alike),
        "<h2>Students</h2>", _students(book),
    ]  # fmt: skip
    title = _text(f"{book.title}: results")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, parts))
        + "\n</main>\n</body>\n</html>\n"
    )


def _text(text: object) -> str:
    return html.escape("".join(c if c.isprintable() else " " for c in str(text)))


def _there(book: Gradebook) -> list[Entry]:
    return [each for each in book.entries if each.graded]


def _summary(book: Gradebook) -> str:
    there = _there(book)
    percents = [each.percent for each in there]
    said = [f"{len(there)} of {len(book.entries)} students have a grade, of {book.of} points."]
    if percents:
        said.append(f"The median is {median(percents):.0f} %, the mean {fmean(percents):.0f} %.")
    said.append(f"Of several submissions the {book.rules.take} one counts.")
    said.append(
        book.rules.late.words if book.rules.late else "Nothing is taken off for being late."
    )
    return f"<p>{_text(' '.join(said))}</p>"


def _needed(book: Gradebook, alike: Sequence[Alike], exported: Sequence[str], passed: int) -> str:
    """Return what asks for a decision."""
    unmarked = sum(len(each.open) for each in book.entries)
    nobodys = [each for each in book.results if not each.student]
    failed = [each for each in book.results if each.failed]
    items = [f"Texts to be marked, in hand/: {unmarked}."] if unmarked else []
    items += [f"{each.file}: {each.undecided or 'from nobody that is known'}" for each in nobodys]
    items += [f"{each.file} was not graded: {each.failed}" for each in failed]
    items += [
        f"{each.student}: {note}"
        for each in book.entries if not each.result
        for note in each.notes if note != NOTHING
    ]  # fmt: skip
    late = [each.student for each in book.entries if each.unpunished]
    if late:
        items.append(f"Late, says the course system, and nothing was taken off: {some(late)}.")
    items += [f"Signs that submissions are alike: {len(alike)}. See below."] if alike else []
    items += [f"Files that are no submissions: {passed}. See not_graded.csv."] if passed else []
    items += [f"Export: {each}." for each in exported]
    listed = "".join(f"<li>{_text(each)}</li>" for each in items)
    return f"<h2>What needs you</h2>\n<ul>{listed or '<li>Nothing.</li>'}</ul>"


def _histogram(book: Gradebook) -> str:
    counts = [0] * _BARS
    for each in _there(book):
        counts[min(_BARS - 1, int(each.percent / 100 * _BARS))] += 1
    most = max(counts, default=0) or 1
    low, left, width = _HIGH - 34, 10, (_WIDE - 20) / _BARS
    drawn = []
    for place, count in enumerate(counts):
        high = (low - 24) * count / most
        x = left + place * width
        drawn.append(
            f'<rect x="{x + 3:.1f}" y="{low - high:.1f}" width="{width - 6:.1f}"'
            f' height="{high:.1f}"/>'
        )
        if count:
            drawn.append(f'<text x="{x + width / 2:.1f}" y="{low - high - 6:.1f}"'
                         f' text-anchor="middle">{count}</text>')  # fmt: skip
    drawn.append(f'<line class="axis" x1="{left}" x2="{_WIDE - 10}" y1="{low}" y2="{low}"/>')
    for place, anchor in ((0, "start"), (_BARS // 2, "middle"), (_BARS, "end")):
        x = left + place * width
        said = f"{100 * place // _BARS} %"
        drawn.append(f'<text x="{x:.1f}" y="{low + 18}" text-anchor="{anchor}">{said}</text>')
    step = 100 // _BARS
    words = "; ".join(
        f"{place * step} to {(place + 1) * step} %: {count}" for place, count in enumerate(counts)
    )
    return _figure(
        "points", f"Students by percent of the points. {words}.", "".join(drawn), _HIGH,
        "Students by percent of the points, after everything that was decided by hand",
    )  # fmt: skip


def _by_question(tallies: Sequence[Tally]) -> str:
    if not tallies:
        return ""
    row, left = 28, 250
    wide = _WIDE - left - 60
    drawn = []
    for place, each in enumerate(tallies):
        y = place * row + 4
        title = _text(_short(each.title))
        drawn.append(
            f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{title}</text>'
            f'<rect class="track" x="{left}" y="{y}" width="{wide}" height="20"/>'
            f'<rect x="{left}" y="{y}" width="{wide * each.share:.1f}" height="20"/>'
            f'<text x="{left + wide + 8}" y="{y + 15}">{_percent(each)}</text>'
        )
    words = "; ".join(f"{each.title}: {_percent(each)}" for each in tallies)
    return _figure(
        "questions", f"Mean share of the points of each question. {words}.", "".join(drawn),
        len(tallies) * row + 8, "Mean share of the points of each question",
    )  # fmt: skip


def _percent(each: Tally) -> str:
    return "open" if 0 < each.there == each.waiting else f"{100 * each.share:.0f} %"


def _short(title: str) -> str:
    return title if len(title) <= 34 else f"{title[:33]}…"


def _figure(name: str, words: str, drawn: str, high: int, caption: str) -> str:
    return (
        f'<figure><svg viewBox="0 0 {_WIDE} {high}" width="{_WIDE}" height="{high}" role="img"'
        f' aria-labelledby="{name}-words"><title id="{name}-words">{_text(words)}</title>'
        f"{drawn}</svg>"
        f"<figcaption>{_text(caption)}</figcaption></figure>"
    )


def _table(caption: str, head: Iterable[tuple[str, bool]], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose first cells head their rows; `head` says which columns hold numbers."""
    columns = list(head)
    kinds = [' class="n"' if numeric else "" for _, numeric in columns]
    first = "".join(
        f'<th scope="col"{kind}>{_text(name)}</th>'
        for (name, _), kind in zip(columns, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        f'<th scope="row">{_text(row[0])}</th>'
        + "".join(
            f"<td{kind}>{_text(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    said = _text(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{said}" tabindex="0"><table>'
        f"<caption><span>{said}</span></caption>\n<thead><tr>{first}</tr></thead>\n<tbody>\n{body}\n</tbody>"
        "</table></div>"
    )


def _questions(tallies: Sequence[Tally]) -> str:
    head = [
        ("Question", False), ("Handed in", True), ("Blank", True), ("All points", True),
        ("Mean", True), ("Of", True), ("With the rest", True),
    ]  # fmt: skip
    rows = [
        [each.title, each.there, each.blank, each.right, number(each.mean), each.of,
         "" if each.fits is None else f"{each.fits:.2f}"]
        for each in tallies
    ]  # fmt: skip
    return _table(
        "How each question went. The last column is the correlation of its points with those of"
        " the other questions: near zero or below, look at the question.", head, rows,
    )  # fmt: skip


def _mistakes(found: Sequence[Mistake]) -> str:
    head = [("Question", False), ("Verdict", False), ("Students", True), ("Percent", True),
            ("What they were told", False)]  # fmt: skip
    shown: dict[str, int] = {}
    rows = []
    for each in found:
        if each.verdict in {"right", "by hand", "unmarked", "override"}:
            continue
        shown[each.question] = shown.get(each.question, 0) + 1
        if shown[each.question] <= _MOST_MISTAKES:
            credit = "" if math.isnan(each.points) or not each.points else (
                f" ({number(each.points)} points)"
            )  # fmt: skip
            rows.append([each.question, each.verdict + credit, each.times,
                         f"{100 * each.share:.0f}", each.message])  # fmt: skip
    return _table(
        "Mistakes by question, a row for each wrong path whatever the numbers were. The words are"
        " those of the first version.", head, rows,
    )  # fmt: skip


def _alike(alike: Sequence[Alike]) -> str:
    if not alike:
        return ""
    rows = [[each.sign, ", ".join(each.students), ", ".join(each.questions)] for each in alike]
    return (
        "<h2>Alike</h2>\n<p>A suspicion, no verdict: students learn together, and a common source"
        " makes work alike, too. No point depends on it. Look at the notebooks, and ask.</p>\n"
        + _table(
            "Submissions that are alike",
            [("Sign", False), ("Students", False), ("Questions", False)],
            rows,
        )
    )


def _students(book: Gradebook) -> str:
    head = [("Student", False), ("Points", True), ("Percent", True), ("Taken off", True),
            ("Submissions", True), ("Set by hand", False), ("To be marked", False),
            ("Notes", False)]  # fmt: skip
    rows = [
        [each.student, number(each.points), f"{each.percent:.0f}",
         number(each.taken_off) if each.taken_off else "", each.attempts,
         ", ".join(each.changed), ", ".join(each.open), "; ".join(each.notes)]
        for each in book.entries[:_MOST_ROWS]
    ]  # fmt: skip
    more = len(book.entries) - len(rows)
    caption = (
        f"Each student; gradebook.csv has {f'these and {more} more' if more > 0 else 'the same'}"
    )
    return _table(caption, head, rows)
