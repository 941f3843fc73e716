"""From documents to executed pages: kernels, results and their Markdown."""
