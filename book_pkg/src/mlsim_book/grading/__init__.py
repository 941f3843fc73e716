"""Exercises for grades: student notebooks, and the grading of what comes back.

`assignment` chooses questions and each student's numbers; `handouts` writes notebooks, rubric and
key. A class list is read by `roster`, with `tables` and `columns`. `search` finds every file of a
folder or zip (`archives`, `directory`), `submissions` the notebooks among them, `lms` what a
platform says of one, and `matching` whose it is, by `people` and `names`. `process` runs one
behind `walls`, on this machine or wherever `executors` sends it; inside, `runner` reads the
`notebook` and runs it, with the friendly guard of `sandbox`. `grade` compares, `kept` keeps what
came out, `report` writes `results`, and `left` what was not graded.
"""
