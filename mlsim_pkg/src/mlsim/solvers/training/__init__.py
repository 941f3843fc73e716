"""The training of a language model on one device or many."""
