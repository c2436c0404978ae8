"""The matches of predicates among the rows of a source: asked for, made and released."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from engine.model.batch import MATCHED_ROWS_MAX, Batch
from engine.model.expressions import Expression
from engine.stems.data_stem import DataStem
from engine.stems.factors import Factors
from engine.stems.match_place import Place, place_at
from engine.stems.new_queries import NewQueries
from engine.stems.query_stem import Added, QueryStem
from engine.stems.table_stem import TableStem
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.segment_bits import Matrix


class SourceMatches:
    """One owner, as the engine."""

    def __init__(
        self,
        queries: QueryStem,
        rows: DataStem,
        outdate: Callable[[], None],
        retained_from_ms: Callable[[], int | None],
    ) -> None:
        """queries, rows: the source's. outdate: called when what is known of it has changed.
        retained_from_ms: returns the first instant that it retains.
        """
        self._queries = queries
        self._rows = rows
        self._outdate = outdate
        self._retained_from_ms = retained_from_ms

    def keep(self, predicates: Sequence[Expression | Factors], *, apply: bool) -> list[Place]:
        """Keep the matches of these, whoever else asked for the same. apply: to the rows that are there, of
        sealed segments later (:meth:`catch_up_some`); without it they are about to come.
        """
        added = self._add(predicates)
        if apply and len(self._rows) and added.fresh:
            self._rows.owed.backfill(added.fresh)
            if isinstance(self._rows, TableStem):
                self._rows.owed.catch_up_all()
                self._forget_spent(self._rows, added.fresh)
        ahead = self._rows.owed.ahead.pieces.keys() & added.slots
        if ahead:
            self._arrive(ahead)
        return self._places(added.slots)

    def come_ahead(self, predicates: Sequence[Expression | Factors]) -> list[Place]:
        """The places of predicates whose query is still to come: as :meth:`keep`, but their matches among the
        rows that are there are made by :meth:`catch_up_slice` alone. To be released.
        """
        added = self._add(predicates)
        if len(self._rows) and added.fresh:
            self._rows.come_ahead(added.fresh)
        return self._places(added.slots)

    def _add(self, predicates: Sequence[Expression | Factors]) -> Added:
        """Put predicates in; what rows that are there lack of those that stood is made."""
        added = self._queries.add(predicates)
        if self._rows.owed.postponed:
            self._rows.owed.postponed.settle(added.slots)
        self._outdate()
        return added

    def need(self, slots: Collection[int]) -> None:
        """Somebody goes by all matches of these slots: what is owed of them is made, none is postponed."""
        self._rows.owed.catch_up(slots)
        self._rows.owed.postponed.pin(slots)

    def _places(self, slots: Iterable[int]) -> list[Place]:
        return [place_at(slot, int(self._queries.slots.generations[slot])) for slot in slots]

    def catch_up_slice(self, slots: Collection[int], rows_max: int) -> int:
        """Make matches of slots that came ahead, among so many rows. Returns how many rows that were; 0: none
        are owed. No answer changes.
        """
        rows = self._rows.owed.catch_up_slice(slots, rows_max)
        if rows:
            self._outdate()
        return rows

    def catch_up_some(self) -> bool:
        """Make some of the matches that are owed; no answer changes. Returns whether there were any."""
        some = self._rows.owed.catch_up_some()
        if some:
            self._outdate()
        return some

    def release(self, slots: Iterable[int]) -> None:
        """One of those who asked for these matches asks no more."""
        released = list(slots)
        self._queries.remove(released)
        for slot in released:
            if self._rows.owed.ahead and not self._queries.slots.holders[slot]:
                self._rows.owed.forget_ahead(slot)
        self._outdate()

    def _arrive(self, slots: Collection[int]) -> None:
        """The query of slots that are ahead has come. It counts the errors among the rows that are there."""
        self._rows.owed.catch_up(slots)
        errors = self._queries.slots.errors.copy()
        for slot in slots:
            errors[slot] = self._rows.owed.errors_ahead(slot)
        self._queries.slots.errors = errors
        if isinstance(self._rows, TableStem):
            self._forget_spent(self._rows, slots)

    def _forget_spent(self, versions: TableStem, slots: Collection[int]) -> None:
        """Slots just met all versions of a table: errors of those that wait to be let go do not count."""
        if self._queries.slots.errors[list(slots)].any():
            self._forget_errors(self._queries.probe(slots, self._queries.cohorts), versions)

    def _forget_errors(self, probe: NewQueries, versions: TableStem) -> None:
        """Take back the errors of versions that are in no answer any more, and only wait to be let go of
        together.
        """
        from_ms = self._retained_from_ms()
        if from_ms is None:
            return
        errors = self._queries.slots.errors.copy()
        for rows in versions.spent(from_ms):
            probe.match(rows, 0)
        self._queries.slots.errors[:] = 2 * errors - self._queries.slots.errors

    def restore_errors(self, counts: Mapping[int, int]) -> None:
        """The errors of predicates, by slot, as saved."""
        known = self._queries.slots.errors
        self._queries.slots.count_errors({slot: count - int(known[slot]) for slot, count in counts.items()})
        self._outdate()

    def satisfied_by(self, rows: Batch) -> set[int]:
        """The slots of predicates that one of some rows satisfies, which are not the source's. No errors are
        counted. O(rows * words + candidates + slots).
        """
        stem, errors, found = self._queries, self._queries.slots.errors, set[int]()
        rows = self._rows.coded(rows)
        for start in range(0, len(rows), MATCHED_ROWS_MAX):
            part = rows.slice(start, min(len(rows), start + MATCHED_ROWS_MAX))
            out = np.zeros((stem.words, len(part)), np.uint64)
            listed = stem.match(part, Matrix(out), 0)
            found.update(listed.slots.tolist())
            words = np.bitwise_or.reduce(out, axis=1)
            places = stem.cohorts.place
            dense = np.flatnonzero(places != SELECTIVE)
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            found.update(dense[bits[places[dense]] != 0].tolist())
        stem.slots.errors = errors
        return found
