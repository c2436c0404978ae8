"""What the store keeps of an engine: saved, copied, and brought back."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.model.persistence import QueryState, StateSink, StateSource
from engine.model.source import SourceName
from engine.model.state_tree import as_tree, of_tree
from engine.model.step import (
    Position,
)
from engine.parts import Parts
from engine.promising.turns import TurnsState
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.allotting import given_less
from engine.queries.registrations import bound
from engine.queries.swapped_set import PARTS as SWAPPED
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery, set_key
from engine.swapping import Swapping
from tureen.errors import TureenError

GROUPS = "promising/"
"""What the names of the parts begin with that are groups of queries with a preference."""
TURNS = "turns"
"""The name of the part that says whose turn it is among them."""
RESTORED_MAX = 4_096
"""Queries that come back together: what is known of a text for that is let go of before the next come."""


class Persistence(ABC):
    """The store's side of an engine."""

    _parts: Parts

    @property
    @abstractmethod
    def swapping(self) -> Swapping: ...

    def save(self, sink: StateSink) -> None:
        """Hand over what changed since the last save and commit it with the position.

        Where commit raises, the same changes come again with the next save. O(what changed).
        """
        parts, stored = self._parts, self._parts.stored
        parts.catalogue.save(sink)
        names = [source.stream.name for source in parts.sources.values()]
        if stored.unsaved is not None:
            names = list(stored.unsaved) or names[:1]  # the clock is saved with a source
        saved = {}
        for name in names:
            sink.put_source(parts.sources[name].state(parts.progress.clock_ms))
            saved[name] = parts.sources[name].stored.save(sink)
        parts.catalogue.summaries.save(sink, names)
        for query_id in stored.dropped_queries:
            sink.drop_query(query_id)
        erring = self._erring(saved)
        for query_id in stored.unsaved_queries | erring.keys():
            sink.put_query(self._state_of(parts.queries[query_id]))
        for swapped in stored.swapped.values():
            sink.swap_query(swapped)
        self._put_swapped_sets(sink)
        held = parts.following.retention.streams()
        for over, source_name in stored.held - held:
            sink.drop_held(over, source_name)
        for state in parts.following.retention.states(set(names)):
            sink.put_held(state)
        groups = self._put_groups(sink, all_of_them=False)
        for number in stored.groups - groups:
            sink.drop_part(GROUPS + str(number))
        sink.commit(parts.progress.position)
        stored.held, stored.groups = held, groups
        for one in parts.sets:
            one.promising.unsaved.clear()
        for name, done in saved.items():
            parts.sources[name].stored.saved(done)
        for query_id in stored.dropped_queries:
            stored.errors.pop(query_id, None)
        stored.errors.update(erring)
        stored.position = parts.progress.position
        stored.unsaved = set()
        parts.catalogue.saved()
        stored.dropped_queries.clear()
        stored.unsaved_queries.clear()
        stored.swapped.clear()
        stored.swapped_sets.clear()

    def _put_swapped_sets(self, sink: StateSink) -> None:
        """Hand over what is counted of queries that are swapped out, where the store has it otherwise."""
        for key in self._parts.stored.swapped_sets:
            swapped = self._parts.sets.swapped.get(key)
            if swapped is None:
                sink.drop_part(_swapped_part(key))
            else:
                sink.put_part(_swapped_part(key), {"over": list(key), "swapped": swapped.state()})

    def copy(self, sink: StateSink) -> None:
        """Hand over all there is, to a sink that has nothing, and commit it. Later saves know nothing of it.
        Queries that are swapped out are not any more in what comes of it.

        O(retained rows + queries).
        """
        parts = self._parts
        for derived in parts.catalogue.derived.values():
            sink.put_derived(derived)
        for source in parts.sources.values():
            sink.put_source(source.state(parts.progress.clock_ms))
            source.stored.copy(sink)
        parts.catalogue.summaries.copy(sink)
        for query in parts.queries.values():
            sink.put_query(self._state_of(query))
        for swapped in self.swapping.states():
            sink.put_query(swapped)
        for state in parts.following.retention.states(
            {source.stream.name for source in parts.sources.values()}
        ):
            sink.put_held(state)
        self._put_groups(sink, all_of_them=True)
        sink.commit(parts.progress.position)

    def _put_groups(self, sink: StateSink, *, all_of_them: bool) -> set[int]:
        """Hand over the groups of queries with a preference, and whose turn it is. Returns the numbers of all
        there are. all_of_them: else those that are not as the store has them.
        """
        numbers = set[int]()
        for over, one in self._parts.grants.groups():
            numbers.add(one.number)
            if all_of_them or one.number in over.promising.unsaved:
                sink.put_part(GROUPS + str(one.number), over.promising.state(one))
        if numbers:
            sink.put_part(TURNS, as_tree(self._parts.grants.turns.state()))
        return numbers

    def _state_of(self, query: StandingQuery) -> QueryState:
        """What is stored of a query."""
        given, counts = query.allotted, self._parts.sets.of(query).matches.errors_of(query)
        last = self._parts.following.answers.paused.get(query.query_id)
        state = QueryState(query.registration, query.born, counts, last)
        if given is None:
            return state
        return replace(state, allotment=given.allotment, allotted_at=given.since)

    def _erring(self, names: Iterable[SourceName]) -> dict[str, tuple[int, ...]]:
        """Queries over these sources whose counts of predicate errors are not the saved ones."""
        return {
            query_id: counts
            for over in self._parts.sets.over(names)
            for query_id, counts in over.matches.erring(over.standing)
            if counts != self._parts.stored.errors.get(query_id)
        }


