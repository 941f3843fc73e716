"""One linear layer: its products and passes in a number format, on one device."""
