"""Build a Quarto book whose chapters execute Python, without Quarto.

The package knows nothing of machine learning: it would build anyone's book.
The work goes through rooms; a room imports only from those above it in this list:

    read        _quarto.yml, .qmd   -> Project, Documents of Markdown and cells
    exercises   their files, and what a page with exercises loads
    run         Documents           -> outputs (nbclient, cached), in Quarto's own Markdown
    render      that Markdown       -> HTML bodies (one Lua filter), notebooks
    paper       finished pages      -> EPUB, PDF, zips
    site        bodies              -> a site, swapped in when whole (`build` does it all)
    check       sources, a site     -> what is wrong with them
    preview                         -> the other command, above all of these

`errors`, `caches`, `model` and `progress` stand below them.
"""
