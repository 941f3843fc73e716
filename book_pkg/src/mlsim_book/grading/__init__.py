"""Exercises for grades: student notebooks, and the grading of what comes back.

`assignment` chooses questions and each student's numbers; `handouts` writes notebooks,
rubric and key. `submissions` finds what was handed in; `process` runs one behind `walls`, on this
machine or wherever `executors` sends it; inside, `runner` reads the `notebook` and runs it, with
the friendly guard of `sandbox`. `grade` compares, `kept` keeps `results`, `report` writes them.
"""
