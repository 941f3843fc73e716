"""Each flag is an argument of a function: the command says what the function answers."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from mlsim import Engine, LoRA, QLoRA, anatomy
from mlsim.cli.command import main
from mlsim.engine.sweep import sweep_rows, sweep_text
from mlsim.systems import PrefillPool
from mlsim.units import text
from mlsim.workloads import Offload, Speculation

SWITCHED = (
    "--prefix-share 0.5 --prefix-count 2 --draft Llama3_8B --draft-tokens 3 --acceptance 0.6"
    " --offload-cache 0.25 --offload-weights 0.1 --host-link-bandwidth '32 GB/s'"
    " --adapter-rank 8 --adapter-count 5 --adapter-targets q_proj,v_proj"
)
POOL = (
    "--prefill-hardware HGX_H100 --prefill-copies 2 --prefill-tensor-parallel 2"
    " --prefill-overlap --prefill-link '400 Gb/s'"
)
PLACE: dict[str, Any] = {"grid": "Germany", "data_centre": "Google", "embodied": False}
# A command, and the arguments of the function of its name.
SAME: list[tuple[str, dict[str, Any]]] = [
    ("solve ResNet50 A100 --batch 32", {"batch_size": 32}),
    ("solve ResNet50 T4 --estimate bound --precision int8", {"estimate": "bound", "precision": "int8"}),
    ("solve ResNet50 A100 --activations on-chip", {"activations": "on-chip"}),
    ("solve ResNet50 A100 --estimate calibrated --software eager --batch 7",
     {"estimate": "calibrated", "software": "eager", "batch_size": 7}),
    ("serve Llama3_8B H100 --batch 8 --kv-cache fp8 --prompt 300 --output 40",
     {"batch_size": 8, "kv_cache": "fp8", "prompt_tokens": 300, "output_tokens": 40}),
    ("serve Llama3_8B HGX_H100 --tp 2 --pp 2 --dp 2 --batch 6 --weights fp8 --reserve 0.2",
     {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 2, "batch_size": 6,
      "weights": "fp8", "reserve": 0.2}),
    ("serve Llama3_8B H100 --estimate calibrated --software vllm --activations fp8 --precision fp8",
     {"estimate": "calibrated", "software": "vllm", "activations": "fp8", "precision": "fp8"}),
    (f"serve Llama3_70B HGX_H100 --tp 8 --batch 8 {SWITCHED}",
     {"tensor_parallel": 8, "batch_size": 8, "prefix_share": 0.5, "prefix_count": 2,
      "speculation": Speculation(draft="Llama3_8B", tokens=3, acceptance=0.6),
      "offload": Offload(cache=0.25, weights=0.1), "host_link_bandwidth": "32 GB/s",
      "adapters": LoRA(rank=8, targets=("q_proj", "v_proj")), "adapter_count": 5}),
    ("serve Llama3_8B H100 --offload-weights 0.5 --adapter-rank 4",
     {"offload": Offload(cache=0.0, weights=0.5), "adapters": LoRA(rank=4)}),
    (f"serve Llama3_8B H200 --batch 64 --prompt 2048 {POOL}",
     {"batch_size": 64, "prompt_tokens": 2048, "prefill": PrefillPool(
         hardware="HGX_H100", copies=2, tensor_parallel=2, link_bandwidth="400 Gb/s",
         overlap=True)}),
    ("serve DeepSeek_V3 DeepSeek_H800 --dp 32 --ep 32 --batch 512 --expert-imbalance uniform",
     {"data_parallel": 32, "expert_parallel": 32, "batch_size": 512,
      "expert_imbalance": "uniform"}),
    ("serve DeepSeek_V3 DeepSeek_H800 --dp 32 --ep 32 --batch 512 --expert-imbalance 1.5",
     {"data_parallel": 32, "expert_parallel": 32, "batch_size": 512, "expert_imbalance": 1.5}),
    (("load Llama3_8B H100 --rate 2 --requests 60 --prefix-share 0.5 --draft-cost 0.1"
     " --acceptance 0.6"),
     {"rate": 2.0, "requests": 60, "prefix_share": 0.5,
      "speculation": Speculation(cost=0.1, tokens=4, acceptance=0.6)}),
    (("load Llama3_8B H100 --rate 3 --requests 60 --prompt 'lognormal 300 0.5' --output 30"
     " --burstiness 2 --scheduler sglang --running-limit 7 --tokens-per-step 900 --seed 5"),
     {"rate": 3.0, "requests": 60, "prompt_tokens": "lognormal 300 0.5", "output_tokens": 30,
      "burstiness": 2.0, "scheduler": "sglang", "running_limit": 7, "tokens_per_step": 900,
      "seed": 5}),
    ("load Llama3_8B H100 --users 5 --think-time 0.5 --constant --requests 40",
     {"users": 5, "think_time": 0.5, "constant": True, "requests": 40}),
    ("load Llama3_8B HGX_H100 --burst 20 --cp 4 --prompt 8000",
     {"burst": 20, "context_parallel": 4, "prompt_tokens": 8000}),
    (("plan Llama3_8B --rate 5 --first-token '2 s' --per-token '30 ms' --prompt 300 --output 30"
     " --hardware H100,L40S --precision fp8,bf16 --terms spot --objective devices"),
     {"rate": 5, "time_to_first_token": "2 s", "time_per_output_token": "30 ms", "prompt_tokens": 300,
      "output_tokens": 30, "hardware": ["H100", "L40S"], "precision": ["fp8", "bf16"],
      "terms": "spot", "objective": "devices"}),
    (("plan Llama3_8B --users 40 --think-time 3 --hardware HGX_H100 --price '2.5 USD/h'"
     " --running-limit 16 --estimate roofline --context-parallel 1,2 --pipeline-parallel 1,2"),
     {"users": 40, "think_time": 3, "hardware": ["HGX_H100"], "price": "2.5 USD/h",
      "running_limit": 16, "estimate": "roofline", "context_parallel": [1, 2],
      "pipeline_parallel": [1, 2]}),
    ("gemm 8192 4096 4096 B200 --recipe mxfp8 --training", {"recipe": "mxfp8", "training": True}),
    ("solve ResNet50 A100 --batch 1,8", {"batch_size": [1, 8]}),
    ("gemm 64,128 256 512 H100 --batch 3 --recipe fp8_rowwise --fused",
     {"batch": 3, "recipe": "fp8_rowwise", "fused": True}),
    (("check-claim Llama3_8B HGX_H100 --devices 2 --batch 4 --prompt 100 --output 10"
     " --tokens-per-second 9 --tokens-per-second-per-user 3 --time-to-first-token '1 s'"
     " --tolerance 0.5 --weights fp8 --kv-cache fp8"),
     {"devices": 2, "batch_size": 4, "prompt_tokens": 100, "output_tokens": 10,
      "tokens_per_second": 9, "tokens_per_second_per_user": 3, "time_to_first_token": "1 s",
      "tolerance": 0.5, "weights": "fp8", "kv_cache": "fp8"}),
    ("check-claim Llama3_8B H100 --mfu 40%", {"mfu": "40%"}),
    ("gemm 512 768 1024 H100 --precision fp8 --estimate calibrated",
     {"precision": "fp8", "estimate": "calibrated"}),
    (("anatomy AlexNet A100 --training --batch 8 --precision fp16 --count mac --optimizer adam"
     " --estimate calibrated --software eager"),
     {"training": True, "batch_size": 8, "precision": "fp16", "count": "mac",
      "optimizer": "adam", "estimate": "calibrated", "software": "eager"}),
    ("check-claim Llama2_70B MI300X --precision fp16 --batch 1 --time-per-output-token '3.2 ms'",
     {"precision": "fp16", "batch_size": 1, "time_per_output_token": "3.2 ms"}),
    (("footprint H100 --device-hours 1000 --pue 1.1,1.3 --wue '0.3 L/kWh' --grid Germany"
     " --host '100 W' --embodied no --device-power '300 W' --lifetime '4 yr' --hour 8-10 --year 2024"),
     {"device_hours": 1000.0, "pue": (1.1, 1.3), "wue": "0.3 L/kWh", "grid": "Germany",
      "host": "100 W", "embodied": False, "device_power": "300 W", "lifetime": "4 yr",
      "hour": [8, 9, 10], "year": 2024}),
]  # fmt: skip
PLAIN = "train Llama3_8B HGX_H100 --global-batch 64"
TRAINED: list[tuple[str, dict[str, Any]]] = [
    ("--devices 8 --shard zero3 --recompute full",
     {"devices": 8, "shard": "zero3", "recompute": "full"}),
    ("--tp 4 --sequence-parallel --dp 2",
     {"tensor_parallel": 4, "sequence_parallel": True, "data_parallel": 2}),
    ("--pp 4 --interleaved 2 --micro-batch 2",
     {"pipeline_parallel": 4, "interleaved": 2, "micro_batch": 2}),
    ("--cp 2 --sequence 8192 --tp 4",
     {"context_parallel": 2, "sequence_tokens": 8192, "tensor_parallel": 4}),
    ("--tp 8 --gradients fp32 --precision fp8",
     {"tensor_parallel": 8, "gradients": "fp32", "precision": "fp8"}),
    ("--tp 8 --attention standard --dropout --recompute none",
     {"tensor_parallel": 8, "attention": "standard", "dropout": True, "recompute": "none"}),
    ("--devices 8 --shard zero1 --collective tree --estimate calibrated",
     {"devices": 8, "shard": "zero1", "collective": "tree", "estimate": "calibrated"}),
    ("--tp 8 --overlap 0.5 --reserve 0.05",
     {"tensor_parallel": 8, "overlap": 0.5, "reserve": 0.05}),
    ("--tp 8 --overlap exchange=0.5,gradient=1",
     {"tensor_parallel": 8, "overlap": {"exchange": 0.5, "gradient": 1}}),
    ("--tp 8 --tokens 15.6e12 --price '2 USD/h'",
     {"tensor_parallel": 8, "tokens": 15.6e12, "price": "2 USD/h"}),
    (("--tp 8 --tokens 1e12 --mttf '50000 h' --checkpoint-bandwidth '10 GB/s'"
     " --restart-time '10 min'"),
     {"tensor_parallel": 8, "tokens": 1e12, "mean_time_to_failure": "50000 h",
      "checkpoint_bandwidth": "10 GB/s", "restart_time": "10 min"}),
    ("--tp 8 --lora-rank 16", {"tensor_parallel": 8, "adapters": LoRA(rank=16)}),
    ("--lora-rank 8 --lora-targets attention,feed-forward --qlora",
     {"adapters": QLoRA(rank=8, targets=("attention", "feed-forward"))}),
    ("--devices 8 --search", {"devices": 8, "search": True}),
]  # fmt: skip
SAME += [(f"{PLAIN} {flags}", {"global_batch": 64, **asked}) for flags, asked in TRAINED]
SAME += [
    ("train Mixtral_8x7B Selene --global-batch 64 --dp 8 --tp 8 --ep 8 --shard zero1",
     {"global_batch": 64, "data_parallel": 8, "tensor_parallel": 8, "expert_parallel": 8,
      "shard": "zero1"}),
    ("train ResNet50 HGX_A100 --global-batch 512 --devices 8 --samples 1e6 --optimizer sgd",
     {"global_batch": 512, "devices": 8, "samples": 1e6, "optimizer": "sgd"}),
]  # fmt: skip


def answer(command: str, asked: dict[str, Any]) -> Any:
    """Return what the function of a command answers; what comes first has no flag."""
    name, *words = shlex.split(command)
    first = [word for word in words[: {"gemm": 4, "plan": 1}.get(name, 2)] if word[:2] != "--"]
    if name == "anatomy":
        return anatomy(first[0], hardware=first[1], **asked)
    if name == "gemm":
        sides = ([int(each) for each in word.split(",")] for word in first[:3])
        given = (each if len(each) > 1 else each[0] for each in sides)
        return Engine.gemm(*given, hardware=first[3], **asked)
    if name == "footprint":
        return Engine.footprint(hardware=first[0], **asked)
    found: Any = getattr(Engine, name.replace("-", "_"))(*first, **asked)
    return found


def all_of(fits: Any) -> bool:
    return bool(getattr(fits, "any", lambda: fits)())


@pytest.mark.parametrize(("command", "asked"), SAME, ids=[command for command, _ in SAME])
def test_flags_are_the_arguments(
    command: str, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = answer(command, asked)
    code = main([*shlex.split(command), "--json"])
    told, said = capsys.readouterr()
    assert said == ""
    assert json.loads(told) == json.loads(json.dumps(expected.to_dict()))
    fits = getattr(expected, "feasible", True)
    assert code == (4 if getattr(expected, "impossible", False) else 0 if all_of(fits) else 3)


def test_text_is_that_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Of one command of each name; what names arguments in it names flags."""
    shown = {}
    for command, asked in SAME:
        name = command.partition(" ")[0]
        if name in shown or name in ("anatomy", "load", "plan"):
            continue
        shown[name] = command
        main(shlex.split(command))
        assert capsys.readouterr().out == f"{answer(command, asked)}\n", command
    assert set(shown) == {"solve", "serve", "gemm", "check-claim", "footprint", "train"}


