"""Why measurements differ from the default estimate, and how that is known.

A cause is words for a rule; `evidence` reckons from the measurements themselves
what speaks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from serving_cases import Case, Scored, extra, question, resident, step_seconds

Rules = tuple[tuple[Callable[[Case], bool], str], ...]

LARGE = 100  # sequences; from here on, a server's host shows


def encoder(case: Case, software: str = "") -> bool:
    return case["kind"] == "enc_infer" and case["sw_class"].startswith(software)


def quantised(case: Case) -> bool:
    return float(case["w_bits"]) < 16


def batch(case: Case) -> float:
    return float(case["batch"] or 0)


# Why a measurement is slower than the default estimate: the first rule that holds.
# The T4's 24 of 65 TFLOP/s: forums.developer.nvidia.com/t/about-gpu-peak-performance/264462.
SLOWER: Rules = (
    (
        lambda case: case["device"] == "T4",
        "the T4's limit of 70 W: as slow at batch 16 as at 1; cuBLAS too gets 24 TFLOP/s, not 65",
    ),
    (
        lambda case: encoder(case, "eager"),
        "an eager framework: host time and launches in each layer, and kernels not fused",
    ),
    (
        lambda case: encoder(case) and batch(case) == 1,
        "start and tail of kernels: nearly the same time for a text of any length",
    ),
    (
        lambda case: case["case_id"] == "DEC-153",
        "a change of regime in the server: throughput falls from batch 64 to 128",
    ),
    (
        lambda case: case["sw_class"] == "vllm" and batch(case) >= LARGE,
        "the server's host: time for each sequence in each step; prefill in between",
    ),
    (
        lambda case: case["sw_class"] == "vllm",
        "start and tail of kernels, and the server's host",
    ),
    (
        lambda case: case["kind"] == "prefill" and quantised(case),
        "kernels far from the peak, and weights made wider before each product",
    ),
    (
        lambda case: case["kind"] == "prefill",
        "kernels far from the peak of the tensor cores",
    ),
    (
        lambda case: case["kind"] in ("decode", "gen_e2e") and int(case["tp"]) > 1,
        "start and tail of kernels, all-reduces among them: not less on more devices",
    ),
    (
        lambda case: case["sw_class"] == "llamacpp" and quantised(case),
        "weights made wider: fewer bits are read, but not at the memory's rate",
    ),
    (
        lambda case: case["kind"] == "ttft",
        "start and tail of kernels; printed in whole ms",
    ),
    (
        lambda case: case["kind"] == "serve_offline",
        "batch not printed, the largest was asked; scheduling; kernels below the peak",
    ),
    (
        lambda _: True,
        "the part of peak and bandwidth that can be reached",
    ),
)

# Why one is faster: the default estimate is no bound.
FASTER: Rules = (
    (
        lambda case: case["model"].startswith("gpt-oss") and batch(case) > 1,
        "the texts of a benchmark choose alike among experts; the rest is kept in 8 bits, not 16",
    ),
    (
        lambda case: case["model"].startswith("gpt-oss"),
        "what is no expert is kept in 8 bits, not 16, as the size of llama.cpp's file shows",
    ),
    (
        lambda case: extra(case, "beam", 1) > 1,
        "beams share the cache of their prompt",
    ),
    (
        lambda _: True,
        "unknown",
    ),
)


def cause(case: Case, rules: Rules) -> str:
    """Say in words why a measurement is not what was estimated."""
    return next(words for holds, words in rules if holds(case))


class Gap:
    """What a case's step takes beyond the estimate, and what to divide it by."""

    def __init__(self, each: Scored, reference: Path) -> None:
        case, predicted, measured, _ = each
        asked = {**question(case, reference), "estimate": "roofline"}
        self.case = case
        self.model = asked["model"]
        self.batch = resident(case, asked)
        if case["kind"] == "enc_infer":
            self.batch *= asked["data_parallel"]
        self.measured = step_seconds(case, measured, self.batch)
        self.predicted = step_seconds(case, predicted, self.batch)

    @property
    def seconds(self) -> float:
        """The part of a step that the estimate does not have."""
        return self.measured - self.predicted

    @property
    def per_layer(self) -> float:
        """That part for each layer, in microseconds."""
        return 1e6 * self.seconds / self.model.layers


def evidence(rows: Sequence[Scored], reference: Path) -> list[str]:
    """Say how the causes are known, reckoned from the measurements themselves."""
    gaps = {each[0]["case_id"]: Gap(each, reference) for each in rows}
    return [
        *precisions(gaps, "llama2-7b", ("DEC-039", "DEC-040", "DEC-041")),
        *devices(gaps, "GPT-20B, FasterTransformer", ("DEC-240", "DEC-241", "DEC-242", "DEC-243")),
        *devices(
            gaps,
            "Mixtral int8, gpt-fast",
            ("DEC-063", "DEC-064", "DEC-065", "DEC-066"),
        ),
        *servers(gaps),
        *dequantised(gaps),
        *peaks(gaps),
        *lengths(gaps, "BERT base, FasterTransformer, batch 1", ("PRE-019", "PRE-020", "PRE-021")),
        *rates(gaps, "BERT large on a T4, TensorRT", ("PRE-013", "PRE-014", "PRE-015")),
        *rates(gaps, "BERT large on an A100, PyTorch", ("PRE-010", "PRE-011", "PRE-012")),
    ]


