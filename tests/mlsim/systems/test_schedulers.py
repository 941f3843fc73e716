"""Schedulers and pools: limits of an engine, of somebody, on a device, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim import Hardware
from mlsim.errors import InvalidValueError, MlsimError, UnknownNameError
from mlsim.systems.pools import PrefillPool
from mlsim.systems.schedulers import FOLDER, _read, scheduler
from mlsim.workloads.parallelism import Parallelism

VLLM = scheduler("vllm")
TEXT = (FOLDER / "vllm.toml").read_text("utf-8")


def limits(of: Any) -> tuple[int, int]:
    return (of.running_limit, of.tokens_per_step)


def test_the_engines_by_their_names() -> None:
    for name in ("vllm", "vLLM", "v-llm", VLLM):
        assert scheduler(name) is VLLM
    assert scheduler("TensorRT_LLM") is scheduler("tensorrt-llm")
    with pytest.raises(UnknownNameError, match="Did you mean 'sglang'"):
        scheduler("sglong")
    with pytest.raises(InvalidValueError, match="such as 'vllm', not 7"):
        scheduler(7)  # type: ignore[arg-type]


def test_limits_are_those_of_the_device_until_somebody_sets_them() -> None:
    """From 70 GiB up, but not on an A100, vLLM runs 1,024 and 8,192 tokens; else 256 and 2,048."""
    cloud = Hardware.Cloud
    found = [limits(VLLM.on(each)) for each in (cloud.H100, cloud.A100, cloud.L4, cloud.MI300X)]
    assert found == [(1024, 8192), (256, 2048), (256, 2048), (1024, 8192)]
    set_to = VLLM.with_limits(running_limit=77)
    assert set_to.limited == ("running_limit",)
    assert [limits(set_to.on(each)) for each in (cloud.H100, cloud.L4)] == [(77, 8192), (77, 2048)]
    both = set_to.with_limits(tokens_per_step=555)
    assert (both.limited, limits(both.on(cloud.H100))) == (
        ("running_limit", "tokens_per_step"),
        (77, 555),
    )
    assert limits(scheduler("sglang").on(cloud.H100)) == (2048, 8192)


def test_patience_is_none_or_what_is_said() -> None:
    plain = VLLM.with_patience()
    assert (plain.poll_steps, plain.wait_steps, plain.wait_share) == (1, 0, 0.0)
    for share in (0, 0.3, 1):
        found = VLLM.with_patience(poll_steps=5, wait_steps=7, wait_share=share)
        assert (found.poll_steps, found.wait_steps, found.wait_share) == (5, 7, share)
    for wrong in ({"wait_share": 1.1}, {"wait_share": -0.1}, {"poll_steps": 0}, {"wait_steps": -1}):
        with pytest.raises(InvalidValueError, match=f"{next(iter(wrong))} must be"):
            VLLM.with_patience(**wrong)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("running_limit = 256", "running_limit = 0", ":5: running_limit must be 1 or more, not 0"),
        ("block_tokens = 16", "block_tokens = 0", ":7: block_tokens must be 1 or more, not 0"),
        ("steps_ahead = 1", "steps_ahead = 2", ":8: steps_ahead must be 0 or 1, not 2"),
        ("mixed = true", "mixt = true", ":3: unknown key 'mixt'. Did you mean 'mixed'?"),
        ('where = "_set', 'were = "_set', "unknown key 'were'. Did you mean 'where'?"),
        ('memory = "70 GiB"', 'memory = "70 GB/s"', "a value in GB/s was given where B is"),
        ('but = ["a100"]\n', "", "but is missing"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace("running_limit = 256", "running_limit = 1"), "utf-8")
    # One request at a time is a limit, too.
    assert (_read(path).running_limit, _read(path).own[1].running_limit) == (1, 1)
    path.write_text(TEXT.replace(old, new, 1), "utf-8")
    with pytest.raises(MlsimError) as e:
        _read(path)
    assert words in str(e.value)


def test_a_pool_is_copies_of_a_layout() -> None:
    sizes = {"tensor_parallel": 2, "pipeline_parallel": 3, "data_parallel": 4}
    sizes |= {"expert_parallel": 8, "context_parallel": 1}
    pool = PrefillPool(copies=5, **sizes)
    assert pool.parallelism == Parallelism(tensor=2, pipeline=3, data=4, expert=8, context=1)
    assert PrefillPool(context_parallel=7).parallelism == Parallelism(context=7)
    alone = PrefillPool()
    assert (alone.copies, alone.batch_size, alone.parallelism.devices) == (1, 1, 1)
    assert (alone.link_bandwidth, alone.overlap) == (None, False)
    for name in ("copies", "batch_size", *sizes):
        with pytest.raises(InvalidValueError, match=f"{name} of a PrefillPool must be a whole"):
            PrefillPool(**{name: 0})
    with pytest.raises(InvalidValueError, match="must be True or False, not 1"):
        PrefillPool(overlap=1)  # type: ignore[arg-type]
