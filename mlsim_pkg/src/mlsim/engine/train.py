"""`Engine.train` and `Engine.optimal_size`: what training takes, how large a model should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.precision import Precision
from mlsim.solvers.training.checks import Asked, scenario
from mlsim.solvers.training.training import Training
from mlsim.systems import Cluster, System
from mlsim.workloads.adapters import LoRA
from mlsim.workloads.model import Model, Network
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.solvers.training.choices import OptimalSize


def train(
    model: Model | str,
    hardware: Device | System | Cluster | str,
    *,
    global_batch: Any,
    devices: int | None = None,
    micro_batch: Any = None,
    sequence_tokens: Any = None,
    tokens: Any = None,
    precision: str | Precision | None = None,
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
    optimizer: str | None = None,
    samples: Any = None,
    adapters: LoRA | None = None,
    reserve: float = 0.1,
    estimate: str = "roofline",
    software: str | None = None,
    search: bool = False,
    check_memory: bool = True,
    **given: Any,
) -> Training:
    """Predict what training a model takes: a step's time and memory, and a whole run.

    Computed kernel by kernel: the forward pass, recomputation, the backward
    pass, communication, the pipeline, and the optimizer step. A network of layers, such as
    ResNet-50, is trained by data parallelism: each device takes its samples through all of it.

    Parameters
    ----------
    model
        A language model, or a network of layers; a record, its name, or its file.
    hardware
        A device, a system, a cluster, a name, or a TOML file.
    global_batch, micro_batch
        Sequences, or samples of a network, in a step, after which the weights are updated;
        those that a device processes at one time: by default one sequence, or all of a
        device's samples.
    devices
        How many train together; by default the product of the parallel sizes.
    sequence_tokens
        Tokens in a sequence; by default 4,096, or the model's context if shorter.
    tokens, samples
        Tokens of the whole run, for its days, device-hours and cost; of a network, its samples.
    precision, gradients
        Number format of the arithmetic ("bf16" if left out, and the answer says that it
        was; "fp8": only the matrix products of the layers; all else stays in 16 bits),
        and of the gradients (by default
        that of the weights, in 16 bits; "fp32" is Megatron-LM's default).
    tensor_parallel, pipeline_parallel, data_parallel, context_parallel,
    expert_parallel, interleaved, sequence_parallel
        Devices that share each matrix; pipeline stages; copies of the model (by
        default what `devices` leaves); devices that share each sequence; groups
        of devices that share the experts, to each of which a token is sent once;
        parts of the model on each stage;
        whether the operators between the matrices are sharded as well.
    shard
        What the copies shard: "none", "zero1" (optimizer state), "zero2" (and
        gradients), "zero3" (and weights, as in FSDP). Of a network, the first two.
    optimizer
        Of a network: "sgd", "momentum" (if left out) or "adam". Of a language model, "adam".
    adapters
        To fine-tune with low-rank adapters: `LoRA(rank=16)`, or `QLoRA(rank=16)` beside a model
        in 4 bits, with `targets` if not all matrices of the layers have one. All else is
        frozen: it has no gradients and no optimizer state.
    recompute
        "none", "selective" (what lies between the products of attention), "full".
    attention, dropout
        "flash", or "standard", which writes its scores to memory; whether there
        is dropout.
    overlap
        Share of communication that overlaps with computing: one number, or one
        each for "exchange" (within a stage), "pipeline" and "gradient". 0 by
        default.
    collective
        "ring", "hierarchical" or "tree"; "auto" is a ring within a node, and
        two levels beyond it.
    mean_time_to_failure, checkpoint_bandwidth, restart_time
        Of one device; of all devices together; until training goes on. Each
        with its unit; without the first, failures are not counted.
    price
        Of one device, such as "2 USD/h".
    reserve
        Share of each device's memory to keep free for everything else.
    estimate
        "roofline" (datasheet rates, no launch overhead), "calibrated", or "bound": the least
        time that a step can take, by its arithmetic and the bytes that it must move.
    search
        Whether to find the fastest layout that fits, instead of giving one. It
        varies tensor, pipeline and data parallelism, micro-batch, interleaving,
        sharding and recomputation.
    software
        Of the calibrated estimate: the class of program that runs it, as
        `mlsim.software.classes` lists them: "framework" by default. A few of its terms
        are fitted to published results; "kernels" adds nothing.
    check_memory
        Whether to refuse the times of a run that does not fit in memory.
    **given
        Any quantity of the vocabulary, in place of what the data or the
        equations say. It may not contradict the other arguments.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If an argument is not allowed or contradicts another, or the sizes don't
        divide the model, the batch or the devices.
    DoesNotFitError
        If no layout fits, or a time is asked of a run that does not fit.
    UnsupportedPrecisionError, NotMeasuredError
        As for `serve`.

    >>> from mlsim import Engine
    >>> training = Engine.train(model="Llama3_8B", hardware="HGX_H100", global_batch=64,
    ...                         sequence_tokens=8192, devices=8, shard="zero3",
    ...                         recompute="full")
    >>> f"{training.step_time:.1f}"
    '5.7 s'
    >>> from mlsim import QLoRA
    >>> tuned = Engine.train(model="Llama3_8B", hardware="L4", global_batch=16,
    ...                      sequence_tokens=2048, adapters=QLoRA(rank=16), recompute="full")
    >>> f"{tuned.memory_required.to('GB'):.1f}, {tuned.value('trained_share'):.2%}"
    '8.4 GB, 0.52%'
    >>> images = Engine.train(model="ResNet50", hardware="HGX_H100", global_batch=3200,
    ...                       devices=8, precision="fp16")
    >>> f"{images.step_time:.0f}, {images.throughput:,.0f} images/s"
    '47 ms, 67,487 images/s'
    """
    found = resolve.model(model)
    network = isinstance(found, Network)
    asked = Asked.of(
        model=found if network else resolve.transformer(model),
        hardware=resolve.cluster(hardware),
        global_batch=global_batch,
        devices=devices,
        micro_batch=micro_batch,
        sequence_tokens=sequence_tokens,
        tokens=tokens,
        samples=samples,
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
        optimizer=optimizer,
        adapters=adapters,
        reserve=reserve,
        estimate=estimate,
        software=software,
        given=given,
    )
    if network:
        from mlsim.solvers.training.network import NetworkTraining, network_scenario

        if search:
            raise InvalidValueError(
                f"search=True has nothing to choose: {asked.model.name} is a network of layers, "
                "which is trained by data parallelism. Leave search out."
            )
        return NetworkTraining(network_scenario(asked), check_memory=check_memory)
    if search:
        from mlsim.solvers.training.choices import search as find_layout

        return find_layout(asked)
    return Training(scenario(asked), check_memory=check_memory)


def optimal_size(*, training_flops: Any, tokens_per_parameter: Any = None) -> OptimalSize:
    """Compute the best size of a dense model for an amount of work, and its tokens.

    Parameters
    ----------
    training_flops
        Work of the whole run, such as "1e24 FLOP".
    tokens_per_parameter
        Their ratio, such as "20 token/parameter"; by default what experiments
        found best.

    Raises
    ------
    InvalidValueError, UnitError
        If a value can't be.

    >>> from mlsim import Engine
    >>> print(Engine.optimal_size(training_flops="1.2e20 FLOP"))
    1.2e+20 FLOP train 1 billion parameters on 20 billion tokens
    """
    from mlsim.solvers.training.choices import optimal_size as best_size

    return best_size(training_flops, tokens_per_parameter)
