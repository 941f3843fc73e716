"""What `nvidia-smi` prints: its table, a query, dmon."""

from __future__ import annotations

import pytest

from mlsim.errors import DataFileError
from mlsim.profiling import read_nvidia_smi

MIB = 2**20
QUERY = (
    "index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], "
    "clocks.sm [MHz]\n"
    "0, Tesla T4, 37 %, 1024 MiB, 15360 MiB, 42.50 W, 1590 MHz\n"
    "1, Tesla T4, [N/A], 0 MiB, 15360 MiB, [Not Supported], 300 MHz\n"
)
TABLE = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  Tesla T4                       Off |   00000000:00:04.0 Off |                    0 |
| N/A   34C    P8              9W /   70W |       0MiB /  15360MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:00:05.0 Off |                    0 |
| N/A   61C    P0            395W /  400W |   70123MiB / 81920MiB  |    100%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
DMON = """# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0     42     51      -     37     12      0      0   5000   1590
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0     70     60      -    100     80      0      0   5000   1500
"""


def test_a_query() -> None:
    first, second = read_nvidia_smi(QUERY)
    assert (first.index, first.name, first.busy) == (0, "Tesla T4", 0.37)
    assert (first.memory_used, first.memory_total) == (1024 * MIB, 15360 * MIB)
    assert (first.power, first.clock) == (42.5, 1.59e9)
    # What is not there is absent, not zero.
    assert second.busy is None
    assert second.power is None
    assert second.memory_used == 0


def test_a_query_without_units() -> None:
    plain = (
        QUERY.replace(" %,", ",").replace(" MiB,", ",").replace(" W,", ",").replace(" MHz\n", "\n")
    )
    assert read_nvidia_smi(plain) == read_nvidia_smi(QUERY)


def test_the_table() -> None:
    idle, busy = read_nvidia_smi(TABLE)
    assert (idle.name, idle.busy, idle.power, idle.power_limit) == ("Tesla T4", 0.0, 9.0, 70.0)
    assert (busy.index, busy.name, busy.busy) == (1, "NVIDIA A100-SXM4-80GB", 1.0)
    assert busy.memory_used == 70123 * MIB
    assert busy.temperature == 61


def test_dmon() -> None:
    first, second = read_nvidia_smi(DMON)
    assert (first.busy, first.memory_busy, first.power) == (0.37, 0.12, 42.0)
    assert (second.busy, second.clock, second.memory_clock) == (1.0, 1.5e9, 5e9)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "no output of nvidia-smi"),
        ("0, Tesla T4, 37 %\n", "leave noheader out"),
        ("index, utilization.gpu [%]\n0\n", "line 2: 1 cells below 2 columns"),
        ("index, utilization.gpu [%]\n0, many %\n", "line 2: 'many %' is no number"),
        ("index, memory.used [MiB]\n0, 5 furlongs\n", "'furlongs' is no unit"),
        ("# gpu pwr sm\n# Idx W %\n 0 42\n", "line 3: 2 cells below 3 columns"),
    ],
)
def test_what_can_t_be_read_is_refused(printed: str, said: str) -> None:
    with pytest.raises(DataFileError, match=said):
        read_nvidia_smi(printed)
