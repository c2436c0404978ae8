"""ORDER BY."""
