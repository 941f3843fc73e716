"""`Engine.calibrate`: a reader's own few measurements correct predictions for their device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.engine.correction import Correction
from mlsim.engine.own_rows import asked, read
from mlsim.errors import InvalidValueError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    import pandas

ESTIMATES = ("calibrated", "roofline")


def calibrate(
    measured: list[dict[str, Any]] | pandas.DataFrame | Path | str,
    *,
    estimate: str = "calibrated",
) -> Correction:
    """Correct predictions for a device by a few measurements of your own.

    Each row is predicted. The geometric mean of measured over predicted time, by kind, is
    the factor by which `Correction.apply` multiplies times. No constant of the package changes.

    Parameters
    ----------
    measured
        Rows as a list of dicts, a data frame, or the path of a CSV file. A row has a `kind`
        ("solve", "serve-prefill", "serve-decode" or "train"), what was `measured` as a time or
        a rate, with its unit there or in a column `unit`, and the arguments of the door:
        `model`, `hardware`, `batch_size`, `precision`, `prompt_tokens` and so on. All rows are
        of one device, or of systems of it. The times are, in the order of the kinds, of one pass,
        until the first token, for each further token, and of a step; rates are "sample/s" for
        "solve", else "token/s", all devices together.
    estimate
        Which predictions are corrected: "calibrated" or "roofline".

    Returns
    -------
    Correction
        A factor for each kind, the band around it, and the errors of these rows before and
        after. The band holds eight in ten further measurements: by the spread of your rows
        from five different ones up, else by that of published rows if it is wider.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If there are no rows, they are of several devices, or one is not understood or
        faster than the bound; says which row.
    NotMeasuredError
        If a calibrated estimate is not known for the device: ask for "roofline".

    >>> from mlsim import Engine
    >>> found = Engine.calibrate([
    ...     {"kind": "serve-decode", "model": "Llama3_8B", "hardware": "H100",
    ...      "batch_size": batch, "measured": time}
    ...     for batch, time in ((1, "6.1 ms"), (8, "6.9 ms"), (32, "8.2 ms"))])
    >>> decode = found.factors["serve-decode"]
    >>> decode.rows, decode.low < decode.factor < decode.high
    (3, True)
    """
    if estimate not in ESTIMATES:
        raise unknown_name("estimate to correct", estimate, ESTIMATES)
    rows = tuple(asked(read(measured), estimate))
    names = dict.fromkeys(row.name for row in rows)
    if len({row.device for row in rows}) > 1:
        raise InvalidValueError(
            f"the rows are of {len(names)} devices: {', '.join(names)}. A correction is of one: "
            "calibrate each with its own rows."
        )
    return Correction(rows, estimate)
