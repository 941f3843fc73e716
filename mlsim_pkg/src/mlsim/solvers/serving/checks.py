"""A question about a service, checked: the request against the model, the layout against both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED, check, one_number, validate, validate_given
from mlsim.solvers.formats import Formats
from mlsim.solvers.question import check_consistent, check_shares
from mlsim.solvers.serving.operators_table import UNIFORM
from mlsim.solvers.serving.service import ASKED, OFF, Service
from mlsim.solvers.serving.steps import equations_for, givable, step_question
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

if TYPE_CHECKING:
    from mlsim.software import Software
    from mlsim.systems import Cluster, System

_ALONE = Parallelism()
# What is asked for by number, beside the quantities that are given.
_FIXED = (*ASKED, "data_parallel", "pipeline_parallel", "tokens_per_step")
_SHARES = ("memory_bound_share", "compute_bound_share", "network_share")

# New tokens of a decoder where nobody says how many.
OUTPUT_TOKENS = 128
# Below this a size needs no second look.
_LARGE = 2_000_000_000


_OF_CONFIGURATION = (
    *("model", "hardware", "formats", "parallelism"),
    *("estimate", "software", "expert_imbalance"),
)


def service(**asked: Any) -> Service:
    """Check a question about a service: the arguments of `configured` and of `requested`.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    of = {name: asked.pop(name) for name in _OF_CONFIGURATION if name in asked}
    return requested(configured(**of), **asked)


def configured(
    *,
    model: Transformer,
    hardware: Device | System | Cluster,
    formats: Formats,
    parallelism: Parallelism = _ALONE,
    estimate: str = "roofline",
    software: Software | str | None = None,
    expert_imbalance: Any = 1.0,
) -> Service:
    """Return the smallest request of a model on its devices: what any request shares, checked.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    check("estimate", estimate)
    for name, size in parallelism.sizes.items():
        check(name, size)
    if parallelism != _ALONE:
        from mlsim.solvers.serving.layouts import check_layout

        check_layout(parallelism, model, hardware)
    if estimate == CALIBRATED or software is not None:
        from mlsim.solvers.calibrated import software_of

        software = software_of(software, estimate, "serve")
    return Service(
        model=model,
        device=hardware if isinstance(hardware, Device) else hardware.device,
        system=None if isinstance(hardware, Device) else hardware,
        parallelism=parallelism,
        formats=formats,
        estimate=estimate,
        software=software,
        expert_imbalance=check_imbalance(expert_imbalance, parallelism, model),
    )


def requested(
    of: Service,
    *,
    batch_size: Any,
    prompt_tokens: Any,
    output_tokens: Any = None,
    block_tokens: Any = 16,
    chunk_tokens: Any = 8192,
    reserve: Any = 0.1,
    given: Mapping[str, Any] | None = None,
    **switches: Any,
) -> Service:
    """Return a configuration as it is asked for a request, checked.

    `switches` are `prefix_share`, `prefix_count`, `speculation` (with the draft's record),
    `offload`, `adapters` and `adapter_count`.

    Raises
    ------
    MlsimError
        As `Engine.serve`.
    """
    if not given:
        _ = of.base  # once for all requests
    plain = type(reserve) is float and 0 <= reserve < 1  # the usual case, first
    made = of.requested(
        batch_size=_size("batch_size", batch_size),
        prompt_tokens=_size("prompt_tokens", prompt_tokens),
        output_tokens=_output(of.model, output_tokens),
        block_tokens=_one("block_tokens", block_tokens),
        chunk_tokens=_one("chunk_tokens", chunk_tokens),
        reserve_share=reserve if plain else check("reserve", reserve),
    )
    if given:
        made = replace(made, given=validate_given(given, givable(of.estimate)))
    made.check_length()
    _ = made.base  # refuses formats, links and estimates that the device does not have
    if switches or given:
        from mlsim.solvers.serving.switch_checks import switched

        on = switched(made, **switches)
        made = made if on is OFF else replace(made, switches=on)
        _check_given(made)
    return made


def _size(name: str, value: Any) -> Any:
    # The usual case, first.
    plain = type(value) is int and 0 < value < _LARGE
    return float(value) if plain else validate(name, value, whole=True)


def _one(name: str, value: Any) -> float:
    plain = type(value) is int and 0 < value < _LARGE
    return float(value) if plain else one_number(name, value, whole=True)


def _output(model: Transformer, value: Any) -> Any:
    if model.decoder:
        return float(OUTPUT_TOKENS) if value is None else _size("output_tokens", value)
    if value is None or (isinstance(value, (int, float)) and value == 0):
        return 0.0
    raise WrongKindError(
        f"{model.name} is an encoder: it reads a text at once and generates nothing. "
        "Leave output_tokens out."
    )


def _check_given(service: Service) -> None:
    """Refuse given quantities that contradict each other, the request, or what can be."""
    if not service.given:
        return
    _ = service.shape_with({})  # refuses arrays that don't broadcast
    fixed = {name: value for name, value in service.known.items() if name in _FIXED}
    check_consistent(equations_for(service.variant), service.given, fixed)
    steps = {"prefill": service.prefill}
    if service.model.decoder:
        steps["decode"] = (1.0, service.prompt_tokens)
    for name, tokens in steps.items():
        step = step_question(service, name, *tokens)
        check_shares(step.evaluate(*_SHARES), service.given)


def check_imbalance(value: Any, parallelism: Parallelism, model: Transformer) -> float | str:
    """Return the tokens of the busiest device over the mean: a number, or the rule for it.

    Raises
    ------
    InvalidValueError
        If it is no number that can be, or no experts are spread.
    """
    found: float | str = check("expert_imbalance", value)
    if found == 1.0:
        return found
    spread_over = parallelism.expert
    if not model.experts or spread_over == 1:
        raise InvalidValueError(
            f"expert_imbalance = {value!r}, but {model.name} has its experts on one group of "
            "devices, which all have as much to do. Set expert_parallel, or leave it out."
        )
    if found != UNIFORM and float(found) > spread_over:
        raise InvalidValueError(
            f"expert_imbalance = {value!r} is more than expert_parallel = {spread_over}: one "
            f"device can't have more than all tokens. It is from 1 to {spread_over}."
        )
    return found
