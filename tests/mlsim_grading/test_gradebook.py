"""The gradebook: one row a student, what was decided by hand, what is taken off, what is alike."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from kept import cases
from made_up_class import QUESTIONS, WHY, handed, made

from mlsim_book.errors import SourceError
from mlsim_grading.class_lists import Student
from mlsim_grading.decisions import (
    PENALTY,
    LateRule,
    Override,
    half_filled,
    read_due,
    read_hand,
    read_overrides,
    row_name,
    write_hand,
)
from mlsim_grading.grade import Mark, Result
from mlsim_grading.gradebook import Entry, Rules, gradebook_csv, make_gradebook
from mlsim_grading.overview import (
    Alike,
    find_alike,
    mistakes_table,
    overview,
    page,
    questions_table,
)
from mlsim_grading.runner import fingerprint

DUE = read_due("2026-11-30T12:00+01:00")
NAMES = {"Ada": "Ada", "Alan": "Alan", "Grace": "Grace", "1815": "Ada"}
POINTS = {each.id: each.points for each in QUESTIONS}


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def by_name(entries: tuple[Entry, ...]) -> dict[str, Entry]:
    return {each.student: each for each in entries}


# ------------------------------------------------------------------ one row a student
def test_everybody_has_a_row_and_the_list_its_columns() -> None:
    people = [Student("Ada", columns={"Group": "1", "points": "x"}), Student("Alan")]
    task = made(people, ["Group", "points"])
    book = make_gradebook([handed(task, "Ada"), handed(task, "")], task)
    ada, alan = rows(gradebook_csv(book))
    assert (ada["student"], ada["Group"], ada["list: points"]) == ("Ada", "1", "x")
    assert (ada["points"], ada["of"], ada["percent"], ada["to be marked"]) == (
        "6", "9", "66.7", "why",
    )  # fmt: skip
    assert (alan["points"], alan["submissions"], alan["notes"]) == (
        "0", "0", "nothing was handed in",
    )  # fmt: skip


def test_which_submission_counts() -> None:
    task = made()
    for take, good, bad, counts, note in cases("which_counts.toml"):
        tried = [
            handed(task, "Ada", file="good", **good), handed(task, "Ada", 1e9, file="bad", **bad),
        ]  # fmt: skip
        for results in (tried, tried[::-1]):
            book = make_gradebook(results, task, Rules(take, LateRule(DUE)))
            ada = by_name(book.entries)["Ada"]
            assert (ada.points, ada.attempts) == ({"good": 6, "bad": 2}[counts], 2), (good, bad)
            assert ada.notes[: bool(note)] == ((note,) if note else ())
            assert {each.file: each.counts for each in book.results} == {
                "good": counts == "good", "bad": counts == "bad",
            }  # fmt: skip


@pytest.mark.parametrize("take", ["latest", "best"])
def test_of_submissions_with_the_same_points_the_last_counts(take: str) -> None:
    task = made([])  # without a list, rows are those who handed in
    times = {"b": "2026-11-30T11:00", "c": "2026-11-30T10:30", "a": "2026-11-30T10:00"}
    tried = [handed(task, "Ada", file=file, handed_at=at) for file, at in times.items()]
    (ada,) = make_gradebook(tried, task, Rules(take)).entries
    assert (ada.result and ada.result.file, ada.notes) == ("b", ())
    # where no time tells, the last by name, and the note names the others
    (ada,) = make_gradebook([replace(each, handed_at="") for each in tried], task).entries
    assert ada.result
    unsure = "nothing says which is the latest: the one with most points was taken, not b, a"
    assert (ada.result.file, ada.notes) == ("c", (unsure,))


# ------------------------------------------------------------------ late
def test_the_late_rule_by_hand() -> None:
    rule = LateRule(DUE, per_day=10, at_most=35, grace=15)
    for at, share in [
        ("2026-11-30T12:00:00+01:00", None),
        ("2026-11-30T12:15:00+01:00", None),  # the grace
        ("2026-11-30T12:16:00+01:00", 0.10),
        ("2026-11-30T11:20:00+00:00", 0.10),  # 12:20 where it was due
        ("2026-12-01T12:00:00+01:00", 0.10),  # one day, to the second
        ("2026-12-01T12:00:01+01:00", 0.20),
        ("2026-12-20T00:00:00+01:00", 0.35),  # no more than this
        ("2026-11-30 12:20", 0.10),  # no zone: where it was due
        ("soon", None),
        ("", None),
    ]:
        late = rule.of(at)
        assert (late and late.share) == share, at


def test_late_points_are_told_to_the_student_and_the_instructor() -> None:
    task = made()
    late = handed(task, "Ada", handed_at="2026-12-01T15:00:00")
    unknown, said = handed(task, "Alan"), handed(task, "Grace", late=True)
    book = make_gradebook([late, unknown, said], task, Rules(late=LateRule(DUE)))
    found = by_name(book.entries)
    assert found["Ada"].points == pytest.approx(6 * 0.8)
    assert found["Alan"].notes == ("nothing says when it was handed in",)
    assert "but not by how much" in found["Grace"].notes[0]
    told = page(book.results[0], "Week 2")
    assert "4.8 of 9 points. Handed in 1 day 3 h after it was due: 20 % is taken off." in told
    assert "Without that: 6." in told
    assert "10 % of the points that were earned" in overview(book, [])


def test_a_due_date_has_a_zone() -> None:
    for text, words in {
        "2026-11-30T23:59": "lacks its zone", "2026-11-30": "lacks a time and its zone",
        "30.11.2026": "no date", "": "no date",
    }.items():  # fmt: skip
        with pytest.raises(SourceError, match=words):
            read_due(text)


# ------------------------------------------------------------------ overrides
def test_overrides_are_read_each_time_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "overrides.csv"
    text = (
        "student;question;points;why\nada;boil;1,5;Unit was unclear\n1815;cool;0;Copied\n"
        "Alan;why;2;Told me\nGrace;late penalty;0;Was ill\n"
    )
    path.write_bytes(text.encode("cp1252"))
    own = read_overrides(path, NAMES, POINTS)
    assert own["Ada", "boil"] == Override(1.5, "Unit was unclear")
    task = made()
    tried = [handed(task, "Ada"), handed(task, "Grace", handed_at="2027-01-01T00:00:00")]
    book = make_gradebook(tried, task, Rules(late=LateRule(DUE), overrides=own))
    found = by_name(book.entries)
    assert (found["Ada"].points, found["Ada"].changed) == (1.5, ("boil", "cool"))
    # who handed in nothing gets what was decided
    assert (found["Alan"].points, found["Alan"].graded) == (2, True)
    assert (found["Grace"].points, found["Grace"].changed) == (6, (PENALTY,))
    ada = rows(gradebook_csv(book))[0]
    assert "boil: 1.5, Unit was unclear" in ada["notes"]
    assert "Your instructor set these points." in page(book.results[0], "W")
    assert "unclear" not in page(book.results[0], "W")  # the reason is the instructor's
    assert path.read_bytes() == text.encode("cp1252")
    assert read_overrides(tmp_path / "none.csv", NAMES, POINTS) == {}


def test_an_override_that_can_not_be_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "overrides.csv"
    for line, words in cases("override_faults.toml"):
        path.write_text(f"student,question,points,why\n{line}\n")
        with pytest.raises(SourceError, match=re.escape(words)) as caught:
            read_overrides(path, NAMES, POINTS)
        assert caught.value.line == 1 + line.count("\n") + 1
    path.write_text("student,points\nAda,1\n")
    with pytest.raises(SourceError, match="no column question, why"):
        read_overrides(path, NAMES, POINTS)


# ------------------------------------------------------------------ points by hand
def fill(path: Path, name: str, *points: str, comment: str = "") -> None:
    """Write points into the row of a student, as a spreadsheet of another country saves it."""
    table = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    for row in table[1:]:
        if row[1] == name:
            row[3:6] = [*points, comment]
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows(table)
    path.write_bytes(out.getvalue().encode("cp1252"))


def test_texts_are_marked_in_a_table_that_is_read_back(tmp_path: Path) -> None:
    task = made()
    tried = [
        handed(task, "Ada", *[1e9] * 2, "=2+2\nand so on"), handed(task, "Alan"),
        handed(task, "Grace", *[1e9] * 2, "..."), handed(task, ""),
    ]  # fmt: skip
    write_hand(tmp_path, read_hand(tmp_path, QUESTIONS), tried)
    path = tmp_path / "why.csv"
    text = path.read_text(encoding="utf-8-sig")
    assert text.startswith("row,student,answer,Reason (2),Number (1),comment\n")
    # a blank one waits for nobody, and no formula is in it
    assert [row["student"] for row in rows(text)] == ["Ada", "Alan"]
    assert rows(text)[0]["answer"] == "'=2+2\nand so on"
    fill(path, "Ada", "1,5", "1", comment="- Größe fehlt")
    hand = read_hand(tmp_path, QUESTIONS)
    book = make_gradebook(tried, task, Rules(hand=hand))
    found = by_name(book.entries)
    assert (found["Ada"].points, found["Ada"].open) == (2.5, ())
    assert (found["Alan"].points, found["Alan"].open) == (6, ("why",))
    told = page(book.results[0], "W")
    assert "Reason: 1.5 of 2. All points: Says why. Number: 1 of 1. - Größe fehlt" in told
    assert "Not all of it is marked yet" in page(book.results[1], "W")
    # a new text, and one that was changed, come in; what was written stays
    again = [*tried[1:], handed(task, "Ada", 1, 1, "Something else")]
    write_hand(tmp_path, hand, again, blind=True)
    table = path.read_text(encoding="utf-8-sig")
    assert table.startswith("row;student;answer;")
    lines = list(csv.DictReader(io.StringIO(table), delimiter=";"))
    assert sorted(each["answer"] for each in lines) == [
        "'=2+2\nand so on", "Because.", "Something else",
    ]  # fmt: skip
    (kept,) = [each for each in lines if each["Reason (2)"]]
    assert (kept["Reason (2)"], kept["comment"]) == ("1,5", "'- Größe fehlt")
    names = [each["row"] for each in lines if not each["Reason (2)"]]
    assert names == sorted(names)  # an order that says nothing
    assert {each["student"] for each in lines if not each["Reason (2)"]} == {""}
    before = path.stat().st_mtime_ns
    write_hand(tmp_path, read_hand(tmp_path, QUESTIONS), again, blind=True)
    assert path.stat().st_mtime_ns == before


def test_a_table_of_texts_with_a_fault_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "why.csv"
    head = "row,student,answer,Reason (2),Number (1),comment,mine\n"
    name, other = (row_name("why", each, "Because.") for each in ("Ada", "Alan"))
    path.write_text(f"{head}{name},Ada,Because.,2,,,keep me\n{other},Alan,Because.,,,,\n,,,,,,\n")
    hand = read_hand(tmp_path, [WHY])
    assert half_filled(hand) == [("why", 2)]
    assert hand["why"].columns == ("mine",)
    write_hand(tmp_path, hand, [handed(made(), "Ada")])
    assert "keep me" in path.read_text(encoding="utf-8-sig")
    for text, words in [
        (f"{head}{name},Ada,B,3,1,,\n", "'3' is no number from 0 to 2"),
        (f"{head}{name},Ada,B,x,1,,\n", "is no number from 0 to 2"),
        (f"{head}{name},Ada,B,2,1,,\n{name},Ada,B,1,1,,\n", "stands here twice"),
        (f"{head},Ada,B,2,1,,\n", "nothing says whose text it is"),
        (f"{head}1.2E+05,Ada,B,2,1,,\n", "nothing says whose text it is"),
        ("row,student,answer,Reason (2)\n", "no column Number (1), comment"),
    ]:
        path.write_text(text)
        with pytest.raises(SourceError, match=re.escape(words)) as caught:
            read_hand(tmp_path, [WHY])
        assert caught.value.line


# ------------------------------------------------------------------ tallies
def test_one_row_a_wrong_path_whatever_the_numbers_were() -> None:
    names = [f"s{number:02}" for number in range(20)]
    task = made(names)
    assert len({task.students[name][0] for name in names}) == 5
    tried = [handed(task, name, 167.44) for name in names[:12]]
    tried += [handed(task, name, None) for name in names[12:15]]
    tried += [handed(task, name) for name in names[15:18]]
    book = make_gradebook(tried, task)
    said = "That is for one litre, not 2. This earns 50 % of the points."
    assert [row[1:] for row in mistakes_table(book) if row[0] == "boil"] == [
        ["wrong path", "1", "12", "66.7", "2", said],
        ["not attempted", "", "3", "16.7", "0", ""], ["right", "", "3", "16.7", "4", ""],
    ]  # fmt: skip
    # of 18 three are blank and three right: (12 * 2 + 3 * 4) / 18 of 4 points
    _, boil, _, why = questions_table(book)
    assert boil[2:9] == ["4", "18", "3", "3", "0", "2", "50.0"]
    assert why[6:8] == ["18", "0"]
    empty = make_gradebook([], task)
    assert [row[7] for row in questions_table(empty)[1:]] == ["0", "0", "0"]
    assert len(mistakes_table(empty)) == 1


# ------------------------------------------------------------------ alike
def test_what_is_alike_is_pointed_out() -> None:
    names = [f"s{number:02}" for number in range(12)]
    task = made(names)
    right = {name: [q.versions[n].answer for q, n in zip(task.questions, task.students[name], strict=True)]
             for name in names}  # fmt: skip
    one, other = next(
        (a, b) for a in names for b in names
        if right[a][0] != right[b][0] and right[a][1] != right[b][1]
    )  # fmt: skip
    long = "The steam carries the heat of evaporation away, and a lid keeps it there for long."
    rest = [name for name in names if name not in {one, other}]
    tried = [handed(task, other, sources="abc"), handed(task, one, *right[other][:2], "I.")]
    tried += [handed(task, rest[0], sources="abc"), handed(task, rest[1], None, None, long)]
    tried += [handed(task, rest[2], None, None, f" {long.upper()}\n"), handed(task, rest[3])]
    found = find_alike(make_gradebook(tried, task), task)
    signs = {each.sign: each for each in found}
    assert set(signs["the same code"].students) == {other, rest[0]}
    assert set(signs["the same text"].students) == {rest[1], rest[2]}
    copied = signs["answers for the numbers of others"]
    assert copied.students[0] == one
    assert other in copied.students
    assert copied.questions == ("boil", "cool")
    # the same answers, and short texts, are what is asked for
    same = made(["a", "b"])
    same = replace(same, students={"a": (0, 0, 0), "b": (0, 0, 0)})
    fair = [handed(same, "a"), handed(same, "b")]
    assert find_alike(make_gradebook(fair, same), same) == []
    wrong = [handed(same, name, 12.345, 67.891) for name in ("a", "b")]
    (pair,) = find_alike(make_gradebook(wrong, same), same)
    assert (pair.sign, pair.students) == ("the same rare wrong answers", ("a", "b"))


def test_where_alike_begins() -> None:
    """A text of 60 letters, four students with two rare answers, two answers of others' numbers."""
    names = [f"s{number}" for number in range(9)]
    task = made(names)
    for length, found in [(59, 0), (60, 1)]:
        texts = [handed(task, name, None, None, "a" * length) for name in names[:2]]
        assert len(find_alike(make_gradebook(texts, task), task)) == found
    same = replace(task, students=dict.fromkeys(names, (0, 0, 0)))
    for count, found in [(4, 6), (5, 0)]:  # four make six pairs
        wrong = [handed(same, name, 12.345, 67.891) for name in names[:count]]
        assert len(find_alike(make_gradebook(wrong, same), same)) == found
    once = [handed(same, name, 12.345) for name in names[:2]]
    assert find_alike(make_gradebook(once, same), same) == []
    apart = replace(task, students={**dict.fromkeys(names, (1, 1, 0)), "s0": (0, 0, 0)})
    boil, cool = (each.versions[1].answer for each in apart.questions[:2])
    (copied,) = find_alike(make_gradebook([handed(apart, "s0", boil, cool)], apart), apart)
    assert copied.students == ("s0", "s1", "s2", "s3", "s4", "s5", "s6", "and 2 more")
    assert copied.questions == ("boil", "cool")
    assert find_alike(make_gradebook([handed(apart, "s0", boil)], apart), apart) == []


