"""Which queries of a shard are swapped out, and when: those that nobody has asked for since
``swap_after_ms``, and, once memory is short, the least valuable of those that nobody asks for just now.

Some at a time between two turns, so that nothing waits long; a query that is asked for comes back in a
question to the shard, in the order in which questions come. Neither is a step (:mod:`engine.swapping`).
"""

from __future__ import annotations

import time

from broker.memory.levels import Level
from broker.shard.context import ShardContext
from broker.shard.questions import Asked
from engine.engine import Engine

AT_ONCE = 200
"""Queries that are swapped out between two turns."""
LOOKS = 10
"""How often all warm queries are looked at in the time after which one goes."""
SHORT_S = 10.0
"""Where memory is short, those that were asked for so lately stay all the same."""
SHORT_LOOK_S = 1.0
SHARE_MAX = 0.01
"""Looking takes so much of the time."""


class Swapper:
    """Used by the shard's thread alone; ``count``, ``went`` and ``came`` may be read by others."""

    def __init__(self, context: ShardContext, asked: Asked) -> None:
        """asked: which answers were asked for."""
        self.count = 0
        """How many queries are swapped out."""
        self.went = 0
        """How often one was swapped out since the start."""
        self.came = 0
        """How often one came back because somebody asked for it."""
        self._after_s = context.settings.swap_after_ms / 1_000
        self._memory = context.memory
        self._asked = asked
        self._last_s: dict[str, float] = {}
        """When each warm query was last asked for, or first seen."""
        self._due: list[str] = []
        self._look_s = 0.0

    def out_if_due(self, engine: Engine) -> bool:
        """Swap some queries out. Returns whether views to come are others."""
        if not self._after_s:
            return False
        now_s = time.monotonic()
        if now_s >= self._look_s:
            self._look(engine, now_s)
        if not self._due:
            return False
        lately = self._asked.lately(clear=False)
        some = [name for name in self._due[-AT_ONCE:] if name not in lately]
        del self._due[-AT_ONCE:]
        out = engine.swapping.out(some)
        for name in out:
            self._last_s.pop(name, None)
        self.went += len(out)
        self.count = engine.swapping.count
        return bool(out)

    def back(self, engine: Engine, query_id: str) -> bool:
        """Have a query stand again. Returns whether it was swapped out. Raises the refusal of its text."""
        came = bool(engine.swapping.back([query_id]))
        if came:
            self.came += 1
            self._last_s[query_id] = time.monotonic()
        self.count = engine.swapping.count
        return came

    def _look(self, engine: Engine, now_s: float) -> None:
        """Find out which are due. O(warm queries), and where memory is short O(these * log of these)."""
        self.count = engine.swapping.count
        for name in self._asked.lately(clear=True):
            self._last_s[name] = now_s
        warm = engine.view().standing.in_any_order()
        self._last_s = {one.query_id: self._last_s.get(one.query_id, now_s) for one in warm}
        ages_s = {name: now_s - last_s for name, last_s in self._last_s.items()}
        self._due = [name for name, age_s in ages_s.items() if age_s >= self._after_s]
        is_short = self._memory.look() >= Level.REFUSE
        if is_short and not self._due:
            asked_per_s = {name: 1 / max(age_s, SHORT_LOOK_S) for name, age_s in ages_s.items()}
            found = engine.swapping.freeable(asked_per_s)
            quiet = [one.query_id for one in found if ages_s[one.query_id] >= min(SHORT_S, self._after_s)]
            self._due = quiet[:AT_ONCE][::-1]
        took_s = time.monotonic() - now_s
        pause_s = SHORT_LOOK_S if is_short else self._after_s / LOOKS
        self._look_s = now_s + max(pause_s, took_s / SHARE_MAX)
