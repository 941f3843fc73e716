"""What a matrix product reads when it works in square tiles that a fast memory holds.

Arguments are plain numbers: rows, columns and depth of one product. A tile of 1 is the
product without tiles. No solver asks these: the roofline counts each input once.
"""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "How often does a matrix product read its inputs?"


@equation(source="hennessy2019quantitative", counts=True)
def operand_reads(product_rows, outputs, product_depth, tile_size):
    """Elements of the inputs that a matrix product reads, in square tiles.

    Each multiply-add needs two numbers. With tiles, each number that is read serves a whole
    row, or column, of a tile.

    Assumes tiles that divide the product, and a fast memory that keeps a tile of each input
    and nothing else.

    Valid for reads from the next slower memory; the result is written once besides.

    >>> operand_reads(4, 4, 4, 1)
    128.0
    >>> operand_reads(4, 4, 4, 2)
    64.0
    """
    return 2 * product_rows * outputs * product_depth / tile_size


@equation(source="hennessy2019quantitative", counts=True)
def tile_bytes(tile_size, bytes_per_element):
    """Bytes of a square tile of each of the two inputs.

    Assumes that the tile of the result is in registers.

    Valid for one set of tiles; a kernel that loads the next set while it works keeps two.

    >>> tile_bytes(32, 4.0)
    8192.0
    """
    return 2 * tile_size**2 * bytes_per_element


@equation(source="hennessy2019quantitative", counts=True)
def tile_intensity(tile_size, bytes_per_element):
    """Arithmetic intensity of a tiled product toward the memory that it reads its inputs from.

    Two operations for each multiply-add, over two elements for each `tile_size` of them.

    Assumes large products, whose result weighs little beside the reads.

    Valid for square tiles.

    >>> tile_intensity(32, 4.0)
    8.0
    """
    return tile_size / bytes_per_element
