"""Who holds the same experts, and what is worked on outside a window."""

from __future__ import annotations

import pytest
from training_runs import INSIDE, LAYERS, MIXTURE, WIDE, gpt, train

from mlsim import Engine
from mlsim.errors import InvalidValueError
from mlsim.workloads.blocks import Attention

EXPERT = 8 * WIDE**2


@pytest.mark.parametrize(("copies", "groups"), [(8, 8), (8, 4), (4, 4)])
def test_gradients_of_experts_are_added_up_among_those_that_hold_them(
    copies: int, groups: int
) -> None:
    """Eight copies over which experts are spread: each expert has one owner, or two.

    Tokens of all copies go to it, so that its gradient is whole where it is; only
    owners of the same experts have something to add up.
    """
    run = train(model=MIXTURE, data_parallel=copies, expert_parallel=groups)
    held = LAYERS * 8 * EXPERT / groups
    dense = run.value("device_parameters") - held
    owners = copies // groups
    hand = 2 * 2 * dense * (copies - 1) / copies / INSIDE
    hand += 2 * 2 * held * (owners - 1) / owners / INSIDE
    assert run.value("gradient_time") == pytest.approx(hand, rel=1e-12)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_scores_outside_a_window_are_counted_as_they_are_worked_on(recompute: str) -> None:
    """Standard attention computes the whole square and masks it, window or not.

    What is counted for utilization is what the kernels do.
    """
    attention = Attention(heads=8, kv_heads=8, head_size=8, window=32)
    run = train(model=gpt(attention=attention), attention="standard", recompute=recompute)
    rows = zip(run.value("flops"), run.run.table.operators, strict=True)
    done = sum(each * row.all_repeats for each, row in rows) * run.value("micro_batches")
    assert run.value("hardware_flops") == pytest.approx(done, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"precision": "int8"}, "training needs floating-point numbers"),
        ({"gradients": "int8"}, "in 16 bits or more"),
        ({"gradients": "fp8"}, "in 16 bits or more"),
    ],
)
def test_training_needs_numbers_fine_enough(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        train(**given)


@pytest.mark.parametrize("given", [{"tensor_parallel": 4}, {"shard": "zero3"}, {"micro_batch": 2}])
def test_a_search_refuses_what_it_chooses(given: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError, match=f"search=True chooses {next(iter(given))} itself"):
        Engine.train(
            model="Llama3_8B",
            hardware="HGX_H100",
            global_batch=8,
            search=True,
            **given,  # type: ignore[arg-type]
        )
