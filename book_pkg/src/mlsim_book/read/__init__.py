"""From a book's files to documents: configuration, chapters, cells and their options."""
