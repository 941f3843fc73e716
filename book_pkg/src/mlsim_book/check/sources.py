r"""Check what the sources of a book say without running them: bibliography, chapters, exercises.

The bibliography's entries: where they stand, which are there twice, which are unused. An entry is
used when a chapter cites it, when the built site links to it, or when a file under `mlsim-book:
citation-keys-in:` in `_quarto.yml` holds its key: the data of a package, say, of which cells make
citations.

What the chapters of a book must have: each is in the book, and follows the book's rules. A `.qmd`
file that `_quarto.yml` doesn't list and no page includes is a problem, since nothing would build
or check it; a file of exercises that no page shows is told of. What else a chapter needs,
`_quarto.yml` says:

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
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from mlsim_book.errors import Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.lines import nearest_file, sources_of
from mlsim_book.read.yamlfile import (
    COUNT,
    TEXT,
    TEXTS,
    Kind,
    book_settings,
    check_values,
    did_you_mean,
    named_paths,
    read_yaml,
)
from mlsim_exercises.data import Exercise, ExerciseError, load, load_selfchecks
from mlsim_exercises.evaluation import variants

_BIBTEX = re.compile(
    r"^\s*@(?!string\b|preamble\b|comment\b)\w+\s*[{(]\s*([^,\s{}]+)\s*,", re.IGNORECASE
)
_CROSSREF = re.compile(r"\b(?:crossref|xdata|related)\s*=\s*[{\"]([^}\"]+)[}\"]", re.IGNORECASE)
_ID = {
    ".json": re.compile(r"\"id\"\s*:\s*\"([^\"]+)\""),
    ".yaml": re.compile(r"^[\s-]*id:\s*[\"']?([^\"'\s]+)"),
    ".yml": re.compile(r"^[\s-]*id:\s*[\"']?([^\"'\s]+)"),
    ".bib": _BIBTEX,
    ".bibtex": _BIBTEX,
}
_TOKEN = re.compile(r"\w(?:[\w:.+/-]*\w)?")
_CITED = re.compile(r"@\{?(\w(?:[\w:.#$%&+?~/-]*\w)?|\*)")
_LINKED = re.compile(r"#ref-(.+)$")


@dataclass
class Entries:
    """The entries of a book's bibliography."""

    places: dict[str, tuple[str, int]] = field(default_factory=dict)  # by key: file and line
    inherited: set[str] = field(default_factory=set)  # keys that other entries name
    unread: list[str] = field(default_factory=list)  # files in a format that isn't read here


def read_entries(project: Project, problems: Problems) -> Entries:
    """Read where each entry stands; note keys that two entries have."""
    entries = Entries()
    for name in project.bibliography:
        pattern = _ID.get(Path(name).suffix.lower())
        if pattern is None:
            entries.unread.append(name)
            continue
        text = (project.root / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            for key in pattern.findall(line):
                file, first = entries.places.setdefault(key, (name, number))
                if (file, first) != (name, number):
                    problems.add(
                        f"the entry '{key}' is there twice, first at {file}:{first}",
                        file=name, line=number,
                        hint="Take one of them out, or give it another key.",
                    )  # fmt: skip
        for keys in _CROSSREF.findall(text):
            entries.inherited.update(re.split(r"\s*,\s*", keys.strip()))
    return entries


def check_unused(
    project: Project,
    pages: Iterable[ExecutedPage],
    links: Iterable[str],
    entries: Entries,
    problems: Problems,
) -> None:
    """Tell of the entries that nothing uses; `links` are those of the built site.

    They are advice: an entry that a chapter no longer cites is no fault of the book.
    """
    cited, tokens = set(entries.inherited), set[str]()
    for link in links:
        cited.update(_LINKED.findall(link))
    for text in _citing_texts(project, pages):
        cited.update(_CITED.findall(text))
    for text in _key_texts(project):
        tokens.update(_TOKEN.findall(text))
    if "*" in cited:  # nocite: @*
        return
    for key, (file, line) in entries.places.items():
        if key not in cited and key not in tokens:
            problems.advise(
                f"the entry '{key}' is cited nowhere", file=file, line=line,
                hint="Cite it or take it out; if files of data name it, list them in _quarto.yml"
                " under `mlsim-book: citation-keys-in:`.",
            )  # fmt: skip


def _citing_texts(project: Project, pages: Iterable[ExecutedPage]) -> Iterator[str]:
    """Yield the texts in which `@key` is a citation."""
    yield str(project.metadata.get("nocite") or "")
    sources = []
    for page in pages:
        sources.append(page.chapter.source)
        yield str(page.metadata.get("nocite") or "")
        for _, text in sources_of(page, project.root):
            yield text
    for path in exercise_files(project, sources):
        yield path.read_text(encoding="utf-8", errors="replace")


def _key_texts(project: Project) -> Iterator[str]:
    """Yield the texts of the files that hold bare keys, as the book's settings name them.

    Raises
    ------
    SourceError
        The setting is no list of paths, or names one that isn't there.
    """
    hint = "Write the files or folders whose text names entries: [data, tables/sources.csv]."
    given = named_paths(project.metadata, "citation-keys-in", hint)
    own = {(project.root / name).resolve() for name in project.bibliography}
    for name in given:
        path = project.root / name
        if not path.exists():
            raise SourceError(
                f"`mlsim-book: citation-keys-in:` names '{name}', which does not exist",
                file="_quarto.yml",
                hint=nearest_file(path, project.root),
            )
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc" and file.resolve() not in own:
                yield file.read_text(encoding="utf-8", errors="ignore")


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
                if rule.text and not re.search(rule.text, page.source, re.MULTILINE):
                    problems.add(
                        f"nothing in this chapter matches '{rule.text}', as the book's rules ask",
                        file=page.chapter.source,
                        hint=rule.otherwise or "See `chapter-rules:` in _quarto.yml.",
                    )
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
