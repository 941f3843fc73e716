"""The API that existing tutorials use is the contract: their cells run unchanged.

The cells are those of a published first tutorial, from its section 2 on. They
run in one namespace, after the two lines of SETUP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

SETUP = """
import mlsim as mlsysim
from mlsim import Engine
"""

SELECT = """
# Load ResNet-50 from the Model Zoo
model = mlsysim.Models.ResNet50

# Load NVIDIA A100 from the Silicon Zoo
hardware = mlsysim.Hardware.Cloud.A100

print(f"Model: {model.name} ({model.architecture})")
print(f"Hardware: {hardware.name} ({hardware.release_year})")
print(f"")
print(f"Model FLOPs (inference): {model.inference_flops}")
print(f"Hardware Peak TFLOP/s: {hardware.compute.peak_flops.to('TFLOPs/s'):.0f}")
print(f"Hardware Memory BW: {hardware.memory.bandwidth.to('TB/s'):.1f}")
"""

SOLVE = """
profile = Engine.solve(
    model=model,
    hardware=hardware,
    batch_size=1,
    precision="fp16"
)

print(f"Bottleneck: {profile.bottleneck}")
print(f"Latency: {profile.latency.to('ms'):~.3f} per inference")
print(f"Throughput: {profile.throughput:.0f} images/sec")
"""

SWEEP = """
print(f"{'Batch':>6} {'Bottleneck':<16} {'Throughput':>12} {'Latency':>10}")
print("-" * 52)

for batch in [1, 4, 16, 32, 64, 128, 256]:
    p = Engine.solve(
        model=model,
        hardware=hardware,
        batch_size=batch,
        precision="fp16"
    )
    print(
        f"{batch:>6} {p.bottleneck:<16} "
        f"{p.throughput:>10.0f}/s "
        f"{p.latency.to('ms').magnitude:>8.2f} ms"
    )
"""

PLOT = """
import matplotlib.pyplot as plt

fig, ax = mlsysim.plot_roofline(hardware, workloads=[model])
ax.set_title(f"Roofline: {model.name} on {hardware.name}")
plt.show()
"""


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """Run the setup and the first cell, which the others build on."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    space: dict[str, object] = {}
    exec(SETUP + SELECT, space)
    yield space
    matplotlib.pyplot.close("all")


def test_all_cells_run_in_one_namespace(namespace: dict[str, object], capsys) -> None:
    for cell in (SOLVE, SWEEP, PLOT):
        exec(cell, namespace)
    printed = capsys.readouterr().out
    assert "Traceback" not in printed


def test_the_cell_that_selects(namespace: dict[str, object], capsys) -> None:
    capsys.readouterr()
    exec(SELECT, namespace)
    assert capsys.readouterr().out.splitlines() == [
        "Model: ResNet-50 v1.5 (CNN)",
        "Hardware: NVIDIA A100 SXM 80 GB (2020)",
        "",
        "Model FLOPs (inference): 8.18 GFLOP",
        "Hardware Peak TFLOP/s: 312 TFLOP/s",
        "Hardware Memory BW: 2.0 TB/s",
    ]


def test_the_cell_that_solves(namespace: dict[str, object], capsys) -> None:
    capsys.readouterr()
    exec(SOLVE, namespace)
    assert capsys.readouterr().out.splitlines() == [
        "Bottleneck: Memory Bound",
        "Latency: 0.055 ms per inference",
        "Throughput: 18024 images/sec",
    ]


def test_the_cell_that_sweeps(namespace: dict[str, object], capsys) -> None:
    capsys.readouterr()
    exec(SWEEP, namespace)
    header, rule, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["Batch", "Bottleneck", "Throughput", "Latency"]
    assert rule == "-" * 52
    found = [
        re.fullmatch(r" +(\d+) (Memory|Compute) Bound +(\d+)/s +(\d+\.\d\d) ms", row)
        for row in rows
    ]
    assert all(found)
    values = [(int(m[1]), m[2], int(m[3]), float(m[4])) for m in found if m]
    assert [batch for batch, *_ in values] == [1, 4, 16, 32, 64, 128, 256]
    # The label of the whole network never changes; each image gets cheaper.
    assert {bottleneck for _, bottleneck, *_ in values} == {"Memory"}
    rates = [rate for _, _, rate, _ in values]
    assert rates == sorted(rates)
    for batch, _, rate, milliseconds in values:
        assert milliseconds == pytest.approx(batch / rate * 1e3, abs=0.006)


def test_the_cell_that_plots(namespace: dict[str, object]) -> None:
    exec(PLOT, namespace)
    ax = namespace["ax"]
    assert ax.get_title() == "Roofline: ResNet-50 v1.5 on NVIDIA A100 SXM 80 GB"  # type: ignore[attr-defined]
    assert ax in namespace["fig"].axes  # type: ignore[attr-defined]


def test_the_exercises_of_the_tutorial_can_be_answered(namespace: dict[str, object]) -> None:
    """Other devices and another precision, by the names that it uses."""
    exec(
        """
results = {}
for device in (mlsysim.Hardware.Cloud.H100, mlsysim.Hardware.Cloud.V100, hardware):
    for batch in (1, 256):
        results[device.name, batch] = Engine.solve(
            model=model, hardware=device, batch_size=batch, precision="fp16"
        ).latency
whole = Engine.solve(model=model, hardware=hardware, batch_size=1, precision="int8")
half = Engine.solve(model=model, hardware=hardware, batch_size=1, precision="fp16")
""",
        namespace,
    )
    results = namespace["results"]
    names = ["NVIDIA H100 SXM 80 GB", "NVIDIA A100 SXM 80 GB", "NVIDIA V100 SXM2 16 GB"]
    for batch in (1, 256):
        latencies = [results[name, batch] for name in names]  # type: ignore[index]
        assert latencies == sorted(latencies)
    whole, half = namespace["whole"], namespace["half"]
    assert whole.latency < half.latency  # type: ignore[attr-defined]