def test_code_is_compared_without_what_anybody_may_change() -> None:
    work = (
        "def total(sizes):\n    # mine\n    found = 0\n    for each in sizes:\n        found += each\n"
        "    return found\nanswer_boil = total([1, 2, 3]) * 334880 / 2000"
    )
    same = fingerprint([work, "answer_cool = 3"], ["answer_boil", "answer_cool"])
    assert same
    for other in (
        ["import math\n%pip install x", work.replace("    # mine\n", ""), "answer_cool = -4.5"],
        ["answer_cool = 1", "", work.replace("    ", "  ").replace(" * ", "*")],
    ):
        assert fingerprint(other, ["answer_boil", "answer_cool"]) == same
    assert fingerprint([work.replace("334880", "334881")], ["answer_boil"]) != same
    text = 'answer_why = """' + "a long text of words " * 20 + '"""'
    assert not fingerprint([text], ["answer_why"])
    # whatever a stranger writes, and however much of it, is no error and takes no time
    for odd in ('"""', "(" * 5000, "\x00", "\ud800 = 1", "if 1:\n  2\n 3", "x = 1\n" * 200_000):
        assert isinstance(fingerprint([odd], []), str)


# ------------------------------------------------------------------ the page
def test_the_page_stands_alone_and_holds_nothing_of_a_student() -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    task = made([evil, "Alan"])
    odd = handed(task, evil, 167.44, notes=(evil,))
    book = make_gradebook([odd, Result(evil, "", odd.marks, undecided=evil)], task)
    shown = overview(book, [], ["an export"])
    assert not re.search("<script|\x1b", shown)
    assert "&lt;script&gt;" in shown
    for part in ('lang="en"', "default-src 'none'", "color-scheme: light dark", 'role="img"',
                 "<caption>", 'scope="row"', "prefers-color-scheme: dark"):  # fmt: skip
        assert part in shown
    assert not re.search(r"(?:src|href)=", shown)


