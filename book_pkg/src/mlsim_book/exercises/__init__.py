"""A book's exercises: their files, and what a page that shows one loads."""
