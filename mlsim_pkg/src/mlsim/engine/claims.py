"""`Engine.check_claim`: whether a claimed speed can be true, and what would make it true."""

from __future__ import annotations

from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.hardware import Device
from mlsim.parameters import check
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.claims.checked import Checked, check as judge
from mlsim.solvers.claims.claim import (
    METRICS,
    MFU,
    SHORTEST_OUTPUT,
    SHORTEST_PROMPT,
    Machine,
    NetworkMachine,
    claims,
)
from mlsim.solvers.formats import formats
from mlsim.systems import System
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

# By how much a claim may pass the estimate and still be plausible.
TOLERANCE = 0.25
# Tokens of a training sequence where nobody says how many.
TRAINED_TOKENS = 2048


def check_claim(
    model: Model | str,
    hardware: Device | System | str,
    *,
    devices: int | None = None,
    batch_size: Any = None,
    prompt_tokens: Any = None,
    output_tokens: Any = None,
    precision: str | Precision | None = None,
    weights: str | Precision | None = None,
    activations: str | Precision | None = None,
    kv_cache: str | Precision | None = None,
    tokens_per_second: Any = None,
    tokens_per_second_per_user: Any = None,
    time_per_output_token: Any = None,
    time_to_first_token: Any = None,
    samples_per_second: Any = None,
    mfu: Any = None,
    tolerance: float = TOLERANCE,
) -> Checked:
    """Judge a claim about speed: impossible, possible or plausible, and why.

    What the claim does not state is taken in its favor: the shortest texts, the batch
    that helps most, devices that work as one and send nothing, cache for texts that are
    halfway through their output. So "impossible" holds for every layout, but not for a
    program that does something else: several tokens a step (speculative decoding), prompts
    whose cache was kept or is shared, fewer operations than the model has, weights or cache
    in the memory of the host, tokens that prefer the same experts.

    Parameters
    ----------
    model, hardware
        As for `serve`; a network with a fixed input is judged by samples per second.
    devices
        How many work together: by default one device, or all of a system.
    batch_size
        Sequences that run at the same time, such as the stated concurrency.
    prompt_tokens, output_tokens
        Tokens of each prompt (of training, tokens of a sequence) and of each answer.
    precision, weights, activations, kv_cache
        Number formats, as for `serve`.
    tokens_per_second, tokens_per_second_per_user
        New tokens while decoding, of all users together or of each: a number.
    time_per_output_token, time_to_first_token
        Text with a unit, such as "12 ms".
    samples_per_second
        Images, or texts that an encoder reads: a number.
    mfu
        Of training: a share such as 0.45, or "45%".
    tolerance
        By how much a plausible claim may pass the estimate: 0.25 by default, about the
        median error of the calibrated estimate.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If nothing is claimed, or an argument is not allowed; says what is.
    UnsupportedPrecisionError
        If the device can't compute in the format.

    >>> from mlsim import Engine
    >>> checked = Engine.check_claim(model="Llama2_70B", hardware="MI300X", precision="fp16",
    ...                              batch_size=1, tokens_per_second=314)
    >>> checked.verdict, checked.term, round(checked.excess, 1)
    ('impossible', 'reading the weights', 8.1)
    >>> checked.remedies.batch, checked.remedies.format, checked.remedies.devices
    (9, None, 9)
    """
    claimed = claims(
        {
            "tokens_per_second": tokens_per_second,
            "tokens_per_second_per_user": tokens_per_second_per_user,
            "time_per_output_token": time_per_output_token,
            "time_to_first_token": time_to_first_token,
            "samples_per_second": samples_per_second,
            "mfu": mfu,
        }
    )
    if not claimed:
        raise InvalidValueError(
            f"nothing is claimed. Give at least one of {', '.join(METRICS)}, such as "
            "tokens_per_second=314."
        )
    found, where = resolve.model(model), resolve.hardware(hardware)
    device = where.device if isinstance(where, System) else where
    stated: dict[str, Any] = {
        "device": device,
        "devices": _devices(devices, where),
        "batch": None if batch_size is None else check("batch_size", batch_size),
    }
    allowed = check("tolerance", tolerance)
    if not isinstance(found, Transformer):
        given = (prompt_tokens, output_tokens, weights, activations, kv_cache)
        if any(each is not None for each in given):
            raise WrongKindError(
                f"{found.name} has a fixed input: tokens, and formats other than precision, "
                "belong to language models. Leave them out."
            )
        kind = find_precision("fp16" if precision is None else precision)
        network = resolve.network(found)
        return judge(NetworkMachine(network, formats=kind, **stated), claimed, allowed)
    chosen = formats(
        precision,
        weights,
        activations,
        kv_cache,
        device=device,
        released=found.released,
        stated=found.stated_format,
    )
    training = all(each.metric.name == MFU for each in claimed)
    shortest = min(TRAINED_TOKENS, found.context - SHORTEST_OUTPUT) if training else SHORTEST_PROMPT
    machine = Machine(
        found,
        formats=chosen,
        training=training,
        prompt=shortest if prompt_tokens is None else check("prompt_tokens", prompt_tokens),
        output=(
            SHORTEST_OUTPUT
            if output_tokens is None
            else max(check("output_tokens", output_tokens), SHORTEST_OUTPUT)
        ),
        **stated,
    )
    _check_kind(found, claimed)
    return judge(machine, claimed, allowed)


def _check_kind(model: Transformer, claimed: Any) -> None:
    """Refuse what is claimed of another kind of model."""
    for claim in claimed:
        if claim.metric.decodes and not model.decoder:
            raise WrongKindError(
                f"{model.name} is an encoder and generates nothing: claim samples_per_second."
            )
        if claim.metric.name == "samples_per_second" and model.decoder:
            raise WrongKindError(
                f"{model.name} generates tokens: claim tokens_per_second, or "
                "tokens_per_second_per_user."
            )


def _devices(value: Any, where: Device | System) -> int:
    there = where.devices if isinstance(where, System) else None
    if value is None:
        return there or 1
    check("devices", value, "check_claim")
    if there and value > there:
        raise InvalidValueError(
            f"{where.name} has {there} devices, not {value}. Name the device itself, such as "
            f"hardware={where.device.key.rpartition('.')[2]!r}, to have any number of it."  # type: ignore[union-attr]
        )
    return int(value)
