"""A language model and its users: prefill, decode, and what fits."""
