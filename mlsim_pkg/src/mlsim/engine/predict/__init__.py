"""Predictions for a table of published cases, each with its bound, its band and its reasons."""

from __future__ import annotations

from mlsim.engine.predict.architectures import architectures
from mlsim.engine.predict.table import COLUMNS, Prediction, predict, read_cases, write

__all__ = ["COLUMNS", "Prediction", "architectures", "predict", "read_cases", "write"]
