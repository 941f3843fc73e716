"""Models, devices and places by dotted names, and the files that describe them."""
