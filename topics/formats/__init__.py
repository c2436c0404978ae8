"""Formats of records: each is a way to write records as JSON, whose reader says what they mean."""
