"""Measure networks, language models, training steps and experts with PyTorch on one GPU.

    python benchmarks/gpu/measure_gpu.py --out FOLDER [--parts serve,decode,train] [--seconds 400]

writes `models.csv`, whose rows `mlsim calibrate models.csv --explain` sets beside predictions;
`experts.csv`, grouped products with equal and with uneven shares of the tokens; and `power.csv`,
readings of nvidia-smi while products and then copies run. Weights are random: times don't depend on
them. A time is the median of calls, each from one wait for the device to the next; that of a
kernel is from replays of a CUDA graph with twenty of them. `--small` takes toy sizes, on any
machine.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torchvision.models
import transformers

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
MODEL_COLUMNS = (
    *("kind", "model", "hardware", "batch_size", "global_batch", "micro_batch", "prompt_tokens"),
    *("output_tokens", "sequence_tokens", "precision", "optimizer", "recompute", "software"),
    *("measured", "unit", "note"),
)
EXPERT_COLUMNS = (
    *("experts", "active", "hidden", "intermediate", "tokens", "shares", "hit", "largest"),
    *("format", "gate_up_ms", "down_ms", "note"),
)
NETWORKS = {
    "ResNet50": "resnet50",
    "ResNet18": "resnet18",
    "MobileNetV2": "mobilenet_v2",
    "EfficientNet_B0": "efficientnet_b0",
    "VGG16": "vgg16",
    "ViT_B16": "vit_b_16",
    "ResNet152": "resnet152",
}
GRAPHED = ("ResNet50", "ViT_B16", "MobileNetV2")
# Experts, of which a token takes so many, width of the model and of an expert.
EXPERTS = (
    *((8, 2, 4096, 14336), (128, 8, 2048, 768), (32, 4, 2880, 2880)),
    *((256, 8, 7168, 256), (128, 8, 4096, 1536), (256, 8, 7168, 2048)),
)
LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
TINY_LLAMA = {
    **LLAMA,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
QWEN = {"num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936}
QWEN_EXPERTS = {
    **LLAMA,
    **QWEN,
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
}
QWEN_32B = {
    **QWEN,
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
}
TOY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 512}


class Session:
    """What was asked on the command line, how much time is left, and the rows found so far."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.out, self.hardware, self.small = asked.out, asked.hardware, asked.small
        self.end = time.monotonic() + asked.seconds
        self.tables = {"models": MODEL_COLUMNS, "experts": EXPERT_COLUMNS}

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() > self.end

    def add(self, table: str, **row: Any) -> None:
        """Append a row to a table's file, which is begun where there is none."""
        path, columns = self.out / f"{table}.csv", self.tables[table]
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(table, *row.values(), flush=True)

    def timed(self, kind: str, model: str, times: list[float], note: str, **more: Any) -> None:
        """Append the median of a model's times."""
        spread = f"median of {len(times)}; least {min(times) * 1e3:.3f} ms"
        row = {"kind": kind, "model": model, "hardware": self.hardware, **more}
        self.add("models", **row, measured=median(times), unit="s", note=f"{note}; {spread}")


def once(call: Callable[[], Any]) -> float:
    """Return how long a call takes, in s, until the device has done it."""
    wait()
    start = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - start


def wait() -> None:
    """Wait until the device has done all."""
    if ON_GPU:
        torch.cuda.synchronize()


def clock(call: Callable[[], Any], seconds: float = 0.5, most: int = 60) -> list[float]:
    """Return times of five calls or more, in s, after three that warm up."""
    for _ in range(3):
        call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < most):
        times.append(once(call))
    return times


