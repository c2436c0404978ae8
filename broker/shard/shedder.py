"""Which of a shard's streams shed what comes, while more comes than the shard manages.

A stream's queue is what its topic has for it beyond the least it ever had in this life: so a stream that
reads an old topic from its beginning catches up, and one whose backlog grows sheds. Where the fullest queue
passes its reserve, streams shed in the order of what their queries lose by it for the time that is won
(:mod:`engine.overload.shed_order`), each no more than its queries allow (:mod:`engine.overload.loss_credit`).
Streams all of whose queries see every row shed nothing; they lag, and others shed in their stead.

Used by the shard's thread; ``shares`` and ``backlog_bytes`` may be read by others. Clocks are passed in.
Queues are looked at every LOOK_S seconds at most: O(streams that had records lately) then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.base import logs
from broker.shard.intake import Shedding
from broker.shard.taken import TakenRows
from engine.engine import Engine
from engine.model.shed import LEVEL_MAX
from engine.model.source import SourceName
from engine.overload.loss_credit import LossCredit
from engine.overload.shed_order import QueueLook, ShedOrder
from engine.queries.shed_readers import Sheddable

LOOK_S = 0.25
SMOOTHING = 0.3
WON_IF_READ = 0.5
"""Share of a shed record's time that is won where exact queries see the record all the same."""
SKIPPED_STEPS = 8
"""Steps' worth of records that are passed over at a time where nobody reads them."""

log = logs.get()


@dataclass(slots=True)
class _Stream:
    """credit: what may be shed. least: the smallest backlog so far, in records; None: none was seen.
    row_bytes, row_ns: of a record that is read, smoothed; 0: none was. came: records taken since the last
    look. rate: records that come a second, smoothed. owed: records to be shed so that the share is kept.
    """

    credit: LossCredit = field(default_factory=LossCredit)
    least: int | None = None
    backlog: int = 0
    row_bytes: float = 0.0
    row_ns: float = 0.0
    came: int = 0
    rate: float = 0.0
    owed: float = 0.0


class Shedder:
    """Decides which streams of one shard shed, and how much."""

    def __init__(self, number: int, order: ShedOrder) -> None:
        """order: the order in which the shard's streams shed."""
        self.shares: Mapping[str, float] = {}
        """The streams that shed now, and which share of their records."""
        self._number = number
        self._order = order
        self._streams: dict[SourceName, _Stream] = {}
        self._busy: set[SourceName] = set()
        """Streams that had records lately."""
        self._looked_s: float | None = None

    def look(self, engine: Engine, backlogs: Mapping[SourceName, int], now_s: float) -> None:
        """Look at the queues, if it is time. backlogs: of each stream that has some, the records that wait.
        now_s: of a clock that does not go back.
        """
        since_s = LOOK_S if self._looked_s is None else now_s - self._looked_s
        if since_s < LOOK_S:
            return
        self._looked_s = now_s
        queues = []
        catalogue = engine.catalogue
        for name in dict.fromkeys([*backlogs, *self._busy]):
            if name not in catalogue:
                self._busy.discard(name)
                self._streams.pop(name, None)
                continue
            one = self._streams.setdefault(name, _Stream())
            queued = _note(one, backlogs.get(name, 0), since_s)
            is_busy = one.backlog or one.rate >= 1 or name in self.shares
            (self._busy.add if is_busy else self._busy.discard)(name)
            sheddable = engine.needs.sheddable(name)
            one.credit.allow(sheddable.levels)
            queues.append(_look(name, one, queued, sheddable))
        before, self.shares = self.shares, self._order.look(queues, now_s)
        if before != self.shares:
            for each in self._busy:
                self._streams[each].owed = 0.0
            fullest = max((one.queued_bytes for one in queues), default=0)
            shares = {name: round(share, 3) for name, share in self.shares.items()}
            say = log.warning if shares else log.info
            say("shedding", shard=self._number, shares=shares, queue_bytes=fullest)

    def shedding(self, engine: Engine, name: SourceName, rows: int) -> tuple[Shedding | None, int]:
        """How the next records of a stream are shed, None: not; and how many are to be taken, of which a step
        has ``rows`` otherwise.
        """
        share = self.shares.get(name)
        if share is None:
            return None, rows
        sheddable, one = engine.needs.sheddable(name), self._streams[name]
        for many in (SKIPPED_STEPS * rows, rows):
            level = one.credit.level_for(many)
            if level is None or one.owed + (share - 0.5) * many < 0:
                continue
            unread = sheddable.is_unseen(level)
            if unread or many == rows:
                return Shedding(level, unread), many
        return None, rows

    def took(self, name: SourceName, taken: TakenRows, spent_ns: int) -> None:
        """A step took these records, in so long."""
        one = self._streams.setdefault(name, _Stream())
        shed, count = taken.body.shed, taken.count
        one.credit.passed(count, None if shed is None else shed.level)
        one.came += count
        one.owed += self.shares.get(name, 0.0) * count - (0 if shed is None else count)
        if count:
            one.row_bytes = _smoothed(one.row_bytes, taken.size / count)
            if shed is None or not shed.unread:
                one.row_ns = _smoothed(one.row_ns, spent_ns / count)

    def backlog_bytes(self, name: SourceName) -> int:
        """What a stream's queue held when it was looked at last. Any thread."""
        one = self._streams.get(name)
        return 0 if one is None else _queued(one)


def _note(one: _Stream, backlog: int, since_s: float) -> int:
    """Bytes of the queue."""
    came = max(0, one.came + backlog - one.backlog)
    one.rate = _smoothed(one.rate, came / since_s)
    one.came, one.backlog = 0, backlog
    one.least = backlog if one.least is None else min(one.least, backlog)
    return _queued(one)


def _queued(one: _Stream) -> int:
    return int((one.backlog - (one.least or 0)) * one.row_bytes)


def _look(name: SourceName, one: _Stream, queued_bytes: int, sheddable: Sheddable) -> QueueLook:
    load = one.rate * one.row_ns / 1e9
    if not sheddable.levels:
        return QueueLook(name, queued_bytes, load)
    share, won = sheddable.levels[-1] / LEVEL_MAX, WON_IF_READ if sheddable.is_seen else 1.0
    return QueueLook(name, queued_bytes, load, sheddable.weight, share, won)


def _smoothed(before: float, now: float) -> float:
    return now if not before else before + SMOOTHING * (now - before)
