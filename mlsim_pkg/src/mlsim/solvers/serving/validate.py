"""A question about a service, checked: the request against the model, the layout against both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.software import Software
from mlsim.solvers import calibrated
from mlsim.solvers.formats import Formats
from mlsim.solvers.inputs import check_estimate, validate, validate_given
from mlsim.solvers.question import Question, check_consistent, check_shares
from mlsim.solvers.serving.phase import equations_for, step_question
from mlsim.solvers.serving.result_names import givable
from mlsim.solvers.serving.service import ASKED, Service
from mlsim.solvers.serving.spread_checks import check_context_parallel, check_imbalance, check_nodes
from mlsim.solvers.serving.switch_checks import Asked, checked
from mlsim.systems import Cluster, System
from mlsim.systems.torus import check_exchange
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

_ALONE = Parallelism()
_NOTHING = Asked()
# What is asked for by number, beside the quantities that are given.
_FIXED = (*ASKED, "data_parallel", "pipeline_parallel", "tokens_per_step")
_SHARES = ("memory_bound_share", "compute_bound_share", "network_share")

_LARGER: dict[type, str] = {
    System: "a larger system or a cluster: one of the zoo, a .toml file, or "
    "Cluster('mine', node, nodes=..., link_bandwidth='400 Gb/s')",
    Cluster: "a larger cluster",
}
# New tokens of a decoder where nobody says how many.
OUTPUT_TOKENS = 128


def service(
    *,
    model: Transformer,
    hardware: Device | System | Cluster,
    batch_size: Any,
    prompt_tokens: Any,
    output_tokens: Any,
    formats: Formats,
    parallelism: Parallelism = _ALONE,
    block_tokens: Any = 16,
    chunk_tokens: Any = 8192,
    reserve: Any = 0.1,
    estimate: str = "roofline",
    software: Software | str | None = None,
    expert_imbalance: Any = 1.0,
    given: Mapping[str, Any] | None = None,
    switches: Asked = _NOTHING,
) -> Service:
    """Check a question about a service; see `Engine.serve` for its parts.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    check_estimate(estimate)
    device = hardware if isinstance(hardware, Device) else hardware.device
    made = Service(
        model=model,
        device=device,
        system=None if isinstance(hardware, Device) else hardware,
        parallelism=_divided(parallelism, model, hardware),
        formats=formats,
        estimate=estimate,
        software=calibrated.made_by(software, estimate, "serve"),
        expert_imbalance=check_imbalance(expert_imbalance, parallelism, model),
        batch_size=validate("batch_size", batch_size, whole=True),
        prompt_tokens=validate("prompt_tokens", prompt_tokens, whole=True),
        output_tokens=_output(model, output_tokens),
        block_tokens=_one("block_tokens", block_tokens),
        chunk_tokens=_one("chunk_tokens", chunk_tokens),
        reserve_share=_reserve(reserve),
        given=validate_given(given, givable(estimate)) if given else {},
    )
    _check_context(made)
    on = checked(
        switches,
        made,
        partial(
            service,
            hardware=hardware,
            batch_size=batch_size,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            block_tokens=block_tokens,
            chunk_tokens=chunk_tokens,
            reserve=reserve,
            estimate=estimate,
            software=software,
        ),
    )
    if on.on:
        made = replace(made, switches=on)
    _check_given(made)
    return made


def _one(name: str, value: Any) -> float:
    found = validate(name, value, whole=True)
    if getattr(found, "ndim", 0):
        raise InvalidValueError(f"{name} must be one number, not an array.")
    return float(found)


def _reserve(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise InvalidValueError(
            f"reserve must be a share of at least 0 and below 1, such as 0.1; not {value!r}."
        )
    return float(value)


def _output(model: Transformer, value: Any) -> Any:
    if model.decoder:
        return validate("output_tokens", OUTPUT_TOKENS if value is None else value, whole=True)
    if value is None or (isinstance(value, (int, float)) and value == 0):
        return 0.0
    raise WrongKindError(
        f"{model.name} is an encoder: it reads a text at once and generates nothing. "
        "Leave output_tokens out."
    )


def _divided(
    parallelism: Parallelism, model: Transformer, hardware: Device | System | Cluster
) -> Parallelism:
    """Refuse sizes that are none, or don't divide the model, or need more devices."""
    sizes = {
        "tensor_parallel": parallelism.tensor,
        "pipeline_parallel": parallelism.pipeline,
        "data_parallel": parallelism.data,
        "context_parallel": parallelism.context,
        "expert_parallel": parallelism.expert,
    }
    # True and 1.0 equal 1, and are no sizes.
    if parallelism == _ALONE and all(type(size) is int for size in sizes.values()):
        return parallelism
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidValueError(f"{name} must be a whole number from 1 up, not {size!r}.")
    model.operators(parallelism)  # refuses what does not divide the model
    check_context_parallel(parallelism, model)
    there = 1 if isinstance(hardware, Device) else hardware.devices
    if parallelism.devices > there:
        del sizes["expert_parallel"]  # within the others
        product = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        have = (
            f"{hardware.name} has {there:,}. Use fewer, or {_LARGER[type(hardware)]}."
            if not isinstance(hardware, Device)
            else f"{hardware.name} is one device. Give a system of them: one of the zoo, a "
            f".toml file, or System('my node', device, devices={parallelism.devices}, "
            "link_bandwidth='450 GB/s')."
        )
        raise InvalidValueError(f"{product} needs {parallelism.devices} devices; {have}")
    if isinstance(hardware, Cluster):
        check_nodes(hardware, parallelism)
    check_exchange(hardware, parallelism.expert, parallelism.tensor)
    return parallelism


def _check_given(service: Service) -> None:
    """Refuse given quantities that contradict each other, the request, or what can be."""
    if not service.given:
        return
    _ = service.shape_with({})  # refuses arrays that don't broadcast
    fixed = {name: value for name, value in service.known.items() if name in _FIXED}
    check_consistent(equations_for(service.variant), service.given, fixed)
    for step in _steps(service):
        check_shares(step.evaluate(*_SHARES), service.given)


def _steps(service: Service) -> tuple[Question, ...]:
    """Return the steps that are checked: the prompt, and of a decoder the first new token."""
    prompt = service.prompt_tokens
    prefill = step_question(service, "prefill", *service.prefill)
    if not service.model.decoder:
        return (prefill,)
    return (prefill, step_question(service, "decode", 1.0, prompt))


def _check_context(service: Service) -> None:
    """Refuse a sequence that is longer than the model can read."""
    model = service.model
    total = service.prompt_tokens + service.output_tokens
    longest = float(total.max() if getattr(total, "ndim", 0) else total)
    if math.isfinite(longest) and longest > model.context:
        raise InvalidValueError(too_long(model, longest))


def too_long(model: Transformer, tokens: float) -> str:
    """Say that a sequence of so many tokens is longer than a model can read."""
    return (
        f"a sequence of {tokens:,.0f} tokens (prompt and output) is longer than the context "
        f"of {model.name}, {model.context:,}. Shorten it; if you know that the model was "
        "extended, give a config.json that says so, or dataclasses.replace(model, context=...)."
    )
