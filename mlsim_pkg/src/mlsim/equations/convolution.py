"""What a convolution or a linear layer computes, reads and writes.

Arguments are plain numbers from the layer's architecture; the results are
counts for one sample. Windows are square.
"""

from __future__ import annotations

from mlsim.equations.functions import floor
from mlsim.equations.registry import equation

QUESTION = "What does a layer compute, and how large is it?"


@equation(source="dumoulin2016convolution", counts=True)
def output_size(input_size, padding, kernel_size, stride):
    """Pixels along one side of the output: windows that fit in the padded input.

    Assumes square windows and the same padding on all sides.
    Valid where the window fits into the padded input.

    >>> output_size(224, 3, 7, 2)
    112
    """
    return floor((input_size + 2 * padding - kernel_size) / stride) + 1


@equation(source="dumoulin2016convolution", counts=True)
def multiply_adds(output_size, out_channels, kernel_size, in_channels, groups):
    """Multiply-adds of a convolution: one window of its group's inputs per output.

    A linear layer is the case of one pixel and a window of one.

    Assumes direct convolution, with every window counted, those over padding too.
    Valid where the groups divide both numbers of channels.

    >>> multiply_adds(112, 64, 7, 3, 1)
    118013952.0
    """
    return output_size**2 * out_channels * kernel_size**2 * in_channels / groups


@equation(source="dumoulin2016convolution", counts=True)
def parameters(kernel_size, in_channels, out_channels, groups):
    """Weights of a convolution, without bias or normalisation.

    Assumes that each group has windows of its own.
    Valid where the groups divide both numbers of channels.

    >>> parameters(7, 3, 64, 1)
    9408.0
    """
    return kernel_size**2 * in_channels * out_channels / groups
