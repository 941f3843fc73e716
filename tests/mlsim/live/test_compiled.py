"""Compiled questions answer in Node what the package answers, and refuse what it refuses.

Each is asked at 200 drawn points, and in `make judge` at 10,000; what may be whole or not, too
long, or too large for memory is drawn on both sides of its limit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sampled import sampled
from scripts import CLOSE, TRIED, ask_chromium, ask_node, differ

from mlsim import Engine, Models, live
from mlsim.equations.arrivals import queue_wait, users_rate
from mlsim.errors import InvalidValueError, UnreachableError
from mlsim.live import Choice, Handle
from mlsim.live.chains import REFUSALS
from mlsim.live.compiled import Compiled, inside
from mlsim.solvers.training.scenario import sequence_question
from mlsim.workloads.language import Transformer

BATCH = Handle("batch_size", 1, 4096)
BANDWIDTH = Handle("memory_bandwidth", 0.1, 20.0, start=2.0, unit="TB/s")
PEAK = Handle("peak_flops", 10, 3000, start=300, unit="TFLOP/s")
START = Handle("kernel_overhead", 0.1, 30, start=2, unit="us")
PROMPT, OUTPUT = Handle("prompt_tokens", 1, 12000), Handle("output_tokens", 1, 4000)
SIZES = (
    *("weight_memory", "cache_memory", "activation_memory", "memory_free", "memory_required"),
    *("cache_tokens", "cache_per_sequence", "largest_batch"),
)
TIMES = ("time_to_first_token", "time_per_output_token", "generation_latency", "decode_throughput")
SERVED = (*SIZES, *TIMES, "prefill.latency", "decode.latency", "decode.causes")
Points = list[tuple[dict[str, float], dict[str, str]]]
# Results that count, and those whose limits are counted from: the same to the last digit.
WHOLE = ("cache_tokens", "largest_batch", "longest_context")


def solved(*named: Any, **more: Any) -> Callable[..., Any]:
    return partial(Engine.solve, "ResNet50", "A100", *named, **more)


def served(model: str = "Llama3_1_8B", hardware: str = "H100", **more: Any) -> Callable[..., Any]:
    return partial(Engine.serve, model, hardware, **more)


KNEE = ("steady_first_token", "token_interval", "request_latency", "running_requests")


def loaded(**more: Any) -> Callable[..., Any]:
    def question(*, rate: float, copies: str) -> Any:
        several = {"tensor_parallel": 2, "data_parallel": int(copies), "output_tokens": 300}
        asked = Engine.load("Llama3_70B", "DGX_H100", rate=rate, requests=1, **several, **more)
        return asked.steady

    return question


FORMATS = Choice("precision", {"fp16": "16 bits", "int8": "8 bits", "fp8": "not on this device"})
WEIGHTS = Choice("weights", {"bf16": "16 bits", "fp8": "8 bits", "int4": "4 bits"})
CACHE = Choice("kv_cache", {"bf16": "16 bits", "fp8": "8 bits"})
DEVICES = Choice("hardware", {"A100": "A100", "H100": "H100", "L40S": "L40S"})
PASS = ("latency", "throughput", "memory_bound_share", "memory_required", "memory_free")
QUESTIONS: Mapping[str, Callable[[], Compiled]] = {
    "the roofline of ResNet-50": lambda: live.compiled(
        solved(),
        results=(*PASS, "bytes_moved", "flops", "causes"),
        handles=[BATCH, BANDWIDTH, PEAK],
        choices=[FORMATS],
    ),
    "ResNet-50, calibrated": lambda: live.compiled(
        solved(estimate="calibrated"),
        results=(*PASS, "operator_time", "causes"),
        handles=[BATCH, BANDWIDTH, START],
        choices=[FORMATS],
    ),
    "ResNet-50 in a framework": lambda: live.compiled(
        partial(Engine.solve, "ResNet50", estimate="calibrated", software="eager"),
        results=(*PASS, "causes"),
        handles=[BATCH],
        choices=[DEVICES],
    ),
    "a cache keeps activations": lambda: live.compiled(
        solved(activations="on-chip"),
        results=PASS,
        handles=[BATCH, Handle("last_level_cache", 1, 200, start=40, unit="MiB")],
    ),
    "Llama 3.1 8B": lambda: live.compiled(
        served(),
        results=(*SERVED, "longest_context"),
        handles=[BATCH, PROMPT, OUTPUT],
        choices=[WEIGHTS, CACHE],
    ),
    "Llama 3.1 8B, calibrated": lambda: live.compiled(
        served(estimate="calibrated"),
        results=SERVED,
        handles=[BATCH, PROMPT, OUTPUT, BANDWIDTH],
        choices=[WEIGHTS],
    ),
    "windows that fill, experts, shared prefixes": lambda: live.compiled(
        partial(Engine.serve, hardware="H200", estimate="calibrated", prefix_count=2),
        results=SERVED,
        handles=[BATCH, PROMPT, OUTPUT, Handle("prefix_share", 0.1, 0.9)],
        choices=[Choice("model", {"GPT_OSS_20B": "GPT-OSS", "Mistral_7B": "Mistral"})],
    ),
    "the longest context with windows and prefixes": lambda: live.compiled(
        served("GPT_OSS_20B", "L40S", prefix_share=0.25),
        results=("longest_context", "memory_free"),
        handles=[BATCH, PROMPT, OUTPUT],
    ),
    "many devices": lambda: live.compiled(
        lambda *, devices, **asked: served("DeepSeek_V3", "DGX_H200")(
            tensor_parallel=int(devices), expert_parallel=int(devices), **asked
        ),
        results=(*SIZES, *TIMES),
        handles=[BATCH, PROMPT, OUTPUT],
        choices=[Choice("devices", {"4": "four", "8": "eight"})],
    ),
    "a linear layer": lambda: live.compiled(
        lambda *, recipe, **sides: Engine.gemm(**sides, hardware="H100", recipe=recipe),
        results=("latency", "format_speedup", "casts_share", "memory_required", "compute_time"),
        handles=[Handle(side, 16, 131072, start=4096, step=16) for side in "MNK"],
        choices=[Choice("recipe", {"fp8_rowwise": "a scale a row", "fp8_tensorwise": "one"})],
    ),
    "steps of training": lambda: live.compiled(
        lambda *, recompute, **asked: Engine.train(
            "Llama3_8B", "DGX_H200", data_parallel=8, shard="zero3", recompute=recompute, **asked
        ),
        results=(
            *("step_time", "activation_memory", "memory_required", "memory_free"),
            *("model_flops", "model_flops_utilization"),
        ),
        handles=[
            Handle("sequence_tokens", 256, 8192, start=2048),
            Handle("global_batch", 8, 512, start=64, step=8),
        ],
        choices=[Choice("recompute", {"full": "all", "selective": "attention"})],
    ),
    "the knee": lambda: live.compiled(
        loaded(prompt_tokens=1000),
        results=(*KNEE, "saturation_share"),
        handles=[Handle("rate", 0.05, 100)],
        choices=[Choice("copies", {"1": "one", "2": "two", "4": "four"})],
    ),
    "the knee, calibrated, with prompts of several steps": lambda: live.compiled(
        loaded(prompt_tokens=1900, estimate="calibrated", scheduler="sglang", tokens_per_step=2048),
        results=KNEE,
        handles=[Handle("rate", 0.05, 100)],
        choices=[Choice("copies", {"1": "one", "4": "four"})],
    ),
    "waiting in one line, by equations alone": lambda: live.compiled(
        live.formula(users_rate, queue_wait, service_variation=0.25, think_time="4 s"),
        results=("queue_wait", "arrival_rate"),
        handles=[
            Handle("users", 1, 30),
            Handle("request_latency", 100, 5000, unit="ms"),
            Handle("service_time", 10, 90, start=20, unit="ms"),
        ],
    ),
    "a limit of memory": lambda: live.compiled(
        served("Llama3_1_8B", "A10", estimate="bound"),
        results=(*SIZES, *TIMES, "longest_context"),
        handles=[BATCH, PROMPT, OUTPUT, Handle("reserve", 0.0, 0.5)],
    ),
}


def drawn(compiled: Compiled, count: int) -> Points:
    """Return points of all handles and choices; some beside what may be asked."""
    of = random.Random(7)
    found = []
    for _ in range(count):
        handles = {
            each.name: inside(each, of, whole=each.name in compiled.whole)
            for each in compiled.handles
        }
        for moved in of.sample(compiled.handles, min(2, len(compiled.handles))):
            chance = of.random()
            if chance < 0.03:
                handles[moved.name] += 0.5
            elif chance < 0.05:
                handles[moved.name] = of.choice([moved.low * 0.99, moved.high * 1.01])
        picked = {each.name: of.choice(list(each.options)) for each in compiled.choices}
        found.append((handles, picked))
    return found


def at_its_limits(compiled: Compiled) -> Points:
    """Return points at the largest batch and one above, and at the ends of a block of cache."""
    found = []
    for handles, picked in drawn(compiled, 40):
        most = compiled.ask(handles, picked).get("largest_batch")
        if most is not None:
            beside = [most, most + 1]
            found += [({**handles, "batch_size": n}, picked) for n in beside if n >= 1]
            found += [({**handles, "prompt_tokens": n}, picked) for n in (15, 16, 17, 8192, 8193)]
    return found


@pytest.fixture(scope="module", params=list(QUESTIONS))
def compiled(request: pytest.FixtureRequest) -> Compiled:
    return QUESTIONS[request.param]()


def test_it_answers_in_node_what_the_package_answers(compiled: Compiled, tmp_path: Path) -> None:
    points = [*drawn(compiled, TRIED), *at_its_limits(compiled)]
    asked = [("answer", [handles, picked]) for handles, picked in points]
    agree(compiled, points, ask_node(with_data(compiled), asked, tmp_path))


@pytest.mark.browser
def test_it_answers_in_chromium_what_the_package_answers() -> None:
    compiled = QUESTIONS["Llama 3.1 8B, calibrated"]()
    points = [*drawn(compiled, TRIED), *at_its_limits(compiled)]
    asked = [("answer", [handles, picked]) for handles, picked in points]
    agree(compiled, points, ask_chromium(with_data(compiled), asked))


def agree(compiled: Compiled, points: Points, answers: list[Any]) -> None:
    """Compare answers of a script with those of the package."""
    refused = 0
    for (handles, picked), theirs in zip(points, answers, strict=True):
        mine = compiled.ask(handles, picked)
        assert set(mine) == set(theirs), (handles, picked, mine, theirs)
        for name, value in mine.items():
            at = (handles, picked, name, value, theirs[name])
            if isinstance(value, str):
                refused += 1
                assert value == theirs[name], at
            elif isinstance(value, list):
                pairs = zip(value, theirs[name], strict=True)
                assert all(differ(*pair) <= CLOSE for pair in pairs), at
            else:
                whole = 1.0 if "causes" in name or name.endswith("share") else 0.0
                close = 0 if name in WHOLE else CLOSE
                assert differ(value, theirs[name], whole) <= close, at
    assert refused < len(points)


def of_model(model: Any, hardware: str, estimate: str) -> Compiled:
    """Return the usual question about a model of the zoo."""
    asked = {"estimate": estimate, "check_memory": False}
    if not isinstance(model, Transformer):
        question = partial(Engine.solve, model, hardware, **asked)
        return live.compiled(question, results=(*PASS, "causes"), handles=[BATCH])
    question, half = partial(Engine.serve, model, hardware, **asked), model.context // 2
    prompt, output = (Handle(name, 1, half) for name in ("prompt_tokens", "output_tokens"))
    if not model.decoder:
        results: tuple[str, ...] = ("time_to_first_token", "memory_free", "prefill.causes")
        return live.compiled(question, results=results, handles=[BATCH, prompt])
    return live.compiled(question, results=SERVED, handles=[BATCH, prompt, output])


def test_models_of_the_zoo_answer_in_node_what_they_answer(tmp_path: Path) -> None:
    cases = product(list(Models), ("A100", "H100"), ("roofline", "calibrated"))
    for case in sampled(cases, 8):
        compiled = of_model(*case)
        points = drawn(compiled, 20)
        asked = [("answer", [handles, picked]) for handles, picked in points]
        agree(compiled, points, ask_node(with_data(compiled), asked, tmp_path))


def with_data(compiled: Compiled) -> str:
    """Return the module with its data put in, as a page has them."""
    import json

    data = json.dumps(compiled.data, allow_nan=False)
    inner = compiled.script.replace("export const answer", "const of_page")
    return f"{inner}\nconst data={data};\nexport const answer=(h,c)=>of_page(h,c,data);\n"


def test_scripts_are_small_and_evaluate_no_text(compiled: Compiled) -> None:
    import zlib

    whole = with_data(compiled)
    assert len(zlib.compress(whole.encode(), 9)) < 6000
    assert not [word for word in ("eval", "Function", "import") if word in compiled.script]
    told = compiled.data["refusals"]
    assert set(told) == set(REFUSALS)


def frozen(question: Callable[..., Any], *handles: Handle, results: Any = ("latency",)) -> str:
    """Return why a question can't be compiled."""
    with pytest.raises(UnreachableError) as refused:
        live.compiled(question, results=results, handles=handles)
    return str(refused.value)


