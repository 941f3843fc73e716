"""What is wrong with a book: its sources, its numbers and its built site."""
