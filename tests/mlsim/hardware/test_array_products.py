"""Products and networks on a systolic array: as the simulation, and by hand."""

from __future__ import annotations

import pytest

from mlsim import Models
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError
from mlsim.hardware.array_products import array_cost, network_on_array
from mlsim.hardware.systolic import DATAFLOWS, multiply


@pytest.mark.parametrize("rest", DATAFLOWS)
def test_it_is_what_the_simulation_counts(rest: str) -> None:
    inputs = [[r + k for k in range(7)] for r in range(5)]
    weights = [[k - n for n in range(4)] for k in range(7)]
    run = multiply(inputs, weights, rows=3, columns=3, rest=rest)
    cost = array_cost(5, 7, 4, side=3, rest=rest)
    for name in ("cycles", "use", "weight_reads", "input_reads", "output_moves"):
        assert getattr(cost, name) == pytest.approx(getattr(run, name)), name


def test_the_tpu_paper_finds_a_larger_array_slower() -> None:
    """600 x 600 weights: 18 us on 256 x 256, 32 us on 512 x 512 [jouppi2017tpu].

    A step loads a tile, with its empty cells: four times as much for twice the side.
    """
    loaded = [EQUATIONS["weight_tiles"](600, 600, side, side) * side**2 for side in (256, 512)]
    assert loaded[1] / loaded[0] == pytest.approx(32 / 18)
    small, large = (array_cost(1, 600, 600, side=side) for side in (256, 512))
    assert large.use < small.use


def test_networks_on_an_array() -> None:
    resnet = network_on_array(Models.ResNet50, side=128, batch_size=8)
    mobile = network_on_array(Models.MobileNetV2, side=128, batch_size=8)
    assert resnet.depthwise_share == 0
    assert 0.5 < resnet.use < 1
    assert mobile.use < 0.05 * resnet.use
    assert mobile.depthwise_share > 0.9
    # The multiply-adds are the network's own.
    work = mobile.use * mobile.cycles * 128**2 / 8
    assert 2 * work == pytest.approx(Models.MobileNetV2.flop_count)


def test_a_convolution_in_groups_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="neither one matrix product nor a depthwise"):
        network_on_array(Models.AlexNet, side=128)


@pytest.mark.parametrize("change", [{"rows": 0}, {"depth": 1.5}, {"columns": -1}, {"side": True}])
def test_what_is_no_size_is_refused(change: dict[str, int]) -> None:
    given = {"rows": 2, "depth": 2, "columns": 2, "side": 2, **change}
    with pytest.raises(InvalidValueError, match=f"{next(iter(change))} must be a whole number"):
        array_cost(given["rows"], given["depth"], given["columns"], side=given["side"])
