"""Exercises for grades: student notebooks, and the grading of what comes back.

`assignment` chooses questions and each student's numbers; `handouts` writes notebooks, rubric and
key, `enrol` those of students who come late. A class list is read by `roster`, with `tables` and
`columns`. `search` finds every file of a folder or zip (`archives`, `directory`), `submissions`
the notebooks among them, `lms` what a platform says of one, and `matching` whose it is, by
`people` and `names`. `process` runs one behind `walls`, on this machine or wherever `executors`
sends it; inside, `runner` reads the `notebook` and runs it, with the friendly guard of `sandbox`.
`grade` compares, `kept` keeps what came out.

What follows runs nothing (`finish`): `hand` gives texts to a person and takes points back,
`overrides` are the instructor's decisions, `late` the rule for being late; `gradebook` makes a
row a student of it. `tallies` counts by question and mistake, `alike` points out what is alike,
`exports` writes for course systems, `overview` the instructor's page. `report` writes it all with
the pages for students, and `left` what was not graded; `cells` keeps formulas out of tables.
"""
