"""A transition as the scans of one query see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.changes.scans import ScanHistory, scan_history
from engine.changes.source_interval import SourceInterval, interval_of
from engine.changes.temporal_relation import Interval
from engine.changes.transition import Transition
from engine.language.query import Scan
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.usage import Laps
from engine.operators.scan import ScanAt


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """What a scan reads is read once, however often it is asked for. laps: where operators are measured."""

    transition: Transition
    limits: Limits
    laps: Laps | None = None
    _histories: dict[int, ScanHistory] = field(default_factory=dict)

    @property
    def interval(self) -> Interval:
        """In the scale of lives."""
        return interval_of(self.transition.since_ms, self.transition.until_ms)

    def clock(self, instant: int) -> int:
        """The instant, in the same scale, that the streams have come to with one of the interval. Where a
        table moves alone beside them, theirs is NOW meanwhile.
        """
        now_ms = self.transition.instant_ms
        return instant if now_ms is None else 2 * now_ms + 1

    def scan_history(self, scan: Scan) -> ScanHistory:
        """The rows of a scan in the interval."""
        known = self._histories.get(id(scan))
        if known is None:
            known = self._histories[id(scan)] = scan_history(scan, self.within(scan.source))
        return known

    def standing(self, source: SourceName, instant: int) -> ScanAt:
        """How a source stands at an instant, in the scale of lives."""
        return self.within(source).as_of(instant)

    def within(self, source: SourceName) -> SourceInterval:
        """The interval of a source."""
        transition = self.transition
        return SourceInterval(
            transition.by_source[source], transition.since_ms, transition.until_ms, self.limits
        )
