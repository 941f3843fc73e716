"""What a language model's users wait for, and how many fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations.serving_counts import middle_cached_tokens
from mlsim.errors import DoesNotFitError, WrongKindError, unknown_name
from mlsim.solvers.evaluation import ARRAYS, DOES_NOT_FIT, Answer, evaluate
from mlsim.solvers.explain import Explanation
from mlsim.solvers.load import Load
from mlsim.solvers.serving.capacity import longest_context
from mlsim.solvers.serving.contexts import check_context, decode_contexts, filling_share
from mlsim.solvers.serving.phase import Phase, Whole
from mlsim.solvers.serving.result_names import ASKED, MEMORY, RESULTS, WHOLE
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.serving_load import load_of
from mlsim.solvers.serving.serving_report import as_dict, as_text
from mlsim.solvers.serving.step_profile import StepProfile
from mlsim.units import text

if TYPE_CHECKING:
    from pint import Quantity

    from mlsim.hardware import Device
    from mlsim.workloads.language import Transformer


class Serving(Answer):
    """The answer for one service, or for an array of them.

    Times, rates and sizes are quantities. Any result is to be had by name:
    `serving["cache_memory"]`; quantities of one phase as `serving.decode["total_bytes"]`.

    >>> from mlsim import Engine
    >>> serving = Engine.serve(model="Llama3_8B", hardware="H100")
    >>> serving.prefill.bottleneck, serving.decode.bottleneck
    ('Compute Bound', 'Memory Bound')
    """

    noun, variable = "service", "serving"

    def __init__(self, service: Service, *, check_memory: bool = True) -> None:
        self.service = service
        self._check_memory = check_memory
        self._values: dict[str, Any] = {}
        self._shape = service.shape_with({})
        self._contexts = decode_contexts(service) if service.model.decoder else {}
        self.prefill = StepProfile(self._phase("prefill", service.prompt_tokens, 0.0))
        if not self.shape:
            self._all_at_once()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        return self._shape

    def _phase(self, name: str, new_tokens: Any, cached_tokens: Any) -> Phase:
        return Phase(self.service, name, new_tokens, cached_tokens)

    def _all_at_once(self) -> None:
        """Run all steps of one point together."""
        phase, contexts = self.prefill.phase, self._contexts
        new = [self.service.prompt_tokens, *(1.0 for _ in contexts)]
        cached = [0.0, *contexts.values()]
        wanted = ("time_to_first_token", "memory_free", "latency")
        if ARRAYS:
            import numpy as np

            found = phase.at_once(wanted, np.array(new), np.array(cached))
            times, starts = found["latency"], found["time_to_first_token"]
            if not getattr(times, "ndim", 0):
                # A given quantity decides, the same for each step.
                times, starts = np.full(len(new), times), np.full(len(new), starts)
            first, *steps = times.tolist()
            ready, free = float(starts[0]), float(np.ravel(found["memory_free"])[0])
        else:
            known = {**phase.known, **phase.table.columns}
            runs = [
                phase.plan(*wanted).run({**known, "new_tokens": n, "cached_tokens": c})
                for n, c in zip(new, cached, strict=True)
            ]
            first, *steps = (run["latency"] for run in runs)
            ready, free = (runs[0][name] for name in wanted[:2])
        self.prefill._values["latency"] = first
        self._values.update(zip(contexts, steps, strict=True))
        self._values.update({"time_to_first_token": ready, "memory_free": free})

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
        if context is None:
            first, *_, last = self._contexts.values()
            return StepProfile(self._phase("decode", 1.0, middle_cached_tokens(first, last)))
        cached = check_context(self.service.model, context)
        return StepProfile(self._phase("decode", 1.0, cached))

    def _needs_decoder(self) -> None:
        model = self.service.model
        if not model.decoder:
            raise WrongKindError(
                f"{model.name} is an encoder: it reads a text at once and generates nothing. "
                "Its one pass is .prefill."
            )

    def value(self, name: str) -> Any:
        """Return a result in its base unit: a float or an array.

        Points that don't fit are NaN in an array.

        Raises
        ------
        UnknownNameError
            If there is no such result.
        DoesNotFitError
            If a time is asked for that needs more memory than there is.
        WrongKindError
            If an encoder is asked to decode.
        """
        if name not in RESULTS and name not in self._contexts:
            known = self.service.shared
            if name in known:
                return known[name]
            raise unknown_name("result of a service", name, (*RESULTS, *self._contexts))
        value = self._value(name)
        if name in MEMORY or not self._check_memory:
            return value
        if not self.shape:
            if not self.feasible:
                raise DoesNotFitError(self._too_large())
            return value
        import numpy as np

        return np.where(self.feasible, value, np.nan)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            if name in self._contexts:
                phase = self._phase("decode", 1.0, self._contexts[name])
                self._values[name] = self._run(phase, "latency")
            elif name in WHOLE:
                self._needs_decoder()
                self._values[name] = self._run(self._whole(name), name)
            else:
                self._values[name] = self._run(self.prefill.phase, name)
        return self._values[name]

    def _run(self, configuration: Phase | Whole, name: str) -> Any:
        if isinstance(configuration, Whole) and not self.shape:
            return configuration.plan(name).compute(configuration.known)[name]
        found = evaluate(configuration, name)[name]
        return found if configuration.shape else float(found)

    def _whole(self, name: str) -> Whole:
        """Return the configuration that puts steps together."""
        service = self.service
        known = {each: service.shared[each] for each in ASKED}
        needs = tuple(self._contexts)
        if name in ("generation_latency", "output_throughput"):
            needs = ("time_to_first_token", *needs)
        known |= {each: self._value(each) for each in needs}
        if service.model.window:
            known["filling_share"] = filling_share(service)
        return Whole(self.service, known, self.shape)

    def _point(self, pick: Callable[[Any], float]) -> Serving:
        service = self.service
        point = replace(
            service,
            batch_size=pick(service.batch_size),
            prompt_tokens=pick(service.prompt_tokens),
            output_tokens=pick(service.output_tokens),
            given={name: pick(value) for name, value in service.given.items()},
        )
        return Serving(point, check_memory=self._check_memory)

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

    @property
    def time_to_first_token(self) -> Quantity[Any]:
        """Time until each sequence has its first new token; of an encoder, its one pass."""
        found: Quantity[Any] = self["time_to_first_token"]
        return found

    @property
    def time_per_output_token(self) -> Quantity[Any]:
        """Mean time of a decode step over the output."""
        found: Quantity[Any] = self["time_per_output_token"]
        return found

    @property
    def latency(self) -> Quantity[Any]:
        """Time from the prompts to the last token; of an encoder, its one pass."""
        whole = "generation_latency" if self.model.decoder else "time_to_first_token"
        found: Quantity[Any] = self[whole]
        return found

    @property
    def tokens_per_second(self) -> Any:
        """Tokens per second of all users together while decoding, a plain float."""
        return self.value("decode_throughput")

    @property
    def tokens_per_second_per_user(self) -> Any:
        """Tokens per second that one user sees while decoding, a plain float."""
        return self.value("user_token_rate")

    @property
    def feasible(self) -> Any:
        """Whether weights, activations and cache fit in what may be used of the memory."""
        fits = self._value("memory_free") >= 0
        return fits if self.shape else bool(fits)

    @property
    def memory(self) -> dict[str, Quantity[Any]]:
        """Memory of one device by part."""
        parts = ("weight_memory", "cache_memory", "activation_memory", "memory_free")
        return {name: self[name] for name in parts}

    @property
    def max_batch_size(self) -> Any:
        """Most sequences of these lengths that fit together; 0 if none does."""
        found = self.value("largest_batch")
        return found if getattr(found, "ndim", 0) else int(found)

    @property
    def max_context(self) -> Any:
        """Longest sequence, prompt and output, of which a batch of this size fits."""
        return longest_context(self.service, self.prefill.value)

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
        whole = "generation_latency" if self.model.decoder else "time_to_first_token"
        return load_of(self.service, float(self.value(whole)))

    def explain(self, name: str = "generation_latency") -> Explanation:
        """Show how a result came to be: equations, values, units, sources.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("explain()")
        self.value(name)
        if name in WHOLE:
            return Explanation(self._whole(name), name)
        if name in self._contexts:
            words = f"decode, {name.replace('_', ' ')}"
            return Explanation(self._phase(words, 1.0, self._contexts[name]), "latency")
        return Explanation(self.prefill.phase, name)

    def _too_large(self) -> str:
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
            f"({service.formats.name}) needs {text(required, 'B')} on each device of "
            f"{service.hardware_name}, which has {text(service.shared['memory_capacity'], 'B')}, "
            f"{service.reserve_share:.0%} of it reserved: "
            f"{text(-self._value('memory_free'), 'B')} too much. {advice} "
            "check_memory=False gives the time it would take."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON: every value with its unit."""
        return as_dict(self)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        what = f"{self.shape} points" if self.shape else f"batch {self.batch_size}"
        service = self.service
        return f"<Serving {service.model.name} on {service.hardware_name}, {what}>"
