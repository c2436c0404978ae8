"""Sample keys by definition, in Python's unbounded integers."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b

from engine.model.expressions import Value

WORD = 2**64
NULL_WORD = 0x5851F42D4C957F2D
"""What NULL counts as."""
GAMMA = 0x9E3779B97F4A7C15


@lru_cache(maxsize=10_000)
def sample_key(topic: str, partition: int, offset: int) -> int:
    """0 <= key < 2^63: the upper 63 bits of what splitmix64, seeded by topic and partition, draws as number
    ``offset``.
    """
    seed = int.from_bytes(blake2b(topic.encode(), digest_size=8).digest(), "little")
    return _drawn(_drawn(seed, partition), offset) // 2


def seeded_key(seed: int, key: int) -> int:
    """0 <= key < 2^63: the upper 63 bits of what splitmix64, seeded by ``seed``, draws as number ``key``."""
    return _drawn(seed, key) // 2


def _drawn(seed: int, number: int) -> int:
    """What splitmix64 draws as its ``number``-th, counted from 0."""
    z = (seed + GAMMA * (number + 1)) % WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def element_key(values: Sequence[Value], instant: int, copy: int) -> int:
    """0 <= key < 2^63, of an element of a stream of a subquery: drawn from its values, one after the other,
    its instant, and which of the equal elements of that instant it is, from 0.
    """
    key = 0
    for word in [*map(_word, values), instant, copy]:
        key = _drawn(key, word) // 2
    return key


def _word(value: Value) -> int:
    """A value as a number."""
    match value:
        case None:
            return NULL_WORD
        case bool() | int():
            return int(value)
        case float():
            (bits,) = struct.unpack("<q", struct.pack("<d", math.nan if math.isnan(value) else value))
            return int(bits)
        case Decimal():
            return int(value.scaleb(-int(value.as_tuple().exponent)))
        case str():
            return int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little")
    raise NotImplementedError(type(value))
