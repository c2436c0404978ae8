"""A course as the scans of one query see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.changes.course import Course
from engine.changes.lives import Way
from engine.changes.scans import Scanning, scanning
from engine.changes.stretch import Stretch, way_of
from engine.language.query import Scan
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.scan import ScanAt


@dataclass(frozen=True, slots=True)
class Trip:
    """What a scan reads is read once, however often it is asked for."""

    course: Course
    limits: Limits
    _scanning: dict[int, Scanning] = field(default_factory=dict)

    @property
    def way(self) -> Way:
        """In the scale of lives."""
        return way_of(self.course.since_ms, self.course.until_ms)

    def scanning(self, scan: Scan) -> Scanning:
        """The rows of a scan on the way."""
        known = self._scanning.get(id(scan))
        if known is None:
            known = self._scanning[id(scan)] = scanning(scan, self._stretch(scan.source))
        return known

    def standing(self, source: SourceName, instant: int) -> ScanAt:
        """How a source stands at an instant, in the scale of lives."""
        return self._stretch(source).as_of(instant)

    def _stretch(self, source: SourceName) -> Stretch:
        course = self.course
        return Stretch(course.legs[source], course.since_ms, course.until_ms, self.limits)
