"""Figures, each of which carries the numbers that it shows."""