def _swapped_part(key: SetKey) -> str:
    return SWAPPED + json.dumps(key)


def restore(parts: Parts, store: StateSource, position: Position) -> None:
    """Bring back what a store has, as of its position. Matches are computed again.

    Raises the refusal of a stored statement that this version does not accept any more.
    """
    parts.progress.position = parts.stored.position = position
    states = list(store.sources())
    for state in states:
        capacities = parts.settings.state.capacities
        source = Source(
            state.stream,
            state.sql,
            parts.settings.limits,
            state.base,
            parts.settings.timer,
            parts.settings.watch,
            capacities,
        )
        source.restore_state(state)
        parts.sources[state.stream.name] = source
        parts.progress.clock_ms = max(parts.progress.clock_ms, state.clock_ms)
    parts.catalogue.derived.update({derived.name: derived for derived in store.derived()})
    parts.catalogue.summaries.read(store)
    parts.catalogue.changed()
    stood = sorted(store.queries(), key=lambda q: (q.born.epoch, q.born.sequence))
    emitting: list[AdmittedQuery] = []
    for first in range(0, len(stood), RESTORED_MAX):
        emitting += _registered(parts, stood[first : first + RESTORED_MAX])
    for _, tree in store.state_parts(SWAPPED):
        parts.sets.restore_swapped(tuple(map(SourceName, tree["over"])), tree["swapped"])
    for state in states:
        name = state.stream.name
        parts.sources[name].restore(store.rows(name), store.pending(name), state.end, state.promises)
    parts.catalogue.summaries.restore()
    parts.catalogue.references.changed()
    for over in parts.sets:
        erring = parts.stored.errors
        over.restored({query_id: erring[query_id] for query_id in erring if query_id in over.standing})
    _restore_groups(parts, store)
    for over in parts.sets:
        over.prefer_restored()
        over.eager.replanted()
        parts.queries.update(over.standing)
        for standing in over.standing.values():
            parts.tags.tag(standing)
    for coming in emitting:
        parts.following.came(parts.queries[coming.registration.query_id], coming.query)
    for stored in stood:
        if stored.last is not None and stored.registration.query_id in parts.queries:
            parts.following.answers.paused[stored.registration.query_id] = stored.last
    held = list(store.held())
    parts.stored.held = {(state.over, state.source) for state in held}
    parts.following.retention.restore(held)


def _registered(parts: Parts, stood: Sequence[QueryState]) -> list[AdmittedQuery]:
    """Register queries that stood; those whose own work fails are noted and left out. Returns those with
    EMIT CHANGES. Raises TureenError.
    """
    emitting: list[AdmittedQuery] = []
    by_set: dict[SetKey, list[AdmittedQuery]] = {}
    for stored in stood:
        query_id = stored.registration.query_id
        try:
            coming = _coming_back(parts, stored)
        except TureenError:
            raise
        except Exception as defect:  # noqa: BLE001  (it is removed as soon as steps are made)
            parts.defects.note([query_id], defect)
            continue
        by_set.setdefault(set_key(coming.template.sources), []).append(coming)
        if coming.template.emits:
            emitting.append(coming)
        if any(stored.predicate_errors):
            parts.stored.errors[query_id] = stored.predicate_errors
    for key, queries in by_set.items():
        parts.sets.joined(key).register(queries, apply=False)
    return emitting


def _coming_back(parts: Parts, stored: QueryState) -> AdmittedQuery:
    read = bound(stored.registration, parts.catalogue)
    coming = AdmittedQuery.of(stored.registration, read, stored.born)
    if stored.allotment is None or stored.allotted_at is None:
        return coming
    return given_less(coming, read.query, stored.allotment, stored.allotted_at, parts.catalogue)


def _restore_groups(parts: Parts, store: StateSource) -> None:
    """Groups of queries with a preference, whose queries, rows and summaries are back."""
    for name, tree in store.state_parts(GROUPS):
        number = int(name.removeprefix(GROUPS))
        over = parts.sets.seen(tuple(map(SourceName, tree["over"])))
        parts.stored.groups.add(number)
        parts.sets.group_numbers.given = max(parts.sets.group_numbers.given, number)
        with parts.defects.of(*tree["members"]):
            over.promising.restore(number, tree, over.standing, over.now.at)
    for _, tree in store.state_parts(TURNS):
        parts.grants.turns.restore(of_tree(TurnsState, tree))
