"""Records that are passed on with a reason: late rows, and dead letters, of data and of control topics.

A record is forwarded untouched, with headers that say why, and where it came from. The topics of sources may
take larger records than the topics for letters do: one that does not fit is cut, and a header says how many
bytes it had. The whole record is where it came from, as long as that topic keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topics.sizes import RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES
from tureen.protocol import HEADER_CUT, HEADER_OFFSET, HEADER_PARTITION, HEADER_REASON, HEADER_TOPIC

Headers = list[tuple[str, bytes | None]]

REASON_BYTES_MAX = 4_096
KEPT_BYTES_MAX = 32 * 1024
"""Size up to which a key and headers of a record that is cut stay whole; larger ones are left out."""
_HEADER_FRAME_BYTES = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record is."""

    topic: str
    partition: int
    offset: int


def letter(
    value: bytes | None,
    key: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    place: Place,
    reason: str,
    bytes_max: int = RECORD_BYTES_MAX,
) -> tuple[bytes | None, bytes | None, Headers]:
    """(value, key, headers) of a record that is passed on.

    bytes_max: what the topic takes, of key, value, headers and their frame; at least
    RECORD_BYTES_LEAST. What is larger loses its own headers and its key where they are large, and the end of
    its value.
    """
    own: Headers = [
        (HEADER_REASON, reason.encode("utf-8", "replace")[:REASON_BYTES_MAX]),
        (HEADER_TOPIC, place.topic.encode("utf-8")),
        (HEADER_PARTITION, str(place.partition).encode("ascii")),
        (HEADER_OFFSET, str(place.offset).encode("ascii")),
    ]
    free = bytes_max - RECORD_OVERHEAD_BYTES - _size_of(own)
    size = len(value or b"") + len(key or b"") + _size_of(headers)
    if size <= free:
        return value, key, [*headers, *own]
    own.append((HEADER_CUT, str(size).encode("ascii")))
    free -= _size_of(own[-1:])
    kept = [*headers] if _size_of(headers) <= KEPT_BYTES_MAX else []
    if key is not None and len(key) > KEPT_BYTES_MAX:
        key = None
    if value is not None:
        value = value[: free - _size_of(kept) - len(key or b"")]
    return value, key, [*kept, *own]


def forwarded(
    message: Any, reason: str, bytes_max: int = RECORD_BYTES_MAX
) -> tuple[bytes | None, bytes | None, Headers]:
    """:func:`letter` of a message of confluent-kafka."""
    place = Place(str(message.topic()), message.partition(), message.offset())
    return letter(message.value(), message.key(), message.headers() or (), place, reason, bytes_max)


def _size_of(headers: Sequence[tuple[str, bytes | None]]) -> int:
    return sum(len(name.encode()) + len(value or b"") + _HEADER_FRAME_BYTES for name, value in headers)
