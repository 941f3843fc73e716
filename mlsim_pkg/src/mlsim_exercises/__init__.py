"""Exercises as data: read, computed, shown and judged. Standard library only."""
