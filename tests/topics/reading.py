"""Records read by a codec: each a row, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.model.source import Stream
from topics import small_batches
from topics.codec import decode

APPEND_MS = 1_700_000_000_000


def told(source: Stream, values: Sequence[bytes]) -> list[Any]:
    """Of each record its row, or the reason why it has none."""
    n = len(values)
    decoded = decode(source, values, np.zeros(n), np.arange(n), np.full(n, APPEND_MS))
    rows = dict(zip(decoded.batch.offset.tolist(), decoded.batch.to_arrow().to_pylist(), strict=True))
    reasons = {one.place: one.reason for one in decoded.bad}
    return [rows[place] if place in rows else reasons[place] for place in range(n)]


def told_carefully(source: Stream, values: Sequence[bytes]) -> list[Any]:
    """As :func:`told`, each record by the careful way alone."""
    with carefully():
        return [told(source, [value])[0] for value in values]


@contextmanager
def carefully() -> Iterator[None]:
    """No record is plain."""

    def not_plain(*_: Any, **__: Any) -> Any:
        raise small_batches.NotPlain

    plain_row, small_batches.plain_row = small_batches.plain_row, not_plain
    try:
        yield
    finally:
        small_batches.plain_row = plain_row
