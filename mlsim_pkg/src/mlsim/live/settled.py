"""A service under load, compiled: the batch at which requests that arrive at a rate settle.

The closed forms ask how long a step takes with so many running, and how many run hangs on that.
`Typical.at_rate` tries until the two agree; the script here does the same in the same order, with
the operators' equations in the place of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsim.equations import Plan, plan
from mlsim.equations.javascript import planned
from mlsim.errors import UnreachableError
from mlsim.solvers.arrivals.steady import ENOUGH, FULL, ROUNDS, Steady
from mlsim.solvers.arrivals.step_times import CONTEXTS, of_tokens
from mlsim.solvers.question import Question
from mlsim.workloads.model import OperatorTable

MADE = ("decode_step_time", "prompt_time")
FLOW = ("running_requests", "token_interval")
# Results that know of prompts which are read in one step alone.
_ONE_STEP = ("steady_first_token", "request_latency")

_SCRIPT = """\
const settled=(c,rate,full,rest,flow)=>{
const l=c.load,known=new Map();
const timed=(key,time)=>{if(!known.has(key))known.set(key,time().latency);return known.get(key);};
const at=(n,cached)=>timed(n+" "+cached,()=>full(l.full,n*l.copies,cached));
const whole=n=>{const m=Math.max(n,1),a=at(m,l.low);return a+(at(m,l.high)-a)*l.part;};
const together=n=>n&&l.rest?timed(n,()=>rest(l.rest,n*l.copies)):0;
const step=(device,tokens,some)=>{
if(tokens>l.captured)device=Math.max(device,l.starts);
const host=l.step_host+some*l.sequence_host;
return l.ahead?Math.max(device,host):device+host;};
const decoding=n=>{const low=Math.min(Math.trunc(n),l.running-1),a=whole(low);
return a+(whole(low+1)-a)*(n-low);};
const added=(running,prompts,device)=>{
const some=Math.max(1,running);
const most=Math.min(Math.trunc(some+l.budget-(l.mixed?running:0)),l.tokens);
const before=Math.min(Math.trunc(some),most);
const tokens=Math.min(Math.trunc(some+Math.max(1,prompts)*l.new),most);
const read=Math.max(1,tokens-before)/l.new;
const more=together(tokens)-together(before)+read*l.attention;
return (step(device+more,tokens,some+read)-step(device,some,some))/read;};
let running=0,interval=0,found;
for(let round=0;round<l.rounds;round++){
const some=Math.max(1,running),device=decoding(running),decode=step(device,some,some);
const most=l.most/rate;
const each=Math.min(added(running,rate*Math.max(decode,interval),device),most);
found={decode_step_time:decode,prompt_time:each};
const next=flow(c,rate,decode,each),settles=Math.min(next.running_requests,l.limit);
const near=Math.abs(settles-running)<=l.enough*Math.max(1,running);
running=(running+settles)/2;interval=(interval+next.token_interval)/2;
if(near)break;}
return found;};
const steps=(c,running)=>{const l=c.load,most=Math.min(running,c.running_limit);
return Math.ceil(l.new/Math.max(1,l.budget-(l.mixed?most:0)));};
"""


@dataclass(frozen=True)
class Settled:
    """What the closed forms of a rate take beside their equations.

    `numbers` are constants; `parts` the questions of a step by their names, each with its
    operators, and the names of what moves there; `flow` the equations of a round.
    """

    steady: Steady
    numbers: Mapping[str, Any]
    parts: Mapping[str, tuple[Question, OperatorTable[Any], tuple[str, ...]]]
    flow: Plan

    def at_rate(self, rate: float) -> dict[str, float]:
        """Return what the rounds end with, as the package has it."""
        known = self.steady.loaded.typical.at_rate(rate)
        return {name: float(known[name]) for name in MADE}

    def refusal(self, rate: float, results: Iterable[str]) -> str | None:
        """Return the code of what has no closed form at a rate."""
        typical = self.steady.loaded.typical
        if rate >= self.numbers["saturation"]:
            return "saturated"
        if not set(results) & set(_ONE_STEP):
            return None
        known = typical.at_rate(rate)
        running = self.flow.run(dict(known))["running_requests"]
        steps = typical.steps_of_a_prompt(min(running, known["running_limit"]))
        return "no_form" if steps > 1 else None

    def constants(self) -> dict[str, Any]:
        """Return all numbers and columns by name; those of the questions in mappings."""
        found = dict(self.numbers)
        for part, (question, table, moving) in self.parts.items():
            steps = _plan(question, table)
            names = {name for step in steps.steps for name in step.inputs}
            names -= {*moving, *(step.yields for step in steps.steps)}
            found[part] = {
                name: _column(table, name)
                if name not in question.known
                else float(question.known[name])
                for name in sorted(names)
            }
        return found

    def functions(self, used: set[str]) -> str:
        """Return the source of all functions that the rounds call."""
        texts = []
        for part, (question, table, moving) in self.parts.items():
            steps = _plan(question, table)
            columns = [name for name in table.names if name not in question.known]
            texts.append(planned(f"load_{part}", steps.steps, moving, columns, ("latency",), used))
        moving = ("arrival_rate", *MADE)
        texts.append(planned("load_flow", self.flow.steps, moving, (), FLOW, used))
        return "\n".join(texts) + f"\n{_SCRIPT}"

    def lines(self, rate: str, results: Iterable[str]) -> list[str]:
        """Return the statements that ask for the end of the rounds, and refuse."""
        rest = "load_rest" if "rest" in self.parts else "0"
        running = f"load_flow(c,{rate},...Object.values(part_settled)).running_requests"
        found = [
            f'if({rate}>=c.load.saturation)return {{refusal:"saturated"}};',
            f"const part_settled=settled(c,{rate},load_full,{rest},load_flow);",
        ]
        if set(results) & set(_ONE_STEP):
            found.append(f'if(steps(c,{running})>1)return {{refusal:"no_form"}};')
        return found


def _plan(question: Question, table: OperatorTable[Any]) -> Plan:
    return plan(question.equations, (*question.known, *table.names), ("latency",))


def _column(table: OperatorTable[Any], name: str) -> tuple[float, ...]:
    return tuple(float(each) for each in table.columns[name])


def settled_of(steady: Steady) -> Settled:
    """Return what the closed forms of requests at a rate take beside their equations.

    Raises
    ------
    UnreachableError
        If requests don't come at a rate, or the service speculates: nobody compiles that.
    """
    loaded, typical = steady.loaded, steady.loaded.typical
    times, service = typical.times, loaded.service
    if not loaded.rate or times.width != 1 or times.pace != 1:
        raise UnreachableError(
            "closed forms are compiled of requests that arrive at a rate, without speculation."
        )
    place = typical.context / times.context_step
    low = min(int(place), CONTEXTS - 2)
    ends = [times.longest * (low + each) / (CONTEXTS - 1) for each in (0, 1)]
    parts = {}
    for name, cached, moving in (
        ("full", ends[0], ("batch_size", "cached_tokens")),
        ("rest", 0.0, ("batch_size",)),
    ):
        question, table = of_tokens(service, cached, whole=name == "full")
        if table is not None:
            parts[name] = (question, table, moving)
    numbers = {
        "copies": float(loaded.copies),
        "low": ends[0],
        "high": ends[1],
        "part": place - low,
        "running": float(len(times.reading) - 1),
        "tokens": float(len(times.together) - 1),
        "budget": float(typical.budget),
        "mixed": float(typical.mixed),
        "new": typical.new,
        "attention": typical.attention,
        "limit": float(typical.known["running_limit"]),
        **{name: float(getattr(times, name)) for name in _OF_HOST},
        "rounds": float(ROUNDS),
        "enough": ENOUGH,
        "most": FULL,
        "saturation": float(steady.value("saturation_rate")),
    }
    flow = steady.question.plan(*FLOW)
    return Settled(steady, numbers, parts, flow)


_OF_HOST = ("step_host", "sequence_host", "ahead", "starts", "captured")
