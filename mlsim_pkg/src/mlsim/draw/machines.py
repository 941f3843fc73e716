"""Many devices: a ring that adds up, and a cluster with its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.draw.canvas import (
    ACCENT,
    DEEP,
    EDGE,
    HEAD,
    INK,
    MID,
    QUIET,
    TINT,
    WIDTH,
    Canvas,
    Drawing,
)
from mlsim.draw.chips import memory_of
from mlsim.errors import InvalidValueError, check_whole
from mlsim.units import text
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Clusters

if TYPE_CHECKING:
    from mlsim.systems import Cluster
    from mlsim.workloads.language import Transformer

_CELL = 16.0


def ring(devices: int = 4) -> Drawing:
    """Draw a ring all-reduce step by step: who has which part of the sum.

    A column is a device, a row a part of the data. A cell is full once it holds the sum of all.

    Raises
    ------
    InvalidValueError
        If there are not 2 to 5 devices.

    >>> print(ring(4).alt.partition(". ")[0])
    4 devices in a ring add up their data in 6 steps
    """
    check_whole("devices", devices)
    if not 2 <= devices <= 5:
        raise InvalidValueError(f"a ring is drawn of 2 to 5 devices, not {devices}.")
    sheet = Canvas(f"A ring all-reduce of {devices} devices")
    steps = devices - 1
    count = sheet.fact("ring", "steps", f"{2 * steps}", "twice as many as neighbors in a row")
    share = f"{2 * steps / devices:.3g}"
    sent = sheet.fact("ring", "data that a device sends, over its own", share, "steps over devices")
    held = [[{device} for _ in range(devices)] for device in range(devices)]
    states = [[[len(part) for part in row] for row in held]]
    for step in range(2 * steps):
        moved = []
        for device in range(devices):
            part = (device - step) % devices
            moved.append(((device + 1) % devices, part, set(held[device][part])))
        for device, part, what in moved:
            held[device][part] |= what
        states.append([[len(part) for part in row] for row in held])
    grid = devices * _CELL
    gap = min((WIDTH - (steps + 1) * grid) / steps, 40.0)
    tall = grid + 46
    for row, (name, shown) in enumerate(
        (
            ("Reduce-scatter: add up", range(steps + 1)),
            ("All-gather: pass on", range(steps, 2 * steps + 1)),
        )
    ):
        top = row * tall
        sheet.text(0, top + 8, name, bold=True, size=HEAD)
        for place, step in enumerate(shown):
            left = place * (grid + gap)
            for device in range(devices):
                for part in range(devices):
                    x, y = left + device * _CELL, top + 22 + part * _CELL
                    full = states[step][device][part] / devices
                    sheet.rect(x, y, _CELL - 2, _CELL - 2, fill=DEEP, radius=1)
                    fill = ACCENT if full == 1 else EDGE
                    sheet.rect(x, y + (1 - full) * (_CELL - 2), _CELL - 2, full * (_CELL - 2),
                               fill=fill, radius=1)  # fmt: skip
            words = "start" if not step else f"step {step}"
            sheet.text(left, top + grid + 32, words, color=QUIET)
    sheet.text(0, 2 * tall + 8, f"{count} steps; each device sends {sent} times its data")
    alt = (
        f"{devices} devices in a ring add up their data in {count} steps. Of {devices} parts, each "
        f"device passes one to its neighbor at a time: after step {steps} each holds one part of "
        f"the sum, and after step {2 * steps} all hold all. A device sends {sent} times its data. "
        f"Steps shown: {', '.join(str(each) for each in range(1, 2 * steps + 1))}."
    )
    return sheet.finish(alt, height=2 * tall + 16)


def cluster(which: Cluster | str) -> Drawing:
    """Draw a node of a cluster, and what joins it to others: pipes are as wide as their rates.

    Raises
    ------
    UnknownNameError
        If there is no such cluster; suggests the nearest.

    >>> print(cluster("DGX_H100_SuperPOD").alt.partition(". ")[0])
    A node of the NVIDIA DGX H100 SuperPOD with 8 devices, NVIDIA H100 SXM 80 GB
    """
    found = Clusters.get(which) if isinstance(which, str) else which
    node, device = found.node, found.node.device
    outer, inner = found.figures["link.bandwidth"], node.figures["link.bandwidth"]
    sheet = Canvas(f"A node of {found.name}")
    rates = {
        "memory": (device.bandwidth_si, device.memory.figures["bandwidth"]),
        "node": (node.device_bandwidth_si, inner),
        "network": (outer.one_way, outer),
    }
    said = {
        name: sheet.fact(name, "bandwidth of a device", text(rate, "B/s"), figure)
        for name, (rate, figure) in rates.items()
    }
    many = sheet.fact("node", "devices", f"{node.devices}", "the system")
    left, shown = 130.0, min(node.devices, 8)
    pitch = (WIDTH - left) / 8
    scale = (pitch - 8) / device.bandwidth_si
    sheet.text(0, 8, found.name, bold=True, size=HEAD)
    wide = pitch * shown - 6
    kind = memory_of(device)
    rows = [("Network", "", 22.0, 24.0), ("", said["network"], 46.0, 34.0),
            ("Switch in the node", "", 80.0, 24.0), ("", said["node"], 104.0, 34.0),
            (f"{many} devices", "", 138.0, 30.0), ("", said["memory"], 168.0, 26.0),
            (kind[0].upper() + kind[1:], "", 194.0, 30.0)]  # fmt: skip
    for name, rate, top, tall in rows:
        sheet.text(0, top + tall / 2, name or rate, bold=bool(rate))
    sheet.rect(left, 22, wide, 24, fill=TINT)
    sheet.rect(left, 80, wide, 24, fill=TINT)
    for at in range(shown):
        x = left + at * pitch
        middle = x + (pitch - 6) / 2
        sheet.rect(x, 138, pitch - 6, 30, fill=ACCENT)
        sheet.rect(x, 194, pitch - 6, 30, fill=DEEP)
        for top, tall, rate in ((46, 34, "network"), (104, 34, "node"), (168, 26, "memory")):
            thick = scale * rates[rate][0]
            fill = MID if rate == "memory" else EDGE
            sheet.rect(middle - thick / 2, top, thick, tall, fill=fill, radius=0)
    alt = (
        f"A node of the {found.name} with {many} devices, {device.name}. Each moves "
        f"{said['memory']} to and from its {kind}, {said['node']} one way to others in the node, "
        f"and {said['network']} one way into the network. Pipes are as wide as their rates."
    )
    return sheet.finish(alt, height=225)


def _of_experts(model: Transformer) -> float:
    """Return the parameters of all routed experts, whether a token meets them or not."""
    experts = model.experts
    assert experts is not None
    idle = model.parameter_count - model.active_parameter_count
    return idle / (experts.count - experts.per_token) * experts.count


# What a device holds of layers (down) and their width (across): the rest it has for itself, or not.
_WAYS = (
    ("Data parallel", "all", "gradients"),
    ("ZeRO-3", "shard", "weights"),
    ("Tensor parallel", "across", "activations"),
    ("Pipeline", "down", "activations"),
    ("Expert parallel", "experts", "tokens"),
)


def shards(model: Transformer | str, *, devices: int = 4) -> Drawing:
    """Draw what each device holds of one model in five kinds of parallelism.

    A square is a model: its layers from top to bottom, their width from left to right. Of a model
    without experts, that kind is left out.

    Raises
    ------
    UnknownNameError
        If there is no such model; suggests the nearest.
    InvalidValueError
        If there are not 2 to 4 devices.

    >>> [each.value for each in shards("Llama3_8B").facts][:2]
    ['16.1 GB', '4.02 GB']
    """
    check_whole("devices", devices)
    if not 2 <= devices <= 4:
        raise InvalidValueError(f"shards are drawn of 2 to 4 devices, not {devices}.")
    found = resolve.transformer(model)
    sheet = Canvas(f"{found.name} on {devices} devices, in kinds of parallelism")
    whole = 2.0 * found.parameter_count
    told = [f"{devices} devices hold {found.name}."]
    side, left, top = 40.0, 122.0, 24.0
    sheet.text(0, 8, f"{found.name}, {devices} devices", bold=True, size=HEAD)
    for name, held, sent in _WAYS:
        if held == "experts":
            if found.experts is None:
                continue
            routed = 2.0 * _of_experts(found)
            part = whole - routed + routed / devices
        else:
            routed, part = 0.0, whole / (1 if held == "all" else devices)
        written = sheet.fact(
            name, "weights of a device", text(part, "B", 3), "parameters, 2 bytes each"
        )
        sheet.text(0, top + 12, name, bold=True)
        sheet.text(0, top + 28, f"{written} each", color=INK)
        for device in range(devices):
            x = left + device * (side + 8)
            sheet.rect(x, top, side, side, fill=TINT, radius=1)
            step = side / devices
            box = {
                "all": (x, top, side, side),
                "shard": (x + device * step, top, step, side),
                "across": (x + device * step, top, step, side),
                "down": (x, top + device * step, side, step),
                "experts": (
                    x + device * step,
                    top + side * (1 - routed / whole),
                    step,
                    side * routed / whole,
                ),
            }[held]
            if held == "experts":
                sheet.rect(x, top, side, side * (1 - routed / whole), fill=ACCENT, radius=0)
            if held == "shard":
                sheet.rect(x, top, side, side, fill=MID, radius=1)
            sheet.rect(*box, fill=ACCENT, radius=0)
        sheet.text(left + devices * (side + 8) + 4, top + side / 2, sent, color=QUIET)
        gathered = " and gathered when needed" if held == "shard" else ""
        told.append(f"{name}: {written} of weights each; {sent} are exchanged{gathered}.")
        top += side + 12
    return sheet.finish(" ".join(told), height=top - 10)
