"""Exercises for grades: student notebooks, and the grading of what comes back.

`assignment` chooses questions and each student's numbers, and keeps them in a key; `handouts`
writes notebooks, rubric and key, also for students who come late. A class list is read by
`class_lists`, whatever its table (`tables`) is like. `submissions` finds the notebooks of a folder
or zip (`archives`) and what a platform says of each, `matching` whose each is. `process` runs one
behind `walls`, on this machine or wherever an executor sends it; inside, `runner` reads the
notebook and runs it, with a friendly guard. `grade` compares and keeps what came out.

What follows runs nothing: `decisions` are points that no program decides, as for texts that a
person marks; `gradebook` makes a row a student, and tables for course systems; `overview` is the
instructor's page, with what is alike, and `report` the pages for students. `finish` is the command
that does it all, in turn; `commands` adds it to `mlsim-book`.
"""