def test_a_constant_that_changes_unseen_is_refused_by_name() -> None:
    def question(batch_size: int) -> Any:
        return solved()(batch_size=batch_size, memory_bandwidth=f"{100 + batch_size} GB/s")

    told = frozen(question, BATCH)
    assert "memory_bandwidth changed from 1.01e+11 to 4.196e+12" in told
    assert "batch_size from 1 to 4096" in told


def test_a_column_that_changes_unseen_is_refused_by_name() -> None:
    def question(batch_size: int) -> Any:
        few = batch_size < 2000
        return solved(estimate="calibrated", software="eager" if few else "engine")(
            batch_size=batch_size
        )

    told = frozen(question, BATCH)
    assert "other equations hold" in told or "column" in told

    def model(batch_size: int) -> Any:
        name = "ResNet50" if batch_size < 2000 else "ResNet101"
        return Engine.solve(name, "A100", batch_size=batch_size)

    assert "the operators' column" in frozen(model, BATCH)


def test_other_equations_beyond_a_limit_are_refused_by_name() -> None:
    def question(batch_size: int) -> Any:
        return served(estimate="roofline" if batch_size < 2000 else "bound")(batch_size=batch_size)

    told = frozen(question, BATCH, results=["prefill.latency"])
    assert "other equations hold: bound_latency" in told


