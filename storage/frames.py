"""The frame around every stored value: which version wrote it, and whether it is still what was written.

    | version, 1 | zero, 3 | CRC-32 of what follows, 4 | rows, 4 | zero, 4 | payload |

The header's 16 bytes keep an Arrow payload aligned. ``rows`` is a payload's number of rows where it holds
rows, and 0 elsewhere, so that it is known without decoding them.
"""

from __future__ import annotations

import struct
import zlib

from tureen.errors import StoreCorrupt, StoreVersionUnknown

HEADER_BYTES = 16

_HEAD = struct.Struct(">B3xI")
_TAIL = struct.Struct(">I4x")

REBUILD_HINT = (
    "stop the broker, move the store's directory elsewhere and start again: it is rebuilt from the topics"
)


def wrap(version: int, payload: bytes | memoryview, rows: int = 0) -> bytes:
    """A payload as it is stored. O(bytes)."""
    tail = _TAIL.pack(rows)
    return b"".join((_HEAD.pack(version, zlib.crc32(payload, zlib.crc32(tail))), tail, payload))


def unwrap(value: bytes, version: int, key: str) -> memoryview:
    """The payload of a value that ``wrap`` made, without a copy. O(bytes).

    key: names the value in errors.
    Raises StoreVersionUnknown: another version wrote it. StoreCorrupt: it is not what was written.
    """
    check_version(value, version, key)
    body = memoryview(value)[_HEAD.size :]
    if _HEAD.unpack_from(value)[1] != zlib.crc32(body):
        raise corrupt(key, "its checksum does not match")
    return body[_TAIL.size :]


def rows_of(value: bytes, version: int, key: str) -> int:
    """How many rows a value holds, from its header alone. Raises as ``unwrap``, but for the checksum."""
    check_version(value, version, key)
    rows: int = _TAIL.unpack_from(value, _HEAD.size)[0]
    return rows


def check_version(value: bytes, version: int, key: str) -> None:
    """Refuse a value that is too short, or that another version wrote."""
    if len(value) < HEADER_BYTES:
        raise corrupt(key, f"it has {len(value)} bytes")
    if value[0] != version:
        raise StoreVersionUnknown(
            f"{key} was written in version {value[0]}, this broker reads version {version}",
            hint="run the version of Tureen that wrote this store, or " + REBUILD_HINT,
        )


def corrupt(key: str, why: str) -> StoreCorrupt:
    """The error for a value that cannot be used."""
    return StoreCorrupt(f"{key} cannot be read: {why}", hint=REBUILD_HINT)
