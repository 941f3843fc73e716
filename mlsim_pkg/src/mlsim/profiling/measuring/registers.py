"""Ceilings of the arithmetic units: multiply-adds on numbers that are in registers.

No product of matrices reaches them, since it must also fetch its numbers. Without fused
multiply-adds, or without vectors, they are lower: those are the roofs of code that a compiler
could not make better.
"""

from __future__ import annotations

from mlsim.equations import roofline
from mlsim.profiling.measuring.c_kernels import VARIANTS, CompiledKernels
from mlsim.profiling.measuring.samples import Workers, best_sample, enough_passes

PRECISIONS = ("fp64", "fp32")


class RegisterChains:
    """Chains of multiply-adds on every worker."""

    def __init__(self, kernels: CompiledKernels, workers: Workers) -> None:
        self._kernels, self._workers = kernels, workers
        self._rounds: dict[tuple[str, str], int] = {}

    def rate(self, variant: str, precision: str, samples: int) -> float | None:
        """Return operations a second of all workers; None where all samples were disturbed."""

        def job(_: int, passes: int) -> None:
            self._kernels.chains(variant, precision, passes)

        key = (variant, precision)
        if key not in self._rounds:
            self._rounds[key], _ = enough_passes(self._workers, job, begin=10_000)
        found = best_sample(self._workers, job, self._rounds[key], samples)
        if not found.clean:
            return None
        adds = self._kernels.chains(variant, precision, 1) * self._workers.count
        return float(roofline.achieved_flops(roofline.flops(2.0, float(adds), 1.0), found.seconds))

    def measure(self, samples: int) -> dict[str, float | None]:
        """Return the rate of each variant and precision: "ceilings.fp32_no_fma"."""
        return {
            f"ceilings.{precision}_{variant}": self.rate(variant, precision, samples)
            for variant in VARIANTS
            for precision in PRECISIONS
        }
