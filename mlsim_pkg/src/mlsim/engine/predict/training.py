"""Cases of training: steps of language models, of encoders and of networks, and whole runs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mlsim.engine import Engine
from mlsim.engine.anatomy import anatomy
from mlsim.engine.predict.case import Case, lengthened
from mlsim.errors import InvalidValueError
from mlsim.software import narrower
from mlsim.solvers.training.training import Training
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism
from mlsim.workloads.training_lowering import parameters_on_device

# Of a batch that nobody states: so many tokens a step, as large language models have them.
USUAL_TOKENS = 4_000_000
# A network's step is its pass forward and two products back for each of it.
_PASSES = 3.0
# Bytes that training holds of a parameter: two of it and two of its gradient, and its states.
_WEIGHT_BYTES, _STATE_BYTES = 4.0, 12.0
# Layouts that are searched for one table at most: each takes up to a second.
MOST_SEARCHES = 24
# Micro-batches for each stage of a pipeline, where nobody says.
_FULL = 4
_RECOMPUTE = ("none", "selective", "full")


def _model(case: Case, tokens: int) -> Transformer:
    """Return the model with a context that holds the sequences."""
    model = case.model
    if not isinstance(model, Transformer):
        raise InvalidValueError(f"{model.name} is no language model.")
    return lengthened(model, tokens)


def _staged(case: Case, model: Transformer, parts: int) -> Transformer:
    """Return the model with as many layers in each part of a stage as the fullest one has.

    The slowest stage decides the time, so one with a layer less waits.
    """
    layers = -(-model.layers // parts) * parts
    if layers == model.layers or model.mixer_layers or model.feed_layers:
        return model
    case.note(f"{model.layers} layers in {parts} parts: timed as the fullest, {layers // parts}")
    return _with_layers(model, layers)


@lru_cache(maxsize=256)
def _with_layers(model: Transformer, layers: int) -> Transformer:
    return replace(model, layers=layers)


def _asked(case: Case) -> dict[str, Any]:
    """Return the arguments of `Engine.train`, worked out once for a case."""
    if "asked" not in case.kept:
        case.kept["asked"] = _arguments(case)
    return case.kept["asked"]  # type: ignore[no-any-return]


def _arguments(case: Case) -> dict[str, Any]:
    tokens, devices = case.whole("input_len", 4096), case.count
    model = _model(case, tokens)
    whole = {
        "hardware": case.cluster(devices),
        "devices": devices,
        "sequence_tokens": tokens,
        "precision": case.precision("a_dtype", "bf16"),
        "check_memory": False,
    }
    if _is_open(case, model):
        return {**whole, "model": model, **_searched(case, model, whole)}
    tensor, pipeline, context = (case.whole(name, 1) for name in ("tp", "pp", "cp"))
    copies, experts = max(1, devices // (tensor * pipeline * context)), case.whole("ep", 1)
    layout = Parallelism(tensor=tensor, pipeline=pipeline, context=context, expert=experts)
    interleaved = case.more_whole("v", 1) if pipeline > 1 else 1
    micro = _micro(case, copies, pipeline)
    recompute = str(case.extra.get("recompute", "none"))
    if recompute not in _RECOMPUTE:
        raise InvalidValueError(
            f"extra recompute must be one of {', '.join(_RECOMPUTE)}, not {recompute[:20]}."
        )
    return {
        **whole,
        "model": _staged(case, model, pipeline * interleaved),
        "global_batch": _global_batch(case, copies, micro, tokens),
        "micro_batch": micro,
        **layout.sizes,
        "data_parallel": None,  # what the devices make
        "interleaved": interleaved,
        "sequence_parallel": recompute != "full" and tensor > 1,
        "shard": _shard(case, model, tensor * pipeline, copies, experts),
        "recompute": recompute,
    }


def _held(model: Transformer, parts: int, copies: int, experts: int = 1) -> float:
    """Return the bytes of weights, gradients and shared states on each device.

    Experts are divided among groups of copies, and the copies of each share its states.
    """
    dense, expert = parameters_on_device(model, Parallelism())
    shared = _WEIGHT_BYTES + _STATE_BYTES / copies
    own = _WEIGHT_BYTES + _STATE_BYTES / max(1.0, copies / experts)
    return (dense * shared + expert / experts * own) / parts


def _is_open(case: Case, model: Transformer) -> bool:
    """Tell whether a batch is stated, and not how devices share a model too large for each."""
    stated = any(case.extra.get(name) is not None for name in ("mb", "local"))
    if (
        stated
        or case.extra.get("gb") is None
        or math.prod(case.whole(name, 1) for name in ("tp", "pp", "cp")) > 1
        or case.more("fsdp", 0, zero=True)
    ):
        return False
    return case.count > 1 and _held(model, 1, case.count) > case.device.capacity_si


def _searched(case: Case, model: Transformer, whole: dict[str, Any]) -> dict[str, Any]:
    """Return the fastest layout that fits, where a case does not state one."""
    key = (model.key, *(str(each) for each in whole.values()), case.more_whole("gb"))
    case.note("layout not stated: the fastest that fits is assumed")
    if key in case.layouts:
        return case.layouts[key]  # type: ignore[no-any-return]
    if len(case.layouts) >= MOST_SEARCHES:
        raise InvalidValueError(
            f"its layout is not stated, and {MOST_SEARCHES} were searched for this table: "
            "state tp and pp, or ask for it in a table of its own."
        )
    batch = case.more_whole("gb")
    asked = {**whole, "check_memory": True, "model": model, "global_batch": batch}
    run = Engine.train(**asked, search=True).run
    sizes = run.parallelism
    case.layouts[key] = found = {
        "global_batch": batch,
        "micro_batch": int(run.micro_batch),
        **sizes.sizes,
        "interleaved": sizes.interleaved,
        "sequence_parallel": sizes.sequence,
        "shard": sizes.shard,
        "recompute": run.recipe.recompute,
    }
    return found


def _shard(case: Case, model: Transformer, parts: int, copies: int, experts: int) -> str:
    """Return what copies shard: as stated, else as much as a device needs to hold its part."""
    if case.more("fsdp", 0, zero=True):
        return "zero3"
    if copies == 1 or _held(model, parts, 1, experts) < case.device.capacity_si:
        return "none"
    held = _held(model, parts, copies, experts)
    found = "zero1" if held < case.device.capacity_si else "zero3"
    case.note(f"weights and their states don't fit on each device: shared by copies ({found})")
    return found


def _micro(case: Case, copies: int, pipeline: int) -> int:
    """Return the micro-batch; a stated batch of a copy goes through a pipeline one by one."""
    if case.extra.get("mb") is not None:
        return case.more_whole("mb")
    if case.extra.get("local") is not None:
        return case.more_whole("local") if pipeline == 1 else 1
    found, whole = case.whole("batch", 1), case.extra.get("gb")
    return 1 if whole is not None and found * copies > case.more("gb") else found


def _global_batch(case: Case, copies: int, micro: int, tokens: int) -> int:
    each = copies * micro
    if case.extra.get("gb") is not None:
        return case.more_whole("gb")
    if case.extra.get("local") is not None:
        return max(each, copies * case.more_whole("local"))
    stages = case.whole("pp", 1)
    rounds = max(1, round(USUAL_TOKENS / (tokens * each)))
    if stages > 1:
        # Whoever runs a pipeline keeps it full for most of the step.
        rounds = max(_FULL, -(-rounds // stages)) * stages
    case.note(f"batch not stated: {rounds * each:,} sequences of {tokens:,} tokens assumed")
    return rounds * each


def _train(case: Case, estimate: str, **other: Any) -> Training:
    asked = {**_asked(case), **other}
    if estimate == "calibrated":
        asked["software"] = narrower("framework", case.text("software"))
    return Engine.train(estimate=estimate, **asked)


def step_time(case: Case, estimate: str) -> float:
    """Return the seconds of a step; the bound is its arithmetic at the peak rate alone."""
    if estimate == "bound":
        return _model_flops(case, "flash") / (_peak(case) * case.count)
    return case.answered(_train(case, estimate), "step_time")


def _model_flops(case: Case, attention: str) -> float:
    """Return the FLOP of a step that the model asks for; "standard" counts masked pairs too."""
    if ("flops", attention) not in case.kept:
        case.kept["flops", attention] = _counted(case, attention)
    return float(case.kept["flops", attention])


def _counted(case: Case, attention: str) -> float:
    tokens = case.whole("input_len", 4096)
    # Of the model itself, and not of as many layers as its stages have room for.
    asked = {"model": _model(case, tokens), "hardware": case.device, **Parallelism().sizes}
    alone = {"devices": 1, "micro_batch": 1, "shard": "none", "sequence_parallel": False}
    counted = {"interleaved": 1, "recompute": "none", "attention": attention}
    found = _train(case, "roofline", **asked, **alone, **counted)
    return float(found.value("ideal_step_time")) * _peak(case)


def _peak(case: Case) -> float:
    return float(case.device.compute.figure(case.precision("a_dtype", "bf16")).si)


def flops_rate(case: Case, estimate: str) -> float:
    """Return the model's FLOP/s of each device, counted as the case counts them."""
    counted = str(case.extra.get("mfu_attn", "full"))
    if counted not in ("full", "causal"):
        raise InvalidValueError(f"extra mfu_attn must be full or causal, not {counted[:20]}.")
    flops = _model_flops(case, "standard" if counted == "full" else "flash")
    return flops / step_time(case, estimate) / case.count


