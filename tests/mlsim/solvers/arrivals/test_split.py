"""Two pools under load: stations in tandem, against closed forms, limits, and one another."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, Systems
from mlsim.errors import InvalidValueError
from mlsim.solvers.arrivals.split import SplitLoadedService
from mlsim.systems import PrefillPool

ASKED = {
    "model": "Llama3_8B",
    "hardware": Systems.HGX_H100,
    "prompt_tokens": 2048,
    "output_tokens": 64,
    "precision": "bf16",
    "seed": 1,
}


def loaded(pool: Any = None, **arguments: Any) -> SplitLoadedService:
    found = Engine.load(**{**ASKED, **arguments}, prefill=pool or PrefillPool())
    assert isinstance(found, SplitLoadedService)
    return found


def test_alone_a_request_is_that_of_the_pools() -> None:
    found = loaded(users=1, requests=3)
    served = Engine.serve(
        **{name: value for name, value in ASKED.items() if name != "seed"}, prefill=PrefillPool()
    )
    assert found.value("time_to_first_token") == pytest.approx(
        served.value("time_to_first_token"), rel=1e-3
    )
    assert found.value("request_latency") == pytest.approx(
        served.value("generation_latency"), rel=0.01
    )


@pytest.mark.parametrize(("copies", "tolerance"), [(1, 0.05), (2, 0.08), (4, 0.08)])
@pytest.mark.parametrize("use", [0.3, 0.7])
def test_closed_forms_and_the_run_agree(copies: int, use: float, tolerance: float) -> None:
    pool = PrefillPool(hardware="H100", copies=copies, link_bandwidth="50 GB/s")
    rate = use * copies / 0.031
    found = loaded(pool, rate=rate, requests=6000, running_limit=1024)
    for run, form in (
        ("time_to_first_token", "split_first_token"),
        ("request_latency", "request_latency"),
        ("running_requests", "running_requests"),
    ):
        assert found.value(run) == pytest.approx(found.steady.value(form), rel=tolerance)


def test_one_copy_is_a_queue_of_equal_prompts() -> None:
    found = loaded(rate=20)
    steady = found.steady
    service = steady.value("service_time")
    wait = 20 * service**2 / (2 * (1 - 20 * service))
    assert steady.value("split_first_token") == pytest.approx(service + wait)


def test_nobody_waits_where_there_is_no_load() -> None:
    found = loaded(rate=0.01, requests=30)
    assert found.value("time_to_first_token") == pytest.approx(
        found.steady.value("service_time"), rel=0.02
    )
    assert found.value("waiting_requests") == 0


def test_load_never_lowers_a_wait() -> None:
    waits = [loaded(rate=rate).value("time_to_first_token") for rate in (1, 8, 16, 28)]
    assert waits == sorted(waits)


def test_prompts_no_longer_delay_tokens() -> None:
    together = Engine.load(**{**ASKED, "rate": 10})
    apart = loaded(rate=10)
    assert apart.value("time_per_output_token") < together.value("time_per_output_token")


def test_all_tokens_come() -> None:
    found = loaded(PrefillPool(copies=2), burst=40, output_tokens="uniform 1 60", data_parallel=2)
    whole = sum(float(run.tokens) for _, run in found.runs)
    assert whole == found.loaded.requests.output_tokens.sum()
    assert found.value("answered_requests") == 40


def test_users_wait_for_both_pools() -> None:
    found = loaded(users=16, requests=320)
    cycle = found.value("request_latency")
    # Little's law: as many are under way as there are users.
    assert found.value("request_rate") * cycle == pytest.approx(16, rel=0.06)
    more = loaded(PrefillPool(copies=4), users=16, requests=320)
    assert more.value("time_to_first_token") < found.value("time_to_first_token")


def test_the_slowest_part_says_where_it_saturates() -> None:
    found = loaded(rate=5)
    assert found.value("saturation_rate") == pytest.approx(1 / found.steady.value("service_time"))
    with pytest.raises(InvalidValueError, match=r"prefill saturates at .* more copies in Prefill"):
        loaded(rate=50)
    slow = PrefillPool(hardware="H100", copies=4, link_bandwidth="1 GB/s")
    with pytest.raises(InvalidValueError, match=r"transfer saturates at .* a faster link"):
        loaded(slow, rate=20)
    with pytest.raises(InvalidValueError, match=r"decode saturates at .* more copies"):
        loaded(PrefillPool(copies=6), rate=100, running_limit=8)


def test_it_is_written_out() -> None:
    found = loaded(rate=5)
    assert "prefill on" in str(found)
    assert "closed form" in str(found)
    assert found.to_dict()["closed_form"]["split_first_token"]["unit"] == "s"
    assert "reading_use" in str(found.steady.explain("split_first_token"))
