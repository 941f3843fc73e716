"""The closed forms: their limits, and the run of a scheduler beside them."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine
from mlsim.equations import arrivals


def test_a_queue_of_single_tokens_waits_as_m_d_1() -> None:
    """A random queue with one server, simulated here, against the equation."""
    import numpy as np

    gaps = np.random.default_rng(0).exponential(1 / 0.6, 400_000)
    wait, waits = 0.0, []
    for gap in gaps:
        wait = max(0.0, wait + 1.0 - gap)
        waits.append(wait)
    assert np.mean(waits) == pytest.approx(arrivals.queue_wait(0.6, 1.0, 0.0), rel=0.03)


ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}


@pytest.mark.parametrize(
    ("prompt", "output", "share", "short"),
    [
        *((512, 128, 0.4, 0.02), (512, 128, 0.7, 0.06), (2000, 300, 0.7, 0.06)),
        # Of short answers many come and go in a step: the form knows the mean of them alone.
        *((4000, 1000, 0.4, 0.05), (100, 20, 0.1, 0.03), (100, 20, 0.4, 0.15)),
    ],
)
def test_closed_forms_are_a_little_below_the_run(
    prompt: int, output: int, share: float, short: float
) -> None:
    """They know no queue and no chance but that of arrivals: the more load, the more they lack."""
    asked = ASKED | {"prompt_tokens": prompt, "output_tokens": output, "estimate": "calibrated"}
    most = Engine.load(**asked, burst=1).value("saturation_rate")
    loaded = Engine.load(**asked, rate=float(f"{share * most:.3g}"), requests=3000)
    assert loaded.steady is not None
    for closed, ran in (
        ("steady_first_token", "time_to_first_token"),
        ("token_interval", "time_per_output_token"),
        ("request_latency", "request_latency"),
    ):
        ratio = loaded.steady.value(closed) / loaded.value(ran)
        assert 1 - short < ratio < 1.001, closed


@pytest.mark.parametrize(
    ("prompt", "users", "within"),
    # Up to one step it is exact. Of several the form takes equal ones, the run cuts prompts.
    [(100, 4, 1e-4), (512, 64, 0.02), (3000, 1, 1e-4), (3000, 4, 0.11), (3000, 64, 0.04)],
)
def test_the_opening_burst_waits_as_long_as_in_a_run(
    prompt: int, users: int, within: float
) -> None:
    closed = Engine.load(**ASKED, prompt_tokens=prompt, users=users, requests=2 * users).steady
    assert closed is not None
    ran = Engine.load(**ASKED, prompt_tokens=prompt, burst=users).value("time_to_first_token")
    assert closed.value("burst_first_token") == pytest.approx(ran, rel=within)


def test_it_saturates_where_the_run_does() -> None:
    """A burst is answered at the rate beyond which a queue grows, but for its beginning and end."""
    loaded = Engine.load(
        model="Llama3_8B", hardware="H100", burst=4000, prompt_tokens=512, output_tokens=128
    )
    assert 0.94 < loaded.value("request_rate") / loaded.value("saturation_rate") < 1


def test_each_closed_form_explains_itself() -> None:
    loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=5)
    assert loaded.steady is not None
    told = str(loaded.steady.explain("steady_first_token"))
    assert "prompt_time" in told
    assert "agrawal2024sarathi" in told