def test_what_a_limit_hides_from_most_points_is_found_at_the_ends() -> None:
    def question(prompt_tokens: int) -> Any:
        return served()(prompt_tokens=min(prompt_tokens, 11000))

    told = frozen(question, PROMPT, results=["cache_memory"])
    assert "prompt_tokens changed" in told


def test_what_changes_just_below_a_refusal_is_found() -> None:
    def question(prompt_tokens: int) -> Any:
        faster = {"memory_bandwidth": "4 TB/s"} if prompt_tokens > 7000 else {}
        return served("Llama3_8B")(prompt_tokens=prompt_tokens, **faster)

    assert "memory_bandwidth changed" in frozen(question, PROMPT, results=["prefill.latency"])


def test_the_work_of_a_sequence_is_by_equations_what_the_model_counts() -> None:
    decoders = [each for each in Models if isinstance(each, Transformer) and each.mixers == ()]
    for model in sampled(decoders, 12):
        for attention in ("flash", "standard"):
            asked = {"global_batch": 8, "data_parallel": 8, "attention": attention}
            tokens = min(model.context, 777)
            run = Engine.train(model, "DGX_H200", sequence_tokens=tokens, **asked).run
            counted = run.question.known["sequence_flops"]
            assert differ(sequence_question(run).value("total_flops"), counted) < CLOSE