def cells(shown: str, head: str) -> list[list[str]]:
    """The rows of a page that begin with this cell."""
    found = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', shown)
    return [re.findall(r"<td.*?>(.*?)</td>", row) for name, row in found if name == head]


def test_the_page_of_a_small_class_by_hand() -> None:
    """Of 4 + 2 + 3 points: Ada 6, Alan and Eve 2 + 2, Kurt 6 and 3 by hand, Zoe 0, Grace none.

    In percent 66.7, 44.4, 44.4, 100 and 0: 51.1 on average. A bar is 62 wide and the highest, of
    two students, 186 - 24 = 162 high. Boil has (4 + 2 + 2 + 4 + 0) / 5 of 4 points, Cool four times
    all of 2, and Why is marked of Kurt alone. Boil with the rest (2, 2, 2, 5, 0): 9.6 / sqrt(11.2 * 12.8) = 0.80.
    Cool with the rest (4, 2, 2, 7, 0): 6 / sqrt(3.2 * 28) = 0.63.
    """
    task = made(["Ada", "Alan", "Eve", "Kurt", "Zoe", "Grace"])
    half = [handed(task, name, 167.44) for name in ("Alan", "Eve")]
    tried = [handed(task, "Ada"), *half, handed(task, "Kurt"), handed(task, "Zoe", 1e9, 1e9)]
    rules = Rules(overrides={("Kurt", "why"): Override(3, "told me")})
    shown = overview(make_gradebook(tried, task, rules), [])
    assert "5 of 6 students have a grade, of 9 points. The median is 44 %, the mean 51 %." in shown
    counts = [1, 0, 0, 0, 2, 0, 1, 0, 0, 1]
    words = [f"{10 * at} to {10 * at + 10} %: {count}" for at, count in enumerate(counts)]
    assert f"Students by percent of the points. {'; '.join(words)}." in shown
    for (part,) in cases("class_page.toml"):
        assert part in shown
    assert cells(shown, "Boil") == [["4", "5", "0", "2", "0", "2.4", "60.0", "0.80"]]
    assert cells(shown, "Cool") == [["2", "5", "0", "4", "0", "1.6", "80.0", "0.63"]]
    assert cells(shown, "Why") == [["3", "5", "0", "1", "4", "3", "100.0", ""]]
    path, far = cells(shown, "boil")
    assert path[-1] == "That is for one litre, not 2. This earns 50 % of the points."
    assert far[:4] == ["wrong", "", "1", "20.0"]
    assert cells(shown, "why") == []  # nobody's mistake
    assert cells(shown, "Ada") == [["6", "67", "", "1", "", "why", ""]]
    assert cells(shown, "Kurt") == [["9", "100", "", "1", "why", "", ""]]
    assert cells(shown, "Grace") == [["0", "0", "", "0", "", "", "nothing was handed in"]]


