"""Review of the zoo's data: rules, second readings, and comparisons."""
