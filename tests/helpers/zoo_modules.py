"""PyTorch modules of networks that the zoo has too, built without weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytorch_parts import torchvision_models

PICTURE = {"shape": (3, 224, 224)}
PICTURES = {
    "AlexNet_Torchvision": "alexnet",
    "VGG16": "vgg16",
    "ResNet18": "resnet18",
    "ResNet50": "resnet50",
    "ResNet101": "resnet101",
    "ResNet152": "resnet152",
    "MobileNetV2": "mobilenet_v2",
    "EfficientNet_B0": "efficientnet_b0",
    "ViT_B16": "vit_b_16",
}
# Width, inner width, blocks, heads, size of a head.
T5 = {
    "T5_Small": (512, 2048, 6, 8, 64),
    "T5_Base": (768, 3072, 12, 12, 64),
    "T5_Large": (1024, 4096, 24, 16, 64),
    "T5_3B": (1024, 16384, 24, 32, 128),
    "T5_11B": (1024, 65536, 24, 128, 128),
}
# Width, blocks, heads, inner width.
WHISPER = {"Whisper_Base": (512, 6, 8, 2048), "Whisper_LargeV2": (1280, 32, 20, 5120)}


def weightless(build: Callable[[], Any]) -> Any:
    """Build a module on the meta device, which has shapes only."""
    import torch

    with torch.device("meta"):
        return build()


def lenet() -> Any:
    """Return the variant of LeNet-5 that the book counts by hand."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 120),
        nn.ReLU(),
        nn.Linear(120, 60),
        nn.ReLU(),
        nn.Linear(60, 10),
        nn.ReLU(),
    )


def _t5(width: int, inner: int, blocks: int, heads: int, size: int) -> Any:
    import transformers

    config = transformers.T5Config(
        vocab_size=32128,
        d_model=width,
        d_ff=inner,
        num_layers=blocks,
        num_heads=heads,
        d_kv=size,
    )
    return transformers.T5ForConditionalGeneration(config)


def _whisper(width: int, blocks: int, heads: int, inner: int) -> Any:
    import transformers

    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", blocks), ("attention_heads", heads), ("ffn_dim", inner))
    }
    config = transformers.WhisperConfig(vocab_size=51865, d_model=width, **sides)
    return transformers.WhisperForConditionalGeneration(config)


def zoo_modules() -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    """Return what builds each module, and its input; by the names of the zoo."""
    import torch

    models = torchvision_models()
    found: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
        "LeNet5_Variant": (lenet, {"shape": (1, 28, 28)})
    }
    for name, builder in PICTURES.items():
        found[name] = (getattr(models, builder), PICTURE)
    words = torch.empty(1, 512, dtype=torch.int64), torch.empty(1, 114, dtype=torch.int64)
    texts = {"example": {"input_ids": words[0], "decoder_input_ids": words[1]}}
    for name, sizes in T5.items():
        found[name] = (lambda sizes=sizes: _t5(*sizes), texts)
    for name, numbers in WHISPER.items():
        sound = {"shape": (80, 3000), "tokens": 448}
        found[name] = (lambda numbers=numbers: _whisper(*numbers), sound)
    return found
