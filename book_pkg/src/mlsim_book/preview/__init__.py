"""A book in the browser that follows its sources while they are written."""
