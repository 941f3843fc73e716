"""The students of a class, and who of them a text names: whole names and numbers, or nobody."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from mlsim_grading.names import Word, fold, forms, plain, words
from mlsim_grading.roster import Roster, Student

_SHORTEST_ID = 4  # characters of a number that is looked for among other words
_SHORTEST = 3  # letters of a word that reminds of somebody
_LONGEST = 500  # characters of a name; a file system has fewer
_FEW = 4  # names in a sentence
_WORDS = """
answer answers assignment attempt copy corrected draft ex exam exercise exercises final fixed
homework hw lab late latest new notebook of part problem problems project ps pset quiz re rev
revised resubmission resubmit set sheet solution solutions submission submit submitted task the ue
ver version week wk ws abgabe blatt copie entrega tarea devoir tp td
"""
_FILLERS = frozenset(_WORDS.split())  # what names of files say besides the student
_APART = ("_", "_ ", "_ -", "_ -()[],+", "_ -()[],+@.")  # what numbers and addresses end at


@dataclass(frozen=True)
class Named:
    """Whom a text names. `more` are those whose name is only a part of a longer one in it."""

    students: frozenset[str] = frozenset()
    more: frozenset[str] = frozenset()


class People:
    """The students of a class, by name, spelling and number."""

    def __init__(self, students: Iterable[Student], title: str = "") -> None:
        self.names: dict[str, list[tuple[str, ...]]] = {}
        self._forms: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self._plain: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self._joined: dict[str, set[str]] = defaultdict(set)
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._words: dict[str, set[str]] = defaultdict(set)
        self._chosen: set[str] = set()
        self._title = tuple(each.text for each in words(title))
        for student in students:
            self._add(student)
        self._longest = max(map(len, self._forms), default=0)

    def _add(self, student: Student) -> None:
        name = student.name
        own = {form for text in (name, *student.also) for form in forms(text)}
        self.names[name] = sorted(own)
        for form in own:
            self._forms[form].add(name)
            self._plain[tuple(map(plain, form))].add(name)
            self._joined["".join(form)].add(name)
            for word in form:
                self._words[plain(word)].add(name)
        for each in {student.id, *student.ids} - {""}:
            self._ids[fold(each)].add(name)
        if student.id:
            self._chosen.add(fold(student.id))

    def with_id(self, number: str) -> frozenset[str]:
        """Return the students with this number or address."""
        return frozenset(self._ids.get(fold(number), ()))

    def called(self, name: str) -> frozenset[str]:
        """Return the students whose name this is, whole, with its accents or without any."""
        form = tuple(each.text for each in words(name))
        found = self._forms.get(form) or self._joined.get("".join(form))
        return frozenset(found or self._plain.get(tuple(map(plain, form))) or ())

    def named(self, text: str, *, numbers: bool = True) -> Named:
        """Return the students whom a text names among other words, or by their numbers, too.

        >>> people = People([Student("Ann Lee"), Student("Lee")], "Week 2")
        >>> sorted(people.named("Lee, Ann - Week2").students), people.named("Bo Lee").more
        (['Ann Lee'], frozenset({'Lee'}))
        """
        if len(text) > _LONGEST:
            return Named()
        parts = words(text)
        texts = tuple(each.text for each in parts)
        size = len(self._title)
        title = [at for at in range(len(texts)) if size and texts[at : at + size] == self._title]
        found = self._numbered(text) if numbers else set()
        more: set[str] = set()
        for start, end, students in self._spans(texts):
            if any(at <= start and end <= at + size for at in title):
                continue  # a student may be called Week
            if self._goes_on(parts, start, end):
                more |= students
            else:
                found |= students
        return Named(frozenset(found), frozenset(more - found))

    def like(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the few students of whose names most words are in these texts."""
        shared: dict[str, int] = defaultdict(int)
        for word in {plain(each.text) for text in texts for each in words(text)}:
            if len(word) >= _SHORTEST and not self._filler(word):
                for student in self._words.get(word, ()):
                    shared[student] += 1
        most = max(shared.values(), default=0)
        return tuple(sorted(name for name, count in shared.items() if count == most)[:_FEW])

    def accented(self, student: str, text: str) -> bool:
        """Say whether a text has a student's name only without its accents."""
        said = {each.text for each in words(text)}
        own = self.names[student]
        if any(set(form) <= said or "".join(form) in said for form in own):
            return False
        bare = set(map(plain, said))
        return any(set(map(plain, form)) <= bare for form in own)

    def _spans(self, texts: tuple[str, ...]) -> list[tuple[int, int, set[str]]]:
        """Return where names stand; one that lies in a longer one isn't meant."""
        for table, line in (self._forms, texts), (self._plain, tuple(map(plain, texts))):
            spans = [
                (start, end, table[line[start:end]])
                for start in range(len(line))
                for end in range(start + 1, min(len(line), start + self._longest) + 1)
                if line[start:end] in table
            ]
            spans += [
                (at, at + 1, self._joined[text])
                for at, text in enumerate(texts)
                if text in self._joined and (text,) not in table
            ]
            if spans:
                return [span for span in spans if not any(_within(span, each) for each in spans)]
        return []

    def _numbered(self, text: str) -> set[str]:
        """Return the students one of whose numbers or addresses stands in a text, whole."""
        folded = fold(text)
        pieces = {folded, *_addresses(folded, self._ids)}
        for marks in _APART:
            pieces |= {
                each for each in re.split(f"[{re.escape(marks)}]", folded) if "@" not in each
            }
        found: set[str] = set()
        for piece in pieces:
            if piece in self._chosen or (len(piece) >= _SHORTEST_ID and piece in self._ids):
                found |= self._ids[piece]
        return found

    def _goes_on(self, parts: tuple[Word, ...], start: int, end: int) -> bool:
        """Say whether a name is longer: "Lee" in "Ann Lee", or "Ann Lee" in "Ann Lee-Smith"."""
        inner = {left.after for left, _ in pairwise(parts[start:end])}
        for at in (start, end):  # between this word and the one before
            if 0 < at < len(parts):
                mark, other = parts[at].before, parts[at - 1 if at == start else at].text
                joined = mark in {"-", "'", "’"} and mark == parts[at - 1].after
                if joined and inner and mark not in inner and not self._filler(other):
                    return True
        if end - start > 1 or not parts[start].text.isalpha():
            return False
        others = [each.text for at, each in enumerate(parts) if not start <= at < end]
        return not all(map(self._filler, others))

    def _filler(self, word: str) -> bool:
        return not word.isalpha() or len(word) == 1 or word in _FILLERS or word in self._title


