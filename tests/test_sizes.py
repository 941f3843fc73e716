"""Each room keeps its budget, and what breaks one says what to do."""

from __future__ import annotations

from sizes import Size, broken, budgets, rooms, size_of

SOURCE = '''"""About it."""

X = [
    1,  # one
]


def twice(x):
    """Double a number."""

    if x:
        return 2 * x
'''


def test_statements_and_lines_are_counted_without_docstrings_comments_and_blanks() -> None:
    # X = [...], def, if, return; three lines of the list, and one of each other
    assert size_of(SOURCE) == Size(statements=4, modules=1, lines=6)


def test_each_room_keeps_its_budget() -> None:
    assert list(broken(rooms(), budgets())) == []


def test_what_is_to_be_done_is_said_of_each_broken_budget() -> None:
    found = {"a/x": Size(101, 3), "a/y": Size(84, 4), "a/new": Size(7, 1), "a/kept": Size(100, 3)}
    allowed = {name: Size(100, 3) for name in ("a/x", "a/y", "a/kept", "a/gone")}
    words = list(broken(found, allowed))
    assert [each.split(" ")[0] for each in words] == ["a/gone", "a/new", "a/x", "a/y", "a/y"]
    assert "take it out" in words[0]
    assert "Add [7, 1]" in words[1]
    assert "101 statements, and its budget is 100. Take 1 out, or raise it" in words[2]
    assert "4 modules, and its budget is 3" in words[4] or "4 modules" in words[3]
