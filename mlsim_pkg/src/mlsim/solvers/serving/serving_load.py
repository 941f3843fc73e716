"""The load that a service puts on its devices: one generation of its batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.equations import serving as counts
from mlsim.equations.energy import utilisation
from mlsim.solvers.load import Load
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.speculated import round_question
from mlsim.solvers.serving.steps import decode_contexts, equations_for, filling_share, step_question


def load_of(service: Service, time: float) -> Load:
    """Return the load of one point of a service, whose generation takes this time.

    Work and traffic are those of the roofline, at the peaks and the bandwidth of the
    data sheet, in the time of the service's own estimate.
    """
    # Of the bound's few bytes, as many as its time allows.
    counted = service if service.estimate == "bound" else replace(service, estimate="roofline")
    tokens = service.output_tokens if service.model.decoder else service.prompt_tokens
    made = f" + {service.output_tokens:,.0f}" if service.model.decoder else ""
    words = f"{service.batch_size:,.0f} x ({service.prompt_tokens:,.0f}{made}) tokens"
    return Load(
        device=service.device,
        system=service.system,
        devices=service.parallelism.devices,
        time=time,
        compute_utilisation=utilisation(_busy(counted, "total_compute_time"), time),
        memory_utilisation=utilisation(_busy(counted, "total_memory_time"), time),
        tokens=float(counts.batch_tokens(service.batch_size, tokens)),
        label=f"{service.model.name}, {words}",
        labels={**service.labels, "model": f"{service.model.name}, {words}"},
    )


def _busy(service: Service, name: str) -> float:
    """Return how long a device would compute, or move bytes, at full rate for all steps."""

    def of(new: Any, cached: Any) -> float:
        found = step_question(service, "step", new, cached).evaluate(name, "micro_batches")
        # A stage of a pipeline does its part of each step, for each part of the batch.
        stages = float(service.parallelism.pipeline)
        return float(counts.stage_busy_time(found[name], found["micro_batches"], stages))

    prefill = of(*service.prefill)
    if not service.model.decoder:
        return prefill
    speculates = service.switches.speculation is not None
    # The mean over the output is taken as the time of a step is.
    (mean,) = (
        each for each in equations_for(service.variant) if each.yields == "time_per_output_token"
    )
    contexts = decode_contexts(service)
    steps: dict[str, float] = {
        step: _round(service, cached, name) if speculates else of(1.0, cached)
        for step, cached in contexts.items()
    }
    if "filling_share" in mean.inputs:
        steps["filling_share"] = float(filling_share(contexts))
    each_step = float(mean.function(**{step: steps[step] for step in mean.inputs}))
    return float(counts.generation_busy_time(prefill, service.output_tokens, each_step))


def _round(service: Service, cached: Any, name: str) -> float:
    """Return how long a device would compute, or move bytes, at full rate for each token."""
    return float(round_question(service, cached, name).value("speculative_token_time"))
