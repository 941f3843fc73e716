"""Where the bytes of a language model are, and where a tile of a product goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlsim.draw.canvas import ACCENT, DEEP, HEAD, MID, QUIET, TINT, WIDTH, Canvas, Drawing
from mlsim.engine import Engine
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError, check_whole
from mlsim.units import MEMORY, text
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.workloads.language import Transformer


def decoder_layer(model: Transformer | str, hardware: Device | str = "H100") -> Drawing:
    """Draw a decoder layer: its parts in order, as long as the bytes of their weights.

    Raises
    ------
    UnknownNameError
        If there is no such model or device; suggests the nearest.

    >>> print(decoder_layer("Llama3_8B").alt.partition(". ")[0])
    One of 32 layers of Llama 3.1 8B holds 416 MiB of weights
    """
    found = resolve.transformer(model)
    service = Engine.serve(found, hardware, prompt_tokens=1)
    told = service.decode.explain().to_dict()
    rows = [row for row in told["operators"] if row["repeats"] == found.layers]
    sizes = [(row["name"], float(row["weight_bytes"]["value"])) for row in rows]
    sheet = Canvas(f"A decoder layer of {found.name}")
    total = sum(size for _, size in sizes)
    layers = sheet.fact("model", "layers", f"{found.layers}", "its architecture")
    whole = sheet.fact("layer", "weights", text(total, MEMORY, 3), "sum of the parts")
    sheet.text(0, 8, f"One of {layers} layers", bold=True, size=HEAD)
    sheet.text(WIDTH, 8, whole, "end", bold=True, size=HEAD, color=ACCENT)
    most, left = max(size for _, size in sizes), 148.0
    top, said = 26.0, []
    for name, size in sizes:
        label = name[0].upper() + name[1:]
        sheet.text(0, top + 11, label)
        if size:
            written = sheet.fact(
                name, "weights", text(size, MEMORY, 3), f"{told['precision']}, its shape"
            )
            wide = (WIDTH - left - 66) * size / most
            sheet.rect(left, top, wide, 22, fill=ACCENT, radius=1)
            sheet.text(left + wide + 6, top + 11, written)
            said.append(f"{name}: {written}")
        else:
            sheet.text(left, top + 11, "no weights: reads the KV cache", color=QUIET)
            said.append(f"{name}: no weights, it reads the KV cache")
        if top > 26:
            sheet.arrow((left - 10, top - 8), (left - 10, top + 4))
        top += 32
    return sheet.finish(
        f"One of {layers} layers of {found.name} holds {whole} of weights. In order, "
        f"{'; '.join(said)}. Bars are as long as the bytes.",
        height=top - 4,
    )


def kv_cache(
    model: Transformer | str, hardware: Device | str, *, users: int = 1,
    tokens: Sequence[int] = (1024, 4096, 16384, 65536),
) -> Drawing:  # fmt: skip
    """Draw a KV cache that grows beside the weights, in the memory of a device.

    Parameters
    ----------
    model, hardware
        What is served, where.
    users
        Sequences at a time.
    tokens
        Lengths of each sequence, a row each.

    Raises
    ------
    UnknownNameError
        If there is no such model or device; suggests the nearest.
    InvalidValueError
        If no length is given.

    >>> kv_cache("Llama3_8B", "H100", tokens=[8192]).facts[-1].value
    '1 GiB'
    """
    if not tokens:
        raise InvalidValueError("tokens must name a length at least, such as [1024, 4096].")
    check_whole("users", users)
    services = [
        Engine.serve(model, hardware, batch_size=users, prompt_tokens=each - 1, output_tokens=1)
        for each in tokens
    ]
    first = services[0]
    room = float(first.value("memory_capacity"))
    weights = float(first.value("weight_memory"))
    sheet = Canvas(f"The KV cache of {first.model.name} in {first.hardware.name}")
    whole = sheet.fact(
        "memory", "capacity", text(room, MEMORY, 3), first.by_name("memory_capacity")
    )
    held = sheet.fact("weights", "size", text(weights, MEMORY, 3), first.by_name("weight_memory"))
    sheet.text(0, 8, f"{users:,} user{'s' * (users > 1)}", bold=True, size=HEAD)
    sheet.text(WIDTH, 8, f"{whole} in all", "end", color=QUIET)
    top, said = 42.0, []
    sheet.text(2, 28, f"weights {held}", color=QUIET)
    for each, service in zip(tokens, services, strict=True):
        cache = float(service.value("cache_memory"))
        written = sheet.fact(
            f"{each:,} tokens", "cache", text(cache, MEMORY, 3), service.by_name("cache_memory")
        )
        fits = weights + cache <= room
        end = WIDTH * min((weights + cache) / room, 1.0)
        begin = WIDTH * weights / room
        sheet.rect(0, top + 18, WIDTH, 20, fill=TINT, radius=2)
        sheet.rect(0, top + 18, begin, 20, fill=DEEP, radius=2)
        sheet.rect(begin, top + 18, end - begin, 20, fill=ACCENT, radius=0)
        sheet.text(0, top + 7, f"{each:,} tokens each: cache {written}")
        if not fits:
            sheet.text(WIDTH, top + 7, "does not fit", "end", bold=True)
        said.append(f"{written} at {each:,} tokens{'' if fits else ', which does not fit'}")
        top += 50
    return sheet.finish(
        f"Bars as long as the {whole} of {first.hardware.name}. Weights take {held}. The KV "
        f"cache of {users:,} user{'s' * (users > 1)} grows beside them: {'; '.join(said)}.",
        height=top - 10,
    )


def tile(side: int = 128, *, bytes_per_element: float = 2.0) -> Drawing:
    """Draw a tile of a matrix product on its way from main memory to the units that multiply.

    Parameters
    ----------
    side
        Rows and columns of a tile.
    bytes_per_element
        Of both inputs.

    >>> [each.value for each in tile(128).facts]
    ['64 KiB', '64 FLOP/B']
    """
    check_whole("side", side)
    sheet = Canvas(f"A tile of {side:,} x {side:,} through the levels of memory")
    size = sheet.fact(
        "tiles",
        "bytes of two",
        text(float(EQUATIONS["tile_bytes"](side, bytes_per_element)), MEMORY),
        "tile_bytes",
    )
    gain = float(EQUATIONS["tile_intensity"](side, bytes_per_element))
    intensity = sheet.fact(
        "tiles", "work for each byte read", f"{gain:,.4g} FLOP/B", "tile_intensity"
    )
    for name, x, y in (("B", 84.0, 16.0), ("A", 0.0, 100.0), ("C", 84.0, 100.0)):
        sheet.rect(x, y, 72, 72, fill=TINT)
        sheet.text(x + 36, y - 8 if name == "B" else y + 82, name, "middle", bold=True)
    sheet.rect(0, 124, 72, 18, fill=MID, radius=0)  # the rows of A, the columns of B
    sheet.rect(108, 16, 18, 72, fill=MID, radius=0)
    for x, y in ((36.0, 124.0), (108.0, 52.0), (108.0, 124.0)):
        sheet.rect(x, y, 18, 18, fill=ACCENT, radius=0)
    left, wide = 182.0, WIDTH - 182.0
    rows = (("Main memory: A, B, C", DEEP), (f"Shared memory: {size}", DEEP),
            ("Registers: the tile of C", DEEP), ("Units that multiply", TINT))  # fmt: skip
    for place, (words, fill) in enumerate(rows):
        sheet.box(left, 8 + 46 * place, wide, 28, words, fill=fill)
        if place:
            sheet.arrow(
                (left + wide / 2, 46 * place - 9), (left + wide / 2, 46 * place + 7), color=ACCENT
            )
    sheet.text(left + wide / 2, 192, f"each byte read: {intensity}", "middle", color=QUIET)
    return sheet.finish(
        f"Three matrices: a tile of A and one of B, each of {side:,} x {side:,} numbers, "
        f"make a tile of C. Both go from main memory into shared memory ({size}) and from there to "
        f"the units that multiply; the tile of C stays in registers. The work is {intensity} that "
        "is read.",
        height=200,
    )
