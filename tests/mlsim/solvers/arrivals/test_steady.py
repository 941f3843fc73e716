"""The closed forms: their limits, and the run of a scheduler beside them."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine
from mlsim.equations import arrivals


@pytest.mark.parametrize("use", [0.1, 0.5, 0.9])
def test_the_wait_of_a_queue_has_its_textbook_values(use: float) -> None:
    """M/M/1 waits rho / (mu - lambda); M/D/1 half as long."""
    assert arrivals.queue_wait(use, 1.0, 1.0) == pytest.approx(use / (1 - use))
    assert arrivals.queue_wait(use, 1.0, 0.0) == pytest.approx(use / (1 - use) / 2)


def test_a_queue_of_single_tokens_waits_as_m_d_1() -> None:
    """A random queue with one server, simulated here, against the equation."""
    import numpy as np

    gaps = np.random.default_rng(0).exponential(1 / 0.6, 400_000)
    wait, waits = 0.0, []
    for gap in gaps:
        wait = max(0.0, wait + 1.0 - gap)
        waits.append(wait)
    assert np.mean(waits) == pytest.approx(arrivals.queue_wait(0.6, 1.0, 0.0), rel=0.03)


def test_without_load_nobody_waits() -> None:
    assert arrivals.queue_wait(1e-12, 1.0, 1.0) == pytest.approx(0, abs=1e-9)
    assert arrivals.steady_first_token(0.05, 0.01, 0.04, 0.0, 0.01, 0.0, 1, 0.01, 0.0) == 0.05


@pytest.mark.parametrize(("prompt", "output"), [(512, 128), (2000, 300), (4000, 1000), (100, 20)])
@pytest.mark.parametrize("share", [0.1, 0.4, 0.7])
def test_closed_forms_agree_with_the_run(prompt: int, output: int, share: float) -> None:
    """Within a quarter; of short answers, of which many come and go in a step, up to half load."""
    if output < 100 and share > 0.5:
        return
    asked: dict[str, Any] = {
        "model": "Llama3_8B",
        "hardware": "H100",
        "prompt_tokens": prompt,
        "output_tokens": output,
        "estimate": "calibrated",
    }
    most = Engine.load(**asked, burst=1).value("saturation_rate")
    loaded = Engine.load(**asked, rate=float(f"{share * most:.3g}"), requests=3000)
    assert loaded.steady is not None
    for closed, ran in (
        ("steady_first_token", "time_to_first_token"),
        ("token_interval", "time_per_output_token"),
        ("request_latency", "request_latency"),
    ):
        assert loaded.steady.value(closed) == pytest.approx(loaded.value(ran), rel=0.25)


@pytest.mark.parametrize("prompt", [100, 512, 3000])
@pytest.mark.parametrize("users", [1, 4, 64])
def test_the_opening_burst_waits_as_long_as_in_a_run(prompt: int, users: int) -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "prompt_tokens": prompt}
    closed = Engine.load(**asked, users=users, requests=2 * users).steady
    assert closed is not None
    ran = Engine.load(**asked, burst=users).value("time_to_first_token")
    assert closed.value("burst_first_token") == pytest.approx(ran, rel=0.12)


def test_it_saturates_where_the_run_does() -> None:
    """A burst is answered at the rate beyond which a queue grows."""
    loaded = Engine.load(
        model="Llama3_8B", hardware="H100", burst=4000, prompt_tokens=512, output_tokens=128
    )
    assert loaded.value("request_rate") == pytest.approx(loaded.value("saturation_rate"), rel=0.1)


def test_each_closed_form_explains_itself() -> None:
    loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=5)
    assert loaded.steady is not None
    told = str(loaded.steady.explain("steady_first_token"))
    assert "prompt_time" in told
    assert "agrawal2024sarathi" in told
