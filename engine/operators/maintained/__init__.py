"""Aggregates that are kept as rows arrive, so that an answer needs only the rows at its window's two ends."""
