"""What a caller switches on in a service, checked against the model, the device and the layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers import calibrated
from mlsim.solvers.formats import Formats
from mlsim.solvers.inputs import validate
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.switched import HOST_LINK
from mlsim.solvers.serving.switches import OFF, Switches
from mlsim.workloads.adapters import LoRA, adapted, check_adapters
from mlsim.workloads.language import Transformer
from mlsim.workloads.requests import Offload, Speculation, check_count

# Rates that are given of a device hold for the draft, too, which runs on it.
_OF_DEVICE = (
    *("peak_flops", "memory_bandwidth", "memory_capacity", "link_bandwidth"),
    *calibrated.OF_DEVICE,
    *calibrated.OF_LINK,
)
# Rows of a vocabulary's table are padded; more than this part of them is another vocabulary.
_PADDING = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller switches on; a draft is a model, with its formats."""

    prefix_share: Any = 0.0
    prefix_count: Any = None
    speculation: Speculation | None = None
    draft_formats: Formats | None = None
    offload: Offload | None = None
    adapters: LoRA | None = None
    adapter_count: Any = None

    @property
    def nothing(self) -> bool:
        """Whether nothing is switched on."""
        share = self.prefix_share
        plain = isinstance(share, (int, float)) and not isinstance(share, bool) and share == 0
        others = (self.prefix_count, self.speculation, self.offload)
        return plain and all(each is None for each in (*others, self.adapters, self.adapter_count))


def checked(asked: Asked, made: Service, draft: Callable[..., Service]) -> Switches:
    """Return what is switched on in a service; `draft` makes one of other formats.

    Raises
    ------
    InvalidValueError, WrongKindError
        If a number can't be, or a switch does not go with the model, the device or the layout.
    """
    if asked.offload is None and HOST_LINK in made.given:
        raise InvalidValueError(
            f"{HOST_LINK} counts only with offload=Offload(...), which is not given."
        )
    if asked.nothing:
        return OFF
    if not made.model.decoder:
        raise WrongKindError(
            f"{made.model.name} is an encoder: it has no cache and generates nothing, so there "
            "are no prefixes to cache, nothing to speculate on and no cache to offload."
        )
    share = _prefix_share(asked.prefix_share)
    found = Switches(
        prefix_share=share,
        prefix_count=_prefix_count(asked.prefix_count, share),
        speculation=asked.speculation,
        offload=asked.offload,
        host_link=_host_link(asked.offload, made),
        adapters=_adapters(asked, made),
        adapter_count=_adapter_count(asked),
    )
    if asked.speculation is None:
        return found
    if not isinstance(asked.speculation, Speculation):
        raise WrongKindError(
            "speculation is a Speculation of mlsim.workloads, such as Speculation("
            f"draft='Llama3_8B', tokens=4, acceptance=0.7), not {asked.speculation!r}."
        )
    if made.parallelism.pipeline > 1:
        raise InvalidValueError(
            "speculation with pipeline_parallel: while a draft is checked by one stage, the others "
            "would wait. Use tensor_parallel or data_parallel."
        )
    return replace(found, draft=_draft(asked, made, draft))


def _adapters(asked: Asked, made: Service) -> LoRA | None:
    adapters = check_adapters(asked.adapters)
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


def _adapter_count(asked: Asked) -> int:
    if asked.adapter_count is None:
        return 1
    if asked.adapters is None:
        raise InvalidValueError("adapter_count needs adapters=LoRA(rank=...): of which kind?")
    return check_count("adapter_count", asked.adapter_count)


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
    found = validate("prefixes", value, whole=True)
    if getattr(found, "ndim", 0):
        raise InvalidValueError("prefix_count must be one number, not an array.")
    return float(found)


def _host_link(offload: Offload | None, made: Service) -> Any:
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


def _draft(asked: Asked, made: Service, draft: Callable[..., Service]) -> Service | None:
    speculation = asked.speculation
    assert speculation is not None
    model = speculation.draft
    if model is None:
        return None
    assert isinstance(model, Transformer)
    assert asked.draft_formats is not None
    _check_pair(model, made)
    layout = made.parallelism
    try:
        found = draft(
            model=model,
            formats=asked.draft_formats,
            parallelism=layout if model.experts else replace(layout, expert=1),
        )
    except InvalidValueError as error:
        raise InvalidValueError(f"the draft {model.name}: {error}") from None
    # They were checked, and are in base units.
    return replace(found, given=_given(made.given))


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in _OF_DEVICE}


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
