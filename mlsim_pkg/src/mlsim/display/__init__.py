"""Numbers and tables that open: each shows how it was computed."""
