"""Pages as another format than HTML has them: `when-format="pdf"` shows there what it says.

Only a book that uses such conditions is rendered again for a format, and nothing of it is
executed again. What is numbered is counted afresh: a figure may stand in each format's text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlsim_book.keep import Keep
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.render import RenderedPage, render_pages

# what is for notebooks alone is hidden in every other format
_CONDITION = re.compile(r"\b(?:when|unless)-format\s*=\s*(?![\"']?ipynb\b)")


def depends_on_format(pages: Sequence[ExecutedPage]) -> bool:
    """Say whether any page shows something in some formats only."""
    return any(_CONDITION.search(page.markdown) for page in pages)


def paper_groups(formats: Sequence[str], pages: Sequence[ExecutedPage]) -> list[Sequence[str]]:
    """Return the formats to make from pages, those together that show the same.

    >>> paper_groups(("pdf", "epub", "zip"), [])
    [['pdf', 'epub']]
    """
    forms = [form for form in formats if form not in {"zip", "figures"}]
    if depends_on_format(pages):
        return [[form] for form in forms]
    return [forms] if forms else []


def rendered_for(
    form: str, project: Project, pages: Sequence[ExecutedPage], keep: Keep, *, jobs: int = 2
) -> list[RenderedPage] | None:
    """Return a book's pages as a format ("pdf", "epub") has them; None if all have the same."""
    if not depends_on_format(pages):
        return None
    return render_pages(project, pages, keep=keep, jobs=jobs, form=form)
