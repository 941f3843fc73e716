"""Any model on any device: the page's script answers in Node what the package answers.

A plain run compiles some models and devices, and `make judge` all of them.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from scripts import CLOSE, ask_chromium, ask_node, differ

from mlsim import Engine, Hardware
from mlsim.cli import main
from mlsim.errors import DoesNotFitError, MlsimError, UnreachableError
from mlsim.live import pairs as compiler
from mlsim.live.pair_tables import Pairs, compiled_pairs
from mlsim.live.pairs import Table

run = import_module("mlsim.live.will_it_run")
SOURCE = Path(compiler.__file__).parent
JUDGE = bool(os.environ.get("MLSIM_JUDGE"))
# Dense, with windows, experts, latent attention, states; formats of their own.
MODELS = (
    *("Llama3_8B", "Llama3_70B", "GPT_OSS_20B", "Gemma3_27B", "DeepSeek_V3", "GPT2"),
    *("Qwen3_Next_80B_A3B", "Mixtral_8x7B", "Qwen3_30B_A3B", "Mistral_7B", "Gemma2_9B"),
    *("Gemma3n_E4B", "MT_NLG_530B", "Llama2_7B"),
)
DEVICES = (
    *("Cloud.A100", "Cloud.B200", "Cloud.H100", "Cloud.L4", "Cloud.V100", "Cloud.MI300X"),
    *("Workstation.RTX4090", "Workstation.M3Max", "Workstation.RTX3090", "Cloud.H200"),
    *("Server.EPYC9654", "Cloud.GroqLPU1"),
)
POINTS = 10_000 if JUDGE else 300


def chosen() -> tuple[tuple[str, ...], tuple[str, ...]]:
    if JUDGE:
        return tuple(run.models()), tuple(each.key for each in Hardware)
    devices = {each.key for each in Hardware}
    return (
        tuple(each for each in MODELS if each in run.models()),
        tuple(each for each in DEVICES if each in devices),
    )


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return run.pairs(*chosen())


@pytest.fixture(scope="module")
def data(pairs: Pairs) -> dict[str, Any]:
    return {"answer": pairs.data, **run.of_zoo(*chosen())}


def states(count: int) -> Iterator[dict[str, Any]]:
    """Yield questions by chance, over decades of each handle."""
    of = random.Random(5)
    models, devices = chosen()
    for _ in range(count):
        yield {
            "model": of.choice(models),
            "hardware": of.choice(devices),
            "weights": of.choice(list(run.WEIGHTS)),
            "kv_cache": of.choice(list(run.CACHES)),
            "devices": of.choice(run.COUNTS),
        } | {
            each.name: round(each.low * (each.high / each.low) ** (of.random() ** 1.5))
            for each in run.HANDLES
        }


def served(state: dict[str, Any], estimate: str = "calibrated") -> Any:
    names = ("model", "hardware", "weights", "kv_cache", "devices")
    pair = tuple(state[name] for name in names)
    lengths = {each.name: state[each.name] for each in run.HANDLES}
    return Engine.serve(**run.arguments(pair), **lengths, estimate=estimate)


def page(script: str, data: dict[str, Any]) -> str:
    """Return the page's modules as one that is asked about states."""
    view = (SOURCE / "will_it_run.js").read_text(encoding="utf-8")
    view = re.sub(r"^import .*$", "", view, flags=re.MULTILINE)
    whole = re.sub(r"^export (?=const|function)", "", f"{script}\n{view}", flags=re.MULTILINE)
    shown = "const shown=x=>String(x);"
    asking = "export const ask=state=>asked(state,data);export const can=state=>ways(state,data);"
    asking += "export const written=state=>code(state,data);"
    return f"{shown}{whole}\nconst data={json.dumps(data)};\n{asking}"


