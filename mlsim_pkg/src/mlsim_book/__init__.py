"""Build a Quarto book whose chapters execute Python, without Quarto.

The package knows nothing of machine learning: it would build anyone's book.
The work goes through these steps, each a module:

    project   _quarto.yml           -> Project, Chapters
    qmd       .qmd text             -> Document of Markdown and cells
    execute   Document              -> outputs (nbclient, cached)
    intermediate                    -> the Markdown that Quarto itself would write
    pandoc    that Markdown         -> HTML body (one Lua filter, two passes)
    build     bodies                -> a site in _book/, swapped in when whole
"""
