"""A torus: devices in rows that close to rings, along two or three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlsim.errors import InvalidValueError


def check_shape(shape: Any, topology: str, devices: int) -> tuple[int, ...]:
    """Return the devices along each axis of a torus; nothing for another topology.

    Raises
    ------
    InvalidValueError
        If a torus has no shape, or one of another number of devices.
    """
    if topology != "torus":
        if shape:
            raise InvalidValueError(
                f"shape is of a torus, not of a {topology}: leave {shape!r} out, "
                'or say topology="torus".'
            )
        return ()
    sides = tuple(shape) if isinstance(shape, (list, tuple)) else ()
    if not sides or any(type(side) is not int or side < 2 for side in sides):
        raise InvalidValueError(
            f"shape must be the devices along each axis, whole numbers from 2 up such as (4, 4), "
            f"not {shape!r}: a torus needs one."
        )
    if math.prod(sides) != devices:
        product = " x ".join(map(str, sides))
        raise InvalidValueError(
            f"shape {product} is {math.prod(sides)} devices, but devices is {devices}."
        )
    return sides


def links_within(shape: Sequence[int], group: int) -> int:
    """Return how many of a device's links lead to others of its group.

    A group fills the first axis, then the next. Where it goes the whole way round, a
    device has a neighbor on either side. In a part of an axis, or where an axis has two
    devices, the way is a line: all that its end gets comes through one link.

    >>> [links_within((4, 4), group) for group in (2, 4, 8, 16)]
    [1, 2, 3, 4]
    """
    links = 0
    for side in shape:
        if group > 1:
            links += 2 if group >= side > 2 else 1
        group = math.ceil(group / side)
    return links


def check_exchange(where: Any, expert: int, tensor: int) -> None:
    """Refuse to send tokens to their experts across a torus.

    There each device sends to all others, so that bytes pass through the devices between
    them. The rates here are of rings, and would promise too much.

    Raises
    ------
    InvalidValueError
        If experts are spread over more devices than tensor parallelism takes.
    """
    system = getattr(where, "node", where)
    if getattr(system, "topology", "") == "torus" and expert > tensor:
        raise InvalidValueError(
            f"expert_parallel {expert} is above tensor_parallel {tensor}, so that tokens travel "
            f"to their experts. How fast they do so in a torus ({system.name}) is not modeled. "
            f"Take expert_parallel={tensor}, or a system with a switch."
        )
