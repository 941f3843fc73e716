"""`Engine.serve` and `Engine.fit`: what a language model's users wait for, and what fits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.hardware import Device
from mlsim.precision import Precision
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.checks import configured, requested
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.serving import Serving
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.steps import SIZES, Offload, Parallelism, Speculation
from mlsim.zoo import resolve

if TYPE_CHECKING:
    import pandas

    from mlsim.solvers.serving.fit import Row
    from mlsim.systems import Cluster, System
    from mlsim.systems.system import PrefillPool
    from mlsim.workloads.adapters import LoRA


def serve(
    model: Model | str,
    hardware: Device | System | Cluster | str,
    *,
    batch_size: Any = 1,
    prompt_tokens: Any = 512,
    output_tokens: Any = None,
    precision: str | Precision | None = None,
    weights: str | Precision | None = None,
    activations: str | Precision | None = None,
    kv_cache: str | Precision | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    data_parallel: int = 1,
    expert_parallel: int = 1,
    context_parallel: int = 1,
    expert_imbalance: float | str = 1.0,
    block_tokens: int = 16,
    chunk_tokens: int = 8192,
    reserve: float = 0.1,
    estimate: str = "roofline",
    software: str | None = None,
    prefix_share: Any = 0.0,
    prefix_count: int | None = None,
    speculation: Speculation | None = None,
    offload: Offload | None = None,
    adapters: LoRA | None = None,
    adapter_count: int | None = None,
    prefill: PrefillPool | None = None,
    check_memory: bool = True,
    **given: Any,
) -> Serving:
    """Predict how long users of a language model wait, and how many can be served.

    The model first processes a batch of prompts (prefill), then generates one
    token per sequence and step (decode). Each step is computed operator by
    operator. Batch and lengths may be arrays.

    Parameters
    ----------
    model
        A record of the zoo, its name, a TOML file, or the `config.json` of
        a model (or the folder that holds it).
    hardware
        A device, a system of devices, a cluster of such nodes, a name, or a TOML file.
    batch_size
        Sequences served together.
    prompt_tokens, output_tokens
        Tokens in each prompt, and new tokens generated for it (128 by default;
        0 for an encoder).
    precision
        Number format of weights, activations and KV cache, or a short name
        such as "w4a16" or "w8a8kv8". By default what the model was released in,
        such as DeepSeek-V3's FP8; else 16 bits: bf16, or fp16 on a device without
        bf16. The answer says which, and why.
    weights, activations, kv_cache
        The format of one of them, where it differs from `precision`.
    tensor_parallel, pipeline_parallel, data_parallel, expert_parallel
        Devices that share each matrix; pipeline stages that share the layers;
        copies of the model that share the batch; groups of devices that share
        the experts (formed from the tensor and data parallel devices). A token is
        sent once to each device that has some of its experts. In a cluster, tensor
        parallel devices are neighbors, then stages, then copies.
    context_parallel
        Devices that share each sequence: in prefill the tokens of the prompt, in decode the
        cache. What they pass round is not overlapped.
    expert_imbalance
        Tokens of the busiest device with experts over the mean of all: 1 is even,
        "uniform" estimates it for tokens that choose by chance, which is the least to expect.
    block_tokens
        Tokens in a block of the paged KV cache.
    chunk_tokens
        Most prompt tokens that are processed together (chunked prefill).
    reserve
        Share of each device's memory to keep free for everything else.
    estimate
        "roofline": operator by operator at datasheet rates (the default);
        "bound": each step as a whole, moving only the weights in use and the
        KV cache, and sending nothing; no published result on record beats it;
        "calibrated": operator by operator at the rates measured on the device
        and its links, with the overhead of launching each.
    software
        Of the calibrated estimate: the class of program that runs it, as
        `mlsim.software.classes` lists them: "engine" by default. A few of its terms are
        fitted to published results; "kernels" adds nothing.
    prefix_share
        Share of each prompt's tokens whose keys and values are in the cache already (prefix
        caching). Prefill works on the others, which still look at the cached ones.
    prefix_count
        Different prefixes among the sequences of a copy, each kept once: 1 where all have the
        same, such as a system prompt. By default each sequence keeps its own.
    speculation
        Speculative decoding, such as `Speculation(draft="Llama3_8B", tokens=4,
        acceptance=0.7)` of `mlsim.workloads`. The answer's `speculation` tells where it pays.
    offload
        What lies in the host's memory, such as `Offload(cache=0.3)` of `mlsim.workloads`. The
        link's rate is the device's on record, or `host_link_bandwidth` where it is given.
    adapters, adapter_count
        Low-rank adapters that are served beside the model, such as `LoRA(rank=16,
        targets="attention")`, and how many different ones; each sequence has one of them.
    prefill
        A pool of other devices that reads the prompts; all else here is then of those that
        decode. Answers with a `SplitServing`.
    check_memory
        Whether to refuse the times of a service that does not fit in memory.
    **given
        Any quantity of the vocabulary, in place of what the data or the
        equations say, such as memory_bandwidth="3 TB/s". It may not
        contradict the other arguments.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If an argument is not allowed or contradicts another, a sequence is
        longer than the model's context, or the parallel sizes don't divide
        the model or the system.
    UnsupportedPrecisionError
        If the device can't compute in a format.
    NotMeasuredError
        If there are no measurements of the device or its links for a
        calibrated estimate.

    >>> from mlsim import Engine
    >>> serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=[1, 64],
    ...                        prompt_tokens=2048)
    >>> [f"{time:.1f}" for time in serving.time_per_output_token.to("ms").magnitude]
    ['4.6', '9.9']
    """
    where = configuration(
        resolve.transformer(model),
        resolve.cluster(hardware),
        (precision, weights, activations, kv_cache),
        (tensor_parallel, pipeline_parallel, data_parallel, context_parallel, expert_parallel),
        estimate=estimate,
        software=software,
        expert_imbalance=expert_imbalance,
    )
    asked = requested(
        where,
        batch_size=batch_size,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        block_tokens=block_tokens,
        chunk_tokens=chunk_tokens,
        reserve=reserve,
        given=given,
        **switched((prefix_share, prefix_count), speculation, offload, (adapters, adapter_count)),
    )
    if prefill is None:
        return Serving(asked, check_memory=check_memory)
    from mlsim.engine.split import pools
    from mlsim.solvers.serving.split import SplitServing

    return SplitServing(pools(asked, prefill), check_memory=check_memory)


def configuration(
    model: Transformer,
    hardware: Device | System | Cluster,
    kinds: tuple[Any, ...],
    sizes: tuple[Any, ...],
    *,
    estimate: str,
    software: str | None,
    expert_imbalance: float | str,
) -> Service:
    """Return what all requests of a model on its devices share, checked once.

    `kinds` are the formats of all, of weights, of activations and of the KV cache; `sizes` those
    of the layout, as `SIZES` names them.

    Raises
    ------
    MlsimError
        As `serve`.
    """
    asked = (model, hardware, estimate, software, expert_imbalance, *kinds, *sizes)
    try:
        return _configured(*asked)
    except TypeError:
        # What can't be hashed is refused in words, or asked of once.
        return _configured.__wrapped__(*asked)


# True equals 1, and is no size.
@lru_cache(maxsize=256, typed=True)
def _configured(
    model: Transformer, hardware: Any, estimate: str, software: Any, imbalance: Any, *rest: Any
) -> Service:
    chosen = formats(
        *rest[:4],
        device=hardware if isinstance(hardware, Device) else hardware.device,
        released=model.released,
        stated=model.stated_format,
    )
    return configured(
        model=model,
        hardware=hardware,
        formats=chosen,
        parallelism=Parallelism(**dict(zip(SIZES, rest[4:], strict=True))),
        estimate=estimate,
        software=software,
        expert_imbalance=imbalance,
    )


def switched(
    prefixes: tuple[Any, Any], speculation: Any, offload: Any, adapters: tuple[Any, Any]
) -> dict[str, Any]:
    """Return what is switched on by name, with the record of a draft; nothing if nothing is.

    Prefixes have a share and a count, adapters a kind and a count.
    """
    share, count = prefixes
    off = all(each is None for each in (count, speculation, offload, *adapters))
    if off and type(share) is float and not share:
        return {}
    if isinstance(speculation, Speculation) and speculation.draft is not None:
        speculation = replace(speculation, draft=resolve.transformer(speculation.draft))
    return {
        "prefix_share": share,
        "prefix_count": count,
        "speculation": speculation,
        "offload": offload,
        "adapters": adapters[0],
        "adapter_count": adapters[1],
    }


def fit(
    model: Model | str,
    hardware: Device | System | str,
    *,
    prompt_tokens: Any = 512,
    output_tokens: Any = None,
    precision: Any = None,
    tensor_parallel: int | None = None,
    pipeline_parallel: int = 1,
    expert_parallel: int = 1,
    reserve: float = 0.1,
) -> pandas.DataFrame:
    """List the number formats in which a language model fits, and its speed in each.

    Returns a tidy table, one row per format. `weight_memory` (B) is that of
    each device; `largest_batch` counts sequences of these lengths, and
    `longest_context` the tokens of one sequence alone. Times (s) are those
    of one sequence, `tokens_per_second` is that of the largest batch. A format
    that does not fit keeps its row: `feasible` is False, and `reason` says how
    many bytes are missing and what would fit instead.

    Parameters
    ----------
    precision
        A format or a list of them, as for `serve`. By default, all useful
        formats in which the device can compute, with a KV cache in 16 bits,
        and in 8 bits where a 16-bit cache is too large for the model's full
        context.
    tensor_parallel
        Devices that share each matrix; by default as many as the system has
        and the model allows.
    model, hardware, prompt_tokens, output_tokens, pipeline_parallel,
    expert_parallel, reserve
        As for `serve`.

    Raises
    ------
    MlsimError
        As for `serve`, but a format that the device lacks is a row.

    >>> from mlsim import Engine
    >>> table = Engine.fit(model="Llama3_70B", hardware="L40S")
    >>> [name for name in table[table.feasible].precision]
    ['w4a16', 'w4a16, KV fp8']
    """
    from mlsim.solvers.serving.fit import as_table, assumptions

    asked, made = fit_rows(
        model,
        hardware,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        precision=precision,
        parallelism=Parallelism(
            tensor=tensor_parallel or 1, pipeline=pipeline_parallel, expert=expert_parallel
        ),
        widest=tensor_parallel is None,
        reserve=reserve,
    )
    table = as_table(made)
    table.attrs["assumptions"] = assumptions(asked, made)
    return table


def fit_rows(
    model: Model | str,
    hardware: Device | System | str,
    *,
    parallelism: Parallelism,
    widest: bool,
    prompt_tokens: Any = 512,
    output_tokens: Any = None,
    precision: Any = None,
    reserve: float = 0.1,
) -> tuple[Service, list[Row]]:
    """Return what `fit` asks, and its rows, which need no library for tables."""
    from mlsim.solvers.serving.fit import question, rows

    asked = question(
        model=resolve.transformer(model),
        hardware=resolve.hardware(hardware),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        parallelism=parallelism,
        widest=widest,
        reserve=reserve,
    )
    return asked, rows(asked, precision)
