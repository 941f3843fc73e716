"""The API that existing tutorials use is the contract: their cells run unchanged.

The cells are those of a published first tutorial, from its section 2 on. They
run in one namespace, after two lines that import the package by the tutorial's name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "fixtures" / "tutorial_cells.py.txt"
CELLS = dict(part.split("\n", 1) for part in FILE.read_text(encoding="utf-8").split("\n# %% ")[1:])
PRINTED = {
    "select": """\
Model: ResNet-50 v1.5 (CNN)
Hardware: NVIDIA A100 SXM 80 GB (2020)

Model FLOPs (inference): 8.18 GFLOP
Hardware Peak TFLOP/s: 312 TFLOP/s
Hardware Memory BW: 2.0 TB/s""",
    "solve": """\
Bottleneck: Memory Bound
Latency: 0.055 ms per inference
Throughput: 18024 images/sec""",
}


def test_its_cells_run_in_one_namespace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    space: dict[str, Any] = {}
    printed = {}
    for name, cell in CELLS.items():
        exec(cell, space)
        printed[name] = capsys.readouterr().out.splitlines()
    assert {name: "\n".join(printed[name]) for name in PRINTED} == PRINTED
    header, rule, *rows = printed["sweep"]
    assert header.split() == ["Batch", "Bottleneck", "Throughput", "Latency"]
    assert rule == "-" * 52
    pattern = r" +(\d+) (Memory|Compute) Bound +(\d+)/s +(\d+\.\d\d) ms"
    values = [(int(b), m, int(r), float(t)) for b, m, r, t in re.findall(pattern, "\n".join(rows))]
    assert [batch for batch, *_ in values] == [1, 4, 16, 32, 64, 128, 256]
    # The label of the whole network never changes; each image gets cheaper.
    assert {bottleneck for _, bottleneck, *_ in values} == {"Memory"}
    rates = [rate for _, _, rate, _ in values]
    assert rates == sorted(rates)
    for batch, _, rate, milliseconds in values:
        assert milliseconds == pytest.approx(batch / rate * 1e3, abs=0.006)
    assert space["ax"].get_title() == "Roofline: ResNet-50 v1.5 on NVIDIA A100 SXM 80 GB"
    assert space["ax"] in space["fig"].axes
    # Its exercises: other devices and another precision, by the names that it uses.
    names = ["NVIDIA H100 SXM 80 GB", "NVIDIA A100 SXM 80 GB", "NVIDIA V100 SXM2 16 GB"]
    for batch in (1, 256):
        latencies = [space["results"][name, batch] for name in names]
        assert latencies == sorted(latencies)
    assert space["whole"].latency < space["half"].latency
    space["plt"].close("all")
