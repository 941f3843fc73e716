"""Draws questions to every door: seeded, over the whole zoo, with all options, some of them wrong.

Values are ugly on purpose: 1, 2 and 4 hide what 3, 7 and 0.37 show.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from questions import FILES, Question

from mlsim import CloudOperators, Clusters, DataCentres, Grids, Hardware, Models, Regions, Systems
from mlsim.profiling import sample_profiles
from mlsim.software import classes
from mlsim.workloads.language import Transformer
from mlsim.workloads.recipes import recipes

SEED = 33
# How many questions each door gets; what is dear to answer gets fewer. Some may be refused.
COUNTS = {
    "solve": 800,
    "serve": 1000,
    "train": 800,
    "gemm": 600,
    "footprint": 350,
    "predict": 350,
    "load": 250,
    "anatomy": 200,
    "fit": 110,
    "plan": 110,
    "profile": 100,
    "check_claim": 110,
    "compare_formats": 60,
    "find": 60,
    "sensitivity": 50,
    "sweep": 50,
}
REFUSED = 0.12  # share of a door's questions that may be refused
# An option of a door: how often it is given, and its values.
Options = Mapping[str, tuple[float, Sequence[Any]]]

FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "nvfp4", "mxfp4", "fp4", "int4", "fp64")
SHORT = ("w4a16", "w8a8", "w8a8kv8", "w8a16", "fp8", "bf16", "int8")
ESTIMATES = ("roofline", "bound", "calibrated", "calibrated")
BATCHES = (1, 2, 3, 7, 13, 32, 50, 100, 256, 999, [1, 3, 17], [2, 90, 511], [5, 64, 70, 800, 1201])
TOKENS = (1, 37, 128, 500, 999, 2048, 3000, 7777, [100, 999, 3001])
GIVEN_RATES: Options = {
    "memory_bandwidth": (0.06, ("1.7 TB/s", "333 GB/s")),
    "peak_flops": (0.06, ("123 TFLOP/s", "1.7 PFLOP/s")),
    "memory_capacity": (0.05, ("37 GiB", "150 GB", "3 GiB")),
}
GIVEN_SHARES: Options = {
    "compute_fraction": (0.05, (0.37, 0.83)),
    "memory_fraction": (0.05, (0.61, 0.93)),
    "kernel_overhead": (0.05, ("3.3 us", "11 us")),
}
LAYOUT: Options = {
    "tensor_parallel": (0.75, (2, 4, 8, 8, 3)),
    "pipeline_parallel": (0.2, (2, 4, 3, 8)),
    "data_parallel": (0.2, (2, 3, 4)),
    "context_parallel": (0.1, (2, 4)),
    "expert_parallel": (0.2, (2, 4, 8)),
}
SWITCHES: Options = {
    "prefix_share": (0.12, (0.3, 0.77, 1.0)),
    "prefix_count": (0.06, (1, 3)),
    "speculation": (
        0.1,
        (
            {"Speculation": {"tokens": 3, "acceptance": 0.7, "cost": 0.05}},
            {"Speculation": {"tokens": 5, "acceptance": 0.61, "draft": "TinyLlama_1_1B"}},
            {"Speculation": {"tokens": 7, "acceptance": 0.9, "draft": "Qwen3_4B"}},
        ),
    ),
    "offload": (
        0.1,
        (
            {"Offload": {"cache": 0.3}},
            {"Offload": {"weights": 0.37, "overlap": 0.7}},
            {"Offload": {"cache": 0.5, "weights": 0.1, "overlap": 0.0}},
        ),
    ),
    "adapters": (
        0.1,
        (
            {"LoRA": {"rank": 16}},
            {"LoRA": {"rank": 7, "targets": "attention"}},
            {"LoRA": {"rank": 64, "targets": ["q_proj", "v_proj"]}},
        ),
    ),
    "adapter_count": (0.06, (1, 3, 17)),
}
SERVED: Options = {
    "precision": (0.35, (*SHORT, *FORMATS)),
    "weights": (0.06, ("fp8", "int4", "mxfp4")),
    "activations": (0.04, ("fp8", "int8", "bf16")),
    "kv_cache": (0.1, ("fp8", "int8", "bf16", "fp16")),
    "expert_imbalance": (0.08, ("uniform", 1.37, 2.9)),
    "reserve": (0.15, (0.0, 0.17, 0.05, 0.5)),
    "estimate": (0.7, ESTIMATES),
    "software": (0.12, ("vllm", "engine", "llama_cpp", "vllm_async", "kernels", "early_engine")),
    **SWITCHES,
    **GIVEN_RATES,
    "compute_fraction": (0.03, (0.37,)),
    "kernel_overhead": (0.03, ("3.3 us",)),
    "host_link_bandwidth": (0.03, ("23 GB/s",)),
    "link_bandwidth": (0.03, ("77 GB/s",)),
}
# Arguments that are wrong, of any door that has them.
WRONG: Mapping[str, Sequence[Any]] = {
    "model": ("Lama3_8B", "", 7),
    "hardware": ("H1000", "A10O", 3.5),
    "batch_size": (0, -3, 2.5, "many", True, []),
    "prompt_tokens": (0, -1, 10**9, "few"),
    "output_tokens": (-1, 2.5),
    "precision": ("fp7", 16, "w3a16"),
    "estimate": ("guess", "Roofline"),
    "software": ("windows", "eager"),
    "memory_bandwidth": (2e12, "3 GB", "-1 TB/s"),
    "tensor_parallel": (0, 5, 2.0, 1000),
    "pipeline_parallel": (-1, 7),
    "reserve": (1.0, -0.1, "10%"),
    "global_batch": (0, 63.5, "64 tokens"),
    "shard": ("zero4",),
    "recompute": ("some",),
    "rate": (0, -2, "10 tokens/s", 10**6),
    "burstiness": (-1, "some"),
    "scheduler": ("cron",),
    "grid": ("Atlantis", 5),
    "pue": (0.9, "1.1 kWh"),
    "recipe": ("fp9", "mxfp6"),
    "M": (0, 1.5, -8),
    "expert_imbalance": (0.5, "even"),
    "prefix_share": (1.2, -0.1, "half"),
    "latency": ("1 ms",),
    "batch": (4,),
    "dtype": ("fp16",),
    "check_memory": ("no",),
    "activations": ("in cache",),
}
TRANSFORMERS_ONLY = ("serve", "load", "plan", "fit")


class Dice(random.Random):
    """Seeded chance, which draws options, and takes its turns through what all must be asked."""

    def __init__(self, door: str, number: int) -> None:
        super().__init__(f"{SEED} {door} {number}")
        self.door, self.number = door, number

    def options(self, options: Options) -> dict[str, Any]:
        """Draw which options are given, and their values."""
        return {
            name: self.choice(values)
            for name, (share, values) in options.items()
            if self.random() < share
        }

    def turn(self, what: str, names: Sequence[str]) -> str:
        """Take the next of all names, in an order that is drawn anew for each round."""
        of_round, place = divmod(self.number, len(names))
        return random.Random(f"{SEED} {self.door} {what} {of_round}").sample(names, len(names))[
            place
        ]


@cache
def devices() -> tuple[str, ...]:
    """Return the names of all devices."""
    return _short(Hardware.keys())


def _short(keys: Any) -> tuple[str, ...]:
    return tuple(sorted(each.rpartition(".")[2] for each in keys))


@cache
def large() -> tuple[str, ...]:
    """Return the names of devices on which language models are served, often; the rest is rare."""
    return tuple(
        sorted(each.key.rpartition(".")[2] for each in Hardware if each.capacity_si > 15e9)
    )


@cache
def systems() -> tuple[str, ...]:
    """Return the names of all systems and clusters."""
    return (*sorted(Systems.keys()), *sorted(Clusters.keys()))


@cache
def transformers() -> tuple[str, ...]:
    """Return the names of language models."""
    return tuple(
        each for each in sorted(Models.keys()) if isinstance(Models.find(each), Transformer)
    )


@cache
def networks() -> tuple[str, ...]:
    """Return the names of all other models."""
    return tuple(each for each in sorted(Models.keys()) if each not in transformers())


def _where(dice: Dice) -> str:
    """Draw the hardware of a service: a device, a system or a cluster."""
    if dice.random() < 0.5:
        return dice.turn("system", systems())
    return dice.turn("device", devices() if dice.random() < 0.25 else large())


def _solve(dice: Dice) -> dict[str, Any]:
    return {
        "model": dice.turn("model", networks()),
        "hardware": dice.turn("device", devices()),
        **dice.options(
            {
                "batch_size": (0.85, BATCHES),
                "precision": (0.5, FORMATS),
                "estimate": (0.75, ESTIMATES),
                "software": (0.15, tuple(sorted(classes()))),
                "activations": (0.25, ("on-chip", "memory")),
                "check_memory": (0.1, (False,)),
                **GIVEN_RATES,
                **GIVEN_SHARES,
                "last_level_cache": (0.05, ("96 MiB", "3 MB")),
                "bytes_per_parameter": (0.03, ("0.7 B/parameter",)),
            }
        ),
    }


def _serve(dice: Dice) -> dict[str, Any]:
    where = _where(dice)
    spread = {} if where in devices() else dice.options(LAYOUT)
    pool = {
        "prefill": (
            0.06,
            (
                {"PrefillPool": {"copies": 2, "link_bandwidth": "400 Gb/s"}},
                {
                    "PrefillPool": {
                        "hardware": "HGX_H100",
                        "tensor_parallel": 2,
                        "batch_size": 3,
                        "link_bandwidth": "33 GB/s",
                        "overlap": True,
                    }
                },
            ),
        )
    }
    return {
        "model": dice.turn("model", transformers()),
        "hardware": where,
        **spread,
        **dice.options(
            {
                "batch_size": (0.85, BATCHES),
                "prompt_tokens": (0.7, TOKENS),
                "output_tokens": (0.5, (1, 2, 77, 300, 1000)),
                "block_tokens": (0.1, (1, 7, 32)),
                "chunk_tokens": (0.1, (100, 512, 3000)),
                "check_memory": (0.15, (False,)),
                **SERVED,
                **pool,
            }
        ),
    }


def _load(dice: Dice) -> dict[str, Any]:
    way: dict[str, Any] = dice.choice(
        (
            {"rate": dice.choice((0.3, 1.7, 5, 23)), "requests": dice.choice((30, 70, 150))},
            {"rate": dice.choice((0.7, 3)), "requests": 60, "burstiness": dice.choice((0, 0.4, 3))},
            {"users": dice.choice((1, 3, 8)), "requests": 50},
            {"users": 5, "requests": 40, "constant": True},
            {"users": 7, "requests": 60, "think_time": 2.5},
            {"burst": dice.choice((1, 13, 60))},
            {"trace": {"file": "trace.csv"}},
            {"trace": {"file": "trace.jsonl"}, "prefix_share": "trace"},
            {"trace": {"file": "trace.csv"}, "requests": 11},
        )
    )
    lengths = () if "trace" in way else ("prompt_tokens", "output_tokens")
    kinds: Options = {
        "prompt_tokens": (
            0.7,
            (37, 999, "lognormal 512 0.8", "uniform 100 900", "exponential 300"),
        ),
        "output_tokens": (0.7, (1, 77, "lognormal 99 0.5", "uniform 10 90", "exponential 60")),
    }
    where = _where(dice)
    return {
        "model": dice.turn("model", transformers()),
        "hardware": where,
        **way,
        **({} if where in devices() else dice.options(LAYOUT)),
        **dice.options({name: kinds[name] for name in lengths}),
        **dice.options(
            {
                "scheduler": (0.4, ("vllm", "sglang", "tensorrt_llm")),
                "running_limit": (0.15, (3, 17)),
                "tokens_per_step": (0.15, (300, 1111)),
                "seed": (0.3, (1, 7)),
                **{name: option for name, option in SERVED.items() if name not in way},
            }
        ),
    }


def _plan(dice: Dice) -> dict[str, Any]:
    one_pool = dice.random() < 0.8
    asked: dict[str, Any] = {
        "model": dice.choice(
            (
                "Llama3_8B",
                "Qwen3_8B",
                "Mistral_7B",
                "Llama2_13B",
                "Gemma2_9B",
                "GPT_OSS_20B",
                "Qwen3_30B_A3B",
                "Llama3_70B",
                "Phi_4",
                "Qwen3_32B",
            )
        ),
        "hardware": dice.sample(
            ("H100", "L40S", "A100", "MI300X", "L4", "A10", "H200", "RTX4090", "T4"),
            1 if dice.random() < 0.7 else 2,
        ),
        "prompt_tokens": dice.choice((99, 500, 1777)),
        "output_tokens": dice.choice((33, 100, 250)),
    }
    if dice.random() < 0.75 or not one_pool:
        asked["rate"] = dice.choice((0.7, 3, 20, 111))
    else:
        asked |= {"users": dice.choice((3, 40, 500)), "think_time": dice.choice((0.0, 7.5))}
    if not one_pool:
        asked |= {"pools": dice.choice(("two", "either")), "hardware": ["HGX_H100"]}
    return asked | dice.options(
        {
            "time_to_first_token": (0.5, ("300 ms", "2.2 s")),
            "time_per_output_token": (0.5, ("21 ms", "77 ms")),
            "precision": (0.4, ("bf16", "fp8", "w4a16", "int8", ["bf16", "w4a16"])),
            "objective": (0.4, ("energy", "devices", "cost")),
            "terms": (0.2, ("spot", "on demand")),
            "price": (0.25, ("2.7 USD/h", "0.33 USD/h")),
            "scheduler": (0.3, ("sglang", "tensorrt_llm")),
            "running_limit": (0.2, (5, 33)),
            "reserve": (0.2, (0.05, 0.3)),
            "estimate": (0.4, ("roofline", "bound", "calibrated")),
            "pipeline_parallel": (0.1, (2, [1, 2])),
            **{name: SWITCHES[name] for name in ("prefix_share", "speculation", "adapters")},
        }
    )


def _train(dice: Dice) -> dict[str, Any]:
    whole: Options = {
        "mean_time_to_failure": (0.1, ("60000 h", "50000 h")),
        "checkpoint_bandwidth": (0.1, ("33 GB/s",)),
        "restart_time": (0.1, ("11 min",)),
        "price": (0.15, ("2.3 USD/h",)),
        "reserve": (0.15, (0.0, 0.17)),
        "estimate": (0.6, ESTIMATES),
        "check_memory": (0.45, (False,)),
        "overlap": (0.2, (0.37, 0.9, {"gradient": 0.7, "pipeline": 0.2}, {"exchange": 0.5})),
        "collective": (0.3, ("ring", "hierarchical", "tree")),
        "precision": (0.3, ("bf16", "fp16", "fp8", "fp32", "tf32")),
        "gradients": (0.2, ("fp32", "bf16")),
        "software": (0.1, ("framework", "megatron", "kernels", "eager")),
        **GIVEN_RATES,
        "node_bandwidth": (0.03, ("77 GB/s",)),
        "fabric_bandwidth": (0.03, ("23 GB/s",)),
    }
    if dice.random() < 0.2:
        where = dice.turn("where", (*systems(), *large()))
        count = 1 if where in devices() else dice.choice((2, 4, 8))
        each = dice.choice((1, 7, 32, 100))
        return {
            "model": dice.turn("network", networks()),
            "hardware": where,
            "global_batch": each * count * dice.choice((1, 3)),
            "devices": count,
            **dice.options(
                {
                    "micro_batch": (0.3, (each,)),
                    "optimizer": (0.5, ("sgd", "adam", "momentum")),
                    "shard": (0.2, ("zero1", "zero2", "none")),
                    "samples": (0.3, (1_281_167 * 3,)),
                    **whole,
                }
            ),
        }
    on_system = dice.random() < 0.75
    where = dice.turn("where", systems() if on_system else large())
    sizes = dice.options(LAYOUT | {"data_parallel": (0.6, (2, 3, 4))}) if on_system else {}
    micro, many = dice.choice((1, 1, 2, 3)), dice.choice((1, 2, 5, 8))
    batch = micro * many * sizes.get("data_parallel", 1) * sizes.get("pipeline_parallel", 1)
    return {
        "model": dice.turn("model", transformers()),
        "hardware": where,
        "global_batch": batch,
        "micro_batch": micro,
        **sizes,
        **dice.options(
            {
                "sequence_tokens": (0.8, (512, 1000, 1024, 2048, 4096, 8192)),
                "tokens": (0.3, (3e11, 7.7e9)),
                "interleaved": (0.15, (2, 3)),
                "sequence_parallel": (0.3, (True,)),
                "shard": (0.5, ("zero1", "zero2", "zero3")),
                "recompute": (0.5, ("none", "full", "selective")),
                "attention": (0.2, ("standard", "flash")),
                "dropout": (0.2, (True,)),
                "adapters": (
                    0.15,
                    (
                        {"LoRA": {"rank": 16}},
                        {"QLoRA": {"rank": 7}},
                        {"QLoRA": {"rank": 64, "targets": "attention"}},
                        {"LoRA": {"rank": 8, "targets": ["q_proj", "v_proj"]}},
                    ),
                ),
                **whole,
            }
        ),
        **({"search": True} if dice.random() < 0.03 else {}),
    }


def _sides(dice: Dice) -> dict[str, Any]:
    sides = (32, 128, 96, 512, 992, 1024, 4096, 5120, 8192, 14336)
    found = {
        name: dice.choice(sides if dice.random() < 0.8 else (1, 7, 77, 1111)) for name in "MNK"
    }
    if dice.random() < 0.3:
        found[dice.choice("MNK")] = dice.choice(([64, 512, 4096], [96, 8192], [32, 64, 96, 2048]))
    return found


def _gemm(dice: Dice) -> dict[str, Any]:
    sides = _sides(dice)
    kinds = ("H100", "B200", "A100", "H200", "MI300X", "L40S", "B300", "GB200", "RTXPRO6000_Server")
    where = dice.choice(kinds) if dice.random() < 0.6 else dice.turn("device", devices())
    if dice.random() < 0.06:
        del sides["M"]
        sides["groups"] = [3, 0, 700, 64]
    how = (
        {"recipe": dice.choice(sorted(recipes()))}
        if dice.random() < 0.45
        else dice.options({"precision": (0.8, FORMATS)})
    )
    return {
        **sides,
        "hardware": where,
        **how,
        **dice.options(
            {
                "training": (0.25, (True,)),
                "fused": (0.15, (True,)),
                "batch": (0.15, (3, 8)),
                "estimate": (0.7, ESTIMATES),
                "constants": (0.06, ("torchao-0.18.0", "torchao-early")),
                "activations": (0.1, ("on-chip",)),
                "backend": (0.06, ("trtllm", "vllm")),
                "check_memory": (0.1, (False,)),
                **GIVEN_RATES,
                **GIVEN_SHARES,
                "last_level_cache": (0.05, ("33 MiB",)),
            }
        ),
    }


def _compare_formats(dice: Dice) -> dict[str, Any]:
    return {
        **_sides(dice),
        "hardware": dice.choice(("H100", "B200", "A100", "MI300X", "L40S", "T4", "B300")),
        **dice.options(
            {
                "formats": (0.4, (["bf16", "fp8"], ["bf16", "mxfp8", "nvfp4"], ["int8", "fp16"])),
                "training": (0.3, (True,)),
                "fused": (0.3, (True,)),
                "estimate": (0.6, ESTIMATES),
            }
        ),
    }


def _fit(dice: Dice) -> dict[str, Any]:
    where = _where(dice)
    spread = {} if where in devices() else {"tensor_parallel": (0.3, (2, 4, 8))}
    return {
        "model": dice.turn("model", transformers()),
        "hardware": where,
        **dice.options(
            {
                "prompt_tokens": (0.7, (37, 999, 3000)),
                "output_tokens": (0.5, (2, 77, 500)),
                "precision": (0.6, ("bf16", "fp8", ["bf16", "w4a16"], ["w8a8kv8", "int8"])),
                "pipeline_parallel": (0.1, (2,)),
                "expert_parallel": (0.1, (2,)),
                "reserve": (0.3, (0.0, 0.23)),
                **spread,
            }
        ),
    }


def _footprint(dice: Dice) -> dict[str, Any]:
    where: dict[str, Any] = dice.choice(
        (
            {
                "grid": dice.turn("grid", sorted(Grids.keys())),
                "data_centre": dice.turn("centre", sorted(DataCentres.keys())),
            },
            {"grid": dice.turn("grid", sorted(Grids.keys())), "pue": dice.choice((1.13, 1.5))},
            {"region": dice.turn("region", sorted(Regions.keys()))},
            {
                "carbon_intensity": "333 gCO2e/kWh",
                "pue": 1.27,
                "wue": "0.7 L/kWh",
                "water_intensity": "3.3 L/kWh",
            },
            {"grid": "Germany", "pue": {"pair": [1.1, 1.4]}},
        )
    )
    work = dice.choice(
        (
            {
                "Serve": {
                    "model": dice.turn("model", transformers()),
                    "hardware": "HGX_H200",
                    "tensor_parallel": 8,
                    "batch_size": dice.choice((1, 7, 50)),
                }
            },
            {
                "Serve": {
                    "model": dice.choice(("Llama3_8B", "Qwen3_8B", "Mistral_7B")),
                    "hardware": dice.choice(("H100", "A100", "L40S", "MI300X", "L4")),
                    "batch_size": dice.choice((3, 16)),
                    "estimate": dice.choice(("roofline", "calibrated")),
                }
            },
            {
                "Train": {
                    "model": "Llama3_8B",
                    "hardware": dice.choice(("HGX_H100", "HGX_A100", "Eos")),
                    "global_batch": 64,
                    "sequence_tokens": 2048,
                    "devices": 8,
                    "shard": "zero3",
                    "recompute": "full",
                    "tokens": 7.7e9,
                }
            },
            {
                "Load": {
                    "hardware": dice.turn("device", devices()),
                    "device_hours": 777,
                    "devices": 3,
                    "compute_utilisation": 0.37,
                    "memory_utilisation": 0.61,
                    "tokens": 1e9,
                }
            },
        )
    )
    published = {"hardware": dice.turn("where", (*devices(), *systems())), "device_hours": 1234.5}
    load = published if dice.random() < 0.35 else {"work": work}
    return {
        **load,
        **where,
        **dice.options(
            {
                "host": (0.6, (False, False, "150 W", True, "DGX_2")),
                "network": (0.3, ("17 W",)),
                "year": (0.1, (2023, 2022, 2019)),
                "hour": (0.2, (3, 17, [1, 2, 13])),
                "accounting": (0.15, ("market", "location")),
                "operator": (0.1, tuple(sorted(CloudOperators.keys()))),
                "embodied": (0.4, (False, "150 kgCO2e", "A100", "H100", "GPU_Server")),
                "idle_power": (0.25, ("55 W", {"pair": ["30 W", "70 W"]})),
                "max_power": (0.2, ("444 W",)),
                "device_power": (0.1, ("333 W",)),
                "compute_utilisation": (0.15, (0.37, {"pair": [0.2, 0.5]})),
                "memory_utilisation": (0.15, (0.61,)),
                "lifetime": (0.15, ("4.4 years", "40000 h")),
                "lifetime_use": (0.15, (0.7,)),
                "tokens": (0.1, (1e9,)),
            }
        ),
    }


def _anatomy(dice: Dice) -> dict[str, Any]:
    language = dice.random() < 0.4
    return {
        "model": dice.turn("language", transformers()) if language else dice.turn("m", networks()),
        **({"tokens": dice.choice((17, 500))} if language else {}),
        **dice.options(
            {
                "batch_size": (0.7, (2, 7, 32)),
                "precision": (0.5, ("fp16", "bf16", "fp32", "int8")),
                "hardware": (0.6, ("A100", "H100", "V100", "T4", "RTX3090", "MI300X", "GTX580")),
                "count": (0.4, ("mac", "seed003", "pytorch", "flop")),
                "training": (0.4, (True,)),
                "optimizer": (0.4, ("sgd", "adam", "momentum")),
                "estimate": (0.4, ("calibrated", "roofline")),
                "software": (0.06, ("eager", "graph", "engine")),
            }
        ),
    }


CASES: Mapping[str, Sequence[str]] = {
    "gemm": ("gemm_flop_per_s", "kernel_time_s"),
    "attention": ("attention_flop_per_s",),
    "membw": ("memcpy_B_per_s",),
    "linkbw": ("memcpy_B_per_s",),
    "allreduce": ("allreduce_busbw_B_per_s", "allreduce_time_s"),
    "cnn_infer": ("throughput_items_per_s", "latency_s"),
    "enc_infer": ("throughput_items_per_s", "latency_s"),
    "prefill": ("prefill_tokens_per_s_total",),
    "ttft": ("TTFT_s",),
    "decode": ("decode_tokens_per_s_total",),
    "gen_e2e": ("latency_s",),
    "static_gen": ("decode_tokens_per_s_total",),
    "serve_offline": ("decode_tokens_per_s_total",),
    "serve_steady": ("decode_tokens_per_s_total",),
    "memory": ("fits_in_memory", "max_concurrency_2048_tokens"),
    "tok_energy": ("J_per_token",),
    "train_cnn": ("throughput_items_per_s",),
    "train_enc": ("throughput_items_per_s",),
    "train_lm": (
        "step_s",
        "mfu_fraction",
        "model_flop_per_s_per_device",
        "tokens_per_s_per_device",
        "tokens_per_s_total",
    ),
    "train_run": ("accelerator_hours",),
    "co2_arith": ("kg",),
}


def _predict(dice: Dice) -> dict[str, Any]:
    kind = dice.turn("kind", sorted(CASES))
    names = ("H100", "A100", "H200", "MI300X", "L40S", "V100", "T4", "A100-40", "B200", "RTX4090")
    cells: dict[str, Any] = {
        "kind": kind,
        "metric_kind": dice.choice(CASES[kind]),
        "device": dice.choice(names) if dice.random() < 0.8 else dice.turn("device", devices()),
    }
    extra: dict[str, Any] = {}
    form = dice.choice(("bf16", "fp16", "fp16", "fp8", "fp32", "int8"))
    if kind in ("gemm", "attention"):
        cells["a_dtype"] = form
        if kind == "gemm":
            extra = {name: dice.choice((96, 1024, 4096, 5120, 8191)) for name in "MNK"}
        else:
            cells["input_len"] = dice.choice((512, 2048, 9000))
            extra = {
                "hd": dice.choice((64, 128)),
                "causal": dice.choice((0, 1)),
                "fwdbwd": dice.choice((0, 0, 1)),
                "alg": dice.choice(("fa2", "std", "fa3")),
            }
    elif kind == "membw":
        extra = {"op": dice.choice(("copy", "read", "write", "triad"))}
    elif kind == "linkbw":
        extra = {"link": dice.choice(("nvlink", "pcie", "pcie4"))}
    elif kind == "allreduce":
        cells["count"] = dice.choice((2, 4, 8, 16, 24))
        extra = {"bytes": dice.choice((1e4, 3.3e6, 1e9))}
    elif kind in ("cnn_infer", "train_cnn"):
        cells |= {
            "model": dice.turn("network", networks()),
            "batch": dice.choice((1, 7, 128)),
            "a_dtype": form,
            "count": dice.choice((1, 1, 8)),
        }
    elif kind in ("enc_infer", "train_enc"):
        cells |= {
            "model": dice.choice(("BERT_Base", "BERT_Large", "DistilBERT_Base")),
            "batch": dice.choice((1, 9, 32)),
            "input_len": dice.choice((128, 384, 77)),
            "a_dtype": form,
            "count": dice.choice((1, 1, 8)),
        }
    elif kind in ("train_lm", "train_run"):
        tensor, pipeline = dice.choice((1, 2, 8)), dice.choice((1, 2, 8))
        copies = dice.choice((1, 2, 4))
        cells |= {
            "model": dice.choice(
                ("gpt3-175b", "Llama3_8B", "Llama2_70B", "GPT_20B", "Mixtral_8x7B")
            ),
            "count": tensor * pipeline * copies,
            "tp": tensor,
            "pp": pipeline,
            "input_len": dice.choice((2048, 4096)),
            "a_dtype": dice.choice(("bf16", "fp16")),
        }
        extra = {
            "gb": copies * pipeline * dice.choice((1, 8, 24)),
            "mb": 1,
            "recompute": dice.choice(("full", "selective", "none")),
            "tokens": 3e11,
        }
        extra |= dice.options(
            {"fsdp": (0.3, (1,)), "mfu_attn": (0.3, ("causal", "none")), "v": (0.2, (2, 3))}
        )
    elif kind != "co2_arith":
        cells |= {
            "model": dice.turn("model", transformers()),
            "batch": dice.choice((1, 8, 50)),
            "input_len": dice.choice((128, 1000, 2048)),
            "output_len": dice.choice((64, 300)),
            "tp": dice.choice((1, 1, 2, 8)),
            "w_dtype": form,
            "a_dtype": form,
        }
        cells |= dice.options(
            {
                "kv_dtype": (0.3, ("fp8", "bf16")),
                "w_bits": (0.1, (4.5,)),
                "ep": (0.1, (2, 8)),
                "dp": (0.1, (2,)),
            }
        )
    cells |= dice.options({"sw_class": (0.3, ("engine", "vllm", "kernels", "eager", "trtllm"))})
    if extra:
        cells["extra"] = json.dumps(extra)
    return {name: str(value) for name, value in cells.items()}


def _profile(dice: Dice) -> dict[str, Any]:
    samples = [[each] for each in sorted(sample_profiles()) if not each.endswith("machine")]
    pairs = [[f"{each}_counts", f"{each}_times"] for each in ("alexnet_a100", "resnet50_xeon")]
    ours = [[{"file": path.name}] for path in sorted(FILES.iterdir()) if "trace." not in path.name]
    return {
        "files": dice.choice([*samples, *pairs, *ours, *ours]),
        **dice.options(
            {
                "hardware": (0.85, (*devices(), "A100", "H100", "A30", "RTX4090")),
                "decimal": (0.1, (".", ",")),
            }
        ),
    }


def _check_claim(dice: Dice) -> dict[str, Any]:
    language = dice.random() < 0.8
    claims: Options = {
        "tokens_per_second": (0.4, (33, 777, 24_000)),
        "tokens_per_second_per_user": (0.3, (17, 333)),
        "time_per_output_token": (0.3, ("3 ms", "33 ms")),
        "time_to_first_token": (0.3, ("7 ms", "900 ms")),
    }
    if not language:
        claims = {"samples_per_second": (0.97, (33, 7_777, 1e6))}
    elif dice.random() < 0.25:
        claims = {"mfu": (0.95, (0.45, "70%", 0.93))}
    return {
        "model": dice.turn("model", transformers() if language else networks()),
        "hardware": dice.turn("where", (*large(), *sorted(Systems.keys()))),
        **dice.options(claims),
        **dice.options(
            {
                "devices": (0.3, (1, 2, 8, 17)),
                "batch_size": (0.5, (1, 7, 100)),
                "prompt_tokens": (0.3 * language, (33, 2000)),
                "output_tokens": (0.3 * language, (7, 300)),
                "precision": (0.5, ("fp16", "bf16", "fp8", "int8")),
                "tolerance": (0.2, (0.0, 0.7)),
            }
        ),
    }


def _any_door(dice: Dice, many: bool) -> dict[str, Any]:
    """Draw what a service, a network or a training run is asked, for what asks any door."""

    def some(*values: Any) -> Any:
        return dice.sample(values, 2) if many else dice.choice(values)

    small = ("Llama3_8B", "Qwen3_8B", "Mistral_7B", "GPT_OSS_20B")
    devices_of = ("H100", "A100", "L40S", "MI300X")
    ways: tuple[dict[str, Any], ...] = (
        {
            "model": some("ResNet50", "VGG16", "MobileNetV2"),
            "hardware": some(*devices_of, "T4"),
            "batch_size": some(1, 7, 100),
        },
        {
            "model": some(*small),
            "hardware": some(*devices_of),
            "batch_size": some(3, 17),
            "prompt_tokens": 777,
            "output_tokens": 77,
        },
        {
            "model": dice.choice(small),
            "hardware": some("HGX_H100", "HGX_A100"),
            "global_batch": 64,
            "tensor_parallel": some(2, 4, 8),
            "data_parallel": 1,
            "sequence_tokens": 2048,
        },
        {
            "model": dice.choice(small),
            "hardware": some(*devices_of),
            "rate": some(0.7, 3),
            "requests": 60,
        },
    )
    return dict(dice.choice(ways)) | dice.options({"estimate": (0.4, ("roofline", "calibrated"))})


def _find(dice: Dice) -> dict[str, Any]:
    asked = _any_door(dice, many=False)
    if "rate" in asked:
        vary, target, value = "rate", "time_to_first_token", "200 ms"
        del asked["rate"]
    elif "global_batch" in asked:
        vary, target, value = dice.choice(
            (("global_batch", "step_time", "9.9 s"), ("memory_bandwidth", "step_time", "7 s"))
        )
        asked.pop(vary, None)
        asked |= {"door": "train"}
    elif "prompt_tokens" in asked:
        vary, target, value = dice.choice(
            (
                ("batch_size", "time_per_output_token", "13 ms"),
                ("memory_bandwidth", "time_per_output_token", "7 ms"),
                ("prompt_tokens", "time_to_first_token", "333 ms"),
                ("peak_flops", "time_to_first_token", "99 ms"),
            )
        )
        asked.pop(vary, None)
        asked |= {"door": "serve"}
    else:
        vary, target, value = dice.choice(
            (
                ("batch_size", "latency", "3.3 ms"),
                ("memory_bandwidth", "memory_bound_share", 0.37),
                ("peak_flops", "throughput", "7777 sample/s"),
            )
        )
        asked.pop(vary, None)
    return asked | {"vary": vary, "target": target, "value": value}


def _sensitivity(dice: Dice) -> dict[str, Any]:
    return _any_door(dice, many=False)


def _sweep(dice: Dice) -> dict[str, Any]:
    return _any_door(dice, many=True)


DRAWN: Mapping[str, Callable[[Dice], dict[str, Any]]] = {
    "solve": _solve,
    "serve": _serve,
    "load": _load,
    "plan": _plan,
    "train": _train,
    "gemm": _gemm,
    "compare_formats": _compare_formats,
    "fit": _fit,
    "footprint": _footprint,
    "anatomy": _anatomy,
    "predict": _predict,
    "profile": _profile,
    "check_claim": _check_claim,
    "find": _find,
    "sensitivity": _sensitivity,
    "sweep": _sweep,
}


def drawn(door: str) -> Iterator[Question]:
    """Yield ever more questions to a door, the same in each run; in one of 12 something is wrong."""
    seen = set()
    number = 0
    while True:
        dice = Dice(door, number)
        asked = DRAWN[door](dice)
        if dice.random() < 1 / 12 and door not in ("predict", "profile"):
            name = dice.choice(sorted(WRONG))
            asked[name] = dice.choice(WRONG[name])
        question = Question.of(door, asked)
        if question.text not in seen:
            seen.add(question.text)
            yield question
        number += 1


def grid(door: str, count: int, refused: Callable[[Question], bool]) -> Iterator[Question]:
    """Yield so many questions to a door, of which no more than a share is refused."""
    taken = without = 0
    for question in drawn(door):
        if taken == count:
            return
        if refused(question):
            if without >= REFUSED * count:
                continue
            without += 1
        taken += 1
        yield question
