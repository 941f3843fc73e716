"""Will it run? Any language model of the zoo on any device of it, as a live figure.

Memory, times and users are those of `Engine.serve`, compiled for all pairs (`pairs.py`). Beside
them stand what the zoo knows of each: names, power limits, rents, and the rows from which bands
are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mlsim.errors import MlsimError, NotMeasuredError
from mlsim.live.figure import Figure, figure
from mlsim.live.handles import Choice, Handle
from mlsim.live.pair_tables import Pairs, compiled_pairs
from mlsim.live.pairs import Pair, Table
from mlsim.parameters import CALIBRATED
from mlsim.workloads.language import Transformer
from mlsim.zoo.spaces import Hardware, Models, Systems

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from mlsim.systems import System

# What a format is called where nobody chose another one.
RELEASED = "released"
WEIGHTS = {RELEASED: "As released", "fp8": "8 bits", "int4": "4 bits"}
CACHES = {RELEASED: "As released", "fp8": "8 bits"}
# How many devices may share a model, by tensor parallelism.
COUNTS = (1, 2, 4, 8)
# On these all models are asked about, on the first two also as several; others are alike, as the
# compiler proves. The last four borrow what was measured of others, each in another way.
_FEW = (
    *("B200", "A100", "H100", "L4", "M3Max", "MI300X", "RTX4090", "V100"),
    *("A100_40GB", "H800", "DGXSpark", "RTXPRO6000"),
)
SIZES = (
    *("weight_memory", "cache_memory", "activation_memory", "usable_memory", "memory_free"),
    *("memory_required", "cache_per_sequence", "largest_batch"),
)
TIMES = ("time_to_first_token", "time_per_output_token")
RATES = ("decode_throughput", "output_throughput")
RESULTS = {
    CALIBRATED: (*SIZES, *TIMES, *RATES, "prefill.causes", "decode.causes"),
    "roofline": TIMES,
    "bound": TIMES,
}
HANDLES = (
    Handle("batch_size", 1, 1024, start=8, step=1, scale="log", label="Users at once"),
    Handle(
        "prompt_tokens", 16, 131072, start=1024, step=1, scale="log", label="Prompt", unit="tokens"
    ),
    Handle(
        "output_tokens", 2, 32768, start=256, step=1, scale="log", label="Answer", unit="tokens"
    ),
)
# Where constants are asked about: numbers that are no constant by chance.
_ASKED = (37, 149, 89)


def models() -> dict[str, Transformer]:
    """Return the models that generate text, by key."""
    found = (each for each in Models if isinstance(each, Transformer) and each.decoder)
    return {each.key: each for each in sorted(found, key=lambda each: each.name.lower())}


@cache
def systems() -> dict[str, System]:
    """Return of each device a system of several: the smallest that has enough of them."""
    found: dict[str, System] = {}
    for each in sorted(Systems, key=lambda each: each.devices):
        known = found.get(each.device.key)
        if known is None or known.devices < COUNTS[-1]:
            found[each.device.key] = each
    return found


def arguments(pair: Pair) -> dict[str, Any]:
    """Return what a pair is to `Engine.serve`.

    >>> arguments(("Llama3_8B", "Cloud.H100", "fp8", "released", 1))
    {'model': 'Llama3_8B', 'hardware': 'Cloud.H100', 'weights': 'fp8'}
    >>> arguments(("Llama3_8B", "Cloud.H100", "released", "released", 4))
    {'model': 'Llama3_8B', 'hardware': 'HGX_H100', 'tensor_parallel': 4}
    """
    model, place, weights, cache_, devices = pair
    found: dict[str, Any] = {"model": model, "hardware": place}
    if devices > 1:
        found |= {"hardware": systems()[place].key, "tensor_parallel": devices}
    found |= {"weights": weights} if weights != RELEASED else {}
    return found | ({"kv_cache": cache_} if cache_ != RELEASED else {})


def _ask(pair: Pair, estimate: str, **handles: float) -> Any:
    from mlsim.engine import Engine

    asked = {**arguments(pair), **{name: int(value) for name, value in handles.items()}}
    asked["model"] = models_by_key()[asked["model"]]
    if pair[4] > 1:
        asked["hardware"] = systems()[pair[1]]
    return Engine.serve(**asked, estimate=estimate, check_memory=False)


@cache
def models_by_key() -> dict[str, Transformer]:
    """Return the models, looked up once."""
    return models()


def _told(text: str, pair: Pair) -> str:
    """Return why a pair is refused, without its names."""
    name = models_by_key()[pair[0]].name
    return text.replace(name, "{model}")


def _also(answer: Any) -> dict[str, Any]:
    """Return names of formats, and what is borrowed."""
    chosen = answer.service.formats
    loans = {f"loan {each.constant}": (each.kin.level, each.words) for each in answer.loans}
    return {"weights": chosen.weights.name, "cache": chosen.kv_cache.name, **loans}


@cache
def offered() -> dict[str, str]:
    """Return the devices that somebody measured, or one like them: names by key."""
    from mlsim.engine import Engine

    found = {}
    for each in Hardware:
        try:
            Engine.serve("GPT2", each, estimate=CALIBRATED, check_memory=False)
        except MlsimError:
            continue
        found[each.key] = each.name
    return found


@cache
def table(keys: tuple[str, ...] = (), devices: tuple[str, ...] = ()) -> Table:
    """Return what is compiled; of all models and devices, or of some."""
    chosen = keys or tuple(models())
    places = devices or tuple(offered())
    named = {each.rpartition(".")[2]: each for each in places}
    few = [named[each] for each in _FEW if each in named] or list(places)[:2]
    most = {key: each.devices for key, each in systems().items()}
    start = [
        Handle(each.name, each.low, each.high, start=value, step=1)
        for each, value in zip(HANDLES, _ASKED, strict=True)
    ]
    return Table(
        ask=_ask,
        told=_told,
        also=_also,
        models=chosen,
        places={each: min(most.get(each, 1), COUNTS[-1]) for each in places},
        few=few,
        counts=COUNTS,
        weights=list(WEIGHTS),
        caches=list(CACHES),
        results=RESULTS,
        sizes=SIZES,
        handles=start,
    )


@cache
def pairs(keys: tuple[str, ...] = (), devices: tuple[str, ...] = ()) -> Pairs:
    """Return all pairs compiled."""
    return compiled_pairs(table(keys, devices))


def bands() -> dict[str, Any]:
    """Return what bands are made of: limits by kind of step, and how loans widen them."""
    from mlsim.engine.bands import LENT, LEVELS_LENT, band
    from mlsim.hardware.kernel_constants import NOBODY
    from mlsim.solvers.calibrated import DECIDED_BY, TENTH

    found: dict[str, Any] = {}
    for result, case, kind in (
        ("time_to_first_token", "prefill", "prompts"),
        ("time_per_output_token", "decode", "generation"),
    ):
        limits = band(case, "rate", CALIBRATED)
        assert limits is not None
        lent = {
            what: {
                level: [score.least, score.most]
                for level in LEVELS_LENT[1:]
                for score in _scores(what, level, kind)
            }
            for what in ("device", "links")
        }
        of = {"limits": [limits.least, limits.most], "words": limits.words.removeprefix("band: ")}
        found[result] = {**of, "lent": lent}
    return {
        "results": found,
        "levels": list(LEVELS_LENT),
        "nobody": NOBODY,
        "causes": {name: list(causes) for name, causes in DECIDED_BY.items()},
        "tenth": TENTH,
        "links": [name for name, what in LENT.items() if what == "links"],
    }


def _scores(what: str, level: str, kind: str) -> list[Any]:
    """Return the score of loans, if enough rows have one."""
    from mlsim.engine.bands import lent_score

    try:
        return [lent_score(what, level, kind)]
    except NotMeasuredError:
        return []


def rents(devices: Iterable[str]) -> dict[str, list[Any]]:
    """Return the lowest rent on demand on record of each device: USD an hour, and who asks it.

    Of one provider's prices the newest counts.
    """
    from mlsim.measured import prices

    found: dict[str, list[Any]] = {}
    for key in devices:
        newest: dict[str, Any] = {}
        for row in prices(device=key):
            if row.terms == "on demand":
                known = newest.get(row.provider)
                if known is None or row.date > known.date:
                    newest[row.provider] = row
        if newest:
            best = min(newest.values(), key=lambda row: float(row.per_device.to("USD/h").magnitude))
            rent = float(best.per_device.to("USD/h").magnitude)
            found[key] = [rent, best.provider, best.date.isoformat()]
    return found


def known_devices(keys: Iterable[str]) -> list[list[Any]]:
    """Return of each device its key, name, power limit in W (0 if nobody states one)."""
    found = []
    zoo = {each.key: each for each in Hardware}
    for each in map(zoo.__getitem__, keys):
        limit = each.power.figures.get("tdp") if each.power else None
        found.append([each.key, each.name, limit.si if limit else 0])
    return found


def of_zoo(keys: Iterable[str], devices: Iterable[str]) -> dict[str, Any]:
    """Return what the page knows of models and devices, and what bands are made of."""
    names, devices = models(), list(devices)
    return {
        "devices": known_devices(devices),
        "models": [[key, names[key].name, names[key].context] for key in keys],
        "nodes": {
            key: [systems()[key].key, systems()[key].devices] for key in devices if key in systems()
        },
        "rents": rents(devices),
        "bands": bands(),
        "weights": list(WEIGHTS),
        "caches": list(CACHES),
    }


def will_it_run(
    *,
    still: Drawing,
    model: str,
    hardware: str,
    among: Sequence[str] = (),
    on: Sequence[str] = (),
) -> Figure:
    """Return the page's figure: any model on any device, starting with one of each.

    Parameters
    ----------
    still
        The figure that stands where no script runs.
    model, hardware
        Keys of the zoo.
    among, on
        Models and devices that are offered, if not all of the zoo.
    """
    names, zoo = models(), offered()
    keys, devices = tuple(among or names), tuple(on or zoo)
    return figure(
        "will_it_run",
        still=still,
        handles=HANDLES,
        choices=[
            Choice("model", {key: names[key].name for key in keys}, start=model),
            Choice("hardware", {key: zoo[key] for key in devices}, start=hardware, label="Device"),
            Choice("devices", {str(each): str(each) for each in COUNTS}, label="How many"),
            Choice("weights", WEIGHTS, label="Weights"),
            Choice("kv_cache", CACHES, label="KV cache"),
        ],
        answer=pairs(keys, devices),
        data=of_zoo(keys, devices),
        label="The question",
    )