def test_a_place_adds_a_footprint_to_a_run_and_a_service(
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = "--grid Germany --data-centre Google --embodied no"
    sharded = {"devices": 8, "shard": "zero3", "recompute": "full"}
    run = Engine.train("Llama3_8B", "HGX_H100", global_batch=64, **sharded)
    flags = f"{PLAIN} --devices 8 --shard zero3 --recompute full"
    place = Engine.footprint(run, **PLACE)
    assert main(shlex.split(f"{flags} {where}")) == 0
    assert capsys.readouterr().out == f"{run}\n\n{place}\n"
    main(shlex.split(f"{flags} {where} --json"))
    assert json.loads(capsys.readouterr().out)["footprint"] == json.loads(
        json.dumps(place.to_dict())
    )
    served = Engine.serve("Llama3_8B", "H100", batch_size=7, tensor_parallel=1, precision="fp8")
    main(
        shlex.split(f"footprint Llama3_8B H100 --batch 7 --tp 1 --precision fp8 --host no {where}")
    )
    assert capsys.readouterr().out == f"{Engine.footprint(served, host=False, **PLACE)}\n"
    for wrong, words in (
        ("footprint H100", "footprint of what?"),
        ("footprint Llama3_8B H100 --device-hours 5", "leave one of them out"),
        ("footprint H100 --device-hours 5 --batch 2", "leave one of them out"),
        ("footprint H100 --device-hours 5 --hour noon", "--hour must be like 12, 8-17 or 1,2,3"),
    ):
        main(shlex.split(wrong))
        assert words in capsys.readouterr().err, wrong


def test_a_sweep_says_what_the_table_has(capsys: pytest.CaptureFixture[str]) -> None:
    for flags, asked in (
        (
            (
                "Llama3_8B,GPT2 HGX_H100 --batch 1,8 --set tensor-parallel=1,2 --set prompt_tokens=64"
                " --results decode_throughput,decode.latency --precision bf16"
            ),
            {
                "model": ["Llama3_8B", "GPT2"],
                "hardware": ["HGX_H100"],
                "precision": ["bf16"],
                "batch_size": [1, 8],
                "tensor_parallel": [1, 2],
                "prompt_tokens": [64],
                "results": ["decode_throughput", "decode.latency"],
            },
        ),
        (
            "ResNet50 A100,T4 --estimate bound --set 'memory_bandwidth=2 TB/s,3 TB/s'",
            {
                "model": ["ResNet50"],
                "hardware": ["A100", "T4"],
                "estimate": ["bound"],
                "memory_bandwidth": ["2 TB/s", "3 TB/s"],
            },
        ),
        (
            (
                "GPT2 HGX_H100 --door train --set global_batch=8 --set devices=8"
                " --set sequence_parallel=false"
            ),
            {
                "model": ["GPT2"],
                "hardware": ["HGX_H100"],
                "door": "train",
                "global_batch": [8],
                "devices": [8],
                "sequence_parallel": [False],
            },
        ),
    ):
        table = Engine.sweep(**asked)
        assert main(shlex.split(f"sweep {flags}")) == 0
        assert capsys.readouterr().out == f"{sweep_text(table)}\n"
        assert main(shlex.split(f"sweep {flags} --json")) == 0
        told = json.loads(capsys.readouterr().out)
        assert told == json.loads(json.dumps(sweep_rows(table)))


def test_formats_of_a_product_stand_below_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    main(shlex.split("gemm 8192 4096 4096 H100 --formats --training"))
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head == f"  {'format':<24}{'time':>10}{'passes':>10}{'speed-up':>10}"
    compared = Engine.compare_formats(8192, 4096, 4096, hardware="H100", training=True)
    row = compared.table().to_dict(orient="records")[0]
    name, *numbers = first.split()
    assert (name, numbers[-1]) == (row["format"], f"{row['format_speedup']:.2f}")
    assert " ".join(numbers[:2]) == text(row["latency"], "s")


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("serve Llama3_8B H100 --explain latency", "generation_latency"),
        ("serve Llama3_8B H100 --explain time_per_output_token", "time_per_output_token"),
        ("serve Llama3_8B H100 --explain decode.total_bytes", "total_bytes"),
        ("serve Llama3_8B H100 --explain prefill.latency", "latency"),
        ("serve BERT_Base H100 --explain latency", "time_to_first_token"),
        ("explain ResNet50 A100", "latency"),
        ("explain ResNet50 A100 --quantity ridge_point", "ridge_point"),
        ("train Llama3_8B HGX_H100 --global-batch 64 --tp 8 --explain step_time", "step_time"),
        ("load Llama3_8B H100 --rate 5 --requests 50 --explain saturation_rate", "saturation_rate"),
        ("load Llama3_8B H100 --rate 5 --requests 50 --explain steady_first_token",
         "steady_first_token"),
        ("footprint H100 --device-hours 5 --host no --embodied no --device-power '300 W' --pue 1.1 --wue '1 L/kWh' --grid Germany --explain total_carbon",
         "total_carbon"),
    ],
)  # fmt: skip
def test_a_result_is_explained(
    command: str, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out.startswith(f"{start} = ")
    assert main([*shlex.split(command), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quantity"] == start