def precisions(gaps: dict[str, Gap], name: str, ids: Sequence[str]) -> list[str]:
    """Lay a straight line through one model's steps at several bits of weights."""
    if not all(each in gaps for each in ids):
        return []
    points = [gaps[each] for each in ids]
    bits = [float(point.case["w_bits"]) for point in points]
    slopes = [
        fit(bits, [getattr(point, side) for point in points]) for side in ("measured", "predicted")
    ]
    per_layer = 1e6 * slopes[0][1] / points[0].model.layers
    ratio, rest = slopes[0][0] / slopes[1][0], slopes[0][1] * 1e3
    return [
        (
            f"{name} on one A100 at {', '.join(f'{each:g}' for each in bits)} bits, gpt-fast: the "
            f"steps lie on a line, {ratio:.2f} times as steep as the estimate's; what is left "
            f"without weights is {rest:.1f} ms, {per_layer:.0f} us a layer."
        )
    ]


def devices(gaps: dict[str, Gap], name: str, ids: Sequence[str]) -> list[str]:
    """Say what a layer takes beyond the estimate on more and more devices."""
    if not all(each in gaps for each in ids):
        return []
    parts = ", ".join(f"{gaps[each].per_layer:.0f} us on {gaps[each].case['tp']}" for each in ids)
    return [f"{name}, batch 1: a layer takes {parts} devices more than estimated."]


def servers(gaps: dict[str, Gap]) -> list[str]:
    """Say what one more sequence costs a server beyond the estimate, at large batches."""
    found = []
    series: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in gaps.values():
        case = gap.case
        if case["kind"] == "serve_steady" and gap.batch >= LARGE:
            series.setdefault((case["model"], case["device"], case["count"]), []).append(gap)
    for (model, device, count), points in sorted(series.items()):
        if len(points) > 1:
            batches = [float(point.batch) for point in points]
            more = 1e6 * fit(batches, [point.seconds for point in points])[0]
            found.append(
                f"{model} on {count} x {device}, vLLM, batch {min(batches):,.0f} to "
                f"{max(batches):,.0f}: {more:.0f} us a step for each further sequence, beyond "
                "the estimate."
            )
    return found


def dequantised(gaps: dict[str, Gap]) -> list[str]:
    """Compare prompts read by one program on one device, with quantised weights and without."""
    pairs: dict[tuple[str, str], dict[str, float]] = {}
    for gap in gaps.values():
        case = gap.case
        if case["kind"] == "prefill" and case["series"].startswith("xd_"):
            pairs.setdefault((case["model"], case["device"]), {})[case["w_bits"]] = gap.measured
    ratios = [each["16.0"] / each["4.85"] for each in pairs.values() if len(each) > 1]
    if not ratios:
        return []
    return [
        (
            f"llama.cpp reads a prompt with Q4_K_M weights at {min(ratios):.2f} to "
            f"{max(ratios):.2f} of its speed with F16 weights, on {len(ratios)} devices."
        )
    ]


def peaks(gaps: dict[str, Gap]) -> list[str]:
    """Say what part of the peak llama.cpp reaches in F16 prefill, which is compute-bound."""
    parts = [
        (gap.predicted / gap.measured, gap.case["device"])
        for gap in gaps.values()
        if gap.case["kind"] == "prefill" and gap.case["w_bits"] == "16.0"
    ]
    if not parts:
        return []
    named = ", ".join(f"{device} {part:.0%}" for part, device in sorted(parts, reverse=True))
    return [f"Part of the estimate's speed that llama.cpp reaches in F16 prefill: {named}."]


def lengths(gaps: dict[str, Gap], name: str, ids: Sequence[str]) -> list[str]:
    """Say how long a pass takes for shorter and longer texts."""
    if not all(each in gaps for each in ids):
        return []
    parts = ", ".join(
        f"{gaps[each].measured * 1e3:.2f} ms ({gaps[each].predicted * 1e3:.2f} estimated) for "
        f"{float(gaps[each].case['input_len']):.0f} tokens"
        for each in ids
    )
    return [f"{name}: {parts}."]


def rates(gaps: dict[str, Gap], name: str, ids: Sequence[str]) -> list[str]:
    """Say how fast arithmetic is at larger and larger batches."""
    if not all(each in gaps for each in ids):
        return []
    parts = []
    for each in ids:
        gap = gaps[each]
        work = gap.batch * gap.model.flop_count(round(float(gap.case["input_len"])))
        parts.append(f"{work / gap.measured / 1e12:.0f} TFLOP/s at batch {gap.batch}")
    return [f"{name}: {', '.join(parts)}."]


def fit(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return slope and intercept of the line through points, by least squares."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    slope /= sum((a - mean_x) ** 2 for a in x)
    return slope, mean_y - slope * mean_x
