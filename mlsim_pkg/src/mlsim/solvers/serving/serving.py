"""What a language model's users wait for, and how many fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations.serving import middle_cached_tokens
from mlsim.errors import WrongKindError
from mlsim.quantities import term
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    DOES_NOT_FIT,
    MEMORY_BOUND,
    NETWORK_BOUND,
    OVERHEAD_BOUND,
    Answer,
    Form,
    with_unit,
)
from mlsim.solvers.question import ARRAYS, Question
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.steps import (
    MEMORY,
    RESULTS,
    SERVING_GIVABLE,
    WHOLE,
    Prepared,
    check_context,
    decode_contexts,
    filling_share,
    prepared,
    step_question,
    whole_question,
)
from mlsim.units import held
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.solvers.load import Load
    from mlsim.solvers.serving.speculated import Speculated
    from mlsim.values.kinds import Quantity
    from mlsim.workloads.language import Transformer


# Of equal parts, the first is the label.
_ORDER = (MEMORY_BOUND, COMPUTE_BOUND, NETWORK_BOUND, OVERHEAD_BOUND)


class StepProfile(Answer):
    """One phase of a service: a step, its time, and what binds it.

    What has no attribute, `show(step, name)` gives by name. Memory is that of the service,
    which knows whether it fits.
    """

    noun, variable = "step", "serving"
    reported = ("latency", "total_flops", "total_bytes", "network_intensity")

    def __init__(self, service: Service, name: str, new_tokens: Any, cached_tokens: Any) -> None:
        super().__init__()
        self.service = service
        self.name = name
        self.new_tokens, self.cached_tokens = new_tokens, cached_tokens

    @cached_property
    def question(self) -> Question:
        """What is asked."""
        return step_question(self.service, self.name, self.new_tokens, self.cached_tokens)

    def _asked(self, name: str) -> tuple[Question, str]:
        term(name)  # refuses what is none; whatever the equations reach will do
        return self.question, name

    latency = result("Time of the step.")
    total_flops = result("Work of the step.")
    total_bytes = result("Bytes that the step moves to and from main memory.")
    weight_bytes = result("Bytes of weights that the step reads.")
    total_compute_time = result("Time of the arithmetic alone, at its rate.")
    total_memory_time = result("Time of the bytes alone, at their rate.")
    total_network_time = result("Time of the exchanges between devices.")
    network_intensity = result("Work of the step over its bytes.")
    achieved_flops = result("Work over latency.")
    memory_bound_share = count("Part of the latency in operators that memory limits.")
    compute_bound_share = count("Part of the latency in operators that arithmetic limits.")
    network_share = count("Part of the latency in exchanges between devices.")
    expert_share = count("Part of the experts' weights that the step reads.")

    @property
    def shares(self) -> dict[str, Any]:
        """Part of the time by what limits it; they add up to 1.

        The calibrated estimate also has overhead: tiles that don't fill the device, starts
        of operators, and waiting for the host.
        """
        if self.service.calibrated:
            from mlsim.solvers.causes import DECIDING

            return {label: self._caused.value(DECIDING[label]) for label in _ORDER}
        if self.service.estimate == "bound":
            memory = self.value("total_memory_time") > self.value("total_compute_time")
            return {MEMORY_BOUND: memory * 1.0, COMPUTE_BOUND: 1.0 - memory, NETWORK_BOUND: 0.0}
        return {
            MEMORY_BOUND: self.value("memory_bound_share"),
            COMPUTE_BOUND: self.value("compute_bound_share"),
            NETWORK_BOUND: self.value("network_share"),
        }

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants of a calibrated answer that were measured on other devices, and on which."""
        return self.service.loans

    @cached_property
    def _caused(self) -> Question:
        """The question, with what the time goes into."""
        service = self.service
        from mlsim.solvers.causes import with_causes

        return with_causes(self.question, calibrated=service.calibrated, alone=False)

    @property
    def causes(self) -> dict[str, Any]:
        """Part of the time by cause; the parts add up to 1.

        "arithmetic", "memory" and "network"; of the calibrated estimate also "tiles" that
        don't fill the device, "launches" of operators, and waiting for the "host".
        """
        from mlsim.solvers.causes import LABELS, shares_of

        if self.service.estimate == "bound":
            shares = self.shares
            held = ("arithmetic", "memory", "network")
            return {cause: shares[LABELS[cause]] for cause in held}
        return shares_of(self._caused, calibrated=self.service.calibrated)

    @property
    def cause(self) -> str:
        """The largest cause under the label of `bottleneck`, such as "tiles".

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("cause")
        from mlsim.solvers.causes import cause_of

        return cause_of(self.causes, self.bottleneck)

    def explain(self, name: str = "") -> Any:
        """Show how a result came to be; "bottleneck" shows why it has its label.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        if name != "bottleneck":
            return super().explain(name)
        self.one_point("explain()")
        roofline = ""
        if self.service.calibrated:
            given = {n: v for n, v in self.service.given.items() if n in SERVING_GIVABLE}
            asked = replace(self.service, estimate="roofline", given=given)
            other = StepProfile(asked, self.name, self.new_tokens, self.cached_tokens)
            roofline = other.bottleneck
        from mlsim.solvers.causes import Causes

        return Causes(self.about, self.bottleneck, self.cause, self.causes, roofline)

    @property
    def bottleneck(self) -> Any:
        """What limits the step for the largest part of its time."""
        shares = self.shares
        if not self.shape:
            return max(shares, key=lambda name: shares[name])
        import numpy as np

        stacked = np.stack([np.broadcast_to(each, self.shape) for each in shares.values()])
        return np.array(list(shares))[stacked.argmax(axis=0)]

    @property
    def operators(self) -> list[dict[str, Any]]:
        """One record per operator, in base units, with what binds it.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("operators")
        from mlsim.solvers.explain import operator_rows

        return operator_rows(self.question, self.question.table)

    @property
    def picked(self) -> str:
        """How code picks one point of many."""
        return f"serving[0].{self.name}"

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        service = self.service
        points = f"{self.shape} points"
        if not self.shape:
            tokens = f"{self.new_tokens:,.0f} new and {self.cached_tokens:,.0f} cached tokens"
            points = f"{service.batch_size:,.0f} x {tokens}"
        return (
            f"{self.name} of {service.model.name} on {service.hardware_name}, {points}, "
            f"{service.formats.name}, {service.estimate}"
        )

    @property
    def form(self) -> Form:  # type: ignore[override]
        """How it is written out."""
        from mlsim.solvers.serving.reports import STEP

        return STEP


PARTS = ("prefill", "decode", "speculation")
_TIMES = frozenset(("time_to_first_token", *WHOLE))
# Of memory, what JSON has.
_SIZES = (
    *("weight_memory", "cache_memory", "activation_memory", "memory_required", "memory_free"),
    *("memory_capacity", "cache_bytes_per_token", "largest_batch"),
)


class Serving(Answer):
    """The answer for one service, or for an array of them.

    Each result is a value that knows its unit and how it came to be; quantities of one phase
    are `serving.decode.total_bytes`. What has no attribute, `show(serving, name)` gives by name.

    >>> from mlsim import Engine
    >>> serving = Engine.serve(model="Llama3_8B", hardware="H100")
    >>> serving.prefill.bottleneck, serving.decode.bottleneck
    ('Compute Bound', 'Memory Bound')
    """

    noun, variable, first = "service", "serving", "generation_latency"
    # Of the answer: () for one point.
    shape: tuple[int, ...] = ()

    def __init__(self, service: Service, *, check_memory: bool = True) -> None:
        super().__init__(service, check_memory=check_memory)
        self.service = service
        self.shape = service.shape_with({})
        self._first_pass: dict[str, float] = {}
        self._run: tuple[Prepared, dict[str, Any]] | None = None

    @cached_property
    def prefill(self) -> StepProfile:
        """The pass that reads the prompts."""
        found = StepProfile(self.service, "prefill", *self.service.prefill)
        found._values.update(self._first_pass)
        return found

    @property
    def question(self) -> Question:
        """What is asked first: the prompts' pass."""
        return self.prefill.question

    @cached_property
    def _contexts(self) -> dict[str, Any]:
        """Tokens cached at each decode step that the mean is made of."""
        return decode_contexts(self.service) if self.service.model.decoder else {}

    @property
    def _prepared(self) -> bool:
        """Whether its main results are found together: one point, without rounds."""
        return ARRAYS and not self.shape and not self._speculates

    def _value(self, name: str) -> Any:
        found = self._values.get(name)
        if found is not None:
            return found
        if self._prepared:
            self._find(name)
        return super()._value(name)

    def _find(self, name: str) -> None:
        """Find a main result with the others of its kind."""
        sizes, contexts = name in MEMORY, self._contexts
        if not sizes and name not in _TIMES and name not in contexts:
            return
        self._run = run, shared = self._run or prepared(self.service, contexts)
        found = run.sizes(shared) if sizes else run.times(shared, contexts)
        self._values.update(found)
        if not sizes:
            self._first_pass["latency"] = self._values.pop("latency")

    @property
    def decode(self) -> StepProfile:
        """The decode step in the middle of the output."""
        return self.decode_at(None)

    def decode_at(self, context: Any) -> StepProfile:
        """Return the decode step with this many tokens cached, one number or an array.

        Raises
        ------
        InvalidValueError
            If it is no whole number, or beyond the model's context.
        WrongKindError
            If the model is an encoder, which does not generate.
        """
        self._needs_decoder()
        model = self.service.model
        cached = self._middle if context is None else check_context(model, context)
        if self._speculates:
            asked, new = self.service.checking
            return StepProfile(asked, "decode", new, cached)
        return StepProfile(self.service, "decode", 1.0, cached)

    @property
    def _middle(self) -> Any:
        """Tokens cached in the middle of the output."""
        first, *_, last = self._contexts.values()
        return middle_cached_tokens(first, last)

    @property
    def _speculates(self) -> bool:
        return self.service.switches.speculation is not None

    @property
    def speculation(self) -> Speculated:
        """What speculative decoding does, in the middle of the output, and where it pays.

        Raises
        ------
        WrongKindError
            If none is switched on.
        DoesNotFitError
            If the service does not fit in memory.
        """
        if not self._speculates:
            raise WrongKindError(
                "nothing speculates here: ask with speculation=Speculation(draft=..., tokens=4, "
                "acceptance=0.7), of mlsim.workloads."
            )
        self.value("time_per_output_token")
        from mlsim.solvers.serving.speculated import Speculated

        return Speculated(self.service, self._middle)

    def _needs_decoder(self) -> None:
        model = self.service.model
        if not model.decoder:
            raise WrongKindError(
                f"{model.name} is an encoder: it reads a text at once and generates nothing. "
                "Its one pass is .prefill."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name; quantities of one phase are asked of it."""
        names = (*RESULTS, *self.service.switches.results, *self._contexts, *self.service.known)
        return tuple(dict.fromkeys(names))

    def _asked(self, name: str) -> tuple[Question, str]:
        service = self.service
        if name in WHOLE:
            self._needs_decoder()
            return self._whole(name), name
        if name in self._contexts and self._speculates:
            from mlsim.solvers.serving.speculated import round_question

            return round_question(service, self._contexts[name]), "speculative_token_time"
        if name in self._contexts:
            words = f"decode, {name.replace('_', ' ')}"
            return step_question(service, words, 1.0, self._contexts[name]), "latency"
        if name in RESULTS or (name in self.names and name not in service.known):
            return self.question, name
        return super()._asked(name)

    def _whole(self, name: str) -> Question:
        """Return the question that puts steps together."""
        needs = [*self._contexts]
        if name in ("generation_latency", "output_throughput"):
            needs = ["time_to_first_token", *needs]
        times = {each: self._value(each) for each in needs}
        share = filling_share(self._contexts) if self.model.window else None
        return whole_question(self.service, times, share, self.shape)

    def _lasts(self, name: str) -> bool:
        return name not in _TIMES and (name in MEMORY or name not in self._contexts)

    def _point(self, pick: Callable[[Any], float]) -> Serving:
        service = self.service
        point = replace(
            service,
            batch_size=pick(service.batch_size),
            prompt_tokens=pick(service.prompt_tokens),
            output_tokens=pick(service.output_tokens),
            given={name: pick(value) for name, value in service.given.items()},
            switches=service.switches.picked(pick),
        )
        return Serving(point, check_memory=self._check_memory)

    @property
    def main(self) -> Mapping[str, str]:  # type: ignore[override]
        """What users wait for, and the words behind it."""
        if not self.model.decoder:
            return {"time_to_first_token": "{}"}
        return {
            "time_to_first_token": "{} to the first token",
            "time_per_output_token": "{} per token",
        }

    def _calibrated(self) -> Serving:
        return Serving(self.service.calibrated_as(), check_memory=self._check_memory)

    def causes_behind(self, name: str) -> Mapping[str, Any]:
        """Return what the time goes into that decides a result, as parts by cause."""
        first = name == "time_to_first_token" or not self.model.decoder
        return (self.prefill if first else self.decode).causes

    @property
    def model(self) -> Transformer:
        """The model that is served."""
        return self.service.model

    @property
    def hardware(self) -> Device:
        """The device, or each device of the system."""
        return self.service.device

    @property
    def batch_size(self) -> Any:
        """Sequences that are served together."""
        batch = self.service.batch_size
        return int(batch) if isinstance(batch, float) else batch

    time_to_first_token = result(
        "Time until each sequence has its first new token; of an encoder, its one pass."
    )
    time_per_output_token = result("Mean time of a decode step over the output.")
    generation_latency = result("Time from the prompts to the last token.")
    user_token_rate = count("Tokens per second that one user sees while decoding.")
    decode_throughput = count("Tokens per second of all users together while decoding.")
    output_throughput = count("New tokens per second of all users, prefill included.")
    largest_batch = count("Most sequences of these lengths that fit together; 0 if none does.")
    weight_memory = result("Memory of one device that weights take.")
    cache_memory = result("Memory of one device that the KV cache takes.")
    cache_per_sequence = result("KV cache of one sequence on one device.")
    cache_bytes_per_token = result("KV cache of one token in all layers of one device.")
    cache_tokens = count("Tokens that the cache has room for, in whole blocks.")
    activation_memory = result("Most memory of one device that activations take at one time.")
    memory_required = result("Memory that one device needs.")
    memory_free = result("Memory that is left; negative where it does not fit.")
    memory_capacity = result("Memory of one device that a program can take.")
    usable_memory = result("The same without the part that is kept in reserve.")

    @property
    def latency(self) -> Quantity:
        """Time from the prompts to the last token; of an encoder, its one pass."""
        found: Quantity = self.quantity(self._whole_time)
        return found

    @property
    def memory(self) -> dict[str, Quantity]:
        """Memory of one device by part."""
        parts = ("weight_memory", "cache_memory", "activation_memory", "memory_free")
        return {name: self.quantity(name) for name in parts}

    @property
    def longest_context(self) -> Any:
        """Longest sequence, prompt and output, of which a batch of this size fits.

        The output is as asked; a sequence as short as it has a prompt of one token.
        """
        from mlsim.solvers.serving.reports import longest_context

        return longest_context(self.service, lambda asked: Serving(asked).feasible)

    @property
    def bottleneck(self) -> dict[str, Any]:
        """What binds in each phase."""
        phases = {"prefill": self.prefill}
        if self.model.decoder:
            phases["decode"] = self.decode
        if not self.shape:
            return {
                name: step.bottleneck if self.feasible or not self._check_memory else DOES_NOT_FIT
                for name, step in phases.items()
            }
        return {name: step.bottleneck for name, step in phases.items()}

    def part(self, name: str) -> tuple[Answer, str]:
        """Return the answer that a name speaks of, such as "decode.latency", and its name there."""
        phase, dot, quantity = name.partition(".")
        if dot and phase in PARTS:
            found: Answer = getattr(self, phase)
            return found, quantity
        return self, self._whole_time if name == "latency" else name

    @property
    def _whole_time(self) -> str:
        return "generation_latency" if self.model.decoder else "time_to_first_token"

    def load(self) -> Load:
        """Return what one generation of the batch asks of the devices, for `Engine.footprint`.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        DoesNotFitError
            If the service does not fit in memory.
        """
        self.one_point("load()")
        from mlsim.solvers.serving.reports import load_of

        return load_of(self.service, float(self.value(self._whole_time)))

    @cached_property
    def feasible(self) -> Any:
        """Whether it fits in memory; of many points, an array."""
        return super().feasible

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        service = self.service
        required = self._value("memory_required")
        most = int(self._value("largest_batch"))
        advice = (
            f"The largest batch of these lengths is {most:,}."
            if most
            else "Its weights leave no room for one sequence: use fewer bits, or more devices."
        )
        return (
            f"{service.model.name} with {service.batch_size:,.0f} sequence(s) of "
            f"{service.prompt_tokens:,.0f} + {service.output_tokens:,.0f} tokens "
            f"({service.formats.name}) needs {held(required)} on each device of "
            f"{service.hardware_name}, which has {held(service.known['memory_capacity'])}, "
            f"{service.reserve_share:.0%} of it reserved: "
            f"{held(-self._value('memory_free'))} too much. {advice} "
            "check_memory=False gives the time it would take."
        )

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        service = self.service
        points = f"{self.shape} points"
        if not self.shape:
            tokens = f"{service.prompt_tokens:,.0f} + {service.output_tokens:,.0f} tokens"
            points = f"{self.batch_size:,} x {tokens}"
        return (
            f"{service.model.name} on {service.hardware_name}, {points}, "
            f"{service.formats.name}, {service.estimate}"
        )

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """The results that JSON has; an encoder has one time."""
        times = ("time_to_first_token", *WHOLE)
        return (*(times if self.model.decoder else times[:1]), *_SIZES)

    @property
    def form(self) -> Form:  # type: ignore[override]
        """How it is written out."""
        from mlsim.solvers.serving.reports import SERVING

        return SERVING

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON: every value with its unit; null for what can't be."""
        found = super().to_dict()
        if self.model.decoder:
            found["longest_context"] = with_unit(self.longest_context, "token")
        return found
