"""Sweeps through any door: what is asked, its rows, and where they are kept."""
