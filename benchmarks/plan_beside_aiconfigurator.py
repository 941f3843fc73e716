"""What `Engine.plan` and aiconfigurator choose for Llama 3.1 70B, for three goals.

    python benchmarks/plan_beside_aiconfigurator.py --rival rival/bin/aiconfigurator [--folder F]

aiconfigurator 0.12.0 plans one kind of device at a time and ranks layouts by tokens per device,
so it is asked for an H100, an H200 and a B200, eight of them, with the kernels it measured for
vLLM. Its choices are then put in order by our prices of a device, for the same rate of
requests. Both plan weights, arithmetic and cache in 16 bits, and neither splits prefill from
decode here (`--serving-mode agg`). What it printed is kept in the folder and read again.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tables import lay_out

from mlsim import Engine

MODEL, NAME = "Llama3_1_70B", "meta-llama/Meta-Llama-3.1-70B"
SYSTEMS = {"h100_sxm": "H100", "h200_sxm": "H200", "b200_sxm": "B200"}
RATE, PROMPT, OUTPUT = 10.0, 1000, 300
# Milliseconds to the first token, and for each that follows.
GOALS = ((1000, 50), (500, 20), (2000, 100))
FIRST = 3


@dataclass(frozen=True)
class Choice:
    """One layout: requests a second of a copy, and what a fleet of them costs."""

    device: str
    layout: str
    batch: int
    devices: int
    rate: float
    first_token: float
    per_token: float
    price: float

    @property
    def cost(self) -> float:
        """USD an hour for as many whole copies as the rate takes."""
        return math.ceil(RATE / self.rate) * self.devices * self.price

    def cells(self) -> list[str]:
        """Return it as cells of a table."""
        return [
            f"{math.ceil(RATE / self.rate)} x {self.devices} {self.device} {self.layout}",
            f"{self.batch}",
            f"{self.rate * OUTPUT / self.devices:.0f}",
            f"{self.first_token:.0f} ms",
            f"{self.per_token:.1f} ms",
            f"{self.cost:.2f}",
        ]


def ours(asked: dict[str, object]) -> list[Choice]:
    """Return our layouts on the same devices."""
    choices = []
    for option in Engine.plan(**asked, hardware=list(SYSTEMS.values())).options:
        service = option.service
        device = next(name for name in SYSTEMS.values() if name in service.device.name)
        choices.append(
            Choice(
                device,
                f"TP{service.parallelism.tensor}",
                round(option.value("running_requests")),
                round(option.value("replica_devices")),
                option.value("replica_rate"),
                1e3 * option.value("time_to_first_token"),
                1e3 * option.value("time_per_output_token"),
                3600 * option.candidate.price,
            )
        )
    return choices


def question(first: float, each: float) -> dict[str, object]:
    """Return what `Engine.plan` is asked."""
    return {
        "model": MODEL,
        "rate": RATE,
        "time_to_first_token": f"{first} ms",
        "time_per_output_token": f"{each} ms",
        "prompt_tokens": PROMPT,
        "output_tokens": OUTPUT,
        "precision": "bf16",
    }


def theirs(
    rival: str, folder: Path, first: float, each: float, prices: dict[str, float]
) -> tuple[list[Choice], float]:
    """Return aiconfigurator's layouts on all devices, and the seconds that it took."""
    choices, took = [], 0.0
    for system, device in SYSTEMS.items():
        path = folder / f"{system}_{first}_{each}.txt"
        if not path.exists():
            command = [rival, "cli", "default", "--model-path", NAME, "--total-gpus", "8"]
            command += ["--system", system, "--backend", "vllm", "--serving-mode", "agg"]
            command += ["--isl", f"{PROMPT}", "--osl", f"{OUTPUT}", "--top-n", f"{FIRST}"]
            command += ["--ttft", f"{first}", "--tpot", f"{each}", "--strict-sla", "--no-color"]
            began = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            told = f"seconds {time.perf_counter() - began:.1f}\n{done.stdout}{done.stderr}"
            path.write_text(told, encoding="utf-8")
        text = path.read_text(encoding="utf-8")
        took += float(text.split(maxsplit=2)[1])
        choices += read(text, device, prices.get(device, math.nan))
    return choices, took


def read(text: str, device: str, price: float) -> list[Choice]:
    """Return the layouts of the table that it printed."""
    found, head = [], []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "Rank":
            head = cells
        elif head and cells[0].isdigit():
            row = dict(zip(head, cells, strict=True))
            copies = int(row["replicas"])
            found.append(
                Choice(
                    device,
                    row["parallel"].removesuffix("pp1").upper(),
                    int(row["bs"]),
                    int(row["gpus/replica"]),
                    float(row["req/s"]) / copies,
                    float(row["TTFT"]),
                    1e3 / float(row["tokens/s/user"]),
                    price,
                )
            )
    return found


def main() -> None:
    """Plan with both, and print the first three of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rival", required=True, help="the command aiconfigurator")
    parser.add_argument("--folder", type=Path, default=Path("plans"))
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    head = ["copies x devices", "batch", "tokens/s/device", "first token", "each", "USD/h"]
    for first, each in GOALS:
        print(f"\n{RATE:g} requests/s of {PROMPT} + {OUTPUT} tokens, {first} ms and {each} ms")
        asking = question(first, each)
        began = time.perf_counter()
        everywhere = Engine.plan(**asking)
        took = time.perf_counter() - began
        print(f"  first of all rented devices: {everywhere.report().rows[0][1]}")
        own, alone = ours(asking), ours({**asking, "software": "kernels"})
        prices = {choice.device: choice.price for choice in own}
        other, needed = theirs(asked.rival, asked.folder, first, each, prices)
        print(f"  mlsim: {took:.1f} s for all rented devices")
        print(f"  aiconfigurator: {needed:.1f} s for these three, one after another")
        for name, choices in (("mlsim", own), ("aiconfigurator", other)):
            ordered = sorted(choices, key=lambda choice: choice.cost)[:FIRST]
            print(f"\n{lay_out([name, *head[1:]], [choice.cells() for choice in ordered])}")
        print("\nfirst of each device, by its tokens a second")
        rows = []
        for device in SYSTEMS.values():
            for name, choices in (
                ("mlsim", own),
                ("mlsim, kernels alone", alone),
                ("aiconfigurator", other),
            ):
                of = [choice for choice in choices if choice.device == device]
                if of:
                    best = max(of, key=lambda choice: choice.rate / choice.devices)
                    rows.append([name, *best.cells()])
        print(lay_out(["", *head], rows), flush=True)


if __name__ == "__main__":
    sys.exit(main())
