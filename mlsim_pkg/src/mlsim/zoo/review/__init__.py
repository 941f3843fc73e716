"""What must hold of the zoo's data: rules, second readings, and comparisons."""
