"""Where the matches of a predicate are, as a standing query keeps it."""

from __future__ import annotations

Place = int
"""Where matches are kept: generation << 32 | slot of a Query SteM. One small number, as most queries are."""


def place_at(slot: int, generation: int) -> Place:
    """The place of the matches of a slot's generation."""
    return generation << 32 | slot


def slot_at(place: Place) -> int:
    """The slot of a place."""
    return place & 0xFFFFFFFF
