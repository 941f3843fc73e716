"""A service to which requests keep coming: a scheduler at work, and closed forms."""