def test_what_needs_a_decision_in_order() -> None:
    task = made(["Ada", "Alan", "Grace", "Kurt"])
    tried = [
        handed(task, "Ada", late=True), replace(handed(task, "Alan"), failed="it broke"),
        replace(handed(task, ""), file="x.ipynb", undecided="who knows"),
    ]  # fmt: skip
    book = make_gradebook(tried, task, absent={"Grace": "no notebook, but a.pdf"})
    signs = [Alike("the same code", ("Ada", "Alan")), Alike("the same text", ("Ada",), ("why",))]
    shown = overview(book, signs, ["map from 'ID'"], 3)
    items = re.findall(r"<li>(.*?)</li>", shown)
    assert items == [
        "Texts to be marked, in hand/: 2.",
        "x.ipynb: who knows",
        "Alan.ipynb was not graded: it broke",
        "Grace: no notebook, but a.pdf",
        "Late, says the course system, and nothing was taken off: Ada.",
        "Signs that submissions are alike: 2. See below.",
        "Files that are no submissions: 3. See not_graded.csv.",
        "Export: map from &#x27;ID&#x27;.",
    ]
    assert "1 of 4 students have a grade" in shown
    assert cells(shown, "the same text") == [["Ada", "why"]]
    quiet = overview(make_gradebook([], made([])), [])
    assert re.findall(r"<li>(.*?)</li>", quiet) == ["Nothing."]
    assert "Alike" not in quiet
    assert "median" not in quiet


