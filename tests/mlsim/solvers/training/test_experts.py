"""Who holds the same experts, and what is worked on outside a window."""

from __future__ import annotations

import pytest
from training_runs import INSIDE, LAYERS, MIXTURE, WIDE, gpt, train

from mlsim.workloads.blocks import Attention

EXPERT = 8 * WIDE**2


def test_gradients_of_experts_are_added_up_among_those_that_hold_them() -> None:
    """Eight copies over which experts are spread: each expert has one owner, or two.

    Tokens of all copies go to it, so that its gradient is whole where it is; only owners of the
    same experts have something to add up.
    """
    for copies, groups in ((8, 8), (8, 4), (4, 4)):
        run = train(model=MIXTURE, data_parallel=copies, expert_parallel=groups)
        held = LAYERS * 8 * EXPERT / groups
        dense = run.value("device_parameters") - held
        owners = copies // groups
        hand = 4 * dense * (copies - 1) / copies / INSIDE
        hand += 4 * held * (owners - 1) / owners / INSIDE
        assert run.value("gradient_time") == pytest.approx(hand, rel=1e-12)


def test_scores_outside_a_window_are_counted_as_they_are_worked_on() -> None:
    """Standard attention computes the whole square and masks it, window or not.

    What is counted for utilization is what the kernels do.
    """
    model = gpt(attention=Attention(heads=8, kv_heads=8, head_size=8, window=32))
    for recompute in ("none", "selective", "full"):
        run = train(model=model, attention="standard", recompute=recompute)
        rows = zip(run.value("flops"), run.run.table.operators, strict=True)
        done = sum(each * row.all_repeats for each, row in rows) * run.value("micro_batches")
        assert run.value("hardware_flops") == pytest.approx(done, rel=1e-12)