def utilization(case: Case, estimate: str) -> float:
    """Return model FLOPs utilization, a fraction."""
    return flops_rate(case, estimate) / _peak(case)


def tokens_rate(case: Case, estimate: str) -> float:
    """Return tokens per second of all devices."""
    asked = _asked(case)
    return float(asked["global_batch"] * asked["sequence_tokens"]) / step_time(case, estimate)


def device_tokens_rate(case: Case, estimate: str) -> float:
    """Return tokens per second of each device."""
    return tokens_rate(case, estimate) / case.count


def run_hours(case: Case, estimate: str) -> float:
    """Return the hours of a whole run, counted for each device; no failures are counted."""
    return case.more("tokens") / device_tokens_rate(case, estimate) / 3600.0


def samples_rate(case: Case, estimate: str) -> float:
    """Return samples per second of a network or an encoder, trained on each device alone."""
    batch, devices, model = _local_batch(case), case.count, case.model
    language = isinstance(model, Transformer)
    asked: dict[str, Any] = {
        "batch_size": batch,
        "precision": case.precision("a_dtype", "fp32"),
        "tokens": case.whole("input_len") if language else None,
    }
    if devices > 1:
        case.note("what devices send one another is not counted: taken as hidden")
    if estimate == "bound":
        forward = anatomy(model, **asked, count="mac")
        first = next(row["operations"] for row in forward.layers if row["operations"])
        # Nobody asks for the gradient of the first layer's input.
        counted = 2.0 * (_PASSES * forward.total("operations") - first)
        peak = case.device.compute.figure(case.precision("a_dtype", "fp32")).si
        return float(batch * devices / (counted / peak))
    if not language and estimate == "calibrated":
        # Kernels in training are as eager as a framework's, unless the case is tuned.
        tuned = case.text("sw_class") == "engine"
        step = Engine.train(
            model=model,
            hardware=case.device,
            global_batch=batch,
            precision=asked["precision"],
            estimate=estimate,
            software="framework" if tuned else "eager",
            check_memory=False,
        )
        return batch * devices / case.answered(step, "step_time")
    found = anatomy(
        model,
        **asked,
        training=True,
        optimizer="adam" if language else "momentum",
        hardware=case.device,
        estimate=estimate,
        **case.software(estimate, "eager"),
    )
    case.answered(found.training_profile, "latency")
    return batch * devices / float(found.run.value("latency"))


def _local_batch(case: Case) -> int:
    if case.text("batch"):
        return case.whole("batch")
    return max(1, case.more_whole("gb") // case.count)
