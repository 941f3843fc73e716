"""The book's exercises in a notebook: check an answer, take a hint, see the solution.

    >>> from mlsim_course import check
    >>> check("kv-70b")
    · Not attempted yet.
    >>> check("kv-70b", 2560)
    ✗ That counts query heads. Queries are not kept; 8 of them share one key and value.

The questions ship with the package, so nothing needs to lie beside the notebook. An
answer is a number, or a quantity in any unit that fits. `questions("kv-70b", "first-token")`
shows a run of exercises, or of self-checks, on a page of a book.
"""

from pathlib import Path

from mlsim_exercises.bank import Bank

bank = Bank(Path(__file__).parent / "questions", module=__name__)

check = bank.check
verdict = bank.verdict
hint = bank.hint
reveal = bank.reveal
questions = bank.show

__all__ = ["bank", "check", "hint", "questions", "reveal", "verdict"]
