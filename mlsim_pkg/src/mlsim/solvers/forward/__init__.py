"""One forward pass of a network on one device."""
