"""Names of kernels, short and safe to print."""

from __future__ import annotations


def short_name(name: str) -> str:
    """Return a kernel's name without arguments, template and namespaces.

    >>> short_name("void at::native::elementwise_kernel<4, at::Add<float>>(int, float*)")
    'elementwise_kernel'
    >>> short_name("ampere_sgemm_128x64_tn"), short_name("")
    ('ampere_sgemm_128x64_tn', '(no name)')
    """
    depth, kept = 0, []
    for letter in name.replace("(anonymous namespace)", "anonymous"):
        if letter in "<({[":
            depth += 1
        elif letter in ">)}]":
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(letter)
    words = "".join(kept).split()
    short = words[-1].split("::")[-1] if words else ""
    return printable(short or name.strip() or "(no name)")[:60]


def printable(text: str) -> str:
    r"""Return a text without signs that would move a terminal's cursor or turn a line around.

    >>> printable("gemm\x1b[2J")
    'gemm?[2J'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)
