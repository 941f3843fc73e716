"""How near the peak memory of a step of training is to what PyTorch reaches on a processor.

    pip install "mlsim[torch]" torchvision
    python benchmarks/training_memory.py
    python benchmarks/training_memory.py --csv   # the table that the package ships

Needs no accelerator: what is measured is the memory of all tensors that are alive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from live_memory import OPTIMIZERS, cases, peak_of_a_step

from mlsim.workloads.graph.training import TrainingStep
from mlsim.workloads.pytorch import read_module

# Networks that the zoo has too.
ZOO = {"LeNet": "LeNet5_Variant", "ResNet-18": "ResNet18"}


def main() -> None:
    """Print one row for each network and optimizer."""
    if "--csv" in sys.argv:
        _csv()
        return
    print("| network | optimizer | PyTorch | mlsim | difference | peak |")
    print("|---|---|---|---|---|---|")
    for name, optimizer, measured, step, _ in _steps():
        found = step.peak.total
        where = f"{step.peak.phase} {step.peak.layer}".strip()
        print(
            f"| {name} | {optimizer} | {measured / 1e6:.2f} MB | {found / 1e6:.2f} MB "
            f"| {100 * (found / measured - 1):+.2f} % | {where} |"
        )


def _steps() -> Iterator[tuple[str, str, int, TrainingStep, int]]:
    """Yield network, optimizer, bytes measured, the step counted, and samples."""
    for name, module, inputs, targets, told in cases():
        graph = read_module(module, **told, training=True)
        for optimizer, (build, states) in OPTIMIZERS.items():
            measured = peak_of_a_step(module, inputs, targets, build(module.parameters()))
            step = TrainingStep(graph, batch_size=len(inputs), element_bytes=4, states=states)
            yield name, optimizer, measured, step, len(inputs)


def _csv() -> None:
    """Print the table that the package ships, which a chapter shows."""
    print("id,network,model,optimizer,batch_size,measured,counted,unit,software,source")
    software = f"PyTorch {torch.__version__.partition('+')[0]}"
    for number, (name, optimizer, measured, step, samples) in enumerate(_steps(), start=1):
        network = name.partition(",")[0]
        cells = (f"MEM-{number:03}", network, ZOO.get(network, ""), optimizer.lower(), samples)
        sizes = (int(measured), int(step.peak.total), "B", software, "authors2026memory")
        print(*cells, *sizes, sep=",")


if __name__ == "__main__":
    main()
