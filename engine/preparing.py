"""What a query needs of the rows that are there, made in slices before the step that brings it, and its whole
answer before the step that takes it back.

A query whose changes are told, or whose answer is kept, needs all its matches when it comes. Where its
condition would take too long for all rows (:mod:`engine.queries.allowance`) they are made beforehand: its
predicates stand in the Query SteMs without the query, new rows meet them, and old ones slice by slice between
steps (:mod:`engine.stems.ahead`). Then what it needs besides is made beside
(:mod:`engine.queries.nursery`): the state of operators that keep much, as joins and groups over many rows do,
and its first answer, where that has many rows or dear expressions. The step that brings the query finds them
made.

The step that removes a followed query takes its answer back, the one that alters it compares it with that of
the other text, and the one that pauses it keeps it. By the same rule, that answer is made beside before.

After a restart there is no state, and a step with rows would make that of all followed queries. By the same
rule, those for which it takes too long are set apart first (:mod:`engine.queries.apart`).

Such a step means what it always means, so nothing of this is journalled, and a replay, which makes no
preparations, gives the same.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from typing import cast

from engine.dataflow.plan import is_selection
from engine.eddy.eddy import Timer
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.model.maintenance import QueryOptions
from engine.model.source import SourceName
from engine.model.step import BEGINNING, Registration
from engine.parts import Parts
from engine.queries.admitted_query import AdmittedQuery, needs_matches
from engine.queries.allowance import ALLOWANCE_NS, SURE_FACTOR, Allowance
from engine.queries.answer_work import UNMEASURED_ROWS, calls_user_anywhere, row_work
from engine.queries.nursery import Nursery
from engine.queries.registrations import admitted
from engine.slices import InSlices, Pace
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.stems.match_place import Place, slot_at
from tureen.errors import TureenError

LARGE_ROWS = 50_000
"""The state of operators over fewer rows is made in the step."""

TRIED_MAX = 8
"""What making state takes is found out of so many followed queries of a shape."""

NEARLY = 0.99
"""The progress of what is still made beside."""


class Preparation(InSlices):
    """Prepares one query that is to come, to be altered, paused or removed, until that is so or is given up;
    then it is to be dismissed.

    First the matches of one that comes are made, by :meth:`some`; then ``beside`` may have something, and
    :meth:`run` is to be called once, in any thread; then it is done, and :meth:`some` keeps what was made up
    to date.
    """

    def __init__(
        self,
        query_id: str,
        coming: AdmittedQuery | None,
        standing: StandingQuery | None,
        parts: Parts,
        timer: Timer | None,
    ) -> None:
        """coming: as it is to come, with this text; None: it does not, or needs nothing for that. standing:
        the query that stands, where its answer is to be made.
        """
        self.query_id = query_id
        self.beside: tuple[Nursery, ...] = ()
        """State of operators, and whole answers, made apart. Empty: not yet, or there are none."""
        self._coming = coming
        self._standing = standing
        self._parts = parts
        self._pace = Pace(timer)
        self._held: list[tuple[Source, frozenset[int]]] = []
        self.is_made = False
        """Whether its matches are."""
        places: dict[SourceName, Iterator[Place]] = {}
        wanted = () if coming is None else coming.predicates()
        for name in dict.fromkeys(name for name, _ in wanted):
            source = parts.sources[name]
            mine = source.matches.come_ahead([predicate for of, predicate in wanted if of == name])
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
    def comes(self) -> bool:
        """Whether it is for a query that is to come, which takes memory then."""
        return self._coming is not None

    @property
    def left(self) -> int:
        """How many of them are left. O(segments)."""
        return sum(source.rows.owed.left_of(slots) for source, slots in self._held)

    @property
    def progress(self) -> float:
        """What share is made, 0 to 1; 1 only once it is done."""
        share = max(0.0, 1.0 - self.left / self.rows) if self.rows else 1.0
        return share if self.is_done else min(share, NEARLY)

    @property
    def is_blocked(self) -> bool:
        """Whether the query is set apart, and cannot be changed or removed until it rejoins."""
        return self.query_id in self._parts.following.graphs.nurseries.apart

    @property
    def is_done(self) -> bool:
        """Whether the query can come, or go."""
        return self.is_made and all(made.is_ready for made in self.beside)

    @property
    def is_current(self) -> bool:
        """Whether its sources are still there, and no others of their names."""
        return all(self._parts.sources.get(source.stream.name) is source for source, _ in self._held)

    def some(self) -> bool:
        """A slice. Returns whether there was anything to do."""
        for source, slots in self._held:
            if self._pace.run(lambda rows: source.matches.catch_up_slice(slots, rows)):  # noqa: B023
                self._outdate(source)
                return True
        if not self.is_made:
            self.is_made = True
            self.beside = tuple(made for made in self._nurseries() if made is not None)
            return True
        return any(made.some() for made in self.beside if made.is_usable)

    def run(self) -> None:
        """Make what can be made beside. Raises what fails unexpectedly."""
        failed: Exception | None = None
        for made in self.beside:
            try:
                made.run()
            except Exception as error:  # noqa: BLE001  (raised once all are over)
                failed = error
        if failed is not None:
            raise failed

    def refuse(self, refusal: TureenError) -> None:
        """What is made beside takes too long: there are no such answers, and :meth:`run` ends soon."""
        for made in self.beside:
            made.refuse(refusal)

    def _nurseries(self) -> Iterator[Nursery | None]:
        """The answer of the query that stands; the state of operators, and the first answer, of the one that
        is to come, where its changes are told.
        """
        coming, standing, parts = self._coming, self._standing, self._parts
        if standing is not None and parts.queries.get(self.query_id) is not None:
            yield parts.following.nurse_standing(standing, parts.sets.of(standing))
        if coming is not None and coming.template.emits and self.is_current:
            new = StandingQuery(coming.registration, coming.template, coming.born, "lazy", slots=self._places)
            yield parts.following.graphs.nurse(new, coming.query, parts.sets.seen(new.set_key))

    def dismiss(self) -> None:
        """Let go of what nobody else holds, once: what it was made for was done, or is given up."""
        self._parts.following.graphs.nurseries.dismiss(self.query_id)
        for source, slots in self._held:
            source.matches.release(slots)
            self._outdate(source)
        self._held = []
        self._parts.progress.may_owe = True


class Preparing:
    """Makes the preparations of an engine."""

    def __init__(self, parts: Parts, timer: Timer | None) -> None:
        """timer: without one nothing is dear."""
        self._parts = parts
        self._timer = timer

    def of(self, registrations: Iterable[Registration]) -> dict[str, Preparation]:
        """The preparations of those queries, of some that come, are altered or paused together, that need
        more than one step may take, by id: what they need is to be made in slices before their step. Those
        that are refused are passed over. O(size of each), and the time for samples of rows.
        """
        if self._timer is None:
            return {}
        allowance = Allowance(self._timer, ALLOWANCE_NS)
        sources = cast("Mapping[SourceName, Source]", self._parts.sources)
        found: dict[str, Preparation] = {}
        for registration in registrations:
            query_id = registration.query_id
            try:
                coming, standing = self._needy(registration), self._ending(registration)
            except Exception:  # noqa: BLE001  (the step will tell)
                continue
            if coming is not None and not (
                (coming.template.emits and self._takes_long(coming.query))
                or not allowance.takes(coming.query, sources)
            ):
                coming = None
            if coming is not None or standing is not None or query_id in self._apart:
                found[query_id] = Preparation(query_id, coming, standing, self._parts, self._timer)
        self._parts.progress.may_owe |= bool(found)
        return found

    def of_removals(self, query_ids: Iterable[str]) -> dict[str, Preparation]:
        """The preparations of those queries, of some that go, whose answers take too long to be taken back in
        one step, by id. O(size of each).
        """
        if self._timer is None:
            return {}
        found: dict[str, Preparation] = {}
        for query_id in query_ids:
            standing = self._parts.queries.get(query_id)
            if standing is not None and not (
                self._parts.following.has_end(query_id) and self._has_dear(standing)
            ):
                standing = None
            if standing is not None or query_id in self._apart:
                found[query_id] = Preparation(query_id, None, standing, self._parts, self._timer)
        return found

    def of_followed(self) -> tuple[str, ...]:
        """The followed queries whose state takes too long to be made in a step, and can be made beside: all
        of a shape, whose state is made together, where one of :data:`TRIED_MAX` does. After a restore they
        are to be set apart (:class:`engine.model.step.SetApart`). O(size of these).
        """
        if self._timer is None:
            return ()
        found: list[str] = []
        for key, graph in self._parts.following.graphs.by_set.items():
            standing = self._parts.sets.seen(key).standing
            by_shape: dict[Hashable, list[str]] = {}
            for name in graph.query_ids:
                by_shape.setdefault(graph.shape_of(name), []).append(name)
            for alike in by_shape.values():
                tried = alike[:: -(-len(alike) // TRIED_MAX)]
                is_dear = any(self._has_dear(standing[name]) for name in tried)
                if is_dear and graph.anew(alike[:1]).may_be_apart:
                    found += alike
        return tuple(found)

    @property
    def _apart(self) -> Container[str]:
        return self._parts.following.graphs.nurseries.apart

    def _ending(self, registration: Registration) -> StandingQuery | None:
        """The query that stands, where a registration gives it another text or pauses it, and what is told of
        it takes too long to be worked out in one step.
        """
        standing = self._parts.queries.get(registration.query_id)
        if standing is None:
            return None
        same = text_of(standing.registration) == text_of(registration)
        if same and not QueryOptions.of(registration.options).paused:
            return None
        return standing if self._has_dear(standing) else None

    def _has_dear(self, standing: StandingQuery) -> bool:
        """Whether somebody is told of a query, and its answer takes too long for one step."""
        following = self._parts.following
        if standing.query_id not in following or standing.prefers or following.is_silent(standing):
            return False
        return self._takes_long(standing.query)

    def _needy(self, registration: Registration) -> AdmittedQuery | None:
        """A registration as it comes, where it needs what is not there. Raises its refusal."""
        query_id, parts = registration.query_id, self._parts
        there = parts.queries.get(query_id)
        if QueryOptions.of(registration.options).paused:
            return None
        coming = AdmittedQuery.of(registration, admitted(registration, parts.catalogue), BEGINNING)
        if not needs_matches(coming) and query_id not in parts.following:
            return None
        same = there is not None and text_of(there.registration) == text_of(registration)
        return None if same and there is not None and there.keeps_matches else coming

    def _takes_long(self, query: Query) -> bool:
        """Whether the state of a query's operators, or its whole answer, takes too long for one step."""
        return self._is_large(query) or self._is_dear(query)

    def _is_large(self, query: Query) -> bool:
        """Whether the state of its operators is made from many rows, or has many."""
        if is_selection(query):
            return False
        rows = sum(len(self._parts.sources[name].rows) for name in query.sources)
        most_rows = self._parts.following.graphs.strategist.most_rows
        return rows * rows >= LARGE_ROWS and most_rows(query) >= LARGE_ROWS

    def _is_dear(self, query: Query) -> bool:
        """Whether working out its whole answer may take long, or nobody knows what it takes."""
        rows = float(sum(len(self._parts.sources[name].rows) for name in query.sources))
        if rows > UNMEASURED_ROWS and calls_user_anywhere(query):
            return True
        if not is_selection(query) and SURE_FACTOR * rows * rows * row_work(query) > ALLOWANCE_NS:
            rows = max(rows, self._parts.following.graphs.strategist.most_rows(query))
        return SURE_FACTOR * rows * row_work(query) > ALLOWANCE_NS