def test_the_page_answers_what_the_package_answers(
    pairs: Pairs, data: dict[str, Any], tmp_path: Path
) -> None:
    points = list(states(POINTS))
    asked = [("ask", [each]) for each in points]
    source = page(pairs.script, data)
    answers = [*ask_node(source, asked, tmp_path), *ask_chromium(source, asked)]
    kinds = dict.fromkeys((None, "does_not_fit", "too_long", "unsupported", "no_node"), 0)
    for state, theirs in zip(points * 2, answers, strict=True):
        kinds[theirs.get("refusal")] += 1
        if theirs.get("refusal") == "no_node":
            several = run.systems().get(state["hardware"])
            assert several is None or several.devices < state["devices"], state
            continue
        if theirs.get("refusal") in {"too_long", "unsupported"}:
            with pytest.raises(MlsimError) as refused:
                served(state)
            name = run.models()[state["model"]].name
            told = theirs.get("why", "longer than the context").replace("{model}", name)
            assert told in str(refused.value), state
            continue
        answer = served(state)
        for name in run.SIZES:
            assert differ(answer.value(name), theirs[name]) <= CLOSE, (state, name)
        assert differ(answer.value("memory_capacity") * 0.1, theirs["reserve"]) <= 1e-9, state
        if "refusal" in theirs:
            with pytest.raises(DoesNotFitError):
                answer.value("time_to_first_token")
            continue
        roofline = served(state, "roofline")
        for name in (*run.TIMES, *run.RATES):
            assert differ(answer.value(name), theirs[name]) <= CLOSE, (state, name)
        for name in run.TIMES:
            of_roofline = differ(roofline.value(name), theirs["roofline"][name])
            assert of_roofline <= CLOSE, (state, name)
            band = answer.band(name)
            for mine, its in zip((band.low, band.high), theirs["bands"][name], strict=True):
                assert differ(mine, its) <= CLOSE, (state, name, band, theirs["bands"][name])
        loans = [[x.constant, x.kin.level, x.words] for x in answer.loans]
        assert sorted(theirs["loans"]) == sorted(loans), state
        assert theirs["weights"] == answer.service.formats.weights.name
    assert all(kinds.values()), kinds


def test_what_would_make_it_fit_does(pairs: Pairs, data: dict[str, Any], tmp_path: Path) -> None:
    state = {"model": "Llama3_8B", "hardware": "Workstation.RTX4090", "weights": "released"}
    state |= {"kv_cache": "released", "batch_size": 200, "prompt_tokens": 1000, "devices": 1}
    state["output_tokens"] = 256
    most = int(served({**state, "batch_size": 1}).value("largest_batch"))
    (ways,) = ask_node(page(pairs.script, data), [("can", [state])], tmp_path)
    assert ways[0] == f"serve {most} users at once in place of 200"
    assert float(served({**state, "batch_size": most}).value("memory_free")) >= 0
    with pytest.raises(DoesNotFitError):
        served({**state, "batch_size": most + 1}).value("time_to_first_token")


def test_the_code_below_a_question_gives_its_numbers(
    pairs: Pairs, data: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [each for each in states(60) if each["batch_size"] < 64]
    asked = [(name, [each]) for each in points for name in ("ask", "written")]
    answers = iter(ask_node(page(pairs.script, data), asked, tmp_path))
    several = 0
    for found, written in zip(answers, answers, strict=True):
        if "refusal" in found:
            continue
        several += "tensor_parallel" in written["Python"]
        names: dict[str, Any] = {}
        exec(written["Python"], names)
        assert found["weights"] in capsys.readouterr().out
        assert main([*shlex.split(written["Shell"].replace("\\\n", ""))[1:], "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        for name in run.TIMES:
            assert differ(names["service"].value(name), found[name]) <= CLOSE
            assert differ(printed[name]["value"], found[name]) <= CLOSE
    assert several


def test_a_million_tokens_cost_the_rent_by_the_rate(
    pairs: Pairs, data: dict[str, Any], tmp_path: Path
) -> None:
    from mlsim.measured import prices

    state = {"model": "Llama3_8B", "hardware": "Cloud.A100", "weights": "released"} | {
        "kv_cache": "released",
        "devices": 1,
        "batch_size": 8,
        "prompt_tokens": 512,
        "output_tokens": 128,
    }
    (found,) = ask_node(page(pairs.script, data), [("ask", [state])], tmp_path)
    rent, provider, date = data["rents"]["Cloud.A100"]
    rows = [row for row in prices(device="Cloud.A100", provider=provider) if str(row.date) == date]
    assert rent == min(float(row.per_device.to("USD/h").magnitude) for row in rows)
    rate = served(state).value("output_throughput")
    assert found["price"] == pytest.approx(rent / 3600 * 1e6 / rate, rel=1e-12)
    assert found["energy"] == pytest.approx(400 * 1e6 / rate, rel=1e-12)


def test_a_constant_that_models_alike_do_not_share_is_refused() -> None:
    table: Table = run.table(("Llama3_8B", "Mistral_7B", "Phi_4"), DEVICES[:8])
    spared = "Cloud.V100"
    (other, *_) = [each for each in table.models if each not in compiler.Constants(table).asked]

    def asked(pair: Any, estimate: str, **handles: Any) -> Any:
        answer = table.ask(pair, estimate, **handles)
        if pair[:2] == (other, spared):
            answer._asked("memory_free")[0].known.add("planted", memory_bandwidth=1.0)
        return answer

    from dataclasses import replace

    few = [each for each in table.few if each != spared]
    with pytest.raises(UnreachableError, match="memory_bandwidth of"):
        compiled_pairs(replace(table, ask=asked, few=few))


def test_scripts_are_small_and_evaluate_no_text(pairs: Pairs) -> None:
    assert not [word for word in ("eval", "Function", "import") if word in pairs.script]
