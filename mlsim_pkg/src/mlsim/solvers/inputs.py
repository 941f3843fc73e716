"""What a user gives, checked, under the names of before `mlsim.parameters`."""

from __future__ import annotations

from typing import Any

from mlsim.parameters import BARE, CALIBRATED, COUNTS, check, validate, validate_given

ESTIMATES = ("roofline", "bound", CALIBRATED)

__all__ = ["BARE", "CALIBRATED", "COUNTS", "ESTIMATES", "validate", "validate_given"]


def check_estimate(estimate: Any) -> None:
    """Refuse a word that is no estimate."""
    check("estimate", estimate)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False; refuse anything else."""
    found: bool = check(name, value)
    return found
