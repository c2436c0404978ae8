"""Chooses how answers are maintained where the user leaves it open, and chooses again as loads change.

Until the stream's rate is known matches are kept. At registration nothing is known of a query but its window
and its stream, and an answer is not kept for somebody who may never come: the planner takes a share of
:data:`SELECTIVITY_AT_FIRST` to match and an answer every :data:`ANSWER_EVERY_AT_FIRST_S`. Later it knows the
matches and how often the answer was asked for, and takes nobody's absence for good. A mode is changed only
where another costs less than half, so that a load near a border does not swing.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.language.query import Query
from engine.maintenance import MODES, Choice, Costs, Load, Maintenance, Options, choose
from engine.operators.scan import ScanAt
from engine.standing import StandingQuery

SELECTIVITY_AT_FIRST = 0.1
ANSWER_EVERY_AT_FIRST_S = 60.0
CHANGE_GAIN = 2.0
METER_PERIOD_MS = 10_000


class Meter:
    """Rows and steps a second of a stream, by the journalled clock: those of the last full period."""

    def __init__(self) -> None:
        self.known = False
        self.rows_per_s = 0.0
        self.steps_per_s = 0.0
        self._since_ms: int | None = None
        self._rows = 0
        self._steps = 0

    def count(self, rows: int, clock_ms: int) -> None:
        """A step brought so many rows."""
        if self._since_ms is None:
            self._since_ms = clock_ms
        passed_ms = clock_ms - self._since_ms
        if passed_ms >= METER_PERIOD_MS:
            self.known = True
            self.rows_per_s = 1_000 * self._rows / passed_ms
            self.steps_per_s = 1_000 * self._steps / passed_ms
            self._since_ms, self._rows, self._steps = clock_ms, 0, 0
        self._rows += rows
        self._steps += 1


class Planner:
    """Without costs nothing was measured, and every choice is lazy."""

    def __init__(self, costs: Costs | None) -> None:
        self.costs = costs

    def first(self, query: Query, meter: Meter, at: ScanAt) -> Choice:
        """For a query that comes."""
        load = self._load(query, meter, at, SELECTIVITY_AT_FIRST, 1 / ANSWER_EVERY_AT_FIRST_S)
        return self._choose(load, meter, ("none", "lazy"))

    def again(self, query: StandingQuery, meter: Meter, at: ScanAt, answers_per_s: float) -> Choice:
        """For a query that stands: its present mode unless another is much cheaper."""
        window = at.window(query.query.scan)
        held = window.stop - window.start
        selectivity = SELECTIVITY_AT_FIRST
        if held and query.slots:
            selectivity = (
                at.with_slots(query.slot_of).count(query.query.scan.predicate, window.start, window.stop)
                / held
            )
        expected = max(answers_per_s, 1 / ANSWER_EVERY_AT_FIRST_S)
        load = self._load(query.query, meter, at, selectivity, expected)
        choice = self._choose(load, meter, MODES if answers_per_s else ("none", "lazy"))
        present = choice.shares.get(query.maintenance)
        if present is not None and choice.shares[choice.maintenance] * CHANGE_GAIN > present:
            return Choice(query.maintenance, choice.shares)
        return choice

    def as_it_is(self, query: StandingQuery, meter: Meter, at: ScanAt) -> Choice:
        """The present mode of a standing query, weighed as if it came now."""
        weighed = self.first(query.query, meter, at)
        return Choice(query.maintenance, weighed.shares, asked_for=not is_left_open(query))

    def _choose(self, load: Load, meter: Meter, among: Collection[Maintenance]) -> Choice:
        if self.costs is None or not meter.known:
            return Choice("lazy", {})
        return choose(self.costs, load, among)

    def _load(self, query: Query, meter: Meter, at: ScanAt, selectivity: float, answers_per_s: float) -> Load:
        window = at.window(query.scan)
        return Load(
            meter.rows_per_s, meter.steps_per_s, answers_per_s, window.stop - window.start, selectivity
        )


def is_left_open(query: StandingQuery) -> bool:
    """Whether the planner may choose for it."""
    return Options.of(query.registration.options).maintenance == "auto" and not query.paused
