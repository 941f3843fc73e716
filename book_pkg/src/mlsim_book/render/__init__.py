"""From executed pages to HTML and to notebooks: pandoc, references, citations, formulas."""
