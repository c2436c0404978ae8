"""Event timestamps that cannot be meant: compared with the timestamp that Kafka has of the same record.

A timestamp in seconds, read as milliseconds, lies in January 1970. Nothing would be wrong with such a row but
that it is late, or that NOW of its stream stands in 1970; so its record is a dead letter. Records from years
ago are fine: see :mod:`engine.model.units`. A stream may say how far back timestamps may lie at all
(``past_max``), and then that alone counts.

The decision depends on the record and the stream only, so replays agree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.model.source import Stream
from engine.model.types import Kind
from engine.model.units import are_seconds

Int64Array = npt.NDArray[np.int64]

SECONDS = "looks like seconds; TIMESTAMP is read from ms since 1970 or from text"


def implausible(stream: Stream, timestamp: Int64Array, record_ms: Int64Array) -> list[tuple[int, str]]:
    """(row, reason) of event timestamps that are refused, by ascending row.

    timestamp, record_ms: int64[n], the declared column's, and Kafka's own (0 or less: it has none).
    """
    if stream.timestamp_column is None or not len(timestamp):
        return []
    if stream.past_max_ms is None:
        wrong = are_seconds(timestamp, record_ms)
    else:
        wrong = record_ms - timestamp > stream.past_max_ms
    if not wrong.any():
        return []
    wrong &= record_ms > 0
    rows = np.flatnonzero(wrong)
    seconds = are_seconds(timestamp[rows], record_ms[rows])
    name = stream.timestamp_column
    return [
        (int(row), f"column {name}: {int(timestamp[row])} {SECONDS}" if second else _too_old(stream, name))
        for row, second in zip(rows, seconds, strict=True)
    ]


def _too_old(stream: Stream, name: str) -> str:
    return f"column {name}: more than past_max ({stream.past_max_ms} ms) before the record's own timestamp"


def years_as_seconds(timestamp: Int64Array) -> npt.NDArray[np.bool_]:
    """bool[n]: which of int64[n] event timestamps lie in the first weeks of 1970, and in 1990 to 2100 if they
    were seconds. These are no proof, as :func:`implausible` has one, and worth a word.
    """
    low, high = _PLAUSIBLE_S
    return (timestamp >= low) & (timestamp <= high)


def hint(kind: Kind, digits: str) -> str:
    """What a number that is no TIMESTAMP looks like, to be put behind the reason; "" where nothing fits."""
    if kind is not Kind.TIMESTAMP:
        return ""
    try:
        value = float(digits)
    except ValueError:
        return ""
    for unit, scale in (("seconds", 1.0), ("microseconds", 1e6), ("nanoseconds", 1e9)):
        if _PLAUSIBLE_S[0] <= value / scale <= _PLAUSIBLE_S[1]:
            return f"; it looks like {unit}, and TIMESTAMP is read from ms since 1970 or from text"
    return ""


_PLAUSIBLE_S = (631_152_000.0, 4_102_444_800.0)
"""The years 1990 to 2100 in seconds since 1970."""
