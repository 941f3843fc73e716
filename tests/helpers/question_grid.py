"""Draws questions to every door: seeded, over the whole zoo, with all options, some of them wrong.

What is drawn stands in `fixtures/questions/grid.toml`, which says how it is read.
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from questions import FILES, Question

from mlsim import CloudOperators, Clusters, DataCentres, Grids, Hardware, Models, Regions, Systems
from mlsim.profiling import sample_profiles
from mlsim.software import classes
from mlsim.workloads.language import Transformer
from mlsim.workloads.recipes import recipes

SEED = 33
REFUSED = 0.12  # share of a door's questions that may be refused
WRONG = 1 / 12  # share of the questions in which an argument is wrong
# Rows and files have no options that could be wrong.
NEVER_WRONG = ("predict", "profile")
GRID = tomllib.loads((FILES / "grid.toml").read_text("utf-8"))
COUNTS: Mapping[str, int] = GRID["counts"]


@cache
def lists() -> Mapping[str, list[Any]]:
    """Return what "@name" takes the next of."""
    language = [
        each for each in sorted(Models.keys()) if isinstance(Models.find(each), Transformer)
    ]
    whole = [*Systems.keys(), *Clusters.keys()]
    kept = [
        path for path in FILES.iterdir() if path.suffix != ".toml" and "trace." not in path.name
    ]
    files: list[Any] = [[each] for each in sample_profiles() if not each.endswith("machine")]
    files += [[f"{each}_counts", f"{each}_times"] for each in ("alexnet_a100", "resnet50_xeon")]
    files += 2 * [[{"file": path.name}] for path in kept]
    found: dict[str, list[Any]] = {
        "devices": [_short(each) for each in Hardware],
        # On these language models are served, often.
        "large": [_short(each) for each in Hardware if each.capacity_si > 15e9],
        "systems": whole,
        "transformers": language,
        "networks": [each for each in sorted(Models.keys()) if each not in language],
        "grids": list(Grids.keys()),
        "centres": list(DataCentres.keys()),
        "regions": list(Regions.keys()),
        "operators": list(CloudOperators.keys()),
        "software": list(classes()),
        "recipes": list(recipes()),
        "profiles": files,
        "side": [32, 128, 96, 512, 992, 1024, 4096, 5120, 8192, 14336, 1, 7, 77, 1111],
    }
    return {name: sorted(each, key=json.dumps) for name, each in found.items()}


def _short(device: Any) -> str:
    name: str = device.key.rpartition(".")[2]
    return name


class Dice(random.Random):
    """Seeded chance for a question to a door."""

    def __init__(self, door: str, number: int) -> None:
        super().__init__(f"{SEED} {door} {number}")
        self.door, self.number = door, number

    def block(self, block: Mapping[str, Any], into: dict[str, Any]) -> dict[str, Any]:
        """Add what a block of the grid says to what is asked."""
        if "either" in block:
            ways = block["either"]
            [way] = self.choices(ways, [each.get("weight", 1) for each in ways])
            self.block(way, into)
        for name, spec in block.get("always", {}).items():
            into.setdefault(name, self.value(spec, into))
        for name in block.get("like", ()):
            self.block(GRID["blocks"][name], into)
        for name, (share, *values) in block.get("sometimes", {}).items():
            if self.random() < share and name not in into:
                into[name] = self.value(values, into)
        return into

    def value(self, spec: Any, asked: Mapping[str, Any]) -> Any:
        """Draw a value."""
        if isinstance(spec, str) and spec.startswith("@"):
            return self.next_of(spec[1:])
        if isinstance(spec, list):
            chosen = self.choice(spec)
            # A list in a list of choices is meant as it stands.
            return chosen if isinstance(chosen, list) else self.value(chosen, asked)
        if not isinstance(spec, dict):
            return spec
        if "product" in spec:
            factors = (
                asked.get(each, each) if isinstance(each, str) else each for each in spec["product"]
            )
            return math.prod(self.value(each, asked) for each in factors)
        if "some" in spec:
            return (
                self.sample(spec["some"], 2) if self.door == "sweep" else self.choice(spec["some"])
            )
        return {name: self.value(each, asked) for name, each in spec.items()}

    def next_of(self, name: str) -> Any:
        """Take the next of a list, in an order that is drawn anew for each round."""
        of_round, place = divmod(self.number, len(lists()[name]))
        order = random.Random(f"{SEED} {self.door} {name} {of_round}")
        return order.sample(lists()[name], len(lists()[name]))[place]


def drawn(door: str) -> Iterator[Question]:
    """Yield ever more questions to a door, the same in each run; in some of them one is wrong."""
    seen = set()
    number = 0
    while True:
        dice = Dice(door, number)
        asked = dice.block(GRID["blocks"][door], {})
        if door == "predict":
            cells = {name: json.dumps(each) for name, each in asked.items() if name == "extra"}
            asked = {name: str(each) for name, each in asked.items()} | cells
        if dice.random() < WRONG and door not in NEVER_WRONG:
            name = dice.choice(sorted(GRID["wrong"]))
            asked[name] = dice.choice(GRID["wrong"][name])
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
