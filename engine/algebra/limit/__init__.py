"""LIMIT and OFFSET."""