def test_of_many_mistakes_six_are_shown() -> None:
    task = made([f"s{number}" for number in range(9)])
    tried = [handed(task, f"s{number}") for number in range(9)]
    tried = [
        replace(each, marks=(replace(each.marks[0], kind=f"kind {number}", points=0), *each.marks[1:]))
        for number, each in enumerate(tried)
    ]  # fmt: skip
    shown = overview(make_gradebook(tried, task), [])
    assert [row[0] for row in cells(shown, "boil")] == [f"kind {number}" for number in range(6)]


def test_a_students_page_shows_each_answer_with_its_sign() -> None:
    def mark(points: float, kind: str, given: str, message: str = "So.") -> Mark:
        return Mark("q", "T <1>", points, 4, kind, message, given)

    marks = (
        mark(4, "right", "7"), mark(1.5, "wrong path", "a<b", "*Half* of it."), mark(0, "wrong", ""),
        mark(0, "not attempted", ""), mark(0, "unmarked", "two\nlines"), mark(4, "override", "8"),
    )  # fmt: skip
    shown = page(Result("a.ipynb", "", marks, told=("cell <1>",), counts=False), "W")
    assert re.findall(r"<h2>(.) T &lt;1&gt; \((.*?) of 4\)</h2>", shown) == [
        ("✓", "4"), ("½", "1.5"), ("✗", "0"), ("–", "0"), ("…", "0"), ("✓", "4"),
    ]  # fmt: skip
    assert "Your answer: <code>a&lt;b</code></div><p>Half of it.</p>" in shown
    assert "<pre>two\nlines</pre>" in shown
    assert shown.count("Your answer:") == 4
    assert "9.5 of 24 points. Not all of it is marked yet. Another of your submissions" in shown
    assert "<title>W: a.ipynb</title>" in shown
    assert "<h2>While it ran</h2><ul><li>cell &lt;1&gt;</li></ul>" in shown


def test_of_a_large_class_two_thousand_are_shown() -> None:
    more = make_gradebook([], made([f"s{number:04}" for number in range(2002)]))
    shown = overview(more, [])
    assert "gradebook.csv has these and 2 more" in shown
    assert cells(shown, "s1999")
    assert not cells(shown, "s2000")
