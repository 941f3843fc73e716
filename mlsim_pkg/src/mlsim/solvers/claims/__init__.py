"""Whether a claimed speed can be true: the bound, the memory, and what would make it true."""
