"""Which of a shard's streams shed what comes, while more comes than the shard manages.

A stream's queue is what its topic has for it beyond the least it ever had in this life: so a stream that
reads an old topic from its beginning catches up, and one whose backlog grows sheds. Where the fullest queue
passes its reserve, streams shed in the order of what their queries lose by it for the time that is won
(:mod:`engine.overload.shed_order`), each no more than its queries allow (:mod:`engine.overload.loss_credit`).
Streams all of whose queries see every row shed nothing; they lag, and others shed in their stead.

Used by the shard's thread; ``shed`` and ``backlog_bytes`` may be read by others. Clocks are passed in. Queues
are looked at every LOOK_S seconds at most: O(streams) then.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from broker import logs
from broker.worker.intake import Shedding
from broker.worker.streams import ReadStream
from broker.worker.taken import Taken
from engine.engine import Engine
from engine.model.shed import LEVEL_MAX
from engine.model.source import SourceName
from engine.overload.loss_credit import LossCredit
from engine.overload.shed_order import QueueLook, ShedOrder
from engine.queries.shed_readers import Sheddable

LOOK_S = 0.1
SMOOTHING = 0.3
SKIPPED_STEPS = 8
"""Records that nobody reads are passed over so many steps' worth at a time."""

log = logs.get()


@dataclass(slots=True)
class _Stream:
    """credit: what may be shed. least: the smallest backlog so far, in records; None: none was seen.
    row_bytes, row_ns: of a record that is read, smoothed; 0: none was. came: records taken since the last
    look. rate: records that come a second, smoothed.
    """

    credit: LossCredit = field(default_factory=LossCredit)
    least: int | None = None
    backlog: int = 0
    row_bytes: float = 0.0
    row_ns: float = 0.0
    came: int = 0
    rate: float = 0.0


class Shedder:
    """Of one shard."""

    def __init__(self, number: int, reserve_bytes: int) -> None:
        """reserve_bytes: of each stream's queue."""
        self.shed: frozenset[SourceName] = frozenset()
        """The streams that shed now."""
        self._number = number
        self._order = ShedOrder(reserve_bytes)
        self._streams: dict[SourceName, _Stream] = {}
        self._looked_s: float | None = None

    def look(self, engine: Engine, streams: Collection[ReadStream], now_s: float) -> None:
        """Look at the queues, if it is time. now_s: of a clock that does not go back."""
        since_s = LOOK_S if self._looked_s is None else now_s - self._looked_s
        if since_s < LOOK_S:
            return
        self._looked_s = now_s
        queues = []
        known, self._streams = self._streams, {}
        for stream in streams:
            name = stream.stream.name
            if stream.intake is None or stream.stream.is_table:
                continue
            one = self._streams[name] = known.get(name) or _Stream()
            queued = _note(one, stream.intake.backlog, since_s)
            sheddable = engine.sheddable(name)
            one.credit.allow(sheddable.levels)
            queues.append(_look(name, one, queued, sheddable))
        before = self.shed
        self.shed = frozenset(SourceName(name) for name in self._order.look(queues, now_s))
        if before != self.shed:
            fullest = max((one.queued_bytes for one in queues), default=0)
            say = log.warning if self.shed - before else log.info
            say("shedding", shard=self._number, streams=sorted(self.shed), queue_bytes=fullest)

    def shedding(self, engine: Engine, name: SourceName, rows: int) -> tuple[Shedding | None, int]:
        """How the next records of a stream are shed, None: not; and how many are to be taken, of which a step
        has ``rows`` otherwise.
        """
        if name not in self.shed:
            return None, rows
        sheddable, credit = engine.sheddable(name), self._streams[name].credit
        many = SKIPPED_STEPS * rows
        level = credit.level_for(many)
        if level is not None and sheddable.is_unseen(level):
            return Shedding(level, unread=True), many
        level = credit.level_for(rows)
        if level is None or not sheddable.levels:
            return None, rows
        return Shedding(level, unread=sheddable.is_unseen(level)), rows

    def took(self, name: SourceName, taken: Taken, spent_ns: int) -> None:
        """A step took these records, in so long."""
        one = self._streams.setdefault(name, _Stream())
        shed, count = taken.body.shed, taken.count
        one.credit.passed(count, None if shed is None else shed.level)
        one.came += count
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
    return QueueLook(name, queued_bytes, load, sheddable.weight, sheddable.levels[-1] / LEVEL_MAX)


def _smoothed(before: float, now: float) -> float:
    return now if not before else before + SMOOTHING * (now - before)
