"""Settings of state buffers: attributes of this module, read when a buffer is made."""

from __future__ import annotations

state_partitions = 10
"""Partitions of a calendar: more take less time to expire entries one by one, and more memory."""
expiry_lazy_fraction = 0.05
"""Of the span of a window, how long entries that nobody sees leave may stay behind their exit."""
initial_hash_buckets = 256
"""Of buffers that find entries by their places."""

PARTITIONS_MAX = 65_536


def partitions_of(span: int, partitions: int | None = None) -> int:
    """How many partitions a calendar of this span has: as asked for, else the default, none narrower than an
    instant. span: in the unit of exits. Raises ValueError if that many cannot be.
    """
    if partitions is None:
        return max(1, min(state_partitions, span))
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise ValueError(f"a calendar has 1 to {PARTITIONS_MAX:,} partitions, not {partitions:,}")
    if partitions > span:
        raise ValueError(f"{partitions:,} partitions are more than the {span:,} instants of the span")
    return partitions


def lazy_interval(span: int) -> int:
    """How long entries may stay behind their exit where expiry is lazy; 1 at least."""
    if not 0 < expiry_lazy_fraction <= 1:
        raise ValueError(f"the lazy fraction is above 0 and at most 1, not {expiry_lazy_fraction}")
    return max(1, int(span * expiry_lazy_fraction))
