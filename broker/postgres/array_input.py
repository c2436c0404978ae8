"""Arrays as clients write them in binary, of one dimension, as :mod:`broker.postgres.array_texts` has it; in
text: :mod:`engine.model.nested.array_literals`.

Source: PostgreSQL's array_recv. Cost: O(bytes).
"""

from __future__ import annotations

import struct

_HEAD = struct.Struct("!iiI")
_INT32 = struct.Struct("!i")


def elements_of_binary(raw: bytes) -> tuple[int, list[bytes | None]]:
    """The oid of the elements, and their bytes. Raises ValueError, struct.error."""
    dimensions, _, element = _HEAD.unpack_from(raw)
    if dimensions == 0 and len(raw) == _HEAD.size:
        return element, []
    if dimensions != 1:
        raise ValueError(dimensions)
    (count,) = _INT32.unpack_from(raw, _HEAD.size)
    found: list[bytes | None] = []
    at = _HEAD.size + 8
    for _ in range(count):
        (size,) = _INT32.unpack_from(raw, at)
        at += 4
        if size < -1 or at + max(size, 0) > len(raw):
            raise ValueError(size)
        found.append(None if size == -1 else raw[at : at + size])
        at += max(size, 0)
    if at != len(raw):
        raise ValueError(len(raw))
    return element, found
