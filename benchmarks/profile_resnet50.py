"""Record ResNet-50 with PyTorch's profiler, as the chapter on measuring reads it.

    mlsim measure --out machine.toml
    python benchmarks/profile_resnet50.py --out FOLDER

writes two traces of forward passes in FP32 on all cores: `counts.json.gz`, one pass with shapes,
from which operations follow; and `times.json.gz`, three later passes. A pass from which another
program took a core is thrown away and made again. The network is ResNet-50 v1.5 (the stride in the
3 x 3 convolutions), with random weights: times do not depend on them. Nothing else should run; the
load before and after is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from mlsim.profiling.measuring.samples import disturbed, thread_waits

WIDTHS, BLOCKS = (64, 128, 256, 512), (3, 4, 6, 3)
TIMED, MOST_TRIES = 3, 400
PRIVATE = ("host_name", "trace_id", "traceName")


def convolution(inside: int, outside: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Return a convolution with its normalization."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outside),
    )


class Bottleneck(nn.Module):
    """Three convolutions and a way around them."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = convolution(inside, width, 1), convolution(width, width, 3, stride)
        self.c, self.relu = convolution(width, 4 * width, 1), nn.ReLU(inplace=True)
        same = stride == 1 and inside == 4 * width
        self.way = nn.Identity() if same else convolution(inside, 4 * width, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Run the block."""
        out = self.c(self.relu(self.b(self.relu(self.a(x)))))
        out += self.way(x)
        return self.relu(out)


def resnet50() -> nn.Sequential:
    """Return the network, ready for inference."""
    layers: list[nn.Module] = [
        convolution(3, 64, 7, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = 64
    for stage, (width, count) in enumerate(zip(WIDTHS, BLOCKS, strict=True)):
        for block in range(count):
            layers.append(Bottleneck(inside, width, 2 if stage and not block else 1))
            inside = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000)]
    network = nn.Sequential(*layers).eval()
    assert sum(each.numel() for each in network.parameters()) == 25_557_032
    return network


def record(network: nn.Module, images: Tensor, passes: int) -> tuple[profile, float, int]:
    """Return a profile of some passes that nobody disturbed, its seconds, and how many tries."""
    for tries in range(1, MOST_TRIES + 1):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as found:
            before, start = thread_waits(), perf_counter()
            for _ in range(passes):
                network(images)
            seconds = perf_counter() - start
            after = thread_waits()
        if not disturbed(before, after, seconds):
            return found, seconds, tries
    raise SystemExit(f"other programs took a core from each of {MOST_TRIES} tries.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"load before: {os.getloadavg()[0]:.2f}; PyTorch {torch.__version__}, "
          f"{torch.get_num_threads()} threads")  # fmt: skip
    network, images = resnet50(), torch.rand(options.batch, 3, 224, 224)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            network(images)
        for name, passes in (("counts", 1), ("times", TIMED)):
            found, seconds, tries = record(network, images, passes)
            plain = Path(folder) / f"{name}.json"
            found.export_chrome_trace(str(plain))
            trace = json.loads(plain.read_text(encoding="utf-8"))
            # Names of this machine and its folders are nobody's business.
            kept = {key: value for key, value in trace.items() if key not in PRIVATE}
            text = json.dumps(kept, separators=(",", ":")).encode()
            (options.out / f"{name}.json.gz").write_bytes(gzip.compress(text, mtime=0))
            print(f"{name}: {passes} passes in {seconds:.4f} s, try {tries}")
    print(f"load after: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
