"""Large portions of changes that wait are ordered beside the shard, one after another, then written.

A million rows of text take a second to order (:mod:`topics.results_order`), and an answer that is taken back
may have four. Used by the shard's thread alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from broker.shard.pending import Pending, Portion


class Ordering:
    """Orders the portions of one shard."""

    def __init__(self, number: int, wake: Callable[[], None]) -> None:
        """wake: the shard is to look at what can be written."""
        self._number = number
        self._wake = wake
        self._is_at_work = False

    def look(self, pending: Pending) -> bool:
        """Begin to order the next portion, where none is at work. Returns whether any can be written now.
        O(portions).
        """
        can_write, is_free = False, not self._is_at_work
        for portion in pending.firsts():
            if portion.is_ready:
                can_write = True
            elif is_free:
                is_free = False
                self._begin(portion)
            if can_write and not is_free:
                break
        return can_write

    def _begin(self, portion: Portion) -> None:
        self._is_at_work = True
        name = f"shard-{self._number}-order"
        threading.Thread(target=self._run, args=[portion], name=name, daemon=True).start()

    def _run(self, portion: Portion) -> None:
        portion.order()
        self._is_at_work = False
        self._wake()
