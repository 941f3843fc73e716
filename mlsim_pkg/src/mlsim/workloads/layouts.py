"""Whether the layers of a transformer fit together, and a layout divides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.errors import InvalidValueError
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.latent import LatentAttention
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.recurrent import Recurrent

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer


def check_layers(model: Transformer) -> None:
    """Refuse layers of several kinds that don't fit together.

    Raises
    ------
    InvalidValueError
        Naming what is too many, or can't stand beside what.
    """
    for name, parts in (("mixer_layers", model.mixers), ("feed_layers", model.feeds)):
        wrong = next((each for each, _ in parts if not 1 <= each <= model.layers), None)
        if wrong is not None:
            raise InvalidValueError(
                f"{model.name}: {name} gives a part to {wrong} of the {model.layers} layers."
            )
    mixed = sum(each for each, _ in model.mixers)
    if mixed > model.layers:
        raise InvalidValueError(
            f"{model.name}: mixer_layers has {mixed} layers, more than the {model.layers} "
            "there are."
        )
    windows = {each.window or each.chosen for _, each in model.mixers} - {0}
    if len(windows) > 1:
        found = " and ".join(map(str, sorted(windows)))
        raise InvalidValueError(
            f"{model.name}: layers with windows of {found} tokens; the mean over an output is "
            "known for one window only."
        )
    if len({isinstance(each, LatentAttention) for each in model.attentions}) > 1:
        raise InvalidValueError(
            f"{model.name}: layers with latent attention beside others with heads of their own "
            "can't be told here."
        )
    if model.shares_cache:
        _check_shared(model)


def _check_shared(model: Transformer) -> None:
    """Refuse layers that read an earlier cache which no layer makes, or which is no cache."""
    own = [each for each in model.attentions if isinstance(each, Attention)]
    made = {(each.kv_heads, each.head_size, each.window) for each in own if not each.shared_cache}
    for each in own:
        if each.shared_cache and (each.kv_heads, each.head_size, each.window) not in made:
            window = f"a window of {each.window:,}" if each.window else "no window"
            raise InvalidValueError(
                f"{model.name}: layers with shared_cache read {each.kv_heads} KV heads of "
                f"{each.head_size} with {window}, which no other layer caches. Give a mixer "
                "without shared_cache that does."
            )
    if not model.decoder:
        raise InvalidValueError(f"{model.name} is an encoder: it has no cache to share.")
    if len(own) < len(model.mixers):
        raise InvalidValueError(
            f"{model.name}: layers that share a cache beside layers with a state, or with latent "
            "attention, can't be told here."
        )


def check_layout(model: Transformer, parallelism: Parallelism) -> None:
    """Refuse a layout that does not divide a model evenly.

    Raises
    ------
    InvalidValueError
        Naming what is not divided, and sizes that would.
    """
    tensor, expert = parallelism.tensor, parallelism.expert
    for _, mixer in model.mixers:
        if isinstance(mixer, Recurrent):
            for what, count in mixer.parts().items():
                _divides("tensor_parallel", tensor, what, count, model)
            continue
        _divides("tensor_parallel", tensor, "attention heads", mixer.heads, model)
        kv_heads = mixer.kv_heads
        if kv_heads % tensor and tensor % kv_heads:
            _divides("tensor_parallel", tensor, "KV heads", kv_heads, model)
    for size in dict.fromkeys(
        each.size for _, each in model.feeds if isinstance(each, FeedForward)
    ):
        _divides("tensor_parallel", tensor, "feed-forward features", size, model)
    _divides("pipeline_parallel", parallelism.pipeline, "layers", model.layers, model)
    shared = _shared_by_stages(model)
    if parallelism.pipeline > 1 and shared:
        raise InvalidValueError(
            f"pipeline_parallel = {parallelism.pipeline}: layers of {model.name} read {shared}, "
            "which may lie on another stage; what would be sent is not counted here. Use "
            "tensor_parallel, or leave pipeline_parallel out."
        )
    if model.experts:
        slices = max(tensor // expert, 1)
        _divides("tensor_parallel", slices, "features of an expert", model.experts.size, model)
    if expert == 1:
        return
    if not model.experts:
        raise InvalidValueError(
            f"expert_parallel = {expert}, but {model.name} has no experts. Leave it out."
        )
    _divides("expert_parallel", expert, "experts", model.experts.count, model)
    within = tensor * parallelism.data
    if within % expert or (tensor % expert and expert % tensor):
        raise InvalidValueError(
            f"expert_parallel = {expert} can't be laid out over tensor_parallel x "
            f"data_parallel = {tensor} x {parallelism.data} = {within} devices: it must "
            "divide their number, and divide or be a multiple of tensor_parallel."
        )


def _shared_by_stages(model: Transformer) -> str:
    """Return what layers read beside one vector of the layer before, in words; or ""."""
    if model.shares_cache:
        return "the cache of an earlier layer"
    if model.layer_embedding:
        return "a table of their own"
    return "several streams" if model.residual_streams else ""


def _divides(name: str, size: int, what: str, count: int, model: Transformer) -> None:
    if count % size:
        near = [each for each in range(1, count + 1) if count % each == 0]
        below = [each for each in near if each < size][-3:]
        above = [each for each in near if each > size][:2]
        raise InvalidValueError(
            f"{name} = {size} does not divide the {count} {what} of {model.name}. "
            f"Near it are {', '.join(map(str, below + above))}."
        )
