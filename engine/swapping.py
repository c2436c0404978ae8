"""Queries that are swapped out: they stand, and only the store has them.

Of such a query the engine keeps nothing: no predicate, no match, no slot, no tree, no id. What it keeps is
counted over all that read the same sources (:mod:`engine.queries.swapped_set`): the rows that their windows
need stay, their sources and views are in use, and an exact one keeps rows from being shed. So an answer after
:meth:`Swapping.back` is what it would have been: it is worked out from the rows that are retained, as after
a restart. Neither changes an answer, so no step says it, and a replay needs none.

A query stays where something of it is not to be had from rows and text again, or somebody waits for it:
changes of it are told, its options keep its answer, it lets its answer be less than exact, it has a
preference, a condition of it is evaluated row by row (how often these fail is counted), or rows of its
sources break promises, which is told of each query.

A step that names a swapped query with other options or another text brings it back first; one that removes it
does not. A save moves queries in the store; what was swapped since the last one is held in memory until the
next. A process killed between has some of them where they were, and answers alike.

Cost: :meth:`Swapping.out` O(its predicates), as when a query is removed; :meth:`Swapping.back` one read of
the store, the text bound again, and what registering it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from engine.model.defects import refusal_of
from engine.model.maintenance import QueryOptions
from engine.model.persistence import QueryState, SwappedQueries
from engine.model.source import SourceName
from engine.model.step import Registration
from engine.parts import Parts
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.footprint import QUERY_BYTES, held_of
from engine.queries.registrations import bound
from engine.standing.query import SetKey, StandingQuery, set_key
from tureen.errors import TureenError

BITS_A_BYTE = 8


@dataclass(frozen=True, slots=True)
class Swappable:
    """A query that may be swapped out. nbytes: about what that frees. asked_per_s: how often its answer was
    asked for.
    """

    query_id: str
    nbytes: int
    asked_per_s: float

    @property
    def value(self) -> float:
        """Answers a second for each byte: the least valuable go first."""
        return self.asked_per_s / self.nbytes


class Swapping:
    """One owner, as the engine; between steps."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def store(self) -> SwappedQueries | None:
        """Where they stand once they are saved; None: no query is swapped out."""
        return self._parts.stored.swap_store

    @store.setter
    def store(self, store: SwappedQueries | None) -> None:
        self._parts.stored.swap_store = store

    @property
    def count(self) -> int:
        """How many are swapped out. O(sets of sources that have some)."""
        return self._parts.sets.swapped_count()

    # --- which ------------------------------------------------------------------------------------

    def may(self, query_id: str) -> bool:
        """Whether a query can be swapped out. O(its predicates)."""
        parts = self._parts
        standing = parts.queries.get(query_id)
        if parts.stored.swap_store is None or standing is None or standing.prefers or standing.is_tolerant:
            return False
        options = QueryOptions.of(standing.registration.options)
        if options.maintenance == "eager" or standing.allotted is not None or standing.template.emits:
            return False
        following = parts.following
        if query_id in following or query_id in following.answers.paused:
            return False
        if query_id in parts.defects.errors() or query_id in parts.tags.approximations.shown():
            return False
        if any(True for _ in parts.tags.promises_of(standing)):
            return False
        return not any(parts.sources[name].queries.may_err(slot) for name, (slot, _) in standing.places())

    def freeable(self, asked_per_s: Mapping[str, float]) -> list[Swappable]:
        """The queries that can be swapped out, the least valuable first. asked_per_s: how often the answers
        of those were asked for whose answers were. O(queries * log queries).
        """
        parts = self._parts
        rows = {SourceName(name): len(source.rows) for name, source in parts.sources.items()}
        found = [
            Swappable(
                query_id, QUERY_BYTES + held + _match_bytes(standing, rows), asked_per_s.get(query_id, 0.0)
            )
            for over in parts.sets
            for query_id, held in held_of(over)
            if (standing := over.standing.get(query_id)) is not None and self.may(query_id)
        ]
        return sorted(found, key=lambda one: (one.value, -one.nbytes, one.query_id))

    # --- out --------------------------------------------------------------------------------------

    def out(self, query_ids: Iterable[str]) -> tuple[str, ...]:
        """Swap queries out; those that cannot be are passed over. Returns those that were."""
        return tuple(query_id for query_id in query_ids if self.may(query_id) and self._out(query_id))

    def _out(self, query_id: str) -> bool:
        parts, stored = self._parts, self._parts.stored
        standing = parts.queries[query_id]
        errors = parts.sets.of(standing).matches.errors_of(standing)
        parts.sets.swap(standing.like, standing.registration, 1)
        parts.sets.unregister(standing)
        del parts.queries[query_id]
        stored.swapped[query_id] = QueryState(standing.registration, standing.born, errors)
        stored.unsaved_queries.discard(query_id)
        stored.errors.pop(query_id, None)
        self._moved(standing.set_key)
        return True

    # --- back -------------------------------------------------------------------------------------

    def state(self, query_id: str) -> QueryState | None:
        """A query that is swapped out; None: it is not. At most one read of the store."""
        stored, store = self._parts.stored, self._parts.stored.swap_store
        found = stored.swapped.get(query_id)
        if found is not None:
            return found
        if store is None or query_id in stored.dropped_queries or query_id in self._parts.queries:
            return None
        return store.swapped_query(query_id) if self._parts.sets.swapped else None

    def states(self) -> Iterator[QueryState]:
        """All that are swapped out, those of the store first. Nothing may be swapped meanwhile."""
        stored, store = self._parts.stored, self._parts.stored.swap_store
        is_any = store is not None and self._parts.sets.swapped
        for state in store.swapped_queries() if store is not None and is_any else ():
            query_id = state.registration.query_id
            changed = (stored.swapped, stored.dropped_queries, self._parts.queries)
            if not any(query_id in those for those in changed):
                yield state
        yield from stored.swapped.values()

    def admitted(self) -> Iterator[AdmittedQuery]:
        """All whose texts can be bound, each with what it reads; as :meth:`states`."""
        for state in self.states():
            with suppress(Exception):
                yield self._coming(state)

    def back(self, query_ids: Iterable[str]) -> tuple[str, ...]:
        """Have queries that are swapped out stand as if they had not been; others are passed over. Returns
        those that came back. Raises the refusal of a text that cannot be bound any more: it stays out.
        """
        came, refused = self._back(query_ids)
        for refusal in refused:
            raise refusal
        return came

    def back_where_possible(self, query_ids: Iterable[str]) -> None:
        """As :meth:`back`, for a step, which is to refuse those that stay out by itself."""
        self._back(query_ids)

    def _back(self, query_ids: Iterable[str]) -> tuple[tuple[str, ...], list[TureenError]]:
        """Returns those that came back, and why others did not."""
        came: list[str] = []
        refused: list[TureenError] = []
        by_set: dict[SetKey, list[AdmittedQuery]] = {}
        for query_id in dict.fromkeys(query_ids):
            state = self.state(query_id)
            if state is None:
                continue
            try:
                coming = self._coming(state)
            except Exception as error:  # noqa: BLE001  (nothing was done yet)
                refused.append(refusal_of(error))
                continue
            by_set.setdefault(set_key(coming.template.sources), []).append(coming)
            came.append(query_id)
        for key, queries in by_set.items():
            self._come(key, queries)
        return tuple(came), refused

    def back_for(self, registrations: Iterable[Registration]) -> list[Registration]:
        """A step has these registrations: bring back the queries that they change. Returns those to look at:
        all but those of queries that are swapped out and stand as they are asked for.
        """
        wanted, changed = [], []
        is_any = bool(self._parts.sets.swapped)
        for one in registrations:
            state = self.state(one.query_id) if is_any else None
            if state is None or state.registration != one:
                wanted.append(one)
            if state is not None and state.registration != one:
                changed.append(one.query_id)
        self.back_where_possible(changed)
        return wanted

    def forget(self, query_id: str) -> bool:
        """A step removes a query. Returns whether it was swapped out. The rows that its windows need stay for
        the others where its text cannot be bound any more.
        """
        state = self.state(query_id)
        if state is None:
            return False
        try:
            coming = self._coming(state)
        except Exception:  # noqa: BLE001  (it goes all the same)
            pass
        else:
            key = set_key(coming.template.sources)
            self._parts.sets.swap(coming.like, state.registration, -1)
            self._moved(key)
        self._parts.stored.swapped.pop(query_id, None)
        return True

    def _coming(self, state: QueryState) -> AdmittedQuery:
        read = bound(state.registration, self._parts.catalogue)
        return AdmittedQuery.of(state.registration, read, state.born)

    def _come(self, key: SetKey, coming: list[AdmittedQuery]) -> None:
        parts, stored = self._parts, self._parts.stored
        for standing, one in zip(parts.sets.joined(key).register(coming), coming, strict=True):
            parts.queries[standing.query_id] = standing
            parts.tags.tag(standing)
            parts.sets.swap(one.like, standing.registration, -1)
            stored.swapped.pop(standing.query_id, None)
            stored.unsaved_queries.add(standing.query_id)
        parts.progress.may_owe = True
        self._moved(key)

    def _moved(self, key: SetKey) -> None:
        self._parts.stored.swapped_sets.add(key)
        self._parts.outdate(key)


def _match_bytes(standing: StandingQuery, rows: Mapping[SourceName, int]) -> int:
    """A bit for each row of each predicate; lists may take less."""
    return sum(rows[name] for name, _ in standing.places()) // BITS_A_BYTE
