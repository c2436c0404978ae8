"""Arrays as clients write them, of one dimension: in text ``{1,NULL,"a, b"}``, in binary as
:mod:`broker.postgres.array_texts` has it.

Source: PostgreSQL's documentation, "Array Input and Output Syntax", and its array_recv. Cost: O(bytes).
"""

from __future__ import annotations

import re
import struct

_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^{}",\\]|\\.)*?))\s*(?:,|$)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_HEAD = struct.Struct("!iiI")
_INT32 = struct.Struct("!i")


def elements_of_text(text: str) -> list[str | None]:
    r"""The texts of the elements. Raises ValueError.

    >>> elements_of_text('{1, NULL,"a, \\"b\\"", null}')
    ['1', None, 'a, "b"', None]
    """
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        raise ValueError(text)
    inner = inner[1:-1]
    if not inner.strip():
        return []
    found: list[str | None] = []
    at = 0
    while True:
        one = _ELEMENT.match(inner, at)
        if one is None:
            raise ValueError(text)
        if one[1] is None and not one[2]:
            raise ValueError(text)
        is_null = one[1] is None and one[2].upper() == "NULL"
        found.append(None if is_null else _ESCAPE.sub(r"\1", one[2] if one[1] is None else one[1]))
        if one.end() == len(inner) and not one[0].endswith(","):
            return found
        at = one.end()


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