def test_a_refusal_that_no_condition_tells_is_refused() -> None:
    def question(batch_size: int) -> Any:
        if batch_size > 3000:
            raise InvalidValueError("too many for this page")
        return solved()(batch_size=batch_size)

    assert "too many for this page" in frozen(question, BATCH)


def test_a_result_that_no_equation_makes_is_refused() -> None:
    told = frozen(served(estimate="bound"), BATCH, results=["decode.causes"])
    assert "decode.causes.arithmetic" in told


def test_a_handle_that_changes_nothing_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="'memory_bandwidth' changes none of memory_free"):
        live.compiled(solved(), results=["memory_free"], handles=[BATCH, BANDWIDTH])


def test_a_question_without_any_answer_is_refused_as_the_package_does() -> None:
    from mlsim.errors import UnsupportedPrecisionError

    with pytest.raises(UnsupportedPrecisionError, match="fp8"):
        live.compiled(solved(precision="fp8"), results=["latency"], handles=[BATCH])


def test_what_is_asked_without_a_value_is_refused() -> None:
    compiled = QUESTIONS["ResNet-50, calibrated"]()
    with pytest.raises(InvalidValueError, match="memory_bandwidth"):
        compiled.ask({"batch_size": 1}, {"precision": "fp16"})
    point = {"batch_size": 1, "memory_bandwidth": 2, "kernel_overhead": 3}
    with pytest.raises(InvalidValueError, match="fp16, int8, fp8, not ''"):
        compiled.ask(point)
    assert compiled.ask(point, {"precision": "fp8"}) == {"refusal": "unsupported"}
