"""Sample keys by definition, in Python's unbounded integers."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

WORD = 2**64
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
