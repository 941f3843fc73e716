"""The fastest way to spread a training run over its devices, among those that fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.hardware import Device
from mlsim.solvers.training.checks import Asked, run, settled
from mlsim.solvers.training.training import Training

# What is tried of each.
_MICRO_BATCHES = (1, 2, 4, 8)
_INTERLEAVED = (1, 2, 3, 4)
# What recomputes more takes longer, so the first that fits will do.
_RECOMPUTE = ("none", "selective", "full")
# What tells layouts apart but for their micro-batches.
_OF_LAYOUT = ("tensor_parallel", "pipeline_parallel", "interleaved", "shard")


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def candidates(asked: Asked) -> Iterator[Asked]:
    """Yield questions with other layouts: tensor, pipeline and data parallel, and batches.

    Tensor parallelism stays within a node. Context and expert parallelism, formats
    and overlaps are as asked.
    """
    there = 1 if isinstance(asked.hardware, Device) else asked.hardware.devices
    devices = there if asked.devices is None else asked.devices
    if isinstance(devices, bool) or not isinstance(devices, int) or not 1 <= devices <= there:
        raise InvalidValueError(
            f"devices must be a whole number from 1 to {there:,}, which {asked.hardware.name} has, "
            f"not {devices!r}."
        )
    node = getattr(getattr(asked.hardware, "node", asked.hardware), "devices", 1)
    for tensor in (each for each in _divisors(node) if devices % each == 0):
        for pipeline in _divisors(asked.model.layers):
            rest = tensor * pipeline * asked.context_parallel
            if devices % rest:
                continue
            base = replace(
                asked,
                devices=devices,
                tensor_parallel=tensor,
                pipeline_parallel=pipeline,
                data_parallel=devices // rest,
                sequence_parallel=tensor > 1,
            )
            yield from _recipes(base)


def _recipes(base: Asked) -> Iterator[Asked]:
    """Yield micro-batches, interleaving and sharding for one layout."""
    each_copy = base.global_batch // base.data_parallel
    copies = base.data_parallel * base.context_parallel
    for micro in _MICRO_BATCHES:
        if base.global_batch % (base.data_parallel * micro) or not each_copy:
            continue
        for parts in _INTERLEAVED if base.pipeline_parallel > 1 else (1,):
            for shard in ("zero1", "zero3") if copies > 1 else ("none",):
                yield replace(base, micro_batch=micro, interleaved=parts, shard=shard)


# What is chosen, and what it is where nobody set it.
_CHOSEN = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "data_parallel": None,
    "interleaved": 1,
    "micro_batch": None,
    "sequence_parallel": False,
    "shard": "none",
    "recompute": "selective",
}


def _check_free(asked: Asked) -> None:
    """Refuse what the search would choose in place of the caller."""
    both = [name for name, usual in _CHOSEN.items() if getattr(asked, name) != usual]
    if both:
        raise InvalidValueError(
            f"search=True chooses {', '.join(f'{name}=' for name in both)} itself: leave that "
            "out, or search=True."
        )


def search(asked: Asked) -> Training:
    """Return the fastest run that fits.

    Raises
    ------
    DoesNotFitError
        If no layout fits; says how much the one that comes nearest lacks.
    InvalidValueError
        If no layout divides model, batch and devices; or if something else can't be.
    """
    fixed = settled(asked)
    _check_free(asked)
    recipes = [replace(fixed["recipe"], recompute=each) for each in _RECOMPUTE]
    best: Training | None = None
    nearest: Training | None = None
    refusal = ""
    # Larger micro-batches never need less memory: what failed with a smaller one is not tried.
    failed: set[tuple[Any, ...]] = set()
    for candidate in candidates(asked):
        layout = tuple(getattr(candidate, name) for name in _OF_LAYOUT)
        for recipe in recipes:
            if (*layout, recipe.recompute) in failed:
                continue
            chosen = {"recipe": recipe, "micro_batch": float(candidate.micro_batch)}
            try:
                training = Training(run(candidate, {**fixed, **chosen}))
            except InvalidValueError as error:
                refusal = refusal or f" The first that was tried: {error}"
                break  # does not divide the model or the batch
            free = training._value("memory_free")
            if free >= 0:
                if best is None or training._value("step_time") < best._value("step_time"):
                    best = training
                break
            failed.add((*layout, recipe.recompute))
            if nearest is None or free > nearest._value("memory_free"):
                nearest = training
    if best is not None:
        return best
    if nearest is None:
        raise InvalidValueError(
            f"no layout divides {asked.model.name}, a global batch of {asked.global_batch} and "
            f"the devices of {asked.hardware.name}. Try a global batch that is a multiple of a "
            f"power of two, or other devices=.{refusal}"
        )
    raise DoesNotFitError(
        f"no layout fits; the nearest one: {nearest.too_large().partition(' Try ')[0]} "
        "Give more devices=, or shorter sequences."
    )
