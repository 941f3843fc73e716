"""What the threads of a GPU read together: a warp from main memory, a block for a tile."""

from __future__ import annotations

from collections.abc import Sequence

from mlsim.draw.canvas import ACCENT, DEEP, EDGE, HEAD, MID, QUIET, TINT, WIDTH, Canvas, Drawing
from mlsim.equations import EQUATIONS
from mlsim.errors import InvalidValueError, check_whole
from mlsim.records.references import label

_WARP, _SECTOR = 32, 32  # threads; bytes that memory moves at a time


def coalescing(strides: Sequence[int] = (1, 2, 8), *, bytes_per_element: int = 4) -> Drawing:
    """Draw what a warp's read moves: neighbors share a sector, numbers far apart don't.

    Parameters
    ----------
    strides
        Numbers from the one that a thread reads to that of the next, a row each.
    bytes_per_element
        Of each number: 4 or 8.

    Raises
    ------
    InvalidValueError
        If no stride is given, or one of more than 16.

    >>> [each.value for each in coalescing([1, 8]).facts if each.what == "bytes moved"]
    ['128 B', '1,024 B']
    """
    if not strides or max(strides) > 16:
        raise InvalidValueError(f"strides are from 1 to 16, such as [1, 8], not {strides}.")
    per = _SECTOR // check_whole("bytes_per_element", bytes_per_element)
    source = f"{label('nvidia2026bestpractices')}, counted"
    sheet = Canvas("What one read of a warp moves, by the distance between its numbers")
    threads = sheet.fact("warp", "threads", f"{_WARP}", source)
    size = sheet.fact("memory", "sector", f"{_SECTOR} B", source)
    cells = max(per * 4, *(each * _WARP for each in strides))
    scale = WIDTH / cells
    top, said = 8.0, []
    for stride in strides:
        check_whole("strides", stride)
        name = "neighbors" if stride == 1 else f"every {stride}th number"
        name = name.replace("2th", "2nd").replace("3th", "3rd")
        used = {at * stride // per for at in range(_WARP)}
        sectors = sheet.fact(name, "sectors", f"{len(used)}", source)
        moved = sheet.fact(name, "bytes moved", f"{len(used) * _SECTOR:,} B", source)
        share = sheet.fact(
            name, "part that is used", f"{100 * _WARP / (len(used) * per):.3g} %", source
        )
        sheet.text(0, top, name[0].upper() + name[1:], bold=True, size=HEAD)
        sheet.text(WIDTH, top, f"{sectors} sectors, {moved}: {share} used", "end")
        sheet.rect(0, top + 14, WIDTH, 22, fill=TINT, radius=0)
        for sector in sorted(used):
            left = sector * per * scale
            sheet.rect(left, top + 14, per * scale - 1, 22, fill=MID, radius=0)
        for at in range(_WARP):
            sheet.rect(at * stride * scale, top + 14, max(scale - 0.4, 0.9), 22, fill=ACCENT,
                       radius=0)  # fmt: skip
        said.append(
            f"{name} lie in {sectors} sectors, so {moved} move and {share} of them are used"
        )
        top += 58
    sheet.text(0, top, f"{threads} threads read a number each; memory moves {size} at a time",
               color=QUIET)  # fmt: skip
    return sheet.finish(
        f"Strips of memory. The {threads} threads of a warp read a number each, and memory moves "
        f"sectors of {size}. {'; '.join(said)}. Dark was asked for, light comes along.",
        height=top + 8,
    )


def blocks(side: int = 8, tile: int = 4) -> Drawing:
    """Draw a matrix product by blocks of threads: each block makes a tile in shared memory.

    Parameters
    ----------
    side, tile
        Rows of the matrices and of a tile; the first a multiple of the second.

    Raises
    ------
    InvalidValueError
        If the tiles don't fill the matrices, or there are too many to be seen.

    >>> [each.value for each in blocks(8, 4).facts]
    ['16', '2', '1,024', '256']
    """
    if side % check_whole("tile", tile) or not 2 <= tile <= 6 or side > 18:
        raise InvalidValueError(
            f"a side is a multiple of its tile up to 18, a tile from 2 to 6: not {side} and {tile}."
        )
    sheet = Canvas(f"A product of {side} x {side} matrices by blocks of {tile} x {tile} threads")
    count = sheet.fact("block", "threads", f"{tile * tile}", "one for each number of its tile")
    steps = sheet.fact("block", "pairs of tiles", f"{side // tile}", "the side over the tile")
    alone, tiled = (
        sheet.fact(name, "reads of main memory",
                   f"{EQUATIONS['operand_reads'](side, side, side, n):,.0f}", "operand_reads")
        for name, n in (("a thread at a time", 1), ("in tiles", tile))
    )  # fmt: skip
    cell, gap = 84 / side, 12.0
    block = cell * tile
    sheet.text(0, 8, "Main memory", bold=True, size=HEAD)
    left, low = 84 + gap, 22 + 84 + gap
    for name, x, y in (("A", 0.0, low), ("B", left, 22.0), ("C", left, low)):
        sheet.rect(x, y, 84, 84, fill=TINT, radius=0)
        sheet.text(x + 42 if name != "B" else x - 12, y + 96 if name != "B" else y + 42, name,
                   "middle", bold=True)  # fmt: skip
    sheet.rect(0, low, 84, block, fill=DEEP, radius=0)  # all that the block needs
    sheet.rect(left, 22, block, 84, fill=DEEP, radius=0)
    sheet.rect(0, low, block, block, fill=MID, radius=0)  # what it has now
    sheet.rect(left, 22, block, block, fill=MID, radius=0)
    sheet.rect(left, low, block, block, fill=ACCENT, radius=0)
    for x, y in ((0.0, low), (left, 22.0), (left, low)):
        for at in range(1, side // tile):
            sheet.line((x + at * block, y), (x + at * block, y + 84))
            sheet.line((x, y + at * block), (x + 84, y + at * block))
    edge = 216.0
    sheet.text(edge, 8, "One SM", bold=True, size=HEAD)
    small = 56 / tile
    right, down = edge + 56 + 28, 22 + 56 + 28.0
    for x, y, words in ((edge, down, "tile of A"), (right, 22.0, "tile of B"), (right, down, "")):
        for at in range(tile * tile):
            row, column = divmod(at, tile)
            chosen = (words != "tile of B" and row == 1) if words else (row, column) == (1, 1)
            chosen |= words == "tile of B" and column == 1
            fill = (ACCENT if not words else MID) if chosen else DEEP
            sheet.rect(x + column * small, y + row * small, small - 1.5, small - 1.5, fill=fill,
                       radius=1)  # fmt: skip
        if words:
            sheet.text(x + 28, y + 68, words, "middle")
    sheet.text(right + 28, down + 68, f"{count} threads", "middle")
    sheet.text(edge, down + 90, "a thread: a row of one,")
    sheet.text(edge, down + 105, "a column of the other")
    bottom = low + 84 + 34
    sheet.line((0, bottom - 12), (WIDTH, bottom - 12), color=EDGE)
    sheet.text(0, bottom + 4, f"Reads of main memory: {alone} a thread at a time, {tiled} in tiles",
               color=QUIET)  # fmt: skip
    return sheet.finish(
        f"Left, three matrices of {side} x {side} numbers in main memory, in tiles of {tile} x "
        f"{tile}. One block makes one tile of C. It needs a strip of A and a strip of B, and loads "
        f"{steps} pairs of tiles one after the other. Right, the SM: both tiles lie in shared "
        f"memory, and {count} threads compute a number each, from a row of one tile and a column "
        f"of the other. A thread at a time, the product reads {alone} numbers from main memory; "
        f"in tiles it reads {tiled}.",
        height=bottom + 14,
    )
