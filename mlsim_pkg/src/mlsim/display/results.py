"""Numbers that open, of answers: profiles, services, training runs, footprints, sizes."""

from __future__ import annotations

from typing import Any

from mlsim.display.number import Number, words
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.derivation import as_card, as_note
from mlsim.solvers.footprint.footprint import Footprint
from mlsim.solvers.forward.profile import Profile
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.step_profile import StepProfile
from mlsim.solvers.training.optimal_size import OptimalSize
from mlsim.solvers.training.training import Training
from mlsim.units import text

PHASES = ("prefill", "decode")


def answered(answer: Any, name: str, where: str) -> Number:
    """Return a result of an answer as a number that can be opened."""
    value, base = float(answer.value(name)), term(name).unit
    brief = f"{words(name)} = {text(value, base)} ({where})"
    derivation = answer.explain(name).to_dict()
    return Number(value, base, words(name), brief, as_card(derivation), note=as_note(derivation))


def of_profile(profile: Profile, name: str) -> Number:
    """Return a result of a profile of one point."""
    if profile.configuration.shape:
        raise InvalidValueError(f"{profile!r} has many points; pick one, such as profile[0].")
    where = (
        f"{profile.model.name} on {profile.hardware.name}, batch {profile.batch_size}, "
        f"{profile.precision}, {profile.estimate}"
    )
    return answered(profile, name, where)


def _of_serving(serving: Serving, name: str) -> Number:
    phase, dot, quantity = name.partition(".")
    if dot and phase in PHASES:
        return _of_step(getattr(serving, phase), quantity)
    if serving.shape:
        raise InvalidValueError(f"{serving!r} has many points; pick one, such as serving[0].")
    if name == "latency":
        name = "generation_latency" if serving.model.decoder else "time_to_first_token"
    service = serving.service
    tokens = f"{service.prompt_tokens:,.0f} + {service.output_tokens:,.0f} tokens"
    where = (
        f"{service.model.name} on {service.hardware_name}, {serving.batch_size:,} x {tokens}, "
        f"{service.formats.name}, {service.estimate}"
    )
    return answered(serving, name, where)


def _of_step(step: StepProfile, name: str) -> Number:
    phase = step.phase
    service = phase.service
    if phase.shape:
        raise InvalidValueError(
            f"{step!r} has many points; pick one, such as serving[0].{phase.name}."
        )
    tokens = f"{phase.new_tokens:,.0f} new and {phase.cached_tokens:,.0f} cached tokens"
    where = (
        f"{phase.name} of {service.model.name} on {service.hardware_name}, "
        f"{service.batch_size:,.0f} x {tokens}, {service.formats.name}, {service.estimate}"
    )
    return answered(step, name, where)


def _of_training(training: Training, name: str) -> Number:
    run = training.run
    batch = f"{run.global_batch:,.0f} x {run.sequence_tokens:,.0f} tokens a step"
    where = (
        f"training {run.model.name} on {run.hardware_name}, {batch}, {run.precision.name}, "
        f"{run.estimate}"
    )
    return answered(training, "step_time" if name == "latency" else name, where)


def _of_footprint(footprint: Footprint, name: str) -> Number:
    name = "facility_energy" if name == "latency" else name
    if footprint.ranges:
        raise InvalidValueError(
            f"{words(name)} is a range, since something known is: show one end of it, such as "
            f"show(footprint.high, {name!r})."
        )
    load = footprint.load
    return answered(footprint, name, f"{load.label}, {footprint.account.place}")


def _of_size(size: OptimalSize, name: str) -> Number:
    name = "optimal_parameters" if name == "latency" else name
    return answered(size, name, size.labels["hardware"])


MAKERS: tuple[tuple[type, Any], ...] = (
    (Profile, of_profile),
    (Serving, _of_serving),
    (StepProfile, _of_step),
    (Training, _of_training),
    (Footprint, _of_footprint),
    (OptimalSize, _of_size),
)
