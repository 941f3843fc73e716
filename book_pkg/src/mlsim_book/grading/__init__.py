"""Exercises for grades: student notebooks, and the grading of what comes back.

`assignment` chooses questions and each student's numbers; `handouts` writes notebooks,
rubric and key; `submissions` reads what was handed in; `runner` runs it, a subprocess
behind the walls of `sandbox`; `grade` compares and keeps results; `report` writes them.
"""
