"""One source inside the engine: its clock, its rows, its queries, and what each step does to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from sortedcontainers import SortedList

from engine.explain import Plan, Timer, explain
from engine.language.query import Query
from engine.language.templates import Fixed, Meaning
from engine.limits import Limits
from engine.maintenance import Maintenance, Options
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.source import Stream
from engine.model.step import Position, Records, Refusal, Registration, StepResult
from engine.operators.maintained.ranked_aggregates import RankedAggregates
from engine.operators.scan import ScanAt
from engine.persistence import QueryState, SourceState, StateSink
from engine.planner import Meter, Planner
from engine.results.kept import KeptAnswers
from engine.results.view import SourceView
from engine.standing import StandingQuery
from engine.stems.data_stem import DataStem
from engine.stems.pending import PendingRows, Piece
from engine.stems.query_stem import QueryStem
from engine.windows.clauses import RowWindow
from engine.windows.retention import reach_ms
from engine.windows.source_clock import LATE, REJECTED, SourceClock
from tureen.errors import LimitExceeded, StepOutOfOrder


class Source:
    """A stream at work. Rows wait in ``pending`` until NOW reaches them, then enter ``rows``."""

    def __init__(
        self, stream: Stream, sql: str, limits: Limits, planner: Planner | None = None, base: int = 0
    ) -> None:
        self.stream = stream
        self.sql = sql
        self.limits = limits
        self.planner = planner or Planner(None)
        self.meter = Meter()
        self.clock = SourceClock(stream)
        self.pending = PendingRows(stream.schema)
        self.queries = QueryStem(stream.schema)
        self.rows = DataStem(stream.schema, self.queries, base)
        self.standing: dict[str, StandingQuery] = {}
        self._eager: dict[str, StandingQuery] = {}
        self._kept = KeptAnswers(limits)
        self._trees = RankedAggregates(base)
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
        self.meter.count(len(step.batch), self.clock.clock_ms)
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
            self.rows.append(entering)
            if len(self._trees):
                self._trees.advance(self.rows.rows())
        if len(self.pending) > self.limits.pending_rows_max:
            hint = "a partition is not read or a timestamp runs ahead; see NOW of the stream's partitions"
            raise LimitExceeded(
                "pending_rows_max", self.limits.pending_rows_max, len(self.pending), hint=hint
            )
        return len(entering)

    # --- queries ----------------------------------------------------------------------------------

    def register(
        self, queries: Sequence[tuple[Registration, Meaning, Query]], born: Position
    ) -> list[StandingQuery]:
        """Queries come: they are put in, then applied to all retained rows, in one pass for all."""
        standing = [
            self._standing(registration, meaning, query, born) for registration, meaning, query in queries
        ]
        bound = [query for _, _, query in queries]
        for query in bound:
            self._count_window(query, 1)
        return self._put(self._keep_matches(standing, bound, apply=True))

    def _standing(
        self, registration: Registration, meaning: Meaning, query: Query, born: Position
    ) -> StandingQuery:
        options = Options.of(registration.options)
        maintenance = options.maintenance
        if maintenance == "auto":
            maintenance = self.planner.first(query, self.meter, self._at()).maintenance
        return StandingQuery(registration, meaning, born, maintenance, options.paused)

    def _put(self, standing: Sequence[StandingQuery]) -> list[StandingQuery]:
        self._view = None
        eager = {one.query_id: replace(one, meaning=Fixed(one.query)) for one in standing if one.keeps_answer}
        if eager:  # their trees are read at every step
            self._trees.add({q.query_id: (q.query, q.scan_slot) for q in eager.values()}, self.rows.rows())
        put = []
        for one in standing:
            query = eager.get(one.query_id, one)
            query = replace(query, partials=self._trees.reader(one.query_id))
            self._eager.pop(query.query_id, None)
            if query.keeps_answer and query.partials is None:
                self._eager[query.query_id] = query
            self.standing[query.query_id] = query
            put.append(query)
        return put

    def _keep_matches(
        self, queries: Sequence[StandingQuery], bound: Sequence[Query], *, apply: bool
    ) -> list[StandingQuery]:
        """Slots for those that keep matches and have none. bound: ``query`` of each. apply: to the rows that
        are there, in one pass.
        """
        needed = [
            query.predicates() if one.keeps_matches else () for one, query in zip(queries, bound, strict=True)
        ]
        added = self.queries.add([predicate for each in needed for predicate in each])
        self.rows.widen()
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
        return self._replace(before, self._standing(registration, before.meaning, before.query, before.born))

    def _become(self, query: StandingQuery, maintenance: Maintenance) -> StandingQuery:
        return self._replace(query, replace(query, maintenance=maintenance, slots=()))

    def _replace(self, before: StandingQuery, after: StandingQuery) -> StandingQuery:
        if not after.keeps_answer:
            self._trees.remove([before.query_id])
        if after.keeps_matches and before.keeps_matches:
            after = replace(after, slots=before.slots)
        elif after.keeps_matches:
            (after,) = self._keep_matches([after], [after.query], apply=True)
        else:
            self.queries.remove([slot for slot, _ in before.slots])
        (after,) = self._put([after])
        return after

    def revise(self, query: StandingQuery, answers_per_s: float) -> StandingQuery:
        """Let the planner choose again for a query that leaves it open."""
        choice = self.planner.again(query, self.meter, self._at(), answers_per_s)
        return query if choice.maintenance == query.maintenance else self._become(query, choice.maintenance)

    def unregister(self, query_id: str) -> bool:
        """A query goes. Returns whether it was there."""
        query = self.standing.pop(query_id, None)
        if query is None:
            return False
        self._view = None
        self._eager.pop(query_id, None)
        self._trees.remove([query_id])
        self.queries.remove([slot for slot, _ in query.slots])
        self._count_window(query.query, -1)
        return True

    def _count_window(self, query: Query, change: int) -> None:
        """Windows of standing queries decide what is retained."""
        for scan in query.scans():
            window, width_ms = scan.window, reach_ms(scan.window, scan.assignment)
            if width_ms is not None:
                held, reach = self._reaches, width_ms
            elif isinstance(window, RowWindow) and window.plain:
                held, reach = self._row_counts, window.rows
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
            self._trees.drop_below(base)
            self._view = None

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> SourceView:
        """The source as it stands; the same object until something changes."""
        if self._view is None:
            rows, now_ms, at = self.rows.rows(), self.clock.now_ms, self._at()
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

    def _at(self) -> ScanAt:
        return ScanAt.now(self.rows.rows(), self.clock.now_ms, self.retained_from_ms)

    def explain(self, query: Query, standing: StandingQuery | None, timer: Timer | None) -> Plan:
        """The plan of a query over this stream."""
        at = self._at()
        if standing is None:
            choice = self.planner.first(query, self.meter, at)
        else:
            at = at.with_slots(standing.slot_of)
            choice = self.planner.as_it_is(standing, self.meter, at)
        rows_max = self.limits.intermediate_rows_max
        return explain(query, standing, choice, self.queries, at, self.planner.costs, rows_max, timer)

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
            Attribute("kept_answers", len(self._eager), "answers of eager queries that are kept whole"),
            *self._trees.attributes(),
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
        queries: Sequence[tuple[QueryState, Meaning, Query]],
        rows: Iterable[tuple[int, Batch]],
        pending: Iterable[tuple[int, Batch]],
        end: int,
    ) -> None:
        """Queries, rows up to ``end`` and waiting rows as saved; matches are computed again."""
        standing = [
            self._standing(state.registration, meaning, query, state.born)
            for state, meaning, query in queries
        ]
        bound = [query for _, _, query in queries]
        for query in bound:
            self._count_window(query, 1)
        self._put(self._keep_matches(standing, bound, apply=False))
        for ordinal, batch in rows:
            self.rows.restore(ordinal, batch)
        self._trees.advance(self.rows.rows())
        if self.rows.end != end:
            raise StepOutOfOrder(f"the store holds rows of {self.stream.name} to {self.rows.end}, not {end}")
        for piece, batch in pending:
            self.pending.restore(piece, batch, self.clock.now_ms)
        self.queries.errors[:] = 0
        counts: dict[int, int] = {}
        for state, _, _ in queries:
            slots = self.standing[state.registration.query_id].slots
            if len(slots) == len(state.predicate_errors):
                counts.update(zip((slot for slot, _ in slots), state.predicate_errors, strict=True))
        self.queries.count_errors(counts)

    def _check(self) -> None:
        self.pending._check()
        self.rows._check()
        self.queries._check()
        if len(self._trees):
            self._trees._check()
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
