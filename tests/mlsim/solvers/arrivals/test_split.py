"""Two pools under load: stations in tandem, against closed forms, limits, and one another."""

from __future__ import annotations

from typing import Any

import pytest
from sampled import sampled

from mlsim import Engine, Systems
from mlsim.errors import InvalidValueError
from mlsim.solvers.arrivals.split import SplitLoadedService
from mlsim.systems import PrefillPool

ASKED = {"model": "Llama3_8B", "hardware": Systems.HGX_H100, "precision": "bf16"}
ASKED |= {"prompt_tokens": 2048, "output_tokens": 64}


def loaded(pool: Any = None, **arguments: Any) -> SplitLoadedService:
    found = Engine.load(**{**ASKED, "seed": 1, **arguments}, prefill=pool or PrefillPool())
    assert isinstance(found, SplitLoadedService)
    return found


def test_alone_a_request_is_that_of_the_pools() -> None:
    found = loaded(users=1, requests=3, constant=True)
    served = Engine.serve(**ASKED, prefill=PrefillPool())
    first, last = (served.value(each) for each in ("time_to_first_token", "generation_latency"))
    assert found.value("time_to_first_token") == pytest.approx(first, rel=1e-3)
    assert found.value("request_latency") == pytest.approx(last, rel=0.01)


CASES = [(use, *each) for use in (0.3, 0.7) for each in ((1, 0.06), (2, 0.08), (4, 0.12))]


@pytest.mark.parametrize(("use", "copies", "tolerance"), sampled(CASES, 3))
def test_closed_forms_and_the_run_agree(use: float, copies: int, tolerance: float) -> None:
    pool = PrefillPool(hardware="H100", copies=copies, link_bandwidth="50 GB/s")
    rate = use * copies / 0.031
    found = loaded(pool, rate=rate, requests=9000, running_limit=1024)
    for run, form in (
        ("time_to_first_token", "split_first_token"),
        ("time_per_output_token", "time_per_output_token"),
        ("request_latency", "request_latency"),
        ("running_requests", "running_requests"),
    ):
        assert found.value(run) == pytest.approx(found.steady.value(form), rel=tolerance)


@pytest.mark.parametrize("prompt", sampled([512, 6000, 12000, "lognormal 1000 0.8"], 2))
def test_they_agree_on_short_long_and_mixed_prompts(prompt: Any) -> None:
    """Sixteen share a step, or a step is cut within one; what a host adds counts once."""
    asked = {"prompt_tokens": prompt, "output_tokens": 16, "requests": 9000}
    asked |= {"estimate": "calibrated", "data_parallel": 4}
    pool = PrefillPool(hardware="H100", link_bandwidth="50 GB/s")
    most = loaded(pool, **asked, rate=0.01).value("saturation_rate")
    found = loaded(pool, **asked, rate=0.6 * most)
    form = found.steady.value("split_first_token")
    assert found.value("time_to_first_token") == pytest.approx(form, rel=0.1)


def test_prompts_that_come_together_are_read_together() -> None:
    """A burst of eight: four fill a step of 8,192 tokens, then four more; none is read alone."""
    found = loaded(burst=8, output_tokens=2)
    reading = found.reading
    first = [each for _, run in found.runs for each in run.first]
    step = reading.together(4.0)
    assert sorted(first) == pytest.approx([step] * 4 + [2 * step] * 4, rel=1e-3)
    assert found.value("time_to_first_token") == pytest.approx(1.5 * step, rel=1e-3)
    assert step < 4 * reading.mean


def test_caches_of_one_step_go_one_after_another() -> None:
    slow = PrefillPool(hardware="H100", link_bandwidth="1 GB/s")
    found = loaded(slow, burst=4, output_tokens=2)
    (_, run) = found.runs[0]
    gaps = [after - before for before, after in zip(run.finished, run.finished[1:], strict=False)]
    # 2,048 tokens of 128 KiB at 1 GB/s.
    assert gaps == pytest.approx([2048 * 131072 / 1e9] * 3, rel=0.05)


def test_littles_law_holds_in_both_pools() -> None:
    """Requests in line are those that come, times their wait; so are those that decode."""
    found = loaded(PrefillPool(copies=2), rate=45, requests=6000, running_limit=1024)
    rate, runs = found.value("request_rate"), [run for _, run in found.runs]
    reading = sum(sum(run.first) - sum(run.arrived) for run in runs)
    decoding = sum(sum(run.finished) - sum(run.first) for run in runs)
    # Each prompt is in line, then in steps: with all in steps as busy as the readers are.
    assert 0 < found.value("waiting_requests") / rate < reading / 6000
    there = found.value("running_requests") / rate
    assert there == pytest.approx(decoding / 6000, rel=0.05)
    assert there < decoding / 6000 - found.station.sending(2048.0) / 2


def test_the_slowest_part_says_where_it_saturates() -> None:
    found = loaded(rate=5)
    packed = found.steady.value("packed_prompt_time")
    assert found.value("saturation_rate") == pytest.approx(1 / packed)
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
