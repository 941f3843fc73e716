"""What an architecture may be written in: each kind of layer by the name that files use."""

from __future__ import annotations

from mlsim.workloads.layers import Convolution, Linear, Pool, ResponseNorm
from mlsim.workloads.recommendation import DotInteraction
from mlsim.workloads.stages import BasicStage, BottleneckStage, InvertedStage
from mlsim.workloads.tokens import (
    FirstToken,
    PatchEmbedding,
    Positions,
    TokenEmbedding,
    TokenLinear,
)
from mlsim.workloads.transformer_stages import DecoderStage, EncoderStage
from mlsim.workloads.unet import UNet

Layer = (
    Convolution
    | Pool
    | ResponseNorm
    | Linear
    | BottleneckStage
    | BasicStage
    | InvertedStage
    | PatchEmbedding
    | TokenEmbedding
    | Positions
    | FirstToken
    | TokenLinear
    | EncoderStage
    | DecoderStage
    | DotInteraction
    | UNet
)

LAYERS: dict[str, type[Layer]] = {
    "convolution": Convolution,
    "pool": Pool,
    "response_norm": ResponseNorm,
    "linear": Linear,
    "bottleneck_stage": BottleneckStage,
    "basic_stage": BasicStage,
    "inverted_stage": InvertedStage,
    "patch_embedding": PatchEmbedding,
    "token_embedding": TokenEmbedding,
    "positions": Positions,
    "first_token": FirstToken,
    "token_linear": TokenLinear,
    "encoder_stage": EncoderStage,
    "decoder_stage": DecoderStage,
    "dot_interaction": DotInteraction,
    "unet": UNet,
}
