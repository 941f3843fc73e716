"""`Engine.train` and `Engine.optimal_size`: what training takes, how large a model should be."""

from __future__ import annotations

from typing import Any

from mlsim.hardware import Device
from mlsim.precision import Precision
from mlsim.solvers.training.optimal_size import OptimalSize, optimal_size as best_size
from mlsim.solvers.training.search import search as find_layout
from mlsim.solvers.training.training import Training
from mlsim.solvers.training.validate import Asked, run
from mlsim.systems import Cluster, System
from mlsim.workloads.model import Model
from mlsim.zoo import resolve


def train(
    *,
    model: Model | str,
    hardware: Device | System | Cluster | str,
    global_batch: Any,
    devices: int | None = None,
    micro_batch: Any = 1,
    sequence_tokens: Any = None,
    tokens: Any = None,
    precision: str | Precision = "bf16",
    gradients: str | Precision | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    data_parallel: int | None = None,
    context_parallel: int = 1,
    expert_parallel: int = 1,
    interleaved: int = 1,
    sequence_parallel: bool = False,
    shard: str = "none",
    recompute: str = "selective",
    attention: str = "flash",
    dropout: bool = False,
    overlap: Any = 0.0,
    collective: str = "auto",
    mean_time_to_failure: Any = None,
    checkpoint_bandwidth: Any = None,
    restart_time: Any = None,
    price: Any = None,
    reserve: float = 0.1,
    estimate: str = "roofline",
    search: bool = False,
    check_memory: bool = True,
    **given: Any,
) -> Training:
    """Predict what training a language model takes: time, memory, and a whole run.

    Kernel by kernel: each operator forward, again if its result was not kept,
    and backward; what devices send; the pipeline; the update.

    Parameters
    ----------
    model
        As for `serve`.
    hardware
        A device, a system, a cluster, a name, or a TOML file.
    global_batch, micro_batch
        Sequences after which weights are updated; sequences that a device
        takes through at one time.
    devices
        How many train together; as many as the parallel sizes make if left out.
    sequence_tokens
        Tokens of a sequence; 4,096 if left out, or the model's context if it is shorter.
    tokens
        Tokens of the whole run, for its days, device-hours and cost.
    precision, gradients
        Format of computing ("fp8": matrices of layers only, all else is kept
        in 16 bits), and of gradients (as the weights if left out).
    tensor_parallel, pipeline_parallel, data_parallel, context_parallel,
    expert_parallel, interleaved, sequence_parallel
        Devices that share each matrix; stages; copies (what the devices leave
        if left out); devices that share each sequence; groups over which
        experts are spread; parts of the model on each stage; whether what lies
        between matrices is divided as well.
    shard
        What copies divide: "none", "zero1" (optimizer state), "zero2" (and
        gradients), "zero3" (and weights, as in FSDP).
    recompute
        "none", "selective" (what lies between the products of attention), "full".
    attention, dropout
        "flash", or "standard", whose scores go through memory; whether there is
        dropout.
    overlap
        Part of sending that hides behind computing: a share, or one each of
        "exchange" (within a stage), "pipeline" and "gradient". None by default.
    collective
        "ring", "hierarchical" or "tree"; "auto" is a ring within a node, and
        two levels beyond it.
    mean_time_to_failure, checkpoint_bandwidth, restart_time
        Of one device, of all together, and until computing goes on, with their
        units; without the first, no failures are counted.
    price
        Of one device, such as "2 USD/h".
    reserve
        Share of each device's memory that is kept for everything else.
    estimate
        "roofline" (datasheet rates, nothing to start) or "calibrated".
    search
        Whether to look for the fastest layout that fits, in place of the one
        given; tensor, pipeline and data parallelism, micro-batch, interleaving,
        sharding and recomputation are varied.
    check_memory
        Whether a run that does not fit is refused its times.
    **given
        Any quantity of the vocabulary, to override what the data or the
        equations say.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If an argument can't be, or sizes don't divide model, batch or devices.
    DoesNotFitError
        If no layout fits, or times are asked of a run that does not fit.
    UnsupportedPrecisionError, NotMeasuredError
        As for `serve`.

    >>> from mlsim import Engine
    >>> training = Engine.train(model="Llama3_8B", hardware="HGX_H100", global_batch=64,
    ...                         sequence_tokens=8192, devices=8, shard="zero3",
    ...                         recompute="full")
    >>> f"{training.step_time:.1f}"
    '5.7 s'
    """
    asked = Asked(
        model=resolve.transformer(model),
        hardware=resolve.cluster(hardware),
        devices=devices,
        global_batch=global_batch,
        micro_batch=micro_batch,
        sequence_tokens=sequence_tokens,
        tokens=tokens,
        precision=precision,
        gradients=gradients,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        data_parallel=data_parallel,
        context_parallel=context_parallel,
        expert_parallel=expert_parallel,
        interleaved=interleaved,
        sequence_parallel=sequence_parallel,
        shard=shard,
        recompute=recompute,
        attention=attention,
        dropout=dropout,
        overlap=overlap,
        collective=collective,
        mean_time_to_failure=mean_time_to_failure,
        checkpoint_bandwidth=checkpoint_bandwidth,
        restart_time=restart_time,
        price=price,
        reserve=reserve,
        estimate=estimate,
        given=given,
    )
    return find_layout(asked) if search else Training(run(asked), check_memory=check_memory)


def optimal_size(*, training_flops: Any, tokens_per_parameter: Any = None) -> OptimalSize:
    """Tell how large a dense model should be for an amount of work, and its tokens.

    Parameters
    ----------
    training_flops
        Work of the whole run, such as "1e24 FLOP".
    tokens_per_parameter
        Their ratio, such as "20 token/parameter"; what experiments found best if
        it is left out.

    Raises
    ------
    InvalidValueError, UnitError
        If a value can't be.

    >>> from mlsim import Engine
    >>> print(Engine.optimal_size(training_flops="1.2e20 FLOP"))
    1.2e+20 FLOP train 1 billion parameters on 20 billion tokens
    """
    return best_size(training_flops, tokens_per_parameter)
