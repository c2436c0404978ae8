"""What is remembered of a query between steps, to save work: never anything that could not be found again.

An entry is true at the end of one way; at the beginning of the next it is used if the source stands just so:
at the same NOW, with the same rows retained. Else it is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.changes.course import Course
from engine.language.query import Stage

Mark = tuple[int, int | None]
"""NOW, and from when on rows are retained."""


def marks_of(course: Course) -> tuple[Mark, Mark] | None:
    """How the one source of a course stands at its beginning and at its end; None where there are several."""
    if len(course.legs) != 1 or course.instant_ms is not None:
        return None
    (leg,) = course.legs.values()
    if not leg.moves:
        return None
    retained_ms = leg.at.retained_from_ms
    after_ms = retained_ms if leg.retained_to_ms is None else leg.retained_to_ms
    return (course.since_ms, retained_ms), (course.until_ms, after_ms)


@dataclass(slots=True)
class Memory:
    """Of one query: by its stages, which live as long as it does."""

    _known: dict[int, tuple[Mark, Any]] = field(default_factory=dict)

    def forget(self) -> None:
        """Rows have other ordinals now, or history came back: nothing that was known is true."""
        self._known.clear()

    def on(self, course: Course) -> Remembered | None:
        """For one way; None where nothing can be remembered."""
        marks = marks_of(course)
        return None if marks is None else Remembered(self._known, *marks)


@dataclass(slots=True)
class Remembered:
    """What is known at the beginning of a way, and what will be at its end."""

    _known: dict[int, tuple[Mark, Any]]
    _before: Mark
    _after: Mark
    _fresh: dict[int, Any] = field(default_factory=dict)

    def get(self, stage: Stage) -> Any:
        """What is known of a stage at the beginning; None: nothing."""
        mark, entry = self._known.get(id(stage), (None, None))
        return entry if mark == self._before else None

    def put(self, stage: Stage, entry: Any) -> None:
        """What will be known at the end."""
        self._fresh[id(stage)] = entry

    def keep(self) -> None:
        """The way was gone to its end."""
        self._known.clear()
        self._known.update((stage, (self._after, entry)) for stage, entry in self._fresh.items())
