"""Kernels where there is no C compiler: Numba's, or NumPy's own addition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mlsim.errors import MissingLibraryError
from mlsim.profiling.measuring.c_kernels import CompiledKernels, compile_kernels


class Kernels(Protocol):
    """What goes through memory: three arrays, of which one is written."""

    @property
    def compiler(self) -> str:
        """What made the kernels, in words."""

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Go through three arrays of doubles so many times."""


class NumpyKernels:
    """NumPy's addition of two arrays into a third: it moves what a triad moves.

    A call of NumPy takes about as long as a pass over some ten kilobytes, so the first level
    of cache does not show.
    """

    def __init__(self, numpy: Any) -> None:
        self._add = numpy.add
        self.compiler = f"NumPy {numpy.__version__}, addition of two arrays into a third"

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Add b and c into a, so many times."""
        a, b, c = arrays
        for _ in range(passes):
            self._add(b, c, out=a)


class NumbaKernels:
    """A triad that Numba compiles; it leaves the interpreter while it runs."""

    def __init__(self, numba: Any) -> None:
        @numba.njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
        def triad(a: Any, b: Any, c: Any, passes: int) -> None:
            for _ in range(passes):
                for i in range(a.size):
                    a[i] = b[i] + 3.0 * c[i]

        self._triad = triad
        self.compiler = f"Numba {numba.__version__}"

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Go through three arrays of doubles so many times: the first gets b + 3 c."""
        self._triad(*arrays, passes)


def find_kernels(numpy: Any, kernels: str = "auto") -> Kernels | CompiledKernels:
    """Return the best kernels there are: C's, Numba's, or NumPy's.

    Parameters
    ----------
    kernels
        "c", "numba" or "numpy" asks for these and nothing else.

    Raises
    ------
    MissingLibraryError
        If those that were asked for are not to be had.
    """
    if kernels in ("auto", "c"):
        try:
            return compile_kernels()
        except MissingLibraryError:
            if kernels == "c":
                raise
    if kernels in ("auto", "numba"):
        try:
            import numba  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            if kernels == "numba":
                raise MissingLibraryError(
                    "Numba is not installed: pip install numba, or measure with kernels='c'."
                ) from error
        else:
            return NumbaKernels(numba)
    return NumpyKernels(numpy)