def graphed(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return what replays a call that was recorded in a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def free(model: torch.nn.Module) -> None:
    """Give a model's memory back before the next one is made."""
    model.to("meta")
    clean()


def clean() -> None:
    """Give back what nothing refers to."""
    gc.collect()
    if ON_GPU:
        torch.cuda.empty_cache()


def network(name: str, batch: int, dtype: torch.dtype) -> tuple[torch.nn.Module, torch.Tensor]:
    """Return a network of torchvision and its images, channels last where it convolves."""
    model = getattr(torchvision.models, NETWORKS[name])().to(DEVICE, dtype)
    images = torch.randn(batch, 3, 224, 224, device=DEVICE, dtype=dtype)
    if name == "ViT_B16":
        return model, images
    last = torch.channels_last
    return model.to(memory_format=last), images.contiguous(memory_format=last)


def networks(session: Session) -> None:
    """Time forward passes, eager and, of some networks, in a CUDA graph."""
    dtype = torch.float16 if ON_GPU else torch.float32
    for name in NETWORKS:
        for batch in (1, 2) if session.small else (1, 8, 32, 128, 256):
            if session.over:
                return
            model, images = network(name, batch, dtype)
            model.eval()
            row = {"batch_size": batch, "precision": "fp16"}
            with torch.inference_mode():
                times = clock(lambda: model(images))  # noqa: B023
                session.timed("solve", name, times, "torchvision", **row, software="eager")
                if ON_GPU and name in GRAPHED:
                    times = clock(graphed(lambda: model(images)))  # noqa: B023
                    note = "torchvision, in a CUDA graph"
                    session.timed("solve", name, times, note, **row, software="graph")
            free(model)


def step_of(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[], Any]
) -> Callable[[], None]:
    """Return a training step with automatic mixed precision."""

    def step() -> None:
        with torch.autocast(DEVICE, torch.bfloat16):
            found = loss()
        optimizer.zero_grad(set_to_none=True)
        found.backward()
        optimizer.step()

    model.train()
    return step


def train_networks(session: Session) -> None:
    """Time training steps of networks; images lie on the device."""
    cases = (
        *(("ResNet50", 64), ("ResNet50", 256), ("ViT_B16", 64), ("ViT_B16", 256)),
        *(("ResNet18", 256), ("MobileNetV2", 256), ("VGG16", 64)),
    )
    for name, samples in cases:
        if session.over:
            return
        batch = 2 if session.small else samples
        model, images = network(name, batch, torch.float32)
        labels = torch.randint(0, 1000, (batch,), device=DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
        loss = lambda: torch.nn.functional.cross_entropy(model(images), labels)  # noqa: B023, E731
        times = clock(step_of(model, optimizer, loss), 1.5, 30)
        note = "autocast of FP32 weights, eager, images on the device"
        row = {"global_batch": batch, "precision": "bf16", "optimizer": "momentum"}
        session.timed("train", name, times, note, **row, software="eager")
        optimizer.state.clear()
        free(model)


def train_language(session: Session) -> None:
    """Time training steps of language models, without recomputation."""
    bert = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    )
    gpt2 = transformers.GPT2Config
    medium = gpt2(n_embd=1024, n_layer=24, n_head=16)
    llama = transformers.LlamaConfig(**TINY_LLAMA)
    cases = (
        ("BERT_Large", transformers.BertForMaskedLM, bert, 32, 128),
        ("BERT_Large", transformers.BertForMaskedLM, bert, 16, 512),
        ("GPT2", transformers.GPT2LMHeadModel, gpt2(), 16, 1024),
        ("GPT2_Medium", transformers.GPT2LMHeadModel, medium, 8, 1024),
        ("TinyLlama_1_1B", transformers.LlamaForCausalLM, llama, 4, 2048),
    )
    for name, kind, config, batch, sequence in cases[:1] if session.small else cases:
        if session.over:
            return
        model = kind(config).to(DEVICE)
        ids = torch.randint(0, config.vocab_size, (batch, sequence), device=DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=ON_GPU)
        loss = lambda: model(input_ids=ids, labels=ids).loss  # noqa: B023, E731
        times = clock(step_of(model, optimizer, loss), 2, 20)
        note = "transformers, autocast of FP32 weights, eager, SDPA, fused AdamW"
        row = {"global_batch": batch, "micro_batch": batch, "sequence_tokens": sequence}
        more = {"precision": "bf16", "recompute": "none", "software": "eager"}
        session.timed("train", name, times, note, **row, **more)
        optimizer.state.clear()
        free(model)


