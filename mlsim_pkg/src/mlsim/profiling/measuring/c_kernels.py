"""Kernels in C: a triad over three arrays, and multiply-adds on numbers in registers.

The source is written to a temporary folder, compiled for this processor and loaded. Nothing
is installed. Threads are Python's: a call leaves the interpreter while it runs, so several
run at once, with any compiler.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim.errors import MissingLibraryError

SOURCE = r"""
#include <stddef.h>

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
/* No vectors: a scalar of the type itself. */
#if defined(SCALAR)
typedef float numbers_fp32;
typedef double numbers_fp64;
#else
typedef float numbers_fp32 __attribute__((vector_size(WIDTH)));
typedef double numbers_fp64 __attribute__((vector_size(WIDTH)));
#endif

/* The memory is touched between two passes, so that none is left out. */
void triad(double *a, const double *b, const double *c, double s, size_t n, long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] + s * c[i];
        __asm__ volatile("" : : "r"(a) : "memory");
    }
}

/* Twelve chains of multiply-adds, so that none waits for another. */
#define CHAINS(TYPE)                                                                        \
    long chains_##TYPE(long rounds, volatile void *out)                                     \
    {                                                                                       \
        numbers_##TYPE m = {0}, p = {0}, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, xa, xb;    \
        m = m + 0.999f; p = p + 0.001f;                                                     \
        x0 = x1 = x2 = x3 = x4 = x5 = x6 = x7 = x8 = x9 = xa = xb = p;                      \
        for (long i = 0; i < rounds; i++) {                                                 \
            x0 = x0 * m + p; x1 = x1 * m + p; x2 = x2 * m + p; x3 = x3 * m + p;             \
            x4 = x4 * m + p; x5 = x5 * m + p; x6 = x6 * m + p; x7 = x7 * m + p;             \
            x8 = x8 * m + p; x9 = x9 * m + p; xa = xa * m + p; xb = xb * m + p;             \
        }                                                                                   \
        *(volatile numbers_##TYPE *)out = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7)) \
            + ((x8 + x9) + (xa + xb));                                                      \
        return (long)(sizeof(numbers_##TYPE) / sizeof(x0[0]));                              \
    }
#if defined(SCALAR)
#undef CHAINS
#define CHAINS(TYPE)                                                                        \
    long chains_##TYPE(long rounds, volatile void *out)                                     \
    {                                                                                       \
        numbers_##TYPE m = 0.999f, p = 0.001f;                                              \
        numbers_##TYPE x0 = p, x1 = p, x2 = p, x3 = p, x4 = p, x5 = p, x6 = p, x7 = p;      \
        numbers_##TYPE x8 = p, x9 = p, xa = p, xb = p;                                      \
        for (long i = 0; i < rounds; i++) {                                                 \
            x0 = x0 * m + p; x1 = x1 * m + p; x2 = x2 * m + p; x3 = x3 * m + p;             \
            x4 = x4 * m + p; x5 = x5 * m + p; x6 = x6 * m + p; x7 = x7 * m + p;             \
            x8 = x8 * m + p; x9 = x9 * m + p; xa = xa * m + p; xb = xb * m + p;             \
        }                                                                                   \
        *(volatile numbers_##TYPE *)out = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7             \
            + x8 + x9 + xa + xb;                                                            \
        return 1;                                                                           \
    }
#endif
CHAINS(fp32)
CHAINS(fp64)
"""
CHAINS = 12

# What the register kernels are compiled as: with everything, and with a thing less.
VARIANTS: dict[str, tuple[str, ...]] = {
    "registers": ("-ffp-contract=fast",),
    "no_fma": ("-ffp-contract=off",),
    "no_vectors": ("-ffp-contract=fast", "-DSCALAR", "-fno-tree-vectorize", "-fno-slp-vectorize"),
}
_OPTIONS = ("-O3", "-fPIC", "-shared")


@dataclass(frozen=True)
class CompiledKernels:
    """Loaded kernels, and the words that say how they were compiled."""

    libraries: dict[str, Any]
    compiler: str

    def triad(self, arrays: Sequence[Any], passes: int) -> None:
        """Go through three arrays of doubles so many times: the first gets b + 3 c."""
        addresses = [each.ctypes.data for each in arrays]
        self.libraries["registers"].triad(*addresses, 3.0, len(arrays[0]), passes)

    def chains(self, variant: str, precision: str, rounds: int) -> int:
        """Run chains of multiply-adds; return how many a round has."""
        out = ctypes.create_string_buffer(256)
        aligned = ctypes.addressof(out) + (-ctypes.addressof(out) % 64)
        function = getattr(self.libraries[variant], f"chains_{precision}")
        return CHAINS * int(function(rounds, aligned))


def find_compiler() -> str:
    """Return the path of a C compiler: that of the variable CC, else cc, gcc or clang.

    Raises
    ------
    MissingLibraryError
        If there is none.
    """
    for name in (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise MissingLibraryError(
        "there is no C compiler (cc, gcc, clang, or the variable CC). Install one (Debian: "
        "apt install gcc; macOS: xcode-select --install), or measure with NumPy alone."
    )


def compile_kernels(compiler: str | None = None) -> CompiledKernels:
    """Compile and load the kernels for this processor.

    Raises
    ------
    MissingLibraryError
        If there is no compiler, or it fails; with what it said.
    """
    path = compiler or find_compiler()
    with tempfile.TemporaryDirectory(prefix="mlsim-") as folder:
        source = Path(folder) / "kernels.c"
        source.write_text(SOURCE, encoding="utf-8")
        libraries, native = {}, ""
        for variant, options in VARIANTS.items():
            target = Path(folder) / f"{variant}.so"
            native = _compile(path, source, target, options)
            libraries[variant] = _load(target)
    return CompiledKernels(libraries, f"{_version(path)} {_OPTIONS[0]} {native}".strip())


def _compile(compiler: str, source: Path, target: Path, options: Sequence[str]) -> str:
    """Compile for this very processor; where a compiler can't, for any of its kind."""
    said = ""
    for native in ("-march=native", "-mcpu=native", ""):
        # A compiler that lacks an option that turns something off has nothing to turn off.
        for wanted in (options, [each for each in options if "slp" not in each]):
            command = [compiler, *_OPTIONS, *filter(None, [native]), *wanted]
            try:
                done = subprocess.run(
                    [*command, str(source), "-o", str(target)],
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
            except (OSError, subprocess.SubprocessError) as error:
                said = str(error)
                continue
            if done.returncode == 0 and target.exists():
                return native
            said = done.stderr.strip()
    last = said.splitlines()[-1] if said else "no message"
    raise MissingLibraryError(f"{compiler} could not compile the kernels: {last}")


def _load(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    library.triad.argtypes = [ctypes.c_void_p] * 3 + [
        ctypes.c_double,
        ctypes.c_size_t,
        ctypes.c_long,
    ]
    library.triad.restype = None
    for precision in ("fp32", "fp64"):
        function = getattr(library, f"chains_{precision}")
        function.argtypes, function.restype = [ctypes.c_long, ctypes.c_void_p], ctypes.c_long
    return library


def _version(compiler: str) -> str:
    try:
        done = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return Path(compiler).name
    return (done.stdout.splitlines() or [Path(compiler).name])[0].strip()
