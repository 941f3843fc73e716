"""The whole book to take away: EPUB, PDF, a zip of the site, a zip of its figures."""
