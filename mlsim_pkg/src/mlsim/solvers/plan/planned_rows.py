"""What a plan lays out in rows: its options, the points of its front, and what came nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlsim.solvers.noted import told
from mlsim.solvers.plan.options import Candidate, Goals, Option, Refused
from mlsim.solvers.plan.origins import price_words
from mlsim.units import text


def nothing(model: str, refused: Sequence[Refused], left_out: Mapping[str, Refused]) -> str:
    """Say that nothing serves a model in time, and what comes nearest."""
    if not refused or not refused[0].nearest:
        reasons = "; ".join(dict.fromkeys(f"{each.name}: {each.why}" for each in refused[:3]))
        return f"nothing that was tried can serve {model}. {reasons}".strip()
    near = refused[0]
    unable = {name: each for name, each in left_out.items() if not each.nearest}
    others = f" Left out: {by_reason(unable)}." if unable else ""
    first, each = (near.nearest[name] for name in ("time_to_first_token", "time_per_output_token"))
    return (
        f"nothing that was tried serves {model} in time. Nearest is {near.name}, batch "
        f"{near.nearest['running_requests']:,.0f}: first token {text(first, 's')}, each token "
        f"{text(each, 's')}. Allow these times, or allow narrower formats or larger systems."
        f"{others}"
    )


def by_reason(left_out: Mapping[str, Refused]) -> str:
    """Return in words why hardware has no option, each reason once."""
    names: dict[str, list[str]] = {}
    for name, each in left_out.items():
        names.setdefault(each.why, []).append(name)
    return ". ".join(f"{', '.join(those)}: {why}" for why, those in names.items())


def nearest_of(refused: Sequence[Refused]) -> Refused:
    """Return the nearest; of layouts that can't run, the largest, which was tried last."""
    return min(reversed(refused), key=lambda each: each.short)


def row(option: Option) -> dict[str, Any]:
    """Return an option as a row of a table, in base units."""
    service = option.service
    parallelism = service.parallelism
    return {
        "device": service.device.name,
        "system": service.system.name if service.system else "",
        "format": service.formats.name,
        "tensor_parallel": parallelism.tensor,
        "pipeline_parallel": parallelism.pipeline,
        "context_parallel": parallelism.context,
        "data_parallel": parallelism.data,
        "expert_parallel": parallelism.expert,
        **(_prefill(option.prefill) if option.prefill else {}),
        **option.found,
        "price": price_words(option),
        "borrowed": told(option.loans),
    }


def _prefill(candidate: Candidate) -> dict[str, Any]:
    """Return the layout of a pool that reads prompts."""
    layout = candidate.service.parallelism
    return {
        "prefill_device": candidate.service.device.name,
        "prefill_tensor_parallel": layout.tensor,
        "prefill_pipeline_parallel": layout.pipeline,
        "prefill_context_parallel": layout.context,
        "prefill_expert_parallel": layout.expert,
    }


def front_points(option: Option, goals: Goals) -> list[dict[str, Any]]:
    """Return an option at all batches that were tried, as points of a front."""
    front, devices = option.front, option.value("replica_devices")
    name = option.name
    return [
        {
            "tokens_per_user": 1 / interval,
            "tokens_per_device": rate * goals.output_tokens / devices,
            "batch": batch,
            "layout": name,
        }
        for interval, rate, batch in zip(
            front["time_per_output_token"].tolist(),
            front["replica_rate"].tolist(),
            front["running_requests"].tolist(),
            strict=True,
        )
    ]
