"""The chapters' questions: each answer, each mistake, each variant, each chapter."""

from __future__ import annotations

import re

import pytest

from mlsim_course import bank
from mlsim_exercises.evaluation import Evaluation, evaluate, same_answer, variants
from mlsim_exercises.markdown import plain_text, three_digits
from mlsim_exercises.verdicts import asked_for, judge
from mlsim_grading.assignment import make_assignment

NAMES = sorted(bank.exercises)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TOOLS = re.compile(r"`\w*\.\w|calibrated")
LIMITED = re.compile(r"at (?:most|least)\b|largest|in whole ")
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
        for number, wrong in enumerate(each.wrong, start=1):
            verdict = judge(each, wrong)
            assert (verdict.kind, verdict.path) == ("wrong path", number)
            assert verdict.message == each.because[number - 1].strip()
            others = [value for value in (*each.wrong, each.answer) if value is not wrong]
            assert not any(same_answer(each.exercise, wrong, other) for other in others)


def test_texts_have_no_markup_and_only_solutions_state_the_answer(
    versions: list[Evaluation],
) -> None:
    """Neither the prompt, nor a hint, nor what is said to a mistake, gives it away."""
    for each in versions:
        for text in (*each.hints, *each.because, each.solution):
            assert not re.search(r"\]\{|\]\(|\*\*|\^\w+\^|`", plain_text(text)), text
        if each.exercise.kind == "choice":
            assert str(each.answer) in each.solution.replace("`", "")
        elif each.exercise.kind == "number":
            forms = {three_digits(each.answer)}
            forms |= {f"{each.answer:{form}}" for form in (",.0f", ".1f", ".2f", "g")}
            forms = {form for form in forms if len(re.sub(r"\D", "", form).strip("0")) >= 2}
            for text in (each.prompt, *each.hints, *each.because):
                assert not set(NUMBER.findall(text)) & forms, (text, each.answer)
            numbers = [float(each.replace(",", "")) for each in NUMBER.findall(each.solution)]
            near, answer = 0.06 * abs(each.answer), abs(each.answer)
            assert any(abs(n - answer) <= near for n in numbers), (each.solution, answer)


def test_each_question_is_complete() -> None:
    """A right answer is told why in a sentence or two: the solution marks it, [...]{.why}."""
    faults = []
    for exercise in bank.exercises.values():
        is_number, is_text = (exercise.kind == kind for kind in ("number", "text"))
        why = is_text or re.fullmatch(r"\S.{15,}\.", bank.evaluate(exercise.id).why)
        for is_well, advice in (
            (TOPICS.fullmatch(exercise.topic), "give it a `topic`, in small letters"),
            (exercise.hints, "give it a hint"),
            (exercise.title, "give it a `title`"),
            ("@" not in exercise.prompt, "a student's notebook has no chapter to refer to"),
            (not is_number or exercise.tolerance <= 0.05, "accept 5 % at most: `tolerance = 0.05`"),
            (why, "mark in its solution why it is so: [...]{.why}"),
            (
                not is_number or exercise.guess or "guess" not in exercise.prompt.lower(),
                "its prompt asks for a guess: say as `guess` why intuition errs",
            ),
            (
                not exercise.paper or not TOOLS.search(exercise.prompt),
                "paper and pencil ask no solver",
            ),
        ):
            if not is_well:
                faults.append(f"{exercise.file}:{exercise.line}: {advice}")
    assert faults == []


def test_a_third_of_the_exercises_ask_for_a_guess() -> None:
    asked = sum(bool(each.guess) for each in bank.exercises.values())
    assert 0.28 < asked / len(NAMES) < 0.38


def test_the_largest_that_fits_is_one_whole_number(versions: list[Evaluation]) -> None:
    """Where the most or the fewest are asked for, one more or one less is not right."""
    for each in versions:
        exercise = each.exercise
        counts = asked_for(exercise.unit).startswith("a number of")
        if counts and exercise.kind == "number" and LIMITED.search(exercise.prompt):
            assert judge(each, each.answer + 1).score == judge(each, each.answer - 1).score == 0


def test_an_assignment_of_everything() -> None:
    students = [f"student-{number}" for number in range(30)]
    made = make_assignment("All", list(bank.exercises.values()), students)
    for index, question in enumerate(made.questions):
        used = {numbers[index] for numbers in made.students.values()}
        assert len(used) >= min(2, len(question.versions))
