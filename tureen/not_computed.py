"""What an answer lacks because something of it could not be computed, in words."""

from __future__ import annotations

from collections.abc import Iterator


def not_computed(conditions: int, values: int) -> Iterator[str]:
    """A line for each kind. conditions: rows whose condition could not be computed; values: such values.

    >>> list(not_computed(1, 2))
    ['1 row is not in the answer: its condition could not be computed', '2 values could not be computed and are NULL']
    """  # noqa: E501
    if conditions == 1:
        yield "1 row is not in the answer: its condition could not be computed"
    elif conditions:
        yield f"{conditions:,} rows are not in the answer: their condition could not be computed"
    if values == 1:
        yield "1 value could not be computed and is NULL"
    elif values:
        yield f"{values:,} values could not be computed and are NULL"
