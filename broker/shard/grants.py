"""How much work for queries with a preference a step may do: free time, turned into units.

The engine has no clock. A step carries a grant of units, and the engine spends exactly that, so a replay
finds the same. Where the units come from:

* nothing came: heartbeats are made one after another, each with the units of ``step_ms``, until no work is
  left; records that come wait for one of them at most;
* records came, and none wait behind them: their steps have half of the time that lately passed from one
  transaction with records to the next without other work, ``step_ms`` at most all together
  (:mod:`broker.shard.free_time`);
* records wait in the log: their steps have ``share`` of the time that records take; the rest is input's.

Time is turned into units by what they took lately (:class:`broker.shard.work_units.UnitCost`), and a limit
of units a second stands above all of these. A heartbeat whose grant finds nothing to do is followed by none
until another step was made, so that an idle shard rests.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 4.1: a query goes on while no tuple comes.

Pure: clocks are passed in, in nanoseconds. O(1) a call.
"""

from __future__ import annotations

import math

from broker.base.settings import Settings
from broker.shard.free_time import FreeTime
from broker.shard.work_units import UnitCost, WorkLimit

MS = 1_000_000
"""Nanoseconds in a millisecond."""
SAVED_STEPS = 4
"""Full grants that may be saved up from the share of time that input leaves."""
LINGER_S_MIN = 0.005
"""Where records wait for others to come, less time than this is not used for anything else."""
QUIET_S = 0.05
"""Behind the records that waited for others it is quiet for so long before a heartbeat is made: while records
come all the time, its transaction would keep them waiting.
"""
CHANGES_SHARE = 0.25
"""The share of the changes of a query that may wait, of which a grant may be the cause; rows that leave
windows need room, too.
"""
HEARTBEAT_NS = 2_000_000.0
"""What a heartbeat takes besides the units of its grant, at most."""


def within_s(linger_s: float) -> float:
    """The time that a heartbeat has while records wait for others to come, for so long; infinite: none wait,
    which ``linger_s`` of 0 says.
    """
    return linger_s - LINGER_S_MIN if linger_s else math.inf


class Grants:
    """Decides how much work for queries with a preference the steps of one shard may do. step_ms: the time
    that a grant may take. share: the share of the time for this work while records wait. changes_max: changes
    of a query that may wait to be written; a unit gives one row at most, so a grant has part of what there is
    room for. Used by the shard's thread alone; ``left``, ``granted``, ``spent`` and ``limit`` may be read by
    others.
    """

    @classmethod
    def of(cls, settings: Settings, now_ns: int) -> Grants:
        """As the settings have it."""
        return cls(
            settings.preference_step_ms,
            settings.preference_share,
            settings.preference_work_per_s_max,
            settings.changes_max,
            now_ns,
        )

    def __init__(
        self, step_ms: int, share: float, per_s_max: int | None, changes_max: int, now_ns: int
    ) -> None:
        self.cost = UnitCost()
        self.limit = WorkLimit(per_s_max, now_ns)
        self.left = 0
        """Units of work that were left after the last transaction."""
        self.waiting = 0
        """Changes that were worked out and wait to be written."""
        self._changes_max = changes_max
        self.granted = 0
        self.spent = 0
        """Units, in this life."""
        self._step_ns = step_ms * MS
        self._rate = share / (1 - share)
        self._saved_ns = 0.0
        """Time that may be spent while more records wait, saved up as a share of the time of records."""
        self._free = FreeTime()
        self._dry = False
        """Nothing was found to do, and no step was made since."""

    # --- steps of records -------------------------------------------------------------------------

    def records_come(self) -> None:
        """A transaction with records begins."""
        self._free.turn(self._span_ns)

    def for_records(self, now_ns: int, *, lagging: bool) -> int:
        """The grant of a step of records. lagging: more wait in the log."""
        free_ns = 0.0 if lagging else self._free.turn_ns
        span_ns = min(self._span_ns, max(free_ns, self._saved_ns))
        return self._limited(min(self._room, self.cost.units_in(span_ns)), now_ns)

    def records_took(self, took_ns: float, granted: int, spent: int, spent_ns: float) -> None:
        """A step of records took so long, of it ``spent_ns`` for units of its grant."""
        self._dry = False
        self._saved_ns += self._rate * max(0.0, took_ns - spent_ns) - spent_ns
        self._saved_ns = min(max(self._saved_ns, 0.0), SAVED_STEPS * self._span_ns)
        self._free.spent(spent_ns)
        self._done(granted, spent, spent_ns)

    # --- while nothing comes ----------------------------------------------------------------------

    def wait_s(self, now_ns: int, within_s: float = math.inf) -> float:
        """How long until a heartbeat with a grant is of use; infinite: not before another step is made, or
        not in the time that there is, ``within_s``.
        """
        units = self._units_within(within_s)
        if self._dry or not self.left or not units:
            return math.inf
        return self.limit.wait_s(min(self.left, units), now_ns)

    def next_s(self, now_ns: int, linger_s: float) -> float:
        """How long until a heartbeat with a grant is of use, where records wait ``linger_s`` for others to
        come. A heartbeat that has no time before these records is made behind them, if no more come soon.
        """
        there_is_s = within_s(linger_s)
        wait_s = self.wait_s(now_ns, there_is_s)
        return wait_s if wait_s < there_is_s else max(linger_s + QUIET_S, self.wait_s(now_ns))

    def for_heartbeat(self, now_ns: int, within_s: float = math.inf) -> int:
        """The grant of a heartbeat; 0: none is to be made for it. within_s: of time that there is."""
        if self.wait_s(now_ns, within_s) > 0:
            return 0
        return self._limited(self._units_within(within_s), now_ns)

    def heartbeat_took(self, took_ns: float, granted: int, spent: int) -> None:
        """A heartbeat made for its grant took so long."""
        self._dry = not spent
        self._free.passed(took_ns)
        self._done(granted, spent, max(0.0, took_ns - HEARTBEAT_NS))

    def rested(self, ns: float) -> None:
        """The shard waited so long for something to do."""
        self._free.passed(ns)

    def stepped(self) -> None:
        """A step was made that had no grant: there may be other work now."""
        self._dry = False

    # ----------------------------------------------------------------------------------------------

    @property
    def _span_ns(self) -> float:
        """What a grant may take."""
        return self.cost.span_ns(self._step_ns)

    def _units_within(self, within_s: float) -> int:
        """Units of work that a heartbeat may do in ``within_s``."""
        return min(self._room, self.cost.units_in(min(self._span_ns, max(0.0, within_s) * 1e9)))

    @property
    def _room(self) -> int:
        """Units whose changes may wait besides those that do."""
        return max(0, int(CHANGES_SHARE * self._changes_max) - self.waiting)

    def _limited(self, units: int, now_ns: int) -> int:
        return int(min(units, max(0.0, self.limit.left(now_ns))))

    def _done(self, granted: int, spent: int, spent_ns: float) -> None:
        self.granted += granted
        self.spent += spent
        self.limit.spent(spent)
        self.cost.measured(granted, spent, spent_ns)