def _addresses(text: str, known: Collection[str]) -> Iterator[str]:
    """Yield the addresses in a text: of those that could end there, the longest that is known."""
    for found in re.finditer(r"[^\s,;()\[\]@]+@([^\s_,;()\[\]@]+)", text):
        local = found[0].split("@")[0]
        starts = [0, *(at + 1 for at, char in enumerate(local) if char in "_-")]
        wholes = (f"{local[at:]}@{found[1]}" for at in starts)
        yield from [whole for whole in wholes if whole in known][:1]


def as_known(roster: Roster, names: Iterable[str], old: Roster) -> Roster:
    """Return a newer class list with the students of an older one under their names of then.

    The newer may write "Lovelace, Ada" for "Ada Lovelace": numbers and whole names tell.
    """
    before = {each.name: each for each in old.students}
    people = People(before.get(name, Student(name)) for name in names)
    known = []
    for each in roster.students:
        same = frozenset().union(*map(people.with_id, each.ids)) or people.called(each.name)
        known.append(each.name if each.name in people.names or len(same) != 1 else min(same))
    many = Counter(known)
    students = tuple(
        each
        if name == each.name or many[name] > 1
        else replace(each, name=name, also=(*each.also, each.name))
        for each, name in zip(roster.students, known, strict=True)
    )
    return replace(roster, students=students)


def _within(one: tuple[int, int, set[str]], other: tuple[int, int, set[str]]) -> bool:
    return one[:2] != other[:2] and other[0] <= one[0] and one[1] <= other[1]
