"""ROW_NUMBER() OVER (...), and the first rows of each part."""
