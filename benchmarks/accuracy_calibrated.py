"""How far the calibrated estimate is from published measurements, beside the roofline.

    MLSIM_REFERENCE=... python benchmarks/accuracy_calibrated.py

Three groups of measurements, all on devices that are calibrated: the open cases
of language models of the reference folder, ResNet-50 (as the package has it), and
the very kernels of which the constants were made. The last are no test: they show
what one number for each device leaves out. No constant is fitted to the others.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

from serving_cases import cases, predict_all, speed_ratio
from tables import lay_out

from mlsim import Engine, Hardware, Systems
from mlsim.errors import NotMeasuredError, UnsupportedPrecisionError
from mlsim.hardware.device_calibration import calibrated_devices, calibration
from mlsim.hardware.measured_kernels import ProductRow
from mlsim.measured import measurements
from mlsim.systems.link_calibration import link_calibration

ESTIMATES = ("roofline", "calibrated")
# Predicted speed over measured speed, by estimate, of one measurement.
Pair = dict[str, float]


def language_models(reference: Path) -> dict[str, list[Pair]]:
    """Return the pairs of each domain and kind of case that both estimates answer."""
    rows = cases(reference)
    answers = {each: predict_all(rows, reference, each)[0] for each in ESTIMATES}
    found: dict[str, list[Pair]] = {}
    for case in rows:
        name = case["case_id"]
        if all(name in answers[each] for each in ESTIMATES):
            pair = {each: speed_ratio(case, answers[each][name]) for each in ESTIMATES}
            for group in (f"{case['domain']}, all", f"{case['domain']}, {case['kind']}"):
                found.setdefault(group, []).append(pair)
    return dict(sorted(found.items()))


def networks() -> dict[str, list[Pair]]:
    """Return the pairs of ResNet-50, by what ran it."""
    found: dict[str, list[Pair]] = {}
    for row in measurements():
        if row.hardware not in calibrated_devices():
            continue
        pair = {
            each: Engine.solve(
                model=row.model,
                hardware=row.device,
                batch_size=row.batch_size,
                precision=row.precision,
                estimate=each,
            ).throughput
            / row.value
            for each in ESTIMATES
        }
        for group in ("ResNet-50, all", f"ResNet-50, {row.software.partition(',')[0]}"):
            found.setdefault(group, []).append(pair)
    return dict(sorted(found.items()))


def kernels() -> dict[str, list[Pair]]:
    """Return the pairs of the rows of which the constants are made."""
    found: dict[str, list[Pair]] = {}
    for key in calibrated_devices():
        device = Hardware.get(key)
        for name in ("bf16", "fp8"):
            try:
                made = calibration(device, name)
            except (NotMeasuredError, UnsupportedPrecisionError):
                continue
            for row in made.rows:
                if isinstance(row, ProductRow) and (name == "fp8") == (row.precision == "fp8"):
                    peak = device.compute.figure(row.precision).si
                    ideal = max(row.flops / peak, row.bytes_moved / device.bandwidth_si)
                    pair = {
                        "roofline": row.seconds / ideal,
                        "calibrated": row.seconds / made.product_time(row),
                    }
                    found.setdefault(f"products, {device.name}", []).append(pair)
    for system in (Systems.HGX_A100, Systems.HGX_H100, Systems.HGX_H200):
        line = link_calibration(system)
        for each in line.rows:
            ideal = each.ring_bytes / line.link_bandwidth
            pair = {"roofline": each.seconds / ideal, "calibrated": each.seconds / line.time(each)}
            found.setdefault(f"all-reduces, {system.name}", []).append(pair)
    return found


def figures(ratios: Iterable[float]) -> list[str]:
    """Return median absolute error, typical factor, median ratio, part within 25 %.

    The error is of the measured quantity as a speed; the factor is symmetric.
    """
    found = list(ratios)
    error = statistics.median(abs(each - 1) for each in found)
    factor = math.exp(statistics.median(abs(math.log(each)) for each in found))
    within = sum(abs(each - 1) <= 0.25 for each in found) / len(found)
    return [f"{error:.0%}", f"{factor:.2f}", f"{statistics.median(found):.2f}", f"{within:.0%}"]


def table(groups: dict[str, list[Pair]]) -> str:
    """Lay out both estimates side by side."""
    lines = [
        [
            name,
            f"{len(pairs)}",
            *(
                text
                for each in zip(
                    *(figures(pair[each] for pair in pairs) for each in ESTIMATES), strict=True
                )
                for text in each
            ),
        ]
        for name, pairs in groups.items()
    ]
    heads = ("error", "factor", "of measured", "in 25 %")
    names = [f"{head}, {each}" for head in heads for each in ("roofl.", "calib.")]
    return lay_out(["what", "rows", *names], lines)


def constants() -> str:
    """Lay out the constants of each device."""
    lines = []
    for key in calibrated_devices():
        device = Hardware.get(key)
        for name in ("bf16", "fp8"):
            if name not in device.compute.figures:
                continue
            made = calibration(device, name)
            cores = f"{made.cores}" if made.cores else "-"
            products = sum(isinstance(row, ProductRow) for row in made.rows)
            lines.append(
                [
                    device.name,
                    name,
                    f"{made.compute_fraction:.3f}",
                    f"{products}",
                    f"{made.memory_fraction:.3f}",
                    f"{len(made.rows) - products - 1}",
                    cores,
                ]
            )
    head = ["device", "format", "of the peak", "products", "of the bandwidth", "streams", "cores"]
    return lay_out(head, lines)


def main() -> None:
    print("What was measured\n")
    print(constants())
    for system in (Systems.HGX_A100, Systems.HGX_H100, Systems.HGX_H200):
        line = link_calibration(system)
        worst = max(abs(each) for each in line.residuals().values())
        print(
            f"{system.name}: {line.link_fraction:.2f} of the link, "
            f"{line.link_latency * 1e6:.0f} us to start, worst row {worst:.0%} off"
        )
    print("\nPredicted over measured speed: median error, typical factor, median, within 25 %\n")
    print(table(kernels()))
    print()
    print(table(networks()))
    reference = os.environ.get("MLSIM_REFERENCE")
    if not reference:
        sys.exit("\nset MLSIM_REFERENCE to the folder of reference data for language models")
    print()
    print(table(language_models(Path(reference))))


if __name__ == "__main__":
    main()
