"""`anatomy`: what each layer of a network computes, holds and moves; and its views by name."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.parameters import check, validate
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.anatomy import limits
from mlsim.solvers.anatomy.anatomy import Anatomy
from mlsim.solvers.anatomy.layers import View
from mlsim.solvers.anatomy.limits import TrainingTime, time_of_epochs
from mlsim.workloads.graph import Graph
from mlsim.workloads.graph.language import graph as graph_of
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.zoo import resolve


def anatomy(
    model: Model | str | Any,
    *,
    batch_size: Any = 1,
    precision: str | Precision | None = None,
    hardware: Device | str | None = None,
    count: str = "flop",
    training: bool = False,
    optimizer: str = "momentum",
    estimate: str = "roofline",
    software: str | None = None,
    shape: Sequence[int] | None = None,
    tokens: Any = None,
    example: Any = None,
) -> Anatomy:
    """Take a network apart: shapes, parameters, operations, bytes and time of each layer.

    Parameters
    ----------
    model
        A record of the zoo, its name, the path of a TOML file or of a `config.json`, or a
        PyTorch module, which is read and never run.
    batch_size
        Samples that go through together.
    precision
        Number format of weights and activations. If left out, that of a PyTorch module's
        parameters, and "fp32", as PyTorch makes them, of any other network.
    hardware
        A device, to get the time of each layer; none is needed for counts.
    count
        How operations are counted: "flop" (two for each multiply-add, as everywhere in this
        book), "mac", "seed003" or "pytorch". `Anatomy.counts` compares them.
    training, optimizer
        Whether to add what training holds and does, with "sgd", "momentum" or "adam".
    estimate
        Of times: "roofline", or "calibrated", as `Engine.solve` has it.
    software
        Of the calibrated estimate: the class of program that runs it, as
        `mlsim.software.classes` lists them: "engine" by default, and "eager" of training.
    shape
        Of a PyTorch module, the shape of one sample, such as (3, 224, 224).
    tokens
        Of a language model, how many tokens it reads at once.
    example
        Of a PyTorch module that takes more than one tensor, what it is called with: a tuple,
        or a dict by name, each with the batch first. Only shapes and types are used.

    Raises
    ------
    InvalidValueError, UnknownNameError, WrongKindError
        If an argument is not allowed, or does not go with the model; says what is.
    UnsupportedLayerError
        If a PyTorch module does what can't be counted; names it.
    MissingLibraryError
        If a library is needed that is not there.

    >>> from mlsim import Models, anatomy
    >>> lenet = anatomy(Models.LeNet5_Variant)
    >>> lenet.profile_ops(count="seed003")["operations"][-1]
    295700
    >>> [row["shape_out"] for row in lenet.layers][:3]
    [(6, 24, 24), (6, 24, 24), (6, 12, 12)]
    """
    # Who trains a language model lets it guess after each token, who reads a prompt once.
    found, graph = _graph(model, shape, tokens, example, all_logits=check("training", training))
    if precision is None:
        precision = getattr(found, "precision", "fp32")
    check("estimate", estimate)
    if isinstance(batch_size, (list, tuple, range)):
        raise InvalidValueError(f"an anatomy has one batch_size, not several: {batch_size!r}.")
    return Anatomy(
        graph,
        found,
        batch_size=int(validate("batch_size", batch_size, whole=True)),
        precision=find_precision(precision),
        count=count,
        training=training,
        optimizer=optimizer,
        device=resolve.device(hardware) if hardware is not None else None,
        estimate=estimate,
        software=software,
    )


def _graph(
    model: Any, shape: Any, tokens: Any, example: Any, *, all_logits: bool
) -> tuple[Model, Graph]:
    """Return the model and its computation graph."""
    if "torch" in sys.modules:  # else nobody has a module
        from mlsim.workloads.pytorch import is_module, load_module

        if is_module(model):
            taken = {"shape": shape, "tokens": tokens, "example": example}
            read = load_module(model, **taken, training=all_logits)
            return read, read.graph
    if shape is not None or example is not None:
        given = "example" if shape is None else "shape"
        raise InvalidValueError(
            f"{given}= is for a PyTorch module, and {_told(model)} is none: leave {given}= out, "
            "or give the module itself, such as torchvision.models.resnet18()."
        )
    found = resolve.model(model)
    if not isinstance(tokens, Hashable):
        raise InvalidValueError(f"tokens must be a whole number such as 2048, not {tokens!r}.")
    return found, _cached(found, tokens, all_logits=all_logits and isinstance(found, Transformer))


def _told(model: Any) -> str:
    """Return what was given, in a few words."""
    if isinstance(model, str):
        return repr(model)
    if isinstance(model, type):
        return f"the class {model.__name__}"
    return f"a thing of the type {type(model).__name__}"


@lru_cache(maxsize=64)
def _cached(model: Model, tokens: Any, *, all_logits: bool) -> Graph:
    return graph_of(model, tokens, all_logits=all_logits)


def profile_ops(
    model: Any, *, count: str = "flop", inside: str = "", depth: int = 0, **asked: Any
) -> View:
    """Return the operations of each layer, and their sum; arguments as for `anatomy`.

    As in the views below, `inside` keeps the layers of one block, and `depth` makes one row of
    layers that share so many names.

    >>> from mlsim.engine import profile_ops
    >>> profile_ops("LeNet5_Variant")["operations"][-1]
    557040
    """
    return anatomy(model, count=count, **asked).profile_ops(inside=inside, depth=depth)


def profile_layer_mem(model: Any, *, inside: str = "", depth: int = 0, **asked: Any) -> View:
    """Return the working set of each layer, in bytes; arguments as for `anatomy`.

    >>> from mlsim.engine import profile_layer_mem
    >>> profile_layer_mem("LeNet5_Variant")["working_set"][0]
    17584.0
    """
    return anatomy(model, **asked).profile_layer_mem(inside=inside, depth=depth)


def profile_mem(model: Any, *, inside: str = "", **asked: Any) -> View:
    """Return what inputs, weights and outputs take together; arguments as for `anatomy`.

    >>> from mlsim.engine import profile_mem
    >>> profile_mem("LeNet5_Variant")["part"]
    ['inputs', 'weights', 'outputs']
    """
    return anatomy(model, **asked).profile_mem(inside=inside)


def summary(model: Any, *, inside: str = "", depth: int = 0, **asked: Any) -> View:
    """Return modules, output shapes and sizes as a printed summary; arguments as for `anatomy`.

    >>> from mlsim.engine import summary
    >>> print(summary("LeNet5_Variant").notes[0])
    Total params: 41,282
    """
    return anatomy(model, **asked).summary(inside=inside, depth=depth)


def largest_batch(model: Any, *, hardware: Device | str, **asked: Any) -> int:
    """Return the largest batch that fits in a device's memory; arguments as for `anatomy`.

    Raises
    ------
    DoesNotFitError
        If not even one sample does; says by how much.
    InvalidValueError
        If a batch is given.

    >>> from mlsim.engine import largest_batch
    >>> 100 < largest_batch("AlexNet", hardware="GTX580", training=True) < 300
    True
    """
    device = resolve.device(hardware)
    if "batch_size" in asked:
        raise InvalidValueError("batch_size is what largest_batch finds; leave it out.")

    def at(batch: int) -> Anatomy:
        return anatomy(model, batch_size=batch, hardware=device, **asked)

    return limits.largest_batch(at, device.capacity_si, device.name)


def over_memory(
    model: Any,
    batches: Sequence[int],
    *,
    hardware: Device | str,
    disk_bandwidth: Any,
    **asked: Any,
) -> View:
    """Return memory and time of a step by batch, and the cliff where memory ends.

    What does not fit goes to a disk and comes back in each step, at `disk_bandwidth`, such
    as "3 GB/s"; other arguments as for `anatomy`.

    Raises
    ------
    InvalidValueError
        If there is no batch, or one is no whole number.

    >>> from mlsim.engine import over_memory
    >>> rows = over_memory("AlexNet", [64, 1024], hardware="GTX580", training=True,
    ...                    disk_bandwidth="100 MB/s")
    >>> [float(row["paging_time"]) > 1 for row in rows]
    [False, True]
    """
    device = resolve.device(hardware)

    def at(batch: int) -> Anatomy:
        return anatomy(model, batch_size=batch, hardware=device, **asked)

    return limits.over_memory(at, batches, disk_bandwidth)


def estimate_training_for(
    model: Any,
    epochs: Any,
    *,
    samples: Any = None,
    hardware: Device | str | None = None,
    epoch_time: Any = None,
    disk_bandwidth: Any = None,
    **asked: Any,
) -> TrainingTime:
    """Estimate how long so many epochs of training take.

    Parameters
    ----------
    model, **asked
        As for `anatomy`: the batch, the number format, the optimizer.
    epochs
        How often training goes through its data set.
    samples, hardware
        Samples in the data set, and the device: the time of an epoch is predicted.
    epoch_time
        The time of one epoch that somebody measured, such as "2.4 s", in place of those.
    disk_bandwidth
        Of a disk that takes what does not fit, such as "3 GB/s"; without one, a step that
        does not fit is refused.

    Raises
    ------
    InvalidValueError
        If neither or both ways are given.
    DoesNotFitError
        If a step does not fit, and there is no disk.

    >>> from mlsim.engine import estimate_training_for
    >>> print(estimate_training_for("LeNet5_Variant", 1000, epoch_time="2.4 s").total)
    2,400 s
    """
    asked["training"] = True
    found = anatomy(model, hardware=hardware, **asked)
    return time_of_epochs(
        found, epochs, samples=samples, epoch_time=epoch_time, disk_bandwidth=disk_bandwidth
    )
