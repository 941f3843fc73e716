"""What a step of training holds, beside the peak that PyTorch reaches on this processor."""

from __future__ import annotations

import itertools
import os

import pytest

pytest.importorskip("torch")

from live_memory import OPTIMIZERS, cases, peak_of_a_step

from mlsim.workloads.graph.training import TrainingStep
from mlsim.workloads.pytorch import read_module

CASES = {name.partition(",")[0]: rest for name, *rest in cases()}


PAIRS = list(itertools.product(CASES, OPTIMIZERS))
if not os.environ.get("MLSIM_JUDGE"):  # each network once, with one optimizer or the other
    PAIRS = list(zip(CASES, itertools.cycle(OPTIMIZERS), strict=False))


@pytest.mark.parametrize(("name", "optimizer"), PAIRS)
def test_the_peak_of_training_is_within_two_percent(name: str, optimizer: str) -> None:
    module, inputs, targets, told = CASES[name]
    build, states = OPTIMIZERS[optimizer]
    measured = peak_of_a_step(module, inputs, targets, build(module.parameters()))
    graph = read_module(module, **told, training=True)
    step = TrainingStep(graph, batch_size=len(inputs), element_bytes=4, states=states)
    assert step.peak.total == pytest.approx(measured, rel=0.02)


def test_a_function_that_writes_over_what_it_needs_keeps_a_copy() -> None:
    """ReLU6 needs its input, which it has written over: one copy more than ReLU."""
    import torch
    from torch import nn

    def net(function: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), function, nn.Flatten())

    inputs, targets = torch.randn(4, 3, 32, 32), torch.zeros(4, dtype=torch.int64)
    peaks = []
    for function in (nn.ReLU(inplace=True), nn.ReLU6(inplace=True), nn.SiLU(inplace=True)):
        module = net(function)
        build, states = OPTIMIZERS["momentum"]
        measured = peak_of_a_step(module, inputs, targets, build(module.parameters()))
        graph = read_module(module, shape=(3, 32, 32), training=True)
        peak = TrainingStep(graph, batch_size=4, element_bytes=4, states=states).peak.total
        assert peak == pytest.approx(measured, rel=0.02)
        peaks.append(peak)
    assert peaks[1] == peaks[2] == peaks[0] + 4 * 4 * 64 * 30 * 30
