"""A query that stands, and the map of all that do."""
