"""Plans that have most of their equations in common, written as lists of shared steps.

Sixty plans of a service differ in a few equations each. Each equation is written once, as a step
that reads and sets quantities of an object; a plan is then a list of numbers of steps, with an
inner list for each loop over operators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlsim.equations.javascript import Function
from mlsim.live.scripts import Given

# One object for all that a plan makes: made with all names, since an object that grows is slow.
RUN = """\
const run=(plan,c,moving)=>{
const s={...blank,...moving};
for(const step of plan){
if(Array.isArray(step))for(let i=0;i<c.repeats.length;i++)for(const inner of step)inner(s,c,i);
else step(s,c);}
return s;};
"""


class SharedSteps:
    """Functions of several programs, whose equal lines are one step."""

    def __init__(self, used: set[str]) -> None:
        self.used = used
        self.plans: dict[str, int] = {}
        self._places: dict[Any, int] = {}
        self._steps: dict[str, int] = {}
        self._sums: dict[str, str] = {}
        self._names: dict[str, None] = {}

    def place(self, given: Given, called: Mapping[str, str]) -> int:
        """Return the place of a plan of equations among all; it is as `planned` takes it."""
        key = (given, tuple(called.items()))
        if key not in self._places:
            self._places[key] = self._placed(given, called)
        return self._places[key]

    def _placed(self, given: Given, called: Mapping[str, str]) -> int:
        steps, moving, *rest = given
        function = _Listed(moving, *rest, self.used, called, self._sums)
        for step in steps:
            function.add(step)
        self._names |= dict.fromkeys(moving)
        found: list[Any] = []
        for lines, inner in function.listed():
            found += [self._step(name, text) for name, text in lines]
            found += [[self._step(name, text) for name, text in inner]] if inner else []
        return self.plans.setdefault(json.dumps(found, separators=(",", ":")), len(self.plans))

    def _step(self, name: str, text: str) -> int:
        self._names[name] = None
        return self._steps.setdefault(text, len(self._steps))

    def text(self) -> str:
        """Return the source of all steps and plans."""
        blank = ",".join(f"{name}:{'[]' if name.startswith('all_') else 0}" for name in self._names)
        steps = ",\n".join(f"(s,c,i)=>{{{text}}}" for text in self._steps)
        return (
            f"const blank={{{blank}}};\nconst steps=[{steps}];\n"
            "const found=step=>Array.isArray(step)?step.map(found):steps[step];\n"
            f"const functions=[{','.join(self.plans)}].map(found);\n{RUN}"
        )


class Chosen:
    """The plans of one program, by their places in a list `f`, and calls of them."""

    arguments = "h,c,f"

    def __init__(self, shared: SharedSteps) -> None:
        self.shared = shared
        self.plans: dict[int, int] = {}

    def call(self, given: Given, called: Mapping[str, str], sources: list[str]) -> str:
        """Return a call of a plan; `sources` is what moves."""
        place = self.shared.place(given, called)
        place = self.plans.setdefault(place, len(self.plans))
        moving = ",".join(map("{}:{}".format, given[1], sources))
        return f"run(f[{place}],c,{{{moving}}})"


class _Listed(Function):
    """A plan whose quantities stand in an object, and whose lines are listed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args[:-1])
        self.all_sums: dict[str, str] = args[-1]

    def sum_of(self, each: str) -> str:
        return self.all_sums.setdefault(each, f"sum{len(self.all_sums)}")

    def named(self, name: str, level: int) -> str:
        if name in self.level and (name not in self.many or self.level[name] == level):
            return f"s.{name}"
        if name in self.many:
            raise TypeError(f"{name} of each operator is read in a later loop: no shared step.")
        return super().named(name, level)

    def listed(self) -> list[tuple[list[tuple[str, str]], list[tuple[str, str]]]]:
        """Return by level the names and texts of lines, and of those in a loop."""
        ends = {level for _, level in self.sums.values()}
        found = []
        for level in range(1 + max((*self.lines, *self.loops, *ends), default=0)):
            lines = [(name, f"s.{name}={text};") for name, text in self.lines.get(level, [])]
            inner = [(name, f"s.{name}={text};") for name, text in self.loops.get(level, [])]
            inner += [(n, f"s.{n}+={each};") for n, (each, at) in self.sums.items() if at == level]
            found.append((lines, inner))
        fixed = [name for name in self.wanted if name not in self.level]
        found[0][0].extend((name, f"s.{name}={self.named(name, 0)};") for name in fixed)
        return found
