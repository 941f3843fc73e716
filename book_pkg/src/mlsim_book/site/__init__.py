"""From rendered pages to a site: template, navigation, search, look, and its folder."""
