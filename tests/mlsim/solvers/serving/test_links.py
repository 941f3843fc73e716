"""What devices send to one another, over which links, and what is left out if they don't."""

from __future__ import annotations

from typing import Any

import pytest
from language_models import tiny
from services import CHIP, NODE, by_hand, llama

from mlsim import Hardware, Models
from mlsim.errors import UnreachableError
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import System
from mlsim.workloads.blocks import Experts

# Seven links of 64 GB/s at each device, one to each other device.
MESH = System("Mesh", Hardware.Cloud.H100, devices=8, link_bandwidth="448 GB/s", topology="mesh")


def rates(serving: Serving) -> dict[str, float]:
    """Return the rate at which each operator that sends does so."""
    data = serving.decode.explain("network_time").to_dict()
    shared = {known["quantity"]: known["value"] for known in data["inputs"]}
    names = [each.name for each in serving.service.table if each.link_group]
    rows = {row["name"]: row for row in data["operators"]}
    return {
        name: rows[name].get("link_bandwidth", {}).get("value", shared["link_bandwidth"])
        for name in names
    }


# Which links.

PAIRS = {"all-reduce": 64e9, "gather of the output": 64e9}
EXPERTS = {"model": Models.Mixtral_8x7B}


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        # A pair uses one link, four devices three, all eight seven.
        ({"tensor_parallel": 2}, PAIRS),
        ({"tensor_parallel": 4}, {"all-reduce": 192e9, "gather of the output": 192e9}),
        ({"tensor_parallel": 8}, {"all-reduce": 448e9, "gather of the output": 448e9}),
        # One stage sends to the next, whatever happens within the stages.
        ({"pipeline_parallel": 8}, {"stage to stage": 64e9}),
        (
            {"tensor_parallel": 4, "pipeline_parallel": 2},
            {"all-reduce": 192e9, "gather of the output": 192e9, "stage to stage": 64e9},
        ),
        # Copies have no part in it.
        ({"tensor_parallel": 2, "data_parallel": 4}, PAIRS),
        # Tokens go to experts on all eight, sums stay within a pair.
        (
            {"tensor_parallel": 2, "data_parallel": 4, "expert_parallel": 8, **EXPERTS},
            {**PAIRS, "tokens to their experts and back": 448e9},
        ),
    ],
    ids=" ".join,
)
def test_a_group_of_a_mesh_has_its_own_links(
    layout: dict[str, Any], expected: dict[str, float]
) -> None:
    assert rates(llama(hardware=MESH, check_memory=False, **layout)) == pytest.approx(expected)
    # A switch has one rate for all.
    switched = rates(llama(hardware=NODE, check_memory=False, **layout))
    assert switched == dict.fromkeys(expected, 450e9)


def test_sending_on_a_mesh_by_hand() -> None:
    """Llama 3.1 8B over four devices in each of two stages, one token.

    65 sums of 4,096 numbers over four: each device sends 2 x 3/4 of 8,192 B, three
    links of 64 GB/s wide. Of 128,256 scores 3/4 are elsewhere, of 2 B each. From
    stage to stage go 8,192 B over one link.
    """
    serving = llama(hardware=MESH, tensor_parallel=4, pipeline_parallel=2)
    sums, scores, handed = 65 * 12_288 / 192e9, 192_384 / 192e9, 8_192 / 64e9
    assert serving.decode.value("total_network_time") == pytest.approx(
        sums + scores + handed, rel=1e-12
    )
    # A prompt of 2,048 tokens sends as much for each, but the last one's scores.
    assert serving.prefill.value("total_network_time") == pytest.approx(
        2048 * (sums + handed) + scores, rel=1e-12
    )


# How it is told.


def test_several_rates_are_a_column() -> None:
    serving = llama(hardware=MESH, tensor_parallel=4, pipeline_parallel=2)
    rows = {row["name"]: row for row in serving.decode.explain().to_dict()["operators"]}
    assert rows["all-reduce"]["link_bandwidth"] == {"value": 192e9, "unit": "B/s"}
    assert rows["stage to stage"]["link_bandwidth"] == {"value": 64e9, "unit": "B/s"}


def test_a_rate_that_is_given_is_that_of_all() -> None:
    what = {"hardware": MESH, "tensor_parallel": 4, "pipeline_parallel": 2}
    serving = llama(**what, link_bandwidth="100 GB/s")
    assert set(rates(serving).values()) == {100e9}
    assert serving.decode.value("total_network_time") == pytest.approx(
        (65 * 12_288 + 192_384 + 8_192) / 100e9, rel=1e-12
    )


# Where nothing is sent.

ALONE = ({}, {"hardware": NODE}, {"hardware": NODE, "data_parallel": 8}, {"estimate": "bound"})


@pytest.mark.parametrize("what", ALONE, ids=lambda each: " ".join(each) or "one device")
def test_nothing_that_is_sent_takes_no_equation(what: dict[str, Any]) -> None:
    serving = llama(**what)
    for step in (serving.prefill, serving.decode):
        assert step.value("total_network_time") == step.value("network_share") == 0
        assert step.shares["Network Bound"] == 0
        for name in ("link_bandwidth", "network_time", "operator_time"):
            with pytest.raises(UnreachableError, match="nothing gives link_bandwidth"):
                step.value(name)
        data = step.explain().to_dict()
        told = {each["quantity"] for each in (*data["inputs"], *data["steps"])}
        assert not told & {"network_time", "link_bytes", "link_bandwidth", "operator_time"}
    assert "network" not in str(serving.decode.explain())


def test_copies_that_share_their_experts_do_send() -> None:
    """Four copies with an expert each: of two tokens' vectors 3/4 go away and come back.

    2 layers x 2 ways x 2 experts x 3/4 x 4 numbers of 2 B at 8 B/s: 6 s for each of them.
    """
    model = tiny(experts=Experts(count=4, per_token=2, size=3), feed_forward=None)
    four = System("Slow four", CHIP, devices=4, link_bandwidth="8 B/s")
    what = {"model": model, "hardware": four, "batch_size": 4, "data_parallel": 4}
    assert by_hand(**what).decode.value("total_network_time") == 0
    assert by_hand(**what, expert_parallel=4).decode.value("total_network_time") == 6.0
