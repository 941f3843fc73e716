"""The memory of a served model as a tank that users fill, as a live figure.

The limit and the calibrated estimate are compiled as one question. A model whose heads share keys
and values is also asked as if each head had its own, as older models have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.engine import Engine
from mlsim.engine.bands import band
from mlsim.errors import InvalidValueError
from mlsim.live.compiled import compiled
from mlsim.live.figure import Figure, figure
from mlsim.live.handles import Choice, Handle
from mlsim.workloads.blocks import Attention
from mlsim.zoo import spaces

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from mlsim.hardware import Device
    from mlsim.measured.inference import ServingMeasurement
    from mlsim.solvers.serving.serving import Serving
    from mlsim.workloads.language import Transformer

_RESULTS = ("weight_memory", "activation_memory", "cache_memory", "memory_free", "largest_batch",
            "time_per_output_token", "user_token_rate", "decode_throughput",
            "output_throughput")  # fmt: skip
_WEIGHTS = {"bf16": "16 bits", "int8": "8 bits", "int4": "4 bits"}
_CACHE = {"bf16": "16 bits", "fp8": "8 bits"}
_PROMPTS = [2**each for each in range(7, 16)]
_LONGEST = 1024  # tokens of an answer


def tank(
    model: Transformer | str,
    hardware: Device | str,
    *,
    still: Drawing,
    users: int,
    prompt_tokens: int,
    output_tokens: int,
    software: str | None = None,
    measured: Sequence[ServingMeasurement] = (),
    guess: str = "",
) -> Figure:
    """Return a figure of what fills a device's memory, with the rates of a service beside it.

    Its handles are users and the tokens of their prompts and answers; its choices are KV heads, and
    bits of weights and of the cache.

    Parameters
    ----------
    model, hardware
        A language model whose weights are kept in 16 bits at the start, on one device.
    still
        The figure that stands where no script runs.
    users, prompt_tokens, output_tokens
        Where it starts.
    software
        What serves it, for the calibrated estimate.
    measured
        Services of this model on this device with 16 bits, by output tokens in a second, which
        readers can set.
    guess
        The name of the guess that opens it.

    Raises
    ------
    InvalidValueError
        If a measurement is of anything else.
    MlsimError
        As `Engine.serve`.

    >>> from matplotlib import pyplot
    >>> tank("Llama2_7B", "A100", still=pyplot.figure(), users=8, prompt_tokens=512,
    ...      output_tokens=128)
    <live figure tank: weights, kv_cache, batch_size, prompt_tokens, output_tokens>
    """
    model = spaces.Models.get(model) if isinstance(model, str) else model
    lengths: dict[str, Any] = {"prompt_tokens": prompt_tokens, "output_tokens": output_tokens}
    first = Engine.serve(model, hardware, **lengths)
    for each in measured:
        if not _is_of(each, first):
            raise InvalidValueError(
                f"measurement {each.id} is not of {first.model.name} on one {first.hardware.name} "
                "in 16 bits, or no rate of output tokens: leave it out."
            )
    heads = _heads(model)

    def question(*, estimate: str, kv_heads: str = "", **asked: Any) -> Serving:
        asked |= {"software": software} if estimate == "calibrated" else {}
        served = heads.get(kv_heads, (model, ""))[0]
        return Engine.serve(served, hardware, estimate=estimate, **asked)

    borrowed = question(estimate="calibrated", **lengths).loans
    limits = None if borrowed else band("decode", "rate", "calibrated")
    longest = max(output_tokens, min(_LONGEST, model.context // 2))
    prompts = sorted({prompt_tokens, *(each.prompt_tokens for each in measured),
                      *(each for each in _PROMPTS if each + longest <= model.context)})  # fmt: skip
    most = max(2 * int(first.value("largest_batch")), users, *(row.batch_size for row in measured))
    choices = [
        Choice("weights", _WEIGHTS, label="Weights"),
        Choice("kv_cache", _CACHE, label="KV cache"),
    ]
    if len(heads) > 1:
        words = {key: words for key, (_, words) in heads.items()}
        choices.insert(0, Choice("kv_heads", words, label="KV heads"))
    answer = compiled(
        question,
        results=_RESULTS,
        handles=[
            Handle("batch_size", 1, -(-most // 100) * 100, start=users, step=1, label="Users"),
            Handle("prompt_tokens", prompts[0], prompts[-1], start=prompt_tokens, unit="tokens",
                   values=prompts, digits=5, label="Prompt of each"),
            Handle("output_tokens", 2, longest, start=output_tokens, step=1, unit="tokens",
                   digits=5, label="Answer to each"),
        ],
        choices=[*choices, Choice("estimate", {each: each for each in ("bound", "calibrated")})],
    )  # fmt: skip
    return figure(
        "tank",
        still=still,
        handles=answer.handles,
        choices=choices,
        answer=answer,
        data={
            "band": limits and [limits.least, limits.most],
            "device": first.hardware.name,
            "capacity": float(first.value("memory_capacity")),
            "usable": float(first.value("usable_memory")),
            "measured": [
                {name: getattr(each, name) for name in ("batch_size", *lengths)}
                | {"rate": each.value, "words": each.software.partition(" ")[0]}
                for each in measured
            ],
        },
        label="Users and formats",
        guess=guess,
    )


def _heads(model: Transformer) -> dict[str, tuple[Transformer, str]]:
    """Return a model by its KV heads: as it is, and with those of each query head."""
    parts = model.attention
    if not isinstance(parts, Attention) or parts.kv_heads == parts.heads:
        return {}
    shared, heads = parts.kv_heads, parts.heads
    own = replace(model, name=f"{model.name} with {heads} KV heads",
                  attention=replace(parts, kv_heads=heads))  # fmt: skip
    return {
        str(shared): (model, f"{shared}, as released"),
        str(heads): (own, f"{heads}, one for each query head"),
    }


def _is_of(row: ServingMeasurement, service: Serving) -> bool:
    """Say whether a measurement is of a service's model and device, as the figure shows them."""
    return (
        spaces.Models.get(row.model) == service.model
        and spaces.Hardware.get(row.hardware) == service.hardware
        and (row.weights, row.kv_cache, row.devices, row.metric)
        == ("bf16", "bf16", 1, "output_throughput")
    )
