"""A kernel that dies: where it was, how it ended, and what is said of it."""

from __future__ import annotations

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from mlsim_book.errors import CellError


class KernelGoneError(DeadKernelError):
    """The kernel died while it ran what stands at a place."""

    def __init__(self, what: str, file: str, line: int | None, code: int | None = None) -> None:
        self.what, self.file, self.line, self.code = what, file, line, code
        super().__init__(what)

    @property
    def place(self) -> str:
        """Where it died, as `file:line`."""
        return f"{self.file}:{self.line}" if self.line else self.file


async def gone(
    client: NotebookClient, what: str, file: str, line: int | None = None
) -> KernelGoneError:
    """Return the error of a kernel that is gone, with its exit code if that is known."""
    provisioner = client.km.provisioner if client.km else None
    code = await provisioner.poll() if provisioner else None
    return KernelGoneError(what, file, line, code)


def located(error: DeadKernelError, name: str) -> KernelGoneError:
    """Return where a kernel died; before the first cell there is only the page."""
    if isinstance(error, KernelGoneError):
        return error
    return KernelGoneError(f"its start ({error})", name, None)


def died_twice(dead: KernelGoneError) -> CellError:
    """Return the error of a page whose kernel died again when it was run again."""
    return CellError(
        f"the kernel died twice, in {dead.what}{ending(dead.code)}",
        file=dead.file,
        line=dead.line,
        hint="It may need more memory than there is, call os._exit() or crash a library: "
        "run fewer pages at a time with --jobs 1, or make it smaller.",
    )


def ending(code: int | None) -> str:
    """Say how a process ended, from its exit code.

    >>> ending(3), ending(-9), ending(None)
    (' (exit code 3)', ' (signal 9: killed, as for want of memory)', '')
    """
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    return f" (signal {-code}{': killed, as for want of memory' if code == -9 else ''})"
