"""Keys: what lies where in the column families, and in which order.

Byte order is the order of meaning, so that a scan gives rows by time. Integers are big-endian; those that
may be negative have their sign bit flipped (-1 before 0 before 1). Names go in front with their length, so
that no name is a prefix of another one's keys, whatever characters it has.

    column family    key                                                     value
    meta             "format"                                                version of these layouts
                     "view/" name, UTF-8                                     view or derived stream
                     "held/" names, JSON                                     rows that joins hold
                     "part/" name, UTF-8                                     state of a part, as a tree
    positions        "engine"                                                position of the last commit
                     "first"                                                 number of the oldest link
                     "link/" | commit's number, 8 |                          (empty)
    sources          name, UTF-8                                             source, without rows
    queries          query id, UTF-8                                         query
    swapped          query id, UTF-8                                         query that is swapped out
    segments         | length, 2 | name, UTF-8 | 1 | first ordinal, 8 |      rows: a piece or a segment
                     | length, 2 | name, UTF-8 | 2 | piece number, 8  |      rows above NOW

Between rows 1 and rows 2 of one source nothing else can lie, so [prefix, prefix + 1) is all of one kind.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from enum import Enum

from engine.model.source import SourceName

META = "meta"
POSITIONS = "positions"
SOURCES = "sources"
QUERIES = "queries"
SWAPPED = "swapped"
SEGMENTS = "segments"

COLUMN_FAMILIES = (META, POSITIONS, SOURCES, QUERIES, SWAPPED, SEGMENTS)
FORMER_FAMILIES = frozenset({"answers", "operator_state"})
"""Families of earlier stores, always empty; a store that has them loses them when it is opened."""

FORMAT_KEY = b"format"
POSITION_KEY = b"engine"
FIRST_LINK_KEY = b"first"
LINK_PREFIX = b"link/"
VIEW_PREFIX = b"view/"
HELD_PREFIX = b"held/"
PART_PREFIX = b"part/"

_SIGN = 1 << 63
_NAME_BYTES_MAX = 0xFFFF


class RowKind(Enum):
    """Which rows of a source: those that are visible, or those still above NOW."""

    VISIBLE = 1
    PENDING = 2


def name_key(name: str) -> bytes:
    """The key of a source or a query."""
    return name.encode("utf-8", "surrogatepass")


def held_key(over: Iterable[SourceName], source: SourceName) -> bytes:
    """The key of what joins over some streams hold of one of them."""
    return HELD_PREFIX + json.dumps([*over, source]).encode("ascii")


def part_key(name: str) -> bytes:
    """The key of a part whose state is a tree; also what the keys begin with of parts whose names do."""
    return PART_PREFIX + name_key(name)


def number_key(number: int) -> bytes:
    """int64 -> 8 bytes whose byte order is the order of the numbers."""
    return struct.pack(">Q", number + _SIGN)


def key_number(key: bytes) -> int:
    """The number that a key ends with; inverse of :func:`number_key`."""
    number: int = struct.unpack(">Q", key[-8:])[0]
    return number - _SIGN


def rows_prefix(source: SourceName, kind: RowKind) -> bytes:
    """What all keys of these rows begin with."""
    return _source_prefix(source) + bytes([kind.value])


def rows_key(source: SourceName, kind: RowKind, number: int) -> bytes:
    """The key of the rows that begin at this ordinal, or of this pending piece."""
    return rows_prefix(source, kind) + number_key(number)


def rows_range(source: SourceName, kind: RowKind) -> tuple[bytes, bytes]:
    """First key and the one after the last, of all rows of this kind."""
    prefix = _source_prefix(source)
    return prefix + bytes([kind.value]), prefix + bytes([kind.value + 1])


def source_range(source: SourceName) -> tuple[bytes, bytes]:
    """First key and the one after the last, of everything in ``segments`` that belongs to a source."""
    prefix = _source_prefix(source)
    return prefix, prefix + b"\xff"


def _source_prefix(source: SourceName) -> bytes:
    name = name_key(source)
    if len(name) > _NAME_BYTES_MAX:
        raise ValueError(f"the name of a source has at most {_NAME_BYTES_MAX:,} bytes")
    return struct.pack(">H", len(name)) + name
