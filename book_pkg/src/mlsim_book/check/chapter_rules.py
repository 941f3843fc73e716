r"""What the chapters of a book must have: each is in the book, and follows the book's rules.

A `.qmd` file that `_quarto.yml` doesn't list and no page includes is a problem, since
nothing would build or check it; a file of exercises that no page shows is told of. What
else a chapter needs, `_quarto.yml` says:

    mlsim-book:
      chapter-rules:
        - chapters: tutorials/*.qmd
          text: '^You will learn\n\n1\. '   # a regular expression that must match
          otherwise: Say what readers will learn, in a numbered list.
        - chapters: tutorials/*.qmd
          exercises: 6                      # at least, in hello.exercises.toml for hello.qmd
          levels: [recall, change, design]  # each in one exercise or more
          variants: 4                       # exercises that have three variants or more
          selfchecks: 4
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mlsim_book.errors import Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.places import sources_of
from mlsim_book.read.schema import COUNT, TEXT, TEXTS, Kind, check_values, did_you_mean
from mlsim_book.read.settings import book_settings
from mlsim_book.read.yamlfile import read_yaml
from mlsim_exercises.data import Exercise, load, load_selfchecks
from mlsim_exercises.errors import ExerciseError
from mlsim_exercises.evaluation import variants

_VARIANTS = 3  # an exercise with fewer gives neighbors in a class the same numbers
_PATTERN = Kind("a pattern in quotes", lambda value: isinstance(value, str))
_KINDS: Mapping[str, Kind] = {
    "chapters": _PATTERN, "text": _PATTERN, "otherwise": TEXT, "exercises": COUNT, "levels": TEXTS,
    "variants": COUNT, "selfchecks": COUNT,
}  # fmt: skip


@dataclass(frozen=True)
class _Rule:
    """One entry of `chapter-rules:`."""

    chapters: str
    text: str = ""
    otherwise: str = ""
    exercises: int = 0
    levels: Sequence[str] = ()
    variants: int = 0
    selfchecks: int = 0


def check_exercise_files(
    project: Project, sources: Iterable[str], problems: Problems
) -> dict[str, Path]:
    """Read all exercise files strictly and note what is wrong; return them by name."""
    files = {path.name: path for path in exercise_files(project, sources)}
    for path in files.values():
        for read in (load, load_selfchecks):
            try:
                read(path)
            except ExerciseError as error:
                name = _short(str(error.file), project.root)
                problems.add(error.message, file=name, line=error.line, hint=error.hint)
    return files


def check_chapters(
    project: Project, pages: Iterable[ExecutedPage], files: Mapping[str, Path], problems: Problems
) -> None:
    """Note chapters that aren't in the book, and those that break one of its rules.

    Raises
    ------
    SourceError
        `chapter-rules:` has an unknown key, or a value of the wrong kind.
    """
    rules = _read_rules(project)
    known, shown = {each.source for each in project.chapters}, ""
    for page in pages:
        for name, text in sources_of(page, project.root):
            known.add(name)
            shown += text
        for rule in rules:
            if PurePosixPath(page.chapter.source).match(rule.chapters):
                _check_text(rule, page, problems)
                _check_exercises(rule, page, project, files, problems)
    for name in _chapter_files(project):
        if name not in known:
            problems.add(
                "this chapter is not in the book: _quarto.yml does not list it",
                file=name,
                hint="Add it under `book: chapters:`; or, if pages include it, "
                f"call it _{PurePosixPath(name).name}.",
            )
    for path in files.values():
        ids = [each.id for each in load(path)] + [each.id for each in load_selfchecks(path)]
        if not any(_quoted(each, shown) for each in ids):
            problems.advise(
                "no page shows any of these exercises",
                file=_short(str(path), project.root),
                hint="If its chapter was taken out, delete it, or keep it for assignments.",
            )


def _read_rules(project: Project) -> list[_Rule]:
    place = ("mlsim-book", "chapter-rules")
    rules = book_settings(project.metadata).get("chapter-rules", [])
    source = read_yaml(project.root / "_quarto.yml", name="_quarto.yml")

    def wrong(what: str, hint: str, *path: str | int) -> SourceError:
        line = source.line(*place, *path)
        return SourceError(f"`chapter-rules:` {what}", file=source.file, line=line, hint=hint)

    if not isinstance(rules, list):
        raise wrong("must be a list", "Begin each rule with `- chapters: folder/*.qmd`.")
    for number, rule in enumerate(rules):
        if not isinstance(rule, Mapping) or "chapters" not in rule:
            raise wrong(f"has {rule!r}", "Each rule begins with `chapters: folder/*.qmd`.", number)
        for key in rule:
            if key not in _KINDS:
                hint = did_you_mean(key, _KINDS) or f"There are: {', '.join(_KINDS)}."
                raise wrong(f"has an unknown key '{key}'", hint, number, key)
        check_values(rule, _KINDS, source, *place, number)
        try:
            re.compile(rule.get("text", ""))
        except re.error as error:
            raise wrong(f"has a wrong regular expression: {error}", rule["text"], number) from None
    return [_Rule(**rule) for rule in rules]


def _check_text(rule: _Rule, page: ExecutedPage, problems: Problems) -> None:
    if rule.text and not re.search(rule.text, page.source, re.MULTILINE):
        problems.add(
            f"nothing in this chapter matches '{rule.text}', as the book's rules ask",
            file=page.chapter.source,
            hint=rule.otherwise or "See `chapter-rules:` in _quarto.yml.",
        )


def _check_exercises(
    rule: _Rule, page: ExecutedPage, project: Project, files: Mapping[str, Path], problems: Problems
) -> None:
    wanted = (rule.exercises, rule.levels, rule.variants, rule.selfchecks)
    name = f"{PurePosixPath(page.chapter.source).stem}.exercises.toml"
    if not any(wanted):
        return
    if name not in files:
        hint = f"Write {name}, beside the chapter or where `mlsim-book: exercises:` says."
        problems.add("this chapter has no exercises", file=page.chapter.source, hint=hint)
        return
    exercises, selfchecks = load(files[name]), load_selfchecks(files[name])
    short = _short(str(files[name]), project.root)
    for lack in _lacks(rule, exercises, len(selfchecks)):
        problems.add(f"the exercises of {page.chapter.source} have {lack}", file=short)
    text = "\n".join(each for _, each in sources_of(page, project.root))
    shown = [("exercise", each.id, each.line) for each in exercises]
    shown += [("selfcheck", each.id, each.line) for each in selfchecks]
    for kind, name, line in shown:
        if not _quoted(name, text):
            problems.add(
                f"the {kind} '{name}' is not shown in {page.chapter.source}",
                file=short,
                line=line,
                hint=f'Show it in a cell with `output: asis`, by its id: "{name}".',
            )


def _quoted(name: str, text: str) -> bool:
    return re.search(rf"""["']{re.escape(name)}["']""", text) is not None


def _lacks(rule: _Rule, exercises: Sequence[Exercise], selfchecks: int) -> Iterator[str]:
    """Yield what the rule asks for and the exercises haven't."""
    varied = sum(len(list(variants(each))) >= _VARIANTS for each in exercises)
    for found, wanted, what in (
        (len(exercises), rule.exercises, "[[exercise]]"),
        (selfchecks, rule.selfchecks, "[[selfcheck]]"),
        (varied, rule.variants, f"[[exercise]] with {_VARIANTS} variants or more"),
    ):
        if found < wanted:
            yield f"{found} {what}, but the book's rules ask for at least {wanted}"
    for level in rule.levels:
        if level not in {each.level for each in exercises}:
            yield f"none of level '{level}', which the book's rules ask for"


def _chapter_files(project: Project) -> Iterator[str]:
    """Yield the `.qmd` files in the book's folders, less those of other books inside it."""
    for folder, inside, files in os.walk(project.root):
        inside[:] = sorted(
            name
            for name in inside
            if name[0] not in "._"
            and name != project.output_dir
            and not (Path(folder) / name / "_quarto.yml").is_file()
        )
        for name in sorted(files):
            if name.endswith(".qmd") and name[0] not in "._":
                yield (Path(folder) / name).relative_to(project.root).as_posix()


def _short(file: str, root: Path) -> str:
    """Return a path from the book's folder, where it is inside.

    >>> _short("/book/questions/a.toml", Path("/book")), _short("b.toml", Path("/book"))
    ('questions/a.toml', 'b.toml')
    """
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
