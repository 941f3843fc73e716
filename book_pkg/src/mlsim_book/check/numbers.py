"""Check a book's numbers: chapters, captions, front matter, and exercises beside chapters.

The rules are in `numbers`; here is where texts come from, and how findings are reported.
Nothing is run: an inline expression counts as computed because it is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.check.number_rules import Counts, Finding, Judge, Rules, read_rules
from mlsim_book.check.passages import Passage, passages
from mlsim_book.check.prose import COMPUTED, Prose
from mlsim_book.errors import Problems
from mlsim_book.exercises.files import exercise_files
from mlsim_book.model import Project
from mlsim_book.read.document import Cell, Markdown
from mlsim_book.read.lines import SourceLine, read_lines, split_lines
from mlsim_book.read.qmd import split_front_matter
from mlsim_book.read.yamlfile import YamlFile, read_yaml
from mlsim_book.run.inline import find_inline
from mlsim_book.run.pages import ParsedPage
from mlsim_exercises.texts import read_texts

_CAPTIONS = ("fig-cap", "fig-subcap", "tbl-cap", "tbl-subcap", "lst-cap", "fig-alt", "fig-scap")
_FRONT = ("title", "subtitle", "description", "abstract")


def check_numbers(
    project: Project, pages: Iterable[ParsedPage], problems: Problems
) -> dict[str, Counts]:
    """Note every bare number of a book; return the counts of each page and exercise file."""
    rules = read_rules(project.metadata)
    if rules is None:
        return {}
    counts: dict[str, Counts] = {}
    pages = list(pages)
    for page in pages:
        check = _Check(Judge(rules), problems)
        check.page(project, page)
        counts[page.chapter.source] = check.judge.counts
    for path in exercise_files(project, [page.chapter.source for page in pages]):
        name = path.relative_to(project.root).as_posix()
        check = _Check(Judge(rules), problems)
        check.exercises(path, name)
        counts[name] = check.judge.counts
    check = _Check(Judge(rules), problems)
    check.metadata(read_yaml(project.root / "_quarto.yml", name="_quarto.yml"), "book")
    if check.judge.counts != Counts():
        counts["_quarto.yml"] = check.judge.counts
    return counts


@dataclass
class _Check:
    """The check of one file."""

    judge: Judge
    problems: Problems

    def page(self, project: Project, page: ParsedPage) -> None:
        """Judge a chapter: its front matter, its Markdown, the captions of its cells."""
        source = page.chapter.source
        front, _ = split_front_matter(read_lines(project.root / source, name=source), file=source)
        self.metadata(front)
        in_list = False
        for block in page.document.blocks:
            if isinstance(block, Markdown):
                self.judge.counts.computed += len(find_inline(block))
                for passage in passages(block.lines, in_list=in_list):
                    self._tell(passage, self.judge.judge(passage))
            else:
                self._captions(block)
                in_list = bool(block.indent)

    def metadata(self, front: YamlFile, *path: str) -> None:
        """Judge the texts of a YAML block that a page shows."""
        data: Any = front.data
        for key in path:
            data = data.get(key) if isinstance(data, Mapping) else None
        for key in _FRONT:
            text = data.get(key) if isinstance(data, Mapping) else None
            if isinstance(text, str):
                line = SourceLine("", front.file, front.line(*path, key) or 1)
                self._text(text, line)

    def _captions(self, cell: Cell) -> None:
        """Judge a cell's captions; a source that one of them cites covers all."""
        texts = [
            (name, str(text))
            for name in _CAPTIONS
            if (given := cell.options.get(name)) is not None
            for text in (given if isinstance(given, list) else [given])
        ]
        cited = any(Prose(text).citations for name, text in texts if not name.endswith("alt"))
        for name, text in texts:
            place = SourceLine("", cell.file, cell.option_line(name))
            self._text(text, place, cited=cited, option=name)

    def _text(self, text: str, place: SourceLine, *, cited: bool = False, option: str = "") -> None:
        """Judge a text that stands, as far as is known, on one line."""
        lines = [
            SourceLine(each.text, place.file, place.line) for each in split_lines(text, file="")
        ]
        for passage in passages(lines):
            self._tell(passage, self.judge.judge(passage, cited=cited), option=option)

    def exercises(self, path: Path, name: str) -> None:
        """Judge the texts of an exercise file."""
        raw = path.read_text(encoding="utf-8").splitlines()
        for text in read_texts(path):
            shown = text.text
            if text.computed:
                shown, count = blank_fields(shown)
                self.judge.counts.computed += count
            first = text.line + (1 if text.text.count("\n") else 0)
            lines = [
                SourceLine(each.text, name, _find_line(raw, written.text, text.line, first + index))
                for index, (each, written) in enumerate(
                    zip(
                        split_lines(shown, file=name),
                        split_lines(text.text, file=name),
                        strict=True,
                    )
                )
            ]
            for passage in passages(lines):
                self._tell(passage, self.judge.judge(passage))

    def _tell(self, passage: Passage, found: Sequence[Finding], *, option: str = "") -> None:
        for each in found:
            line = passage.line(each.start)
            message, hint = _words(each, self.judge.rules, option)
            self.problems.add(message, file=line.file, line=line.line, hint=hint)


