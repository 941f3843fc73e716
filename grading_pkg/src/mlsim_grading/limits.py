"""What a submission may take."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 5000  # characters of an answer that is a text; escaped, a line of the channel holds them


@dataclass(frozen=True)
class Limits:
    """What a submission may take, with everything that it starts.

    Seconds for a cell and in all; bytes of memory (of all its processes and of its files, which
    lie in memory), of its home and of one file; processes and threads; files.
    """

    cell_seconds: int = 10
    seconds: int = 30
    memory: int = 4 * 2**30
    file_size: int = 64 * 2**20
    home: int = 256 * 2**20
    processes: int = 32
    files: int = 2000
