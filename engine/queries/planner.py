"""Chooses how answers are maintained where the user leaves it open, and chooses again as loads change.

Until the sources' rates are known matches are kept. At registration nothing is known of a query but its
windows and its sources, and an answer is not kept for somebody who may never come: the planner takes a share
of :data:`SELECTIVITY_AT_FIRST` to match and an answer every :data:`ANSWER_EVERY_AT_FIRST_S`. Later it knows
the matches and how often the answer was asked for, and takes nobody's absence for good. A mode is changed
only where another costs less than half, so that a load near a border does not swing. Answers of joins and of
subqueries are evaluated again when a row that matters came: they are kept for those who ask for it alone.
Matches of a followed query are always kept, since each step asks which of its rows match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from engine.language.query import Query, Scan
from engine.model.maintenance import MODES, Costs, Load, Maintenance, MaintenanceChoice, QueryOptions, choose
from engine.model.source import SourceName
from engine.operators.scan import ScanAt
from engine.operators.window_range import WindowRange
from engine.sources.meter import Meter
from engine.standing.query import StandingQuery

SELECTIVITY_AT_FIRST = 0.1
ANSWER_EVERY_AT_FIRST_S = 60.0
CHANGE_GAIN = 2.0
UNMEASURED = MaintenanceChoice("lazy", {})


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a query stands: the meters of its sources, and how they are seen at NOW."""

    meters: Mapping[SourceName, Meter]
    at: Mapping[SourceName, ScanAt]


class Planner:
    """Without costs nothing was measured, and every choice is lazy."""

    def __init__(self, costs: Costs | None) -> None:
        self.costs = costs

    def first(self, query: Query, setting: Setting) -> MaintenanceChoice:
        """For a query that comes."""
        held = self._held(query, setting)
        if held is None:
            return UNMEASURED
        load = self._load(query, setting, held, SELECTIVITY_AT_FIRST, 1 / ANSWER_EVERY_AT_FIRST_S)
        return self._choose(load, _modes(followed=query.emit is not None))

    def again(
        self, standing: StandingQuery, setting: Setting, answers_per_s: float, *, followed: bool
    ) -> MaintenanceChoice:
        """For a query that stands: its present mode unless another is much cheaper."""
        query = standing.query
        held = self._held(query, setting)
        if held is None:
            return UNMEASURED
        selectivity = SELECTIVITY_AT_FIRST
        if held and standing.slots:
            selectivity = _matching(query, standing.at(setting.at)) / held
        expected = max(answers_per_s, 1 / ANSWER_EVERY_AT_FIRST_S)
        load = self._load(query, setting, held, selectivity, expected)
        may_keep = answers_per_s > 0 and len(list(query.scans())) == 1 and not query.has_streams
        among = _modes(followed=followed, may_keep=may_keep)
        choice = self._choose(load, among)
        present = choice.shares[standing.maintenance]
        if standing.maintenance in among and choice.shares[choice.maintenance] * CHANGE_GAIN > present:
            return MaintenanceChoice(standing.maintenance, choice.shares)
        return choice

    def as_it_is(
        self, standing: StandingQuery, setting: Setting, *, unaffordable: bool = False
    ) -> MaintenanceChoice:
        """The present mode of a standing query, weighed as if it came now. unaffordable: as in the choice."""
        weighed = self.first(standing.query, setting)
        asked_for = not is_left_open(standing)
        return MaintenanceChoice(
            standing.maintenance, weighed.shares, asked_for, unaffordable, standing.put_off
        )

    def _held(self, query: Query, setting: Setting) -> int | None:
        """How many rows the windows hold; None where nothing can be weighed."""
        if self.costs is None or not all(meter.known for meter in setting.meters.values()):
            return None
        return sum(window.stop - window.start for _, window in _windows(query, setting.at))

    def _choose(self, load: Load, among: Collection[Maintenance]) -> MaintenanceChoice:
        assert self.costs is not None
        return choose(self.costs, load, among)

    def _load(
        self, query: Query, setting: Setting, held: int, selectivity: float, answers_per_s: float
    ) -> Load:
        meters = setting.meters.values()
        return Load(
            sum(meter.rows_per_s for meter in meters),
            sum(meter.steps_per_s for meter in meters),
            answers_per_s,
            held,
            selectivity,
        )


def _modes(*, followed: bool, may_keep: bool = False) -> list[Maintenance]:
    return [mode for mode in MODES if (mode != "none" or not followed) and (mode != "eager" or may_keep)]


def _windows(query: Query, at: Mapping[SourceName, ScanAt]) -> Iterator[tuple[Scan, WindowRange]]:
    for scan in query.scans():
        yield scan, at[scan.source].window(scan)


def _matching(query: Query, at: Mapping[SourceName, ScanAt]) -> int:
    """How many rows of the windows match."""
    return sum(
        at[scan.source].count(scan.predicate, window.start, window.stop)
        for scan, window in _windows(query, at)
    )


def is_left_open(query: StandingQuery) -> bool:
    """Whether the planner may choose for it."""
    return QueryOptions.of(query.registration.options).maintenance == "auto" and not query.paused