def language_models(session: Session) -> Iterator[tuple[str, Any, torch.nn.Module]]:
    """Yield models with random weights in BF16, one after another."""
    kinds = {
        "Llama3_8B": (transformers.LlamaConfig, LLAMA),
        "TinyLlama_1_1B": (transformers.LlamaConfig, TINY_LLAMA),
        "Qwen3_30B_A3B": (transformers.Qwen3MoeConfig, QWEN_EXPERTS),
        "Qwen3_32B": (transformers.Qwen3Config, QWEN_32B),
    }
    for name, (kind, sizes) in kinds.items():
        if session.over:
            return
        config = kind(**(sizes | TOY if session.small else sizes), max_position_embeddings=40960)
        config._attn_implementation = "sdpa"
        with torch.device(DEVICE):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        yield name, config, model.eval()
        free(model)


def requests(session: Session) -> tuple[tuple[int, int], ...]:
    """Return batches and tokens of their prompts."""
    if session.small:
        return (1, 8), (2, 8)
    return (1, 512), (1, 2048), (1, 7900), (8, 512), (32, 512), (64, 512)


def serve(session: Session) -> None:
    """Time prefill, eager, with one row of logits."""
    for name, config, model in language_models(session):
        for batch, prompt in requests(session):
            if session.over:
                return
            ids = torch.randint(0, config.vocab_size, (batch, prompt), device=DEVICE)
            row = {"batch_size": batch, "prompt_tokens": prompt, "output_tokens": 32}
            more = {"precision": "bf16", "software": "eager"}
            note = "transformers, eager, SDPA, one row of logits"
            with torch.inference_mode():
                times = clock(lambda: model(ids, use_cache=True, logits_to_keep=1), 0.8, 12)  # noqa: B023
            session.timed("serve-prefill", name, times, note, **row, **more)
            clean()


def decode(session: Session) -> None:
    """Time decode steps: eager with a growing cache, and one step in a CUDA graph.

    cuDNN's attention plans anew for each length, which takes longer than the step: it is left out.
    """
    if ON_GPU:
        torch.backends.cuda.enable_cudnn_sdp(False)
    for name, config, model in language_models(session):
        for batch, prompt in requests(session):
            if session.over:
                return
            ids = torch.randint(0, config.vocab_size, (batch, prompt), device=DEVICE)
            row = {"batch_size": batch, "prompt_tokens": prompt, "output_tokens": 40}
            row |= {"precision": "bf16"}
            with torch.inference_mode():
                cache = transformers.DynamicCache(config=config)
                model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
                step = lambda: model(ids[:, :1], past_key_values=cache, use_cache=True)  # noqa: B023, E731
                note = "transformers, eager, flash SDPA without cuDNN, DynamicCache"
                times = [once(step) for _ in range(32)][6:]
                session.timed("serve-decode", name, times, note, **row, software="eager")
                if ON_GPU and not hasattr(config, "num_experts"):
                    note = "transformers, StaticCache, one step replayed in a CUDA graph"
                    times = clock(graphed(fixed_step(model, config, ids)), most=40)
                    session.timed("serve-decode", name, times, note, **row, software="graph")
            clean()


def fixed_step(model: torch.nn.Module, config: Any, ids: torch.Tensor) -> Callable[[], Any]:
    """Return a step of decoding whose cache has its full size, so that a graph can hold it."""
    batch, prompt = ids.shape
    cache = transformers.StaticCache(config=config, max_cache_len=prompt + 64)
    model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
    mask = torch.ones(batch, 1, 1, prompt + 64, device=DEVICE, dtype=torch.bool)
    mask[..., prompt + 21 :] = False
    place = torch.full((batch, 1), prompt + 20, device=DEVICE)
    return lambda: model(
        ids[:, :1], past_key_values=cache, use_cache=True, position_ids=place, attention_mask=mask
    )


