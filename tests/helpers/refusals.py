"""Tables of what is refused: what is asked, the error it meets, and what its message says.

They lie in `fixtures/refusals`, a case on a line: `ask` are arguments, those named in `none` are
None, `error` is InvalidValueError where it is left out, and `says` is looked for as a pattern.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsim import errors

FOLDER = Path(__file__).parents[1] / "fixtures" / "refusals"


def answered(ask: Callable[..., Any], table: str, part: str = "cases") -> list[str]:
    """Return which cases of a table are not refused as it says."""
    cases = tomllib.loads((FOLDER / f"{table}.toml").read_text("utf-8"))[part]
    assert cases
    wrong = []
    for case in cases:
        given = {**case["ask"], **dict.fromkeys(case.get("none", ()))}
        try:
            found = ask(**given)
        except getattr(errors, case.get("error", "InvalidValueError")) as error:
            if not re.search(case["says"], str(error), re.DOTALL):
                wrong.append(f"{given}: not {case['says']!r}, but {error}")
        except errors.MlsimError as error:
            wrong.append(f"{given}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{given} is answered: {found!r:.60}")
    return wrong
