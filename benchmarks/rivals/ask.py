"""What the scripts that ask another program share: cases in, predictions out.

Only the standard library: each script runs in the virtual environment of its rival. A rival
gives times of steps; how a case follows from them is the same for all and stands here.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

# What one step of a case takes in seconds.
Step = Callable[..., float]


class NoAnswerError(Exception):
    """The rival has no answer to a case, and why."""


@dataclass(frozen=True)
class Case:
    """A row of the cases, and the architecture of its model."""

    row: Mapping[str, str]
    models: Mapping[str, Mapping[str, str]]

    def __getitem__(self, name: str) -> str:
        return self.row[name]

    def number(self, name: str, default: float | None = None) -> float:
        """Return a number of the row; without one, the default or a refusal."""
        text = self.row.get(name) or self.extra.get(name) or ""
        if text == "":
            if default is None:
                raise NoAnswerError(f"the row has no {name}")
            return default
        return float(text)

    def whole(self, name: str, default: float | None = None) -> int:
        """Return a number of the row as a whole one."""
        return round(self.number(name, default))

    @cached_property
    def extra(self) -> Mapping[str, Any]:
        """What else the row says."""
        return json.loads(self.row["extra"] or "{}")

    @property
    def model(self) -> Mapping[str, str]:
        """The architecture of the model."""
        if self.row["model"] not in self.models:
            raise NoAnswerError("no architecture")
        return self.models[self.row["model"]]

    def size(self, name: str) -> int:
        """Return a size of the model."""
        text = self.model[name]
        if not text:
            raise NoAnswerError(f"the model has no {name}")
        return int(text)


@dataclass(frozen=True)
class Rival:
    """A program: seconds of a prefill, of a decode step and of a training step, and its peaks.

    `prefill(case, batch, tokens)`, `decode(case, batch, context)`, `train(case, global_batch)`;
    `peak(case)` in FLOP/s is what it takes for the device's; `others` answer a kind whole.
    """

    name: str
    prefill: Step | None = None
    decode: Step | None = None
    train: Step | None = None
    peak: Step | None = None
    others: Mapping[str, Callable[[Case], float]] | None = None


def answer(rival: Rival, case: Case) -> float:
    """Return a rival's answer to a case, in the case's own unit."""
    kind = case["kind"]
    if rival.others and kind in rival.others:
        return rival.others[kind](case)
    if kind in ("enc_infer", "prefill", "ttft"):
        return _prompt(rival, case)
    if kind in ("decode", "gen_e2e", "static_gen", "serve_steady"):
        return _generation(rival, case)
    if kind == "train_lm":
        return _training(rival, case)
    raise NoAnswerError(f"asked for no {kind}")


def _prompt(rival: Rival, case: Case) -> float:
    if rival.prefill is None:
        raise NoAnswerError("no prefill")
    if case.extra.get("depth"):
        raise NoAnswerError("no prompt behind a filled cache")
    copies = case.whole("dp", 1)
    # Batches of the cases are those of one copy of the model.
    batch, tokens = case.whole("batch", 1), case.whole("input_len")
    seconds = rival.prefill(case, batch, tokens)
    metric = case["metric_kind"]
    if metric in ("TTFT_s", "latency_s"):
        return seconds
    each = batch * copies / seconds
    return each * tokens if metric == "prefill_tokens_per_s_total" else each


def _generation(rival: Rival, case: Case) -> float:
    if rival.decode is None:
        raise NoAnswerError("no decode")
    batch, prompt = case.whole("batch"), case.whole("input_len", 0)
    output = case.whole("output_len")
    # A step in the middle of the answer stands for all.
    step = rival.decode(case, batch, max(prompt + output // 2, 1))
    kind, copies = case["kind"], case.whole("dp", 1)
    if kind == "decode":
        return copies * batch / step
    if rival.prefill is None:
        raise NoAnswerError("no prefill")
    if kind == "serve_steady":
        # While a request writes its answer, each of the others reads one prompt.
        step += batch / output * rival.prefill(case, 1, max(prompt, 1))
        return copies * batch / step
    seconds = rival.prefill(case, batch, max(prompt, 1)) + output * step
    return seconds if kind == "gen_e2e" else copies * batch * output / seconds


def _training(rival: Rival, case: Case) -> float:
    if rival.train is None:
        raise NoAnswerError("no training")
    devices, length = case.whole("count"), case.whole("input_len")
    replicas = devices // (case.whole("tp", 1) * case.whole("pp", 1))
    # Where a row gives no batch: one sequence a replica and stage of the pipeline.
    local = case.extra.get("local")
    usual = replicas * (float(local) if local else case.whole("pp", 1))
    batch = case.whole("gb", usual)
    seconds = rival.train(case, batch)
    metric = case["metric_kind"]
    if metric == "step_s":
        return seconds
    rate = batch * length / seconds
    if metric == "tokens_per_s_total":
        return rate
    if metric == "tokens_per_s_per_device":
        return rate / devices
    causal = 0.5 if case.extra.get("mfu_attn") == "causal" else 1.0
    attention = 12 * causal * case.size("layers") * case.size("hidden") * length
    work = (6 * case.size("params_active") + attention) * rate / devices
    if metric == "model_flop_per_s_per_device":
        return work
    if metric == "mfu_fraction" and rival.peak:
        return work / rival.peak(case)
    raise NoAnswerError(f"no {metric}")


def run(rivals: Iterable[Rival]) -> None:
    """Ask each rival all cases, write a file for each, and tell what was refused."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("rivals"))
    asked = parser.parse_args()
    models = {row["model"]: row for row in _read(asked.models)}
    rows = [row for row in _read(asked.cases) if row["tier"] in ("A", "B")]
    asked.out.mkdir(parents=True, exist_ok=True)
    for rival in rivals:
        found, refusals = [], Counter()
        for row in rows:
            try:
                value = float(answer(rival, Case(row, models)))
                if not 0 < value < float("inf"):
                    raise NoAnswerError("no positive number")
                found.append((row["case_id"], f"{value:.6g}"))
            except Exception as error:  # noqa: BLE001 - a rival may fail as it likes
                refusals[f"{type(error).__name__}: {error}"[:90]] += 1
        with (asked.out / f"{rival.name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("case_id", "predicted"), *found])
        print(f"{rival.name}: {len(found)} of {len(rows)} answered")
        for words, count in refusals.most_common():
            print(f"  {count:4} {words}")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
