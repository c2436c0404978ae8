"""What a query needs of the rows that are there, made in slices before the step that brings it.

A query whose changes are told, or whose answer is kept, needs all its matches when it comes. Where its
condition would take too long for all rows (:mod:`engine.queries.allowance`) they are made beforehand: its
predicates stand in the Query SteMs without the query, new rows meet them, and old ones slice by slice between
steps (:mod:`engine.stems.ahead`). Then what it needs besides is made beside
(:mod:`engine.queries.nursery`): the state of operators that keep much, as joins and groups over many rows do,
and its first answer, where that has many rows or dear expressions. The step that brings the query finds them
made. It means what it always means, so nothing of this is journalled, and a replay, which makes no
preparations, gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from engine.dataflow.plan import is_selection
from engine.eddy.eddy import Timer
from engine.language.parameters import text_of
from engine.model.maintenance import QueryOptions
from engine.model.source import SourceName
from engine.model.step import BEGINNING, Registration
from engine.parts import Parts
from engine.queries.allowance import ALLOWANCE_NS, SURE_FACTOR, Allowance
from engine.queries.answer_work import UNMEASURED_ROWS, calls_user_anywhere, row_work
from engine.queries.coming import Coming, needs_matches
from engine.queries.nursery import Nursery
from engine.queries.registrations import admitted
from engine.slices import InSlices, Pace
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.stems.match_place import Place, slot_at

LARGE_ROWS = 50_000
"""The state of operators over fewer rows is made in the step."""

NEARLY = 0.99
"""The progress of what is still made beside."""


class Preparation(InSlices):
    """Prepares one query that is to come, until it has come or is given up; then it is to be dismissed.

    First its matches are made, by :meth:`some`; then ``beside`` may have something that is to be run once, in
    any thread; then it is done, and :meth:`some` keeps what was made up to date.
    """

    def __init__(
        self, coming: Coming, sources: Mapping[SourceName, Source], parts: Parts, timer: Timer | None
    ) -> None:
        self.query_id = coming.query_id
        self.beside: Nursery | None = None
        """State of operators, and the first answer, made apart. None: not yet, or there is neither."""
        self._coming = coming
        self._parts = parts
        self._pace = Pace(timer)
        self._held: list[tuple[Source, frozenset[int]]] = []
        self.is_made = False
        """Whether its matches are."""
        places: dict[SourceName, Iterator[Place]] = {}
        wanted = coming.predicates()
        for name in dict.fromkeys(name for name, _ in wanted):
            source = sources[name]
            mine = source.come_ahead([predicate for of, predicate in wanted if of == name])
            self._held.append((source, frozenset(slot_at(place) for place in mine)))
            places[name] = iter(mine)
            self._outdate(source)
        self._places = tuple(next(places[name]) for name, _ in wanted)
        self.rows = self.left
        """How many rows its conditions were to meet when it began."""

    def _outdate(self, source: Source) -> None:
        """The matches of a source are others than before; it may be gone."""
        name = source.stream.name
        if self._parts.sources.get(name) is source:
            self._parts.outdate(self._parts.sets.touched(name))

    @property
    def left(self) -> int:
        """How many of them are left. O(segments)."""
        return sum(source.rows.left_of(slots) for source, slots in self._held)

    @property
    def progress(self) -> float:
        """What share is made, 0 to 1; 1 only once it is done."""
        share = max(0.0, 1.0 - self.left / self.rows) if self.rows else 1.0
        return share if self.is_done else min(share, NEARLY)

    @property
    def is_done(self) -> bool:
        """Whether the query can come."""
        return self.is_made and (self.beside is None or self.beside.is_ready)

    @property
    def is_current(self) -> bool:
        """Whether its sources are still there, and no others of their names."""
        return all(self._parts.sources.get(source.stream.name) is source for source, _ in self._held)

    def some(self) -> bool:
        """A slice. Returns whether there was anything to do."""
        for source, slots in self._held:
            if self._pace.run(lambda rows: source.catch_up_slice(slots, rows)):  # noqa: B023
                self._outdate(source)
                return True
        if not self.is_made:
            self.is_made = True
            self.beside = self._nurse()
            return True
        return self.beside is not None and self.beside.is_usable and self.beside.some()

    def _nurse(self) -> Nursery | None:
        """The state of its operators and its first answer, to be made beside, where its changes are told."""
        coming, parts = self._coming, self._parts
        if not coming.meaning.emits or not self.is_current:
            return None
        standing = StandingQuery(coming.registration, coming.meaning, coming.born, "lazy", slots=self._places)
        return parts.following.nurse(standing, coming.query, parts.sets.seen(standing.set_key))

    def dismiss(self) -> None:
        """Let go of what nobody else holds, once: the query has come, or does not come."""
        self._parts.following.dismiss(self.query_id)
        for source, slots in self._held:
            source.release(slots)
            self._outdate(source)
        self._held = []
        self._parts.may_owe = True


class Preparing:
    """Makes the preparations of an engine."""

    def __init__(self, parts: Parts, timer: Timer | None) -> None:
        """timer: without one nothing is dear."""
        self._parts = parts
        self._timer = timer

    def of(self, registrations: Iterable[Registration]) -> dict[str, Preparation]:
        """The preparations of those queries, of some that come together, that need more than one step may
        take, by id. Those that are refused are passed over. O(size of each), and the time for samples of
        rows.
        """
        if self._timer is None:
            return {}
        allowance = Allowance(self._timer, ALLOWANCE_NS)
        sources = cast("Mapping[SourceName, Source]", self._parts.sources)
        found: dict[str, Preparation] = {}
        for registration in registrations:
            try:
                coming = self._needy(registration)
            except Exception:  # noqa: BLE001  (the step will tell)
                continue
            if coming is None:
                continue
            if self._is_large(coming) or self._is_dear(coming) or not allowance.takes(coming.query, sources):
                found[coming.query_id] = Preparation(coming, sources, self._parts, self._timer)
        return found

    def _needy(self, registration: Registration) -> Coming | None:
        """A registration as it comes, where it needs what is not there. Raises its refusal."""
        query_id, parts = registration.query_id, self._parts
        there = parts.queries.get(query_id)
        if QueryOptions.of(registration.options).paused:
            return None
        coming = Coming.of(registration, admitted(registration, parts.catalogue), BEGINNING)
        if not needs_matches(coming) and query_id not in parts.following:
            return None
        same = there is not None and text_of(there.registration) == text_of(registration)
        return None if same and there is not None and there.keeps_matches else coming

    def _is_large(self, coming: Coming) -> bool:
        """Whether the state of its operators is made from many rows, or has many."""
        if not coming.meaning.emits or is_selection(coming.query):
            return False
        rows = sum(len(self._parts.sources[name].rows) for name in coming.query.sources)
        return rows * rows >= LARGE_ROWS and self._parts.following.most_rows(coming.query) >= LARGE_ROWS

    def _is_dear(self, coming: Coming) -> bool:
        """Whether working out its first answer may take long, or nobody knows what it takes."""
        if not coming.meaning.emits:
            return False
        query = coming.query
        rows = float(sum(len(self._parts.sources[name].rows) for name in query.sources))
        if rows > UNMEASURED_ROWS and calls_user_anywhere(query):
            return True
        if not is_selection(query) and SURE_FACTOR * rows * rows * row_work(query) > ALLOWANCE_NS:
            rows = max(rows, self._parts.following.most_rows(query))
        return SURE_FACTOR * rows * row_work(query) > ALLOWANCE_NS
