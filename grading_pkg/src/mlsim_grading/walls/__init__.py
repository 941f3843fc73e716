"""Walls of the operating system around a stranger's notebook, and who watches it from outside.

`choose` finds walls that hold on this machine and refuses where there are none;
`bubblewrap` and `container` build them, `environment` says what is seen inside, `enter` is the
small program that gives root up before it goes in, `seccomp` the list of calls that the system
refuses; `supervise` listens from outside and `tree` measures what it sees there.
"""
