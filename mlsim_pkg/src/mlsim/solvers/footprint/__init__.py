"""The energy, carbon and water of a load."""
