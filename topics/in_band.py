"""Heartbeats that stand in a stream's topic: records with the header ``tureen-heartbeat``.

The header holds milliseconds since 1970 as decimal digits, with a minus before 1970. Such a record promises
that no row of its partition below that instant follows it; it is no row itself, whatever its value is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from engine.model.types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from tureen.protocol import HEADER_HEARTBEAT

Headers = Sequence[tuple[str, bytes | None]] | None
"""The headers of one record, in order; None: it has none."""

Heartbeats = tuple[Mapping[int, int], Mapping[int, str]]
"""Heartbeats by place: place -> instant in ms since 1970; and place -> why the record is none."""

NO_HEARTBEATS: Heartbeats = ({}, {})
_INTEGER = re.compile(rb"-?[0-9]{1,18}")


def heartbeats(records: Iterable[Headers]) -> Heartbeats:
    """Find the heartbeats among some records, given the headers of each. A record is one where it has the
    header; of several such headers the last counts. O(records).
    """
    found: dict[int, int] = {}
    refused: dict[int, str] = {}
    for place, headers in enumerate(records):
        if not headers:
            continue
        for name, value in reversed(headers):
            if name == HEADER_HEARTBEAT:
                _read(value, place, found, refused)
                break
    return found, refused


def _read(value: bytes | None, place: int, found: dict[int, int], refused: dict[int, str]) -> None:
    if value is None or _INTEGER.fullmatch(value) is None:
        refused[place] = f"the header {HEADER_HEARTBEAT} is not a number of ms since 1970"
    elif not TIMESTAMP_MS_MIN <= int(value) <= TIMESTAMP_MS_MAX:
        refused[place] = f"the header {HEADER_HEARTBEAT} is no instant: {int(value)}"
    else:
        found[place] = int(value)
