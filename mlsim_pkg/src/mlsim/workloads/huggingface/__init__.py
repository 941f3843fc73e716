"""Transformers from the `config.json` of a model on disk."""

from mlsim.workloads.huggingface.reader import load_config

__all__ = ["load_config"]
