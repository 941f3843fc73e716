"""The chapters' questions: each answer, each mistake, each variant, each chapter."""

from __future__ import annotations

import re

import pytest

from mlsim_book.grading.assignment import make_assignment
from mlsim_course import bank
from mlsim_exercises.evaluation import Evaluation, evaluate, same_answer, variants
from mlsim_exercises.markdown import answer_text, plain_text, three_digits
from mlsim_exercises.verdicts import judge

NAMES = sorted(bank.exercises)
TOPICS = re.compile(r"[a-z][a-z -]+")


@pytest.fixture(scope="module", params=NAMES)
def versions(request: pytest.FixtureRequest) -> list[Evaluation]:
    """A question in each of its variants; all of them can be computed."""
    exercise = bank.exercises[request.param]
    return [evaluate(exercise, given) for given in variants(exercise)]


def test_the_answer_scores_full_and_blank_nothing(versions: list[Evaluation]) -> None:
    for each in versions:
        if each.exercise.kind == "text":
            assert judge(each, each.solution).kind == "unmarked"
        else:
            assert judge(each, each.answer).score == 1
        for blank in (None, ..., "", "..."):
            assert judge(each, blank).kind == "not attempted"
            assert judge(each, blank).score == 0


def test_each_wrong_path_gets_its_own_message(versions: list[Evaluation]) -> None:
    for each in versions:
        assert each.wrong or each.exercise.kind == "text"
        assert len(set(each.because)) == len(each.because)
        for number, (wrong, because) in enumerate(
            zip(each.wrong, each.because, strict=True), start=1
        ):
            verdict = judge(each, wrong)
            assert (verdict.kind, verdict.path) == ("wrong path", number)
            assert verdict.message == because.strip()
            others = [value for value in (*each.wrong, each.answer) if value is not wrong]
            assert not any(same_answer(each.exercise, wrong, other) for other in others)


def test_what_is_printed_has_no_markup(versions: list[Evaluation]) -> None:
    for each in versions:
        for text in (*each.hints, *each.because, each.solution):
            assert not re.search(r"\]\{|\]\(|\*\*|\^\w+\^|`", plain_text(text)), text


def test_no_text_before_the_solution_gives_the_answer_away(versions: list[Evaluation]) -> None:
    """Neither the prompt, nor a hint, nor what is said to a mistake."""
    for each in versions:
        if each.exercise.kind != "number":
            continue
        forms = {
            three_digits(each.answer), f"{each.answer:,.0f}", f"{each.answer:.1f}",
            f"{each.answer:.2f}", f"{each.answer:g}",
        }  # fmt: skip
        forms = {form for form in forms if len(re.sub(r"\D", "", form).strip("0")) >= 2}
        for text in (each.prompt, *each.hints, *each.because):
            numbers = set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))
            assert not numbers & forms, (text, each.answer)


def test_solutions_state_the_answer(versions: list[Evaluation]) -> None:
    for each in versions:
        if each.exercise.kind == "choice":
            assert str(each.answer) in each.solution.replace("`", "")
        elif each.exercise.kind == "number":
            numbers = [
                float(found.replace(",", ""))
                for found in re.findall(r"\d[\d,]*(?:\.\d+)?", each.solution)
            ]
            close = [n for n in numbers if abs(n - abs(each.answer)) <= 0.06 * abs(each.answer)]
            assert close, (each.solution, answer_text(each.exercise, each.answer))


def test_a_right_answer_is_told_why_in_a_sentence_or_two() -> None:
    """The solution marks it: [...]{{.why}}."""
    silent = {
        exercise.id: why
        for exercise in bank.exercises.values()
        if exercise.kind != "text"
        and not re.fullmatch(r"\S.{15,}\.", why := bank.evaluate(exercise.id).why)
    }
    assert silent == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_question_is_complete(name: str) -> None:
    exercise = bank.exercises[name]
    place = f"{exercise.file}:{exercise.line}: "
    assert TOPICS.fullmatch(exercise.topic), place + "give it a `topic`, in small letters"
    assert exercise.hints, place + "give it a hint"
    assert exercise.title, place + "give it a `title`"
    assert "@" not in exercise.prompt, place + "a student's notebook has no chapter to refer to"
    if exercise.kind == "number":
        assert exercise.tolerance <= 0.05, place + "accept 5 % at most: `tolerance = 0.05`"


def test_an_assignment_of_everything() -> None:
    students = [f"student-{number}" for number in range(30)]
    made = make_assignment("All", list(bank.exercises.values()), students)
    for index, question in enumerate(made.questions):
        used = {numbers[index] for numbers in made.students.values()}
        assert len(used) >= min(2, len(question.versions))
