"""Walls of the operating system around a stranger's notebook, and who watches it from outside.

`choose` finds walls that hold on this machine, of `bubblewrap` or a container engine, and refuses
where there are none; `enter` is the small program that gives root up before it goes in;
`supervise` listens from outside, and measures what it sees there.
"""