def _words(found: Finding, rules: Rules, option: str) -> tuple[str, str]:
    """Return what is wrong with a number, and what to do."""
    kinds = ", ".join(rules.kinds)
    if found.wrong_kind == "result":
        return (
            f"'{found.text}' is marked as given, of kind 'result': a result can't be given",
            "Compute it inline, `{python} ...`, or cite its source in the same sentence, [@key].",
        )
    if found.wrong_kind is not None:
        what = f"kind '{found.wrong_kind}', which is none" if found.wrong_kind else "no kind"
        return (
            f"'{found.text}' is marked as given with {what}",
            f'Write {{.given kind="..."}} with one of: {kinds}.',
        )
    if option.endswith("alt"):
        return (
            f"bare number '{found.text}' in {option}",
            "Say it without the number, or cite its source in the caption, [@key].",
        )
    mark = f'[{found.text}]{{.given kind="{rules.kinds[0] if rules.kinds else "..."}"}}'
    hint = (
        "Compute it inline, `{python} ...`; or cite its source in the same sentence, [@key];"
        f" or, if it is no result, mark it as given: {mark} (kinds: {kinds})."
    )
    return f"bare number '{found.text}'{f' in {option}' if option else ''}", hint


def blank_fields(text: str) -> tuple[str, int]:
    """Blank out the `{...}` fields of a text; return the text and how many there were.

    Double braces, which stand for one each, become one brace and a space.

    >>> blank_fields("{x:.0f} s of {{a}}")[0].replace(COMPUTED, "#")
    '####### s of { a }'
    """
    pieces: list[str] = []
    at = count = 0
    while at < len(text):
        pair = text[at : at + 2]
        if pair in {"{{", "}}"}:
            pieces.append("{ " if pair == "{{" else " }")
            at += 2
        elif text[at] == "{":
            end = _field_end(text, at)
            pieces.append("".join("\n" if char == "\n" else COMPUTED for char in text[at:end]))
            count += 1
            at = end
        else:
            pieces.append(text[at])
            at += 1
    return "".join(pieces), count


def _field_end(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def _find_line(raw: Sequence[str], text: str, key: int, guess: int) -> int:
    """Return the line of a TOML file on which a line of one of its texts stands.

    A text may begin on the line of its key or below it, so the line is looked for.
    """
    order: Iterator[int] = iter((guess, *range(key, min(len(raw), key + 200) + 1)))
    wanted = text.strip()
    return next((n for n in order if wanted and n <= len(raw) and wanted in raw[n - 1]), guess)
