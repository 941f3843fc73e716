"""How the services of silicon_sample.csv were run: what its rows leave out.

The rows are runs of InferenceX (formerly InferenceMAX). Its scripts are public, with their
history: github.com/SemiAnalysisAI/InferenceX, folder `benchmarks`, read at the commits before
each row's date (newest read: 843c6254, 2026-08-22). A run has a fixed number of users who all
start at once, ten requests for each, and prompts and answers between 0.8 and 1 times the
stated length (`RANDOM_RANGE_RATIO`). The scripts also set how a scheduler puts steps together;
those settings stand here. Nothing here is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsim.software import narrower

# Shortest prompt and answer, as a share of the stated length; requests for each user.
RANGE_RATIO, PER_USER = 0.8, 10
# Which class of software an engine is of.
SOFTWARE = {"trtllm": "torch_engine", "vllm": "vllm", "sglang": "torch_engine"}
# Where a script sets no limit, an engine's own.
USUAL_TOKENS, USUAL_RUNNING = 8192, 512
# SGLang's scripts look for requests less often where many users ask.
_MANY_USERS = 16
# SGLang's share of a device for weights and cache where a script gives DeepSeek four devices.
_NEARLY_ALL = 0.95
# Tokens of the largest step that vLLM's newer scripts capture as a graph; prompts at a time.
_LARGE_GRAPH, _TWO = 2048, 2
# Runs whose image had settings with guessing only, or whose points ran both ways that day:
# of `nvidia-master.yaml` at the commits of these days.
_GUESSING_IMAGE = "1.2.0rc6.post3"
_GUESSING_DAYS = {"trtllm": "2026-01-14", "sglang": "2026-03-25"}
_GUESSING_QWEN = "2026-03-20"


@dataclass(frozen=True)
class Settings:
    """Limits of a step, how patient the scheduler is, memory, graphs, and kernels of experts."""

    tokens_per_step: int = USUAL_TOKENS
    running_limit: int = USUAL_RUNNING
    poll_steps: int = 1
    wait_steps: int = 0
    wait_share: float = 0.0
    reserve: float | None = None
    captured_tokens: int | None = None
    expert_path: str = ""


def program(row: Mapping[str, str]) -> str:
    """Return the class of software of a row, by its backend and release."""
    usual = SOFTWARE[row["backend"]]
    # The nightly builds on record are newer than the release that decides.
    release = "0.19" if row["backend_version"].startswith("nightly") else row["backend_version"]
    return narrower(usual, f"{row['backend']} {release}")


def lengths(tokens: int) -> str:
    """Return the distribution of a length that a row states."""
    return f"uniform {int(tokens * RANGE_RATIO)} {tokens}"


def settings(row: Mapping[str, str], users: int, devices: int) -> Settings:
    """Return how a row's service was run."""
    running = max(USUAL_RUNNING, users)
    made = {"vllm": _vllm, "sglang": _sglang, "trtllm": _tensorrt}[row["backend"]]
    tokens, patience = made(row, users, devices)
    return Settings(tokens, running, **patience)


def guesses(row: Mapping[str, str]) -> bool:
    """Tell whether a run may have guessed tokens, which no column says."""
    model, day = row["model_path"], _date(row)
    if "DeepSeek" in model and row["backend"] == "trtllm":
        return row["backend_version"] == _GUESSING_IMAGE or day == _GUESSING_DAYS["trtllm"]
    if "DeepSeek" in model and row["backend"] == "sglang" and row["precision"] == "fp8":
        both = row["system"] == "b200_sxm" and row["tp_size"] == "8"
        return both and day == _GUESSING_DAYS["sglang"]
    return "Qwen" in model and row["system"] == "b200_sxm" and day == _GUESSING_QWEN


def _vllm(row: Mapping[str, str], users: int, devices: int) -> tuple[int, dict[str, Any]]:
    # From April 2026 on, scripts for Blackwell read two prompts a step, and capture larger ones.
    model, prompts = row["model_path"], _TWO * int(row["isl"])
    blackwell = row["system"] in ("b200_sxm", "b300_sxm")
    if "MiniMax" in model and blackwell and row["backend_version"] != "0.17.0":
        return prompts, {"captured_tokens": _LARGE_GRAPH}
    if "Kimi" in model and row["system"] == "b200_sxm" and _date(row) == "2026-04-20":
        return prompts, {"captured_tokens": _LARGE_GRAPH}
    if "gpt-oss" in model:
        # On Hopper by Marlin's kernels, which multiply in 16 bits; measured with INT4.
        path = {} if blackwell else {"expert_path": "int4_weights"}
        return USUAL_TOKENS, {"captured_tokens": _LARGE_GRAPH, **path}
    return USUAL_TOKENS, {}


def _sglang(row: Mapping[str, str], users: int, devices: int) -> tuple[int, dict[str, Any]]:
    model, precision = row["model_path"], row["precision"]
    hopper = row["system"] == "h200_sxm"
    seldom = {"poll_steps": 30 if users >= _MANY_USERS else 10}
    if "DeepSeek" in model:
        if hopper:
            return 32768, {}
        if precision == "fp4":
            return 16384, seldom
        if devices == 8:
            return 32768, seldom
        return 8192, {"poll_steps": 10, "reserve": 1 - _NEARLY_ALL}
    if "Qwen" in model:
        if hopper:
            return 16384, {}
        one = row["system"] == "b300_sxm" and precision == "fp8"
        return (16384, {"poll_steps": 10}) if one else (32768, seldom)
    return 32768, {"poll_steps": 10} if precision == "fp4" else {}


def _tensorrt(row: Mapping[str, str], users: int, devices: int) -> tuple[int, dict[str, Any]]:
    model, prompt = row["model_path"], int(row["isl"])
    if "Llama" in model:
        short = prompt == int(row["osl"]) == 1024 and devices < 8
        return 16384, {"wait_steps": 20, "wait_share": 0.9} if short else {}
    if "gpt-oss" in model:
        # On Hopper by the kernels that OpenAI wrote in Triton.
        return 20000, {"expert_path": "mxfp4_weights"} if row["system"] == "h200_sxm" else {}
    # Room for the users' tokens and one prompt, in pieces of 64.
    room = -(-(users + prompt + 64) // 64) * 64
    if _date(row) < "2026-01-29":
        return room, {}
    short = prompt == int(row["osl"]) == 1024 and users >= 64
    waits = short and row["precision"] == "fp8" and row["system"] == "b200_sxm"
    return max(room, USUAL_TOKENS), {"wait_steps": 40, "wait_share": 0.8} if waits else {}


def _date(row: Mapping[str, str]) -> str:
    """Return the day of a row, empty where it names none."""
    return row["silicon_data_source"].partition("measured=")[2][:10]
