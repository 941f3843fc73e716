"""What may be switched on in a service: prefixes, speculation, offload and adapters, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.parameters import check, validate
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.service import OFF, Service, Switches
from mlsim.solvers.serving.switches import HOST_LINK
from mlsim.workloads.adapters import LoRA, adapted, check_adapters
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Offload, Speculation

# Rows of a vocabulary's table are padded; more than this part of them is another vocabulary.
_PADDING = 0.01


def switched(
    made: Service,
    *,
    prefix_share: Any = 0.0,
    prefix_count: Any = None,
    speculation: Any = None,
    offload: Any = None,
    adapters: Any = None,
    adapter_count: Any = None,
) -> Switches:
    """Return what is switched on in a service.

    Raises
    ------
    InvalidValueError, WrongKindError
        If a number can't be, or a switch does not go with the model, the device or the layout.
    """
    if offload is None and HOST_LINK in made.given:
        raise InvalidValueError(
            f"{HOST_LINK} counts only with offload=Offload(...), which is not given."
        )
    others = (prefix_count, speculation, offload, adapters, adapter_count)
    plain = type(prefix_share) in (int, float) and prefix_share == 0
    if plain and all(each is None for each in others):
        return OFF
    if not made.model.decoder:
        raise WrongKindError(
            f"{made.model.name} is an encoder: it has no cache and generates nothing, so there "
            "are no prefixes to cache, nothing to speculate on and no cache to offload."
        )
    share = _prefix_share(prefix_share)
    found = Switches(
        prefix_share=share,
        prefix_count=_prefix_count(prefix_count, share),
        speculation=speculation,
        offload=offload,
        host_link=_host_link(offload, made),
        adapters=_adapters(adapters, made),
        adapter_count=_adapter_count(adapter_count, adapters),
    )
    if speculation is not None:
        found = replace(found, draft=_draft(speculation, made))
    return found if found.on else OFF


def _adapters(asked: Any, made: Service) -> LoRA | None:
    if asked is None:
        return None
    adapters = check_adapters(asked)
    if adapters is None:
        return None
    if adapters.quantized:
        raise WrongKindError(
            "QLoRA is a way to train. An adapter that it trained is served as LoRA(rank=..., "
            "targets=...), beside weights in any format, such as weights='int4'."
        )
    served = adapted(made.model, adapters, made.parallelism.of_weights)
    if any(each.operator.startswith("experts") for each in served):
        raise InvalidValueError(
            f"adapters of the experts of {made.model.name}: which of them a step reads depends on "
            "both choices of a token, and isn't known here. Use targets='attention'."
        )
    return adapters


def _adapter_count(count: Any, adapters: Any) -> int:
    if count is None:
        return 1
    if adapters is None:
        raise InvalidValueError("adapter_count needs adapters=LoRA(rank=...): of which kind?")
    return int(check("adapter_count", count))


def _prefix_share(value: Any) -> Any:
    if isinstance(value, str):
        raise InvalidValueError(
            f"prefix_share is a number from 0 to 1, not the text {value!r}; only Engine.load with "
            "a trace takes prefix_share='trace'."
        )
    found = validate("prefix_share", value, zero=True)
    most = found.max() if getattr(found, "ndim", 0) else found
    if most > 1:
        raise InvalidValueError(
            f"prefix_share is a share of each prompt: it must be at most 1, not {most:g}. Of 500 "
            "tokens of 2,000 it is 0.25."
        )
    return found


def _prefix_count(value: Any, share: Any) -> float | None:
    if value is None:
        return None
    if not getattr(share, "ndim", 0) and not share:
        raise InvalidValueError("prefix_count needs a prefix_share above 0: what is cached?")
    return float(check("prefix_count", value))


def _host_link(offload: Any, made: Service) -> Any:
    """Return the figure of the link to the host, where it is needed and not given."""
    if offload is None:
        return None
    if not isinstance(offload, Offload):
        raise WrongKindError(
            "offload is an Offload of mlsim.workloads, such as Offload(cache=0.3), not "
            f"{offload!r}."
        )
    if made.table.cache["worked"]:
        raise InvalidValueError(
            f"offload with the calibrated estimate of {made.device.name}: its cores limit how "
            "fast weights are read, and the two were not measured together. Use "
            "estimate='roofline'."
        )
    if HOST_LINK in made.given:
        return None
    figure = made.device.figures.get("links.pcie")
    if figure is None:
        raise InvalidValueError(
            f"no link of {made.device.name} to its host is on record. Give its rate in one "
            f"direction, such as {HOST_LINK}='64 GB/s'."
        )
    return figure


def _draft(speculation: Any, made: Service) -> Service | None:
    """Return the draft as a service of the same request, if it is a model."""
    if not isinstance(speculation, Speculation):
        raise WrongKindError(
            "speculation is a Speculation of mlsim.workloads, such as Speculation("
            f"draft='Llama3_8B', tokens=4, acceptance=0.7), not {speculation!r}."
        )
    layout = made.parallelism
    if layout.pipeline > 1:
        raise InvalidValueError(
            "speculation with pipeline_parallel: while a draft is checked by one stage, the others "
            "would wait. Use tensor_parallel or data_parallel."
        )
    model = speculation.draft
    if model is None:
        return None
    assert isinstance(model, Transformer)
    _check_pair(model, made)
    layout = layout if model.experts else replace(layout, expert=1)
    # Rates that are given of a device hold for the draft, too, which runs on it.
    names = {"peak_flops", "memory_bandwidth", "memory_capacity", "link_bandwidth"}
    if made.calibrated:
        from mlsim.solvers.calibrated import OF_DEVICE, OF_LINK

        names.update(OF_DEVICE, OF_LINK)
    try:
        if layout.devices > 1:
            from mlsim.solvers.serving.layouts import check_layout

            check_layout(layout, model, made.system or made.device)
        found = replace(
            made,
            model=model,
            formats=formats(speculation.precision, device=made.device, released=model.released),
            parallelism=layout,
            expert_imbalance=1.0,
            given={name: value for name, value in made.given.items() if name in names},
        )
        found.check_length()
    except InvalidValueError as error:
        raise InvalidValueError(f"the draft {model.name}: {error}") from None
    return found


def _check_pair(draft: Transformer, made: Service) -> None:
    """Refuse a draft that can't guess what the model says."""
    model = made.model
    if not draft.decoder:
        raise WrongKindError(f"{draft.name} is an encoder: it can't draft. Use a decoder.")
    if abs(draft.vocabulary - model.vocabulary) > _PADDING * model.vocabulary:
        raise InvalidValueError(
            f"{draft.name} knows {draft.vocabulary:,} tokens, {model.name} {model.vocabulary:,}: "
            "a draft must have the vocabulary of its model. Use a smaller model of one family."
        )
    if draft.parameter_count >= model.parameter_count:
        raise InvalidValueError(
            f"the draft {draft.name} is not smaller than {model.name}: it can't save time."
        )
