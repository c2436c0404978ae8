"""One source inside the engine: its clock, its rows, its queries, and what each step does to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from sortedcontainers import SortedList

from engine.language.query import Query
from engine.limits import Limits
from engine.maintenance import Options
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.source import Stream
from engine.model.step import Position, Records, Refusal, Registration, StepResult
from engine.operators.scan import ScanAt
from engine.persistence import QueryState, SourceState, StateSink
from engine.results.kept import KeptAnswers
from engine.results.view import SourceView
from engine.standing import StandingQuery
from engine.stems.data_stem import DataStem
from engine.stems.pending import PendingRows, Piece
from engine.stems.query_stem import QueryStem
from engine.windows.clauses import RowWindow
from engine.windows.source_clock import LATE, REJECTED, SourceClock
from tureen.errors import LimitExceeded, StepOutOfOrder


class Source:
    """A stream at work. Rows wait in ``pending`` until NOW reaches them, then enter ``rows``."""

    def __init__(self, stream: Stream, sql: str, limits: Limits, base: int = 0) -> None:
        self.stream = stream
        self.sql = sql
        self.limits = limits
        self.clock = SourceClock(stream)
        self.pending = PendingRows(stream.schema)
        self.rows = DataStem(stream.schema, base)
        self.queries = QueryStem(stream.schema)
        self.standing: dict[str, StandingQuery] = {}
        self._eager: dict[str, StandingQuery] = {}
        self._kept = KeptAnswers(limits.snapshot_rows_max)
        self.next_offsets: dict[int, int] = {}
        self.retained_from_ms: int | None = None
        self.late = 0
        self.rejected = 0
        self._reaches: SortedList = SortedList()
        self._row_counts: SortedList = SortedList()
        self._saved_end = base
        self._saved_base = base
        self._empty = Batch.empty(stream.schema)
        self._view: SourceView | None = None

    # --- steps ------------------------------------------------------------------------------------

    def records(self, step: Records, position: Position, clock_ms: int) -> StepResult:
        """Rows arrive. Raises StepOutOfOrder where offsets do not follow."""
        batch = step.batch
        self._follow(step)
        self._view = None
        passage = self.clock.records(batch, clock_ms, step.lagging)
        late = np.flatnonzero(passage.fate == LATE)
        rejected = np.flatnonzero(passage.fate == REJECTED)
        if passage.timestamp is not batch.timestamp:
            batch = Batch(batch.schema, batch.columns, batch.partition, batch.offset, passage.timestamp)
        if len(late) or len(rejected):
            batch = batch.take(np.flatnonzero(passage.fate == 0))
        entered = self._enter(batch)
        self.late += len(late)
        self.rejected += len(rejected)
        limit_ms = self.clock.clock_ms + self.stream.future_max_ms
        reason = f"timestamp lies beyond the clock plus future_max ({limit_ms} ms since 1970)"
        return StepResult(
            position,
            self.clock.now_ms,
            self.clock.idle,
            entered,
            tuple(late.tolist()),
            tuple(Refusal(row, reason) for row in rejected.tolist()),
        )

    def heartbeat(self, lagging: frozenset[int], position: Position, clock_ms: int) -> StepResult:
        """The clock went on."""
        self._view = None
        self.clock.heartbeat(self._empty, clock_ms, lagging)
        entered = self._enter(self._empty)
        return StepResult(position, self.clock.now_ms, self.clock.idle, entered)

    def _follow(self, step: Records) -> None:
        batch = step.batch
        if len(batch.schema) != len(self.stream.schema):
            raise StepOutOfOrder(f"a batch for {self.stream.name} has another schema")
        partitions = batch.partitions()
        for partition in partitions:
            offsets = batch.offset if len(partitions) == 1 else batch.offset[batch.partition == partition]
            if offsets[0] < self.next_offsets.get(partition, 0) or bool((np.diff(offsets) <= 0).any()):
                raise StepOutOfOrder(
                    f"offsets of {self.stream.name}[{partition}] do not follow the last step"
                )
            self.next_offsets[partition] = int(offsets[-1]) + 1
        for partition, offset in step.next_offsets.items():
            self.next_offsets[partition] = max(offset, self.next_offsets.get(partition, 0))

    def _enter(self, arrived: Batch) -> int:
        entering = self.pending.pass_through(arrived, self.clock.now_ms)
        if len(entering):
            self.rows.append(entering, self.queries.match)
        if len(self.pending) > self.limits.pending_rows_max:
            hint = "a partition is not read or a timestamp runs ahead; see NOW of the stream's partitions"
            raise LimitExceeded(
                "pending_rows_max", self.limits.pending_rows_max, len(self.pending), hint=hint
            )
        return len(entering)

    # --- queries ----------------------------------------------------------------------------------

    def register(self, queries: Sequence[tuple[Registration, Query]], born: Position) -> list[StandingQuery]:
        """Queries come: they are put in, then applied to all retained rows, in one pass for all."""
        standing = [self._standing(registration, query, born) for registration, query in queries]
        for one in standing:
            self._count_window(one.query, 1)
        return self._put(self._keep_matches(standing, apply=True))

    def _standing(self, registration: Registration, query: Query, born: Position) -> StandingQuery:
        options = Options.of(registration.options)
        maintenance = "lazy" if options.maintenance == "auto" else options.maintenance
        return StandingQuery(registration, query, born, maintenance, options.paused)

    def _put(self, standing: Sequence[StandingQuery]) -> list[StandingQuery]:
        self._view = None
        for query in standing:
            self.standing[query.query_id] = query
            if query.maintenance == "eager" and not query.paused:
                self._eager[query.query_id] = query
            else:
                self._eager.pop(query.query_id, None)
        return list(standing)

    def _keep_matches(self, queries: Sequence[StandingQuery], *, apply: bool) -> list[StandingQuery]:
        """Slots for those that keep matches and have none. apply: to the rows that are there, in one pass."""
        needed = [query.query.predicates() if query.keeps_matches else () for query in queries]
        added = self.queries.add([predicate for each in needed for predicate in each])
        self.rows.widen(self.queries.words)
        slots = iter(added.slots)
        placed = []
        for query, each in zip(queries, needed, strict=True):
            held = [next(slots) for _ in each]
            places = tuple((slot, int(self.queries.generations[slot])) for slot in held)
            placed.append(replace(query, slots=places))
        if apply and len(self.rows) and added.fresh:
            self.rows.backfill(self.queries.probe(added.fresh))
        return placed

    def change(self, registration: Registration) -> StandingQuery:
        """A standing query gets other options. Raises OptionRefused, and then nothing changed."""
        before = self.standing[registration.query_id]
        after = self._standing(registration, before.query, before.born)
        if after.keeps_matches and before.keeps_matches:
            after = replace(after, slots=before.slots)
        elif after.keeps_matches:
            (after,) = self._keep_matches([after], apply=True)
        else:
            self.queries.remove([slot for slot, _ in before.slots])
        self._put([after])
        return after

    def unregister(self, query_id: str) -> bool:
        """A query goes. Returns whether it was there."""
        query = self.standing.pop(query_id, None)
        if query is None:
            return False
        self._view = None
        self._eager.pop(query_id, None)
        self.queries.remove([slot for slot, _ in query.slots])
        self._count_window(query.query, -1)
        return True

    def _count_window(self, query: Query, change: int) -> None:
        """Windows of standing queries decide what is retained."""
        for scan in query.scans():
            window = scan.window
            if isinstance(window, RowWindow):
                held, reach = self._row_counts, window.rows
            elif window.reach_ms is not None:
                held, reach = self._reaches, window.reach_ms
            else:
                continue
            if change > 0:
                held.add(reach)
            else:
                held.remove(reach)

    def retain(self) -> None:
        """At the end of each step: let go of rows that neither RETAIN nor a window needs."""
        now_ms = self.clock.now_ms
        if now_ms is None:
            return
        width_ms = max(self.stream.retain_ms, self._reaches[-1] if self._reaches else 0)
        retained = now_ms - width_ms
        if self.retained_from_ms is not None and retained <= self.retained_from_ms:
            retained = self.retained_from_ms
        else:
            self.retained_from_ms = retained
            self._view = None
        rows = self.rows.rows()
        base = rows.first_at_or_after(retained)
        if self._row_counts:
            base = min(base, rows.end - self._row_counts[-1])
        if base > self.rows.base:
            self.rows.drop_below(base)
            self._view = None

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> SourceView:
        """The source as it stands; the same object until something changes."""
        if self._view is None:
            rows, now_ms = self.rows.rows(), self.clock.now_ms
            at = ScanAt.now(rows, now_ms, self.retained_from_ms)
            self._view = SourceView(
                self.stream,
                self.sql,
                now_ms,
                self.retained_from_ms,
                rows,
                len(self.pending),
                self.late,
                self.rejected,
                dict(self.next_offsets),
                self.queries.generations,
                self.queries.errors,
                self._kept.refresh(self._eager.values(), at),
            )
        return self._view

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        return (
            Attribute("now_ms", self.clock.now_ms, "NOW of the stream, ms since 1970"),
            Attribute("clock_ms", self.clock.clock_ms, "the journalled clock"),
            Attribute("idle_partitions", len(self.clock.idle), "partitions that hold NOW back no more"),
            Attribute("pending_rows", len(self.pending), "rows above NOW"),
            Attribute("late_rows", self.late, "rows that came at or before NOW"),
            Attribute("rejected_rows", self.rejected, "rows too far ahead of the clock"),
            Attribute("retained_from_ms", self.retained_from_ms, "rows before this instant are gone"),
        )

    # --- the store's side -------------------------------------------------------------------------

    def save(self, sink: StateSink, clock_ms: int) -> Saved:
        """Hand over what changed since the last save; :meth:`saved` confirms it."""
        name = self.stream.name
        sink.put_source(self._state(clock_ms))
        end = self.rows.end
        first = self._saved_end
        for part in self.rows.sealed_from(self._saved_end):
            sink.seal(name, part.first, part.batch(self.stream.schema))
            first = part.end
        for ordinal, rows in self.rows.rows().slices(max(first, self.rows.base), end):
            sink.append_rows(name, ordinal, rows)
        if self.rows.base > self._saved_base:
            sink.drop_rows(name, self.rows.base)
        pieces, gone = self.pending.unsaved(), self.pending.gone()
        for number, piece in pieces:
            sink.put_pending(name, number, piece.rows)
        for number in gone:
            sink.drop_pending(name, number)
        return Saved(end, self.rows.base, pieces, gone)

    def saved(self, saved: Saved) -> None:
        """The last save is durable."""
        self._saved_end, self._saved_base = saved.end, saved.base
        self.pending.saved(saved.pieces, saved.gone)

    def _state(self, clock_ms: int) -> SourceState:
        return SourceState(
            self.stream,
            self.sql,
            self.clock.now_ms,
            clock_ms,
            self.retained_from_ms,
            self.rows.base,
            self.rows.end,
            self.late,
            self.rejected,
            self.clock.partitions(self.next_offsets),
        )

    def restore_state(self, state: SourceState) -> None:
        """The clock and counts as saved."""
        self.clock.restore(state.now_ms, state.clock_ms, dict(state.partitions))
        self.next_offsets = {p: clock.next_offset for p, clock in state.partitions.items()}
        self.retained_from_ms = state.retained_from_ms
        self.late, self.rejected = state.late, state.rejected
        self._saved_end, self._saved_base = state.end, state.base

    def restore(
        self,
        queries: Sequence[tuple[QueryState, Query]],
        rows: Iterable[tuple[int, Batch]],
        pending: Iterable[tuple[int, Batch]],
        end: int,
    ) -> None:
        """Queries, rows up to ``end`` and waiting rows as saved; matches are computed again."""
        standing = [self._standing(state.registration, query, state.born) for state, query in queries]
        for one in standing:
            self._count_window(one.query, 1)
        self._put(self._keep_matches(standing, apply=False))
        for ordinal, batch in rows:
            self.rows.restore(ordinal, batch, self.queries.match)
        if self.rows.end != end:
            raise StepOutOfOrder(f"the store holds rows of {self.stream.name} to {self.rows.end}, not {end}")
        for piece, batch in pending:
            self.pending.restore(piece, batch, self.clock.now_ms)
        self.queries.errors[:] = 0
        counts: dict[int, int] = {}
        for state, _ in queries:
            slots = self.standing[state.registration.query_id].slots
            if len(slots) == len(state.predicate_errors):
                counts.update(zip((slot for slot, _ in slots), state.predicate_errors, strict=True))
        self.queries.count_errors(counts)

    def _check(self) -> None:
        self.pending._check()
        self.rows._check()
        self.queries._check()
        assert self.rows.words == self.queries.words
        now_ms = self.clock.now_ms
        rows = self.rows.rows()
        if now_ms is not None and rows.end > rows.base:
            assert rows.timestamp_of(rows.end - 1) <= now_ms


class Saved:
    """What a save handed over, to be confirmed once it is durable."""

    __slots__ = ("base", "end", "gone", "pieces")

    def __init__(self, end: int, base: int, pieces: list[tuple[int, Piece]], gone: tuple[int, ...]) -> None:
        self.end = end
        self.base = base
        self.pieces = pieces
        self.gone = gone