def experts(session: Session) -> None:
    """Time grouped products of experts: tokens routed alike, and by shares that fall as 1/rank."""
    for count, active, hidden, inner in ((4, 2, 64, 32),) if session.small else EXPERTS:
        up = torch.randn(count, hidden, 2 * inner, device=DEVICE, dtype=torch.bfloat16)
        down = torch.randn(count, inner, hidden, device=DEVICE, dtype=torch.bfloat16)
        for tokens in (1, 4, 16, 64, 256, 1024, 4096, 16384):
            for shares in ("equal", "uneven"):
                if session.over:
                    return
                ranks = torch.arange(1, count + 1, dtype=torch.float32)
                weights = torch.ones(count) if shares == "equal" else 1 / ranks
                seed = torch.Generator().manual_seed(tokens + count)
                chosen = torch.multinomial(weights.repeat(tokens, 1), active, generator=seed)
                taken = torch.bincount(chosen.flatten(), minlength=count)
                ends = taken.cumsum(0).to(DEVICE, torch.int32)
                session.add(
                    "experts",
                    **dict(zip(EXPERT_COLUMNS, (count, active, hidden, inner), strict=False)),
                    tokens=tokens,
                    shares=shares,
                    hit=int((taken > 0).sum()),
                    largest=int(taken.max()),
                    format="bf16",
                    gate_up_ms=round(grouped(tokens * active, up, ends) * 1e3, 5),
                    down_ms=round(grouped(tokens * active, down, ends) * 1e3, 5),
                    note="torch grouped_mm",
                )


def grouped(rows: int, matrices: torch.Tensor, ends: torch.Tensor, calls: int = 20) -> float:
    """Return the time of one grouped product in s."""
    x = torch.randn(rows, matrices.shape[1], device=DEVICE, dtype=torch.bfloat16)
    call = lambda: torch.nn.functional.grouped_mm(x, matrices, offs=ends)  # noqa: E731
    if not ON_GPU:
        return median(clock(call, 0.1, 5))
    return median(clock(graphed(lambda: [call() for _ in range(calls)]), 0.05, 10)) / calls


def power(session: Session) -> None:
    """Record power while a product of 8192 x 8192 runs, and then copies of 2 GiB."""
    fields = "timestamp,name,power.draw,clocks.sm,clocks.mem,temperature.gpu,utilization.gpu"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv", "-lms", "100"]
    a = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    x = torch.empty(2**30, device=DEVICE, dtype=torch.bfloat16)
    y = torch.empty_like(x)
    with (session.out / "power.csv").open("w") as file:
        sampler = subprocess.Popen(command, stdout=file)
        try:
            time.sleep(2)
            products = repeated(lambda: a @ a, 6)
            copies = repeated(lambda: y.copy_(x), 5)
        finally:
            sampler.terminate()
            sampler.wait()
    rates = {
        "bf16_product_8192": f"{products * 2 * 8192**3 / 1e12:.1f} TFLOP/s",
        "copy": f"{copies * 2 * x.nbytes / 1e9:.1f} GB/s",
    }
    (session.out / "power.json").write_text(json.dumps(rates))


def repeated(call: Callable[[], Any], seconds: float) -> float:
    """Return calls per second."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(20):
            call()
        wait()
        done += 20
    return done / (time.perf_counter() - start)


PARTS = {
    part.__name__: part
    for part in (serve, decode, train_language, train_networks, networks, experts, power)
}


def main() -> None:
    """Measure the parts that were asked for, as long as there is time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--hardware", default="H100", help="its name in the zoo")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--small", action="store_true")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    session = Session(asked)
    machine = {"torch": torch.__version__, "transformers": transformers.__version__}
    machine["gpu"] = torch.cuda.get_device_name(0) if ON_GPU else "none"
    (asked.out / "machine.json").write_text(json.dumps(machine, indent=1))
    for name in asked.parts.split(","):
        PARTS[name](session)
        clean()


main()
