"""Schemas that no record can be read by."""

from __future__ import annotations


class UnreadableSchema(ValueError):
    """The text says why."""
