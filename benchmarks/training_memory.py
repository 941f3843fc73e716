"""How near the peak memory of a step of training is to what PyTorch reaches on a processor.

    pip install "mlsim[torch]" torchvision
    python benchmarks/training_memory.py

Needs no accelerator: what is measured is the memory of all tensors that are alive.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from live_memory import OPTIMIZERS, cases, peak_of_a_step

from mlsim.workloads.graph.training import TrainingStep
from mlsim.workloads.pytorch import read_module


def main() -> None:
    """Print one row for each network and optimizer."""
    print("| network | optimizer | PyTorch | mlsim | difference | peak |")
    print("|---|---|---|---|---|---|")
    for name, module, inputs, targets, told in cases():
        graph = read_module(module, **told, training=True)
        for optimizer, (build, states) in OPTIMIZERS.items():
            measured = peak_of_a_step(module, inputs, targets, build(module.parameters()))
            step = TrainingStep(graph, batch_size=len(inputs), element_bytes=4, states=states)
            found = step.peak.total
            where = f"{step.peak.phase} {step.peak.layer}".strip()
            print(
                f"| {name} | {optimizer} | {measured / 1e6:.2f} MB | {found / 1e6:.2f} MB "
                f"| {100 * (found / measured - 1):+.2f} % | {where} |"
            )


if __name__ == "__main__":
    main()
