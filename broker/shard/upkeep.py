"""What a shard does between its steps, seldom enough to take little of its time."""

from __future__ import annotations

import time

from broker.shard.context import ShardContext
from broker.shard.questions import Asked
from broker.shard.swapper import Swapper
from engine.engine import Engine
from engine.model.step import Position
from engine.promising.group import GroupCounts

COUNT_S = 1.0
COUNT_AGAIN_S = 10.0
"""Where no step was made since, what the state takes is counted as often."""


class Upkeep:
    """Used by the shard's thread alone; ``promising`` may be read by others."""

    def __init__(self, context: ShardContext, asked: Asked) -> None:
        """asked: how often answers were asked for."""
        self.promising = GroupCounts()
        """What was done for queries with a preference, as counted some seconds ago at most."""
        self.swapper = Swapper(context, asked)
        """What swaps queries out."""
        self._number = context.number
        self._counts = context.counts
        self._memory = context.memory
        self._asked = asked
        self._due_s = 0.0
        self._room_due_s = 0.0
        self._counted: Position | None = None

    def count_if_due(self, engine: Engine) -> None:
        """Count what the state takes, in a hundredth of the time at most."""
        began_s = time.perf_counter()
        if began_s >= self._due_s + (COUNT_AGAIN_S if engine.position == self._counted else 0.0):
            self._counted = engine.position
            self._memory.accounts.counted(self._number, engine.footprint())
            self.promising = engine.promising_counts()
            took_s = time.perf_counter() - began_s
            self._due_s = began_s + max(COUNT_S, 100 * took_s)

    def make_room(self, engine: Engine) -> bool:
        """Have rows leave memory where it is short (:meth:`engine.engine.Engine.make_room`). Where none is
        left that can, looking for some takes a hundredth of the time at most. Returns whether any left.
        """
        began_s = time.perf_counter()
        if began_s < self._room_due_s:
            return False
        made = engine.make_room()
        took_s = time.perf_counter() - began_s
        self._room_due_s = 0.0 if made else began_s + 100 * took_s
        return made

    def revise_if_due(self, engine: Engine) -> bool:
        """Let the engine choose maintenance again, by how often answers were asked for; no answer changes.
        Whether it chose another anywhere.
        """
        turned = self._asked.turn()
        revised = 0 if turned is None else engine.revisions.revise(*turned)
        self._counts.revised += revised
        return revised > 0
