"""One source inside the engine: its clock, its rows, the predicates over them, and what each step does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.eddy.eddy import Timer
from engine.model.answer import Lost
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits
from engine.model.persistence import PromiseState, SourceState
from engine.model.shed import Shed, Sheds
from engine.model.source import Stream
from engine.model.state_tree import Tree
from engine.model.step import Backfill, Heartbeat, Position, Records, Refusal, StepResult, Violations
from engine.model.summary import SummaryDefinition, SummaryName
from engine.model.usage import Stopwatch, Usage
from engine.sources.backfill import bring_back, check
from engine.sources.enforcement import Enforcement
from engine.sources.meter import Meter
from engine.sources.monitor import Monitor
from engine.sources.promise import check_promise
from engine.sources.retention import Retention
from engine.sources.source_matches import SourceMatches
from engine.sources.source_view import SourceView
from engine.sources.stored_rows import StoredRows
from engine.sources.summarising import SummarisedRows
from engine.stems.data_stem import DataStem
from engine.stems.entering import EnteringRows
from engine.stems.pending import PendingRows
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.stems.table_stem import TableStem
from engine.windows.retention import Hold
from engine.windows.source_clock import LATE, REJECTED, TAKEN, Passage, SourceClock
from tureen.errors import HeartbeatRefused, LimitExceeded, StepOutOfOrder


# One field for each part, and what the statement says.
class Source:
    """A stream or a table at work. Rows wait in ``pending`` until NOW reaches them, then enter ``rows``."""

    def __init__(
        self,
        stream: Stream,
        sql: str,
        limits: Limits,
        base: int = 0,
        timer: Timer | None = None,
        watch: Stopwatch | None = None,
        capacities: Capacities = USUAL,
    ) -> None:
        """timer: measures visits of the eddy's modules. watch: the engine's."""
        self.stream = stream
        self.sql = sql
        self.limits = limits
        self.meter = Meter()
        self.clock = SourceClock(stream)
        self.sheds = Sheds()
        schema = replace(stream.stored_schema, sheds=self.sheds)
        self.pending = PendingRows(schema)
        self.usage = Usage()
        self._watch = watch or Stopwatch()
        self.queries = QueryStem(schema, timer, self._watch, capacities)
        self.rows = (
            TableStem(stream, self.queries, base, capacities=capacities)
            if stream.is_table
            else DataStem(schema, self.queries, base, capacities=capacities)
        )
        self.monitor = Monitor(stream)
        self.summarised = SummarisedRows(stream, capacities)
        self.promises = Enforcement(stream, capacities=capacities) if stream.constraints else None
        self.retained_from_ms: int | None = None
        self.lost = Lost()
        self.stored = StoredRows(stream.name, self.rows, self.pending, base)
        self.matches = SourceMatches(self.queries, self.rows, self.outdate, lambda: self.retained_from_ms)
        self._empty = Batch.empty(schema)
        self._view: SourceView | None = None

    # --- steps ------------------------------------------------------------------------------------

    def records(self, step: Records, position: Position, clock_ms: int) -> StepResult:
        """Rows arrive. Raises StepOutOfOrder where offsets do not follow."""
        batch = step.batch
        if len(batch.schema) != len(self.rows.schema):
            raise StepOutOfOrder(f"a batch for {self.stream.name} has another schema")
        self._view = None
        before_ms = self.clock.now_ms
        if step.unreadable:
            self.lost = self.lost.plus(unreadable=step.unreadable)
        if step.complete_from_ms is not None:
            self.rows.lack(step.complete_from_ms)
        if step.decided is not None:
            self.clock.follow(batch, step.decided.now_ms, clock_ms)
            self.clock.read_to(step.next_offsets)
            self._shed(step.shed, batch, position, before_ms)
            entered, _ = self._enter(batch, None, position)
            self.meter.count(len(batch), self.clock.clock_ms)
            return StepResult(position, self.clock.now_ms, entered=entered)
        passage = self.clock.records(batch, clock_ms, step.lagging, checked=True)
        self.clock.read_to(step.next_offsets)
        if passage.timestamp is not batch.timestamp:
            batch = replace(batch, timestamp=passage.timestamp)
        if passage.late or passage.rejected:
            batch = batch.take(np.flatnonzero(passage.fate == TAKEN))
        self._shed(step.shed, batch, position, before_ms)
        entered, violations = self._enter(batch, passage.in_order, position)
        self.meter.count(len(step.batch), self.clock.clock_ms)
        if passage.late or passage.rejected:
            self.lost = self.lost.plus(passage.late, passage.rejected)
        late, rejected = self._refused(passage)
        now_ms, idle = self.clock.now_ms, self.clock.idle
        return StepResult(position, now_ms, idle, entered, late, rejected, violations=violations)

    def _shed(self, shed: Shed | None, batch: Batch, position: Position, before_ms: int | None) -> None:
        """Note what a step sheds before its rows enter. batch: those that are neither late nor rejected.
        before_ms: NOW before the step, which records that were not read are about after.

        A record that was not read is no later than the last one by more than the lateness of the stream, or
        that one would be late.
        """
        if shed is None:
            return
        now_ms = self.clock.now_ms
        stamps = [] if now_ms is None else [now_ms]
        stamps += [int(batch.timestamp.max())] if len(batch) else []
        latest_ms = max(stamps, default=self.clock.clock_ms)
        first_ms = latest_ms if before_ms is None else min(before_ms + 1, latest_ms)
        if len(batch) and not shed.unread:
            first_ms = int(batch.timestamp.min())
        times = first_ms, latest_ms
        if shed.unread:
            latest_ms += self.stream.lateness_ms if self.stream.event_time else 0
            self.rows.lack(latest_ms + 1)
        self.sheds.note(shed, position, latest_ms, len(batch), self._oldest_ms(latest_ms), times)

    def _oldest_ms(self, latest_ms: int) -> int:
        """No row before this instant is there; nor is one that comes, which is not as late as this one."""
        rows = self.rows.rows()
        if rows.base < rows.end:
            return rows.timestamp_of(rows.base)
        return latest_ms if self.clock.now_ms is None else self.clock.now_ms + 1

    def _refused(self, passage: Passage) -> tuple[tuple[int, ...], tuple[Refusal, ...]]:
        """(rows that came late, rows too far ahead of the clock)."""
        late = tuple(np.flatnonzero(passage.fate == LATE).tolist()) if passage.late else ()
        if not passage.rejected:
            return late, ()
        limit_ms = self.clock.clock_ms + self.stream.future_max_ms
        reason = f"the timestamp is beyond the clock plus future_max ({limit_ms} ms since 1970)"
        return late, tuple(Refusal(row, reason) for row in np.flatnonzero(passage.fate == REJECTED).tolist())

    def heartbeat(self, step: Heartbeat, position: Position, clock_ms: int) -> StepResult:
        """The clock went on, and maybe watermarks of partitions."""
        if step.below:
            try:
                check_promise(self.stream, step.below, clock_ms)
            except HeartbeatRefused as refusal:
                failed: dict[str, Exception] = {self.stream.name: refusal}
                return StepResult(position, self.clock.now_ms, self.clock.idle, failed=failed)
        self._view = None
        self.clock.promise(step.below, clock_ms)
        self.clock.heartbeat(self._empty, clock_ms, step.lagging)
        entered, violations = self._enter(self._empty, True, position)
        return StepResult(position, self.clock.now_ms, self.clock.idle, entered, violations=violations)

    @property
    def boundary_ms(self) -> int | None:
        """Where history ends: all that is there lies at or after this instant, but for rows that windows of
        the last n rows keep. None: it has none, being a table or without NOW.
        """
        now_ms = self.clock.now_ms
        if now_ms is None or self.stream.is_table:
            return None
        rows = self.rows.rows()
        if rows.complete_from_ms is not None and rows.complete_from_ms > now_ms + 1:
            rows = replace(rows, complete_from_ms=None)  # history up to NOW would not make it whole
        return rows.boundary_ms(now_ms, self.retained_from_ms)

    def backfill(self, step: Backfill, position: Position) -> StepResult:
        """History comes back. Raises BackfillRefused, and then nothing changed.

        O(rows * words + candidates), and the same for the rows of one segment, which is cut.
        """
        check(self.stream, step, self.boundary_ms)
        assert not isinstance(self.rows, TableStem)
        changed = bring_back(step, self.rows, self.queries)
        if self.promises is not None:
            self.promises.learn(step.batch)
        self.retained_from_ms = step.complete_from_ms
        self.stored.history_came(changed)
        self.summarised.begin_anew(self._data_rows())
        self._view = None
        return StepResult(position, self.clock.now_ms, entered=len(step.batch))

    def _enter(
        self, arrived: Batch, ascending: bool | None, position: Position
    ) -> tuple[int, tuple[Violations, ...]]:
        """Rows wait or enter; (how many entered, those that break a promise and do not)."""
        entering = self.pending.pass_through(self.rows.coded(arrived), self.clock.now_ms, ascending)
        violations: tuple[Violations, ...] = ()
        if self.promises is not None and len(entering):
            kept, violations = self.promises.admit(entering.batch(), position)
            entering = EnteringRows.of(kept)
            if violations:
                self.lost = self.lost.plus(sum(len(one.rows) for one in violations if one.withheld))
        self.usage.rows_in += len(arrived)
        self.usage.rows_out += len(entering)
        if len(entering):
            if self.monitor.is_active:
                with self._watch.on(self.monitor.usage):
                    whole = entering.places is None
                    self.monitor.enter(entering.batches if whole else (entering.batch(),))
            with self._watch.on(self.rows.usage), self.rows.owed.postponed.open():
                self.rows.enter(entering)
        if len(self.pending) > self.limits.pending_rows_max:
            hint = "a partition is not read or a timestamp runs ahead; see NOW of the stream's partitions"
            raise LimitExceeded(
                "pending_rows_max", self.limits.pending_rows_max, len(self.pending), hint=hint
            )
        return len(entering), violations

    # --- summaries --------------------------------------------------------------------------------

    def summarise(self, definition: SummaryDefinition) -> None:
        """A summary comes, as if it had always been there. O(retained rows). Raises LimitExceeded: it would
        take long, with so many zones.
        """
        rows, now_ms = self._data_rows(), self.clock.now_ms
        zones = self.summarised.zones_of(definition, rows, now_ms)
        if zones > self.limits.summary_zones_max:
            raise LimitExceeded(
                "summary_zones_max",
                self.limits.summary_zones_max,
                zones,
                hint="the rows that are retained fall into so many granularities; write a longer GRANULARITY",
            )
        self.summarised.create(definition, rows, now_ms)

    def advance_summaries(self, held_ms: Mapping[SummaryName, int | None]) -> bool:
        """As :meth:`engine.sources.summarising.SummarisedRows.advance`, of this source's rows and NOW."""
        return self.summarised.advance(self._data_rows(), self.clock.now_ms, held_ms)

    def restore_summary(self, definition: SummaryDefinition, counts: Tree) -> None:
        """A summary comes back as the store had it; the rows are there."""
        self.summarised.restore(definition, counts, self._data_rows(), self.clock.now_ms)

    def _data_rows(self) -> Rows:
        assert not isinstance(self.rows, TableStem)  # a table has no summaries
        return self.rows.rows()

    def retain(self, holds: Sequence[Hold]) -> bool:
        """At the end of each step: let go of rows that neither RETAIN nor a query's window needs. Returns
        whether any went.

        Of a table, versions that were superseded are let go of, in one go for many, and its rows get new
        ordinals by that.
        """
        now_ms = self.clock.now_ms
        if now_ms is None:
            return False
        if isinstance(self.rows, TableStem):
            return self._settle(self.rows, holds, now_ms)
        if self.promises is not None:
            holds = [*holds, *self.promises.holds(now_ms)]
        retained_ms, base = self._retention(now_ms).of_stream(holds)
        self._retain_from(retained_ms)
        if base <= self.rows.base:
            return False
        self.rows.drop_below(base)
        self.summarised.drop_below(base)
        self._view = None
        return True

    def _settle(self, versions: TableStem, holds: Sequence[Hold], now_ms: int) -> bool:
        retained_ms = self._retention(now_ms).of_table(holds)
        self._retain_from(retained_ms)
        if retained_ms is None or not versions.is_due(retained_ms, self.limits.superseded_rows_max):
            return False
        errors = self.queries.slots.errors.copy()
        versions.settle(retained_ms)
        self.queries.slots.errors[:] = errors  # the survivors' were counted when they came
        self._view = None
        return True

    def _retention(self, now_ms: int) -> Retention:
        return Retention(
            self.rows.rows(), now_ms, self.retained_from_ms, self.stream.retain_ms, self.limits.held_rows_max
        )

    def _retain_from(self, retained_ms: int | None) -> None:
        if retained_ms != self.retained_from_ms:
            self.retained_from_ms = retained_ms
            self._view = None

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> SourceView:
        """The source as it stands; the same object until something changes."""
        if self._view is None:
            self._view = SourceView(
                self.stream,
                self.sql,
                self.clock.now_ms,
                self.retained_from_ms,
                self.rows.rows(),
                tuple(self.pending.pieces()),
                self.lost,
                self.clock.next_offsets,
                self.queries.slots.generations,
                self.queries.slots.errors,
                () if self.promises is None else tuple(self.promises.violations.broken),
                () if self.promises is None else self.promises.forgotten,
                self.clock.view(),
            )
        return self._view

    def let_go(self) -> None:
        """It is dropped: its rows go, whoever still knows of it. Views that were taken keep theirs."""
        self.rows.clear()
        self.outdate()

    def outdate(self) -> None:
        """What is known of it has changed, though it took no step."""
        self._view = None

    @property
    def late_share(self) -> float:
        """The share of rows that were too late for every answer, of all rows that came."""
        return self.lost.late / (self.lost.late + self.rows.end) if self.lost.late else 0.0

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        return (
            Attribute("now_ms", self.clock.now_ms, "NOW of the stream, ms since 1970"),
            Attribute("clock_ms", self.clock.clock_ms, "the journalled clock"),
            Attribute("lag_ms", self.clock.lag_ms, "how far NOW is behind the journalled clock"),
            Attribute("behind_ms", self.view().behind_ms, "how far NOW is behind its newest record"),
            Attribute("idle_partitions", len(self.clock.idle), "partitions that hold NOW back no more"),
            Attribute("pending_rows", len(self.pending), "rows above NOW"),
            Attribute("late_rows", self.lost.late, "rows that came at or before NOW, or broke a constraint"),
            Attribute("rejected_rows", self.lost.rejected, "rows too far ahead of the clock"),
            Attribute("shed_records", self.sheds.records, "records shed, of those that may be retained"),
            Attribute("shed_runs", len(self.sheds.runs), "runs that these are in"),
            Attribute("unreadable_records", self.lost.unreadable, "records that gave no row"),
            Attribute("retained_from_ms", self.retained_from_ms, "rows before this instant are gone"),
        )

    def constraints(self) -> dict[str, tuple[Attribute, ...]]:
        """Attributes of each constraint that is declared or observed, by id."""
        if self.promises is None:
            return self.monitor.entities((), (), ())
        broken = self.promises.violations.broken
        return self.monitor.entities(broken, self.promises.forgotten, self.promises.waited)

    # --- the store's side -------------------------------------------------------------------------

    def state(self, clock_ms: int) -> SourceState:
        """As it is saved, besides its rows."""
        return SourceState(
            self.stream,
            self.sql,
            self.clock.now_ms,
            clock_ms,
            self.retained_from_ms,
            self.rows.base,
            self.rows.end,
            self.lost.late,
            self.lost.rejected,
            self.clock.partitions(),
            self.rows.origin,
            self.rows.complete_from_ms,
            self.lost.unreadable,
            self.lost.since_ms,
            None if self.promises is None else self.promises.state(self.rows.end - self.rows.base),
            self.sheds.runs,
        )

    def restore_state(self, state: SourceState) -> None:
        """The clock and counts as saved."""
        self.clock.restore(state.now_ms, state.clock_ms, dict(state.partitions))
        self.retained_from_ms = state.retained_from_ms
        self.lost = Lost(state.late, state.rejected, state.unreadable, state.counted_from_ms)
        self.sheds.runs = state.sheds
        self.rows.origin, self.rows.complete_from_ms = state.origin, state.complete_from_ms
        self.stored.has(state.base, state.end)

    def restore(
        self,
        rows: Iterable[tuple[int, Batch]],
        pending: Iterable[tuple[int, Batch]],
        end: int,
        promised: PromiseState | None = None,
    ) -> None:
        """Rows up to ``end``, waiting rows, and what is known of constraints, as saved; matches are computed
        again.
        """
        for ordinal, batch in rows:
            self.rows.restore(ordinal, batch)
        if self.rows.end != end:
            raise StepOutOfOrder(f"the store holds rows of {self.stream.name} to {self.rows.end}, not {end}")
        if self.promises is not None and promised is not None:
            self.promises.restore(promised, self.rows.rows().slices(self.rows.base, end), end)
        for piece, batch in pending:
            self.pending.restore(piece, batch, self.clock.now_ms)
        self.queries.slots.errors[:] = 0
        self._view = None

    def _check(self) -> None:
        if self.promises is not None:
            self.promises._check()
        self.pending._check()
        self.rows._check()
        self.rows.owed.postponed._check()
        self.queries._check()
        now_ms = self.clock.now_ms
        rows = self.rows.rows()
        if now_ms is not None and rows.end > rows.base:
            assert rows.timestamp_of(rows.end - 1) <= now_ms
