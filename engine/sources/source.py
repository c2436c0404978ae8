"""One source inside the engine: its clock, its rows, the predicates over them, and what each step does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.eddy.eddy import Timer
from engine.model.answer import Lost
from engine.model.attributes import Attribute
from engine.model.batch import MATCHED_ROWS_MAX, Batch
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import Expression
from engine.model.limits import Limits
from engine.model.persistence import PromiseState, SourceState, StateSink
from engine.model.shed import Shed, Sheds
from engine.model.source import Stream
from engine.model.state_tree import Tree
from engine.model.step import Backfill, Heartbeat, Position, Records, Refusal, StepResult, Violations
from engine.model.summary import SummaryDefinition, SummaryName
from engine.model.usage import Stopwatch, Usage
from engine.sources.backfill import check, origin_of
from engine.sources.enforcement import Enforcement
from engine.sources.meter import Meter
from engine.sources.monitor import Monitor
from engine.sources.promise import check_promise
from engine.sources.source_view import SourceView
from engine.sources.summarising import SummarisedRows
from engine.stems.data_stem import RAISED, DataStem, Rows
from engine.stems.entering import EnteringRows
from engine.stems.factors import Factors
from engine.stems.match_place import Place, place_at
from engine.stems.new_queries import NewQueries
from engine.stems.pending import PendingRows, Piece
from engine.stems.query_stem import QueryStem
from engine.stems.table_stem import TableStem
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.segment_bits import Matrix
from engine.summaries.summary import Summary
from engine.windows.retention import Hold
from engine.windows.source_clock import LATE, REJECTED, TAKEN, Passage, SourceClock
from tureen.errors import HeartbeatRefused, LimitExceeded, StepOutOfOrder


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
        self.late = 0
        self.rejected = 0
        self.unreadable = 0
        self.counted_from_ms: int | None = None
        self._saved_end = self._saved_base = base
        self._unsaved_below: int | None = None
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
        self.unreadable += step.unreadable
        if step.whole_from_ms is not None:
            self.rows.lack(step.whole_from_ms)
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
        self.late += passage.late
        self.rejected += passage.rejected
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
        if rows.whole_from_ms is not None and rows.whole_from_ms > now_ms + 1:
            rows = replace(rows, whole_from_ms=None)  # history up to NOW would not make it whole
        return rows.boundary_ms(now_ms, self.retained_from_ms)

    def backfill(self, step: Backfill, position: Position) -> StepResult:
        """History comes back. Raises BackfillRefused, and then nothing changed.

        O(rows * words + candidates), and the same for the rows of one segment, which is cut.
        """
        check(self.stream, step, self.boundary_ms)
        assert not isinstance(self.rows, TableStem)
        self.rows.catch_up_all()
        rows = self.rows.rows()
        boundary = rows.first_at_or_after(step.until_ms)
        kept = rows.rows_before(step.complete_from_ms)
        if boundary < len(kept) + len(step.batch):
            self.rows.rise()
            boundary += RAISED
            changed = self.rows.end
        else:
            changed = boundary
        errors = self.queries.errors.copy()
        changed = max(changed, self.rows.cut(boundary))
        self.queries.errors[:] = errors  # theirs were counted when they came
        self.rows.prepend(step.batch)
        if len(kept):
            errors = self.queries.errors.copy()
            self.rows.prepend(kept)
            self.queries.errors[:] = errors
        from_ms = step.complete_from_ms
        self.rows.origin = origin_of(rows, step.until_ms, len(step.batch), self.rows.base, from_ms)
        if rows.whole_from_ms is not None and rows.whole_from_ms <= step.until_ms:
            self.rows.whole_from_ms = None
        if self.promises is not None:
            self.promises.learn(step.batch)
        self.retained_from_ms = from_ms
        self._unsaved_below = max(changed, self._unsaved_below or changed)
        self._saved_base = self.rows.base
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
            self.late += sum(len(one.rows) for one in violations if one.withheld)
        self.usage.rows_in += len(arrived)
        self.usage.rows_out += len(entering)
        if len(entering):
            if self.monitor.is_active:
                with self._watch.on(self.monitor.usage):
                    whole = entering.places is None
                    self.monitor.enter(entering.batches if whole else (entering.batch(),))
            with self._watch.on(self.rows.usage):
                self.rows.enter(entering)
        if len(self.pending) > self.limits.pending_rows_max:
            hint = "a partition is not read or a timestamp runs ahead; see NOW of the stream's partitions"
            raise LimitExceeded(
                "pending_rows_max", self.limits.pending_rows_max, len(self.pending), hint=hint
            )
        return len(entering), violations

    # --- summaries --------------------------------------------------------------------------------

    @property
    def summaries(self) -> Mapping[SummaryName, Summary]:
        """At work, by name."""
        return self.summarised.at_work

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

    # --- queries ----------------------------------------------------------------------------------

    def keep(self, predicates: Sequence[Expression | Factors], *, apply: bool) -> list[Place]:
        """Keep the matches of these, whoever else asked for the same. apply: to the rows that are there, of
        sealed segments later (:meth:`catch_up_some`); without it they are about to come.
        """
        added = self.queries.add(predicates)
        self._view = None
        if apply and len(self.rows) and added.fresh:
            self.rows.backfill(added.fresh)
            if isinstance(self.rows, TableStem):
                self.rows.catch_up_all()
                self._forget_spent(self.rows, added.fresh)
        ahead = self.rows.ahead.pieces.keys() & added.slots
        if ahead:
            self._arrive(ahead)
        return self._places(added.slots)

    def come_ahead(self, predicates: Sequence[Expression | Factors]) -> list[Place]:
        """The places of predicates whose query is still to come: as :meth:`keep`, but their matches among the
        rows that are there are made by :meth:`catch_up_slice` alone. To be released.
        """
        added = self.queries.add(predicates)
        self._view = None
        if len(self.rows) and added.fresh:
            self.rows.come_ahead(added.fresh)
        return self._places(added.slots)

    def _places(self, slots: Iterable[int]) -> list[Place]:
        return [place_at(slot, int(self.queries.generations[slot])) for slot in slots]

    def catch_up_slice(self, slots: Collection[int], rows_max: int) -> int:
        """Make matches of slots that came ahead, among so many rows. Returns how many rows that were; 0: none
        are owed. No answer changes.
        """
        rows = self.rows.catch_up_slice(slots, rows_max)
        if rows:
            self._view = None
        return rows

    def _arrive(self, slots: Collection[int]) -> None:
        """The query of slots that are ahead has come. It counts the errors among the rows that are there."""
        self.rows.catch_up(slots)
        errors = self.queries.errors.copy()
        for slot in slots:
            errors[slot] = self.rows.errors_ahead(slot)
        self.queries.errors = errors
        if isinstance(self.rows, TableStem):
            self._forget_spent(self.rows, slots)

    def _forget_spent(self, versions: TableStem, slots: Collection[int]) -> None:
        """Slots just met all versions of a table: errors of those that wait to be let go do not count."""
        if self.queries.errors[list(slots)].any():
            self._forget_errors(self.queries.probe(slots, self.queries.cohorts), versions)

    def _forget_errors(self, probe: NewQueries, versions: TableStem) -> None:
        """Take back the errors of versions that are in no answer any more, and only wait to be let go of
        together.
        """
        if self.retained_from_ms is None:
            return
        errors = self.queries.errors.copy()
        for rows in versions.spent(self.retained_from_ms):
            probe.match(rows, 0)
        self.queries.errors[:] = 2 * errors - self.queries.errors

    def satisfied_by(self, rows: Batch) -> set[int]:
        """The slots of predicates that one of some rows satisfies, which are not the source's. No errors are
        counted. O(rows * words + candidates + slots).
        """
        stem, errors, found = self.queries, self.queries.errors, set[int]()
        rows = self.rows.coded(rows)
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
        stem.errors = errors
        return found

    def catch_up(self, slots: Collection[int]) -> None:
        """Make all matches of these slots that are owed: something is about to be kept of them."""
        self.rows.catch_up(slots)

    def catch_up_some(self) -> bool:
        """Make some of the matches that are owed; no answer changes. Returns whether there were any."""
        some = self.rows.catch_up_some()
        if some:
            self._view = None
        return some

    def idle(self) -> bool:
        """Do some other work that can wait. Returns whether there was any."""
        return self.rows.idle()

    def release(self, slots: Iterable[int]) -> None:
        """One of those who asked for these matches asks no more."""
        released = list(slots)
        self.queries.remove(released)
        for slot in released:
            if self.rows.ahead and not self.queries.holders[slot]:
                self.rows.forget_ahead(slot)
        self._view = None

    def retain(self, holds: Sequence[Hold]) -> bool:
        """At the end of each step: let go of rows that neither RETAIN nor a query's window needs. Returns
        whether any went.

        Queries that lag behind hold rows back, up to ``held_rows_max``. Of a table, versions that were
        superseded are let go of, in one go for many, and its rows get new ordinals by that.
        """
        now_ms = self.clock.now_ms
        if now_ms is None:
            return False
        if isinstance(self.rows, TableStem):
            return self._settle(self.rows, holds, now_ms)
        rows = self.rows.rows()
        if self.promises is not None:
            holds = [*holds, *self.promises.holds(now_ms)]
        retained_ms, base = self._needed(holds, rows, now_ms)
        held = rows.end - self.limits.held_rows_max
        if base < held:
            _, prompt = self._needed([replace(hold, now_ms=now_ms) for hold in holds], rows, now_ms)
            base = max(base, min(held, prompt))
            if base > rows.base:
                first_ms = rows.timestamp_of(base - 1) + 1
                retained_ms = first_ms if retained_ms is None else max(retained_ms, first_ms)
                # What is left of the instant in which the cut fell goes with the rest of it.
                base = max(base, self._needed(holds, rows, now_ms, retained_ms)[1])
        if retained_ms != self.retained_from_ms:
            self.retained_from_ms = retained_ms
            self._view = None
        if base <= rows.base:
            return False
        self.rows.drop_below(base)
        self.summarised.drop_below(base)
        self._view = None
        return True

    def _settle(self, versions: TableStem, holds: Sequence[Hold], now_ms: int) -> bool:
        rows = versions.rows()
        retained_ms, _ = self._needed(holds, rows, now_ms)
        after = rows.base if retained_ms is None else rows.first_at_or_after(retained_ms + 1)
        held = rows.end - self.limits.held_rows_max
        if after < held:  # so many versions for queries that lag
            prompt_ms, _ = self._needed([replace(hold, now_ms=now_ms) for hold in holds], rows, now_ms)
            assert prompt_ms is not None
            allowed_ms = min(prompt_ms, rows.timestamp_of(held - 1))
            retained_ms = allowed_ms if retained_ms is None else max(retained_ms, allowed_ms)
        if retained_ms != self.retained_from_ms:
            self.retained_from_ms = retained_ms
            self._view = None
        if retained_ms is None or not versions.is_due(retained_ms, self.limits.superseded_rows_max):
            return False
        errors = self.queries.errors.copy()
        versions.settle(retained_ms)
        self.queries.errors[:] = errors  # the survivors' were counted when they came
        self._view = None
        return True

    def _needed(
        self, holds: Sequence[Hold], rows: Rows, now_ms: int, from_ms: int | None = None
    ) -> tuple[int | None, int]:
        """The first instant (None: no end is known) and the first ordinal that are needed. from_ms: rows of
        earlier instants are about to go; None: those that went.
        """
        from_ms = self.retained_from_ms if from_ms is None else from_ms
        retain_ms = self.stream.retain_ms
        retained_ms, counted = now_ms - retain_ms, rows.end
        for hold in holds:
            if hold.now_ms is None:
                return from_ms, rows.base
            instant_ms = min(hold.now_ms, now_ms)
            retained_ms = min(retained_ms, instant_ms - max(hold.reach_ms, retain_ms))
            end = rows.end if instant_ms == now_ms else rows.first_at_or_after(instant_ms + 1)
            counted = min(counted, end - hold.rows)
            for behind_ms, count in hold.earlier_rows:
                if behind_ms is not None:
                    counted = min(counted, rows.first_at_or_after(instant_ms - behind_ms + 1) - count)
        if from_ms is not None:
            retained_ms = max(retained_ms, from_ms)
        first = rows.first_at_or_after(retained_ms)
        always = [count for hold in holds for behind_ms, count in hold.earlier_rows if behind_ms is None]
        return retained_ms, min(counted, first - max(always, default=0))

    def needs(self, holds: Sequence[Hold]) -> tuple[int, int] | None:
        """(rows from this instant on, so many of the last), whatever rows there are; None: all of them."""
        now_ms, retain_ms = self.clock.now_ms, self.stream.retain_ms
        instants = [hold.now_ms for hold in holds if hold.now_ms is not None]
        if now_ms is None or len(instants) < len(holds) or any(at_ms != now_ms for at_ms in instants):
            return None
        if any(hold.earlier_rows for hold in holds):
            return None
        reach_ms = max((hold.reach_ms for hold in holds), default=0)
        return now_ms - max(reach_ms, retain_ms), max((hold.rows for hold in holds), default=0)

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
                Lost(self.late, self.rejected, self.unreadable, self.counted_from_ms),
                self.clock.next_offsets,
                self.queries.generations,
                self.queries.errors,
                () if self.promises is None else tuple(self.promises.broken),
                () if self.promises is None else self.promises.forgotten,
                self.clock.view(),
            )
        return self._view

    def outdate(self) -> None:
        """What is known of it has changed, though it took no step."""
        self._view = None

    @property
    def late_share(self) -> float:
        """The share of rows that were too late for every answer, of all rows that came."""
        return self.late / (self.late + self.rows.end) if self.late else 0.0

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        return (
            Attribute("now_ms", self.clock.now_ms, "NOW of the stream, ms since 1970"),
            Attribute("clock_ms", self.clock.clock_ms, "the journalled clock"),
            Attribute("lag_ms", self.clock.lag_ms, "how far NOW is behind the journalled clock"),
            Attribute("behind_ms", self.view().behind_ms, "how far NOW is behind its newest record"),
            Attribute("idle_partitions", len(self.clock.idle), "partitions that hold NOW back no more"),
            Attribute("pending_rows", len(self.pending), "rows above NOW"),
            Attribute("late_rows", self.late, "rows that came at or before NOW, or broke a constraint"),
            Attribute("rejected_rows", self.rejected, "rows too far ahead of the clock"),
            Attribute("shed_records", self.sheds.records, "records shed, of those that may be retained"),
            Attribute("shed_runs", len(self.sheds.runs), "runs that these are in"),
            Attribute("unreadable_records", self.unreadable, "records that gave no row"),
            Attribute("retained_from_ms", self.retained_from_ms, "rows before this instant are gone"),
        )

    def constraints(self) -> dict[str, tuple[Attribute, ...]]:
        """Attributes of each constraint that is declared or observed, by id."""
        if self.promises is None:
            return self.monitor.entities((), (), ())
        return self.monitor.entities(self.promises.broken, self.promises.forgotten, self.promises.waited)

    # --- the store's side -------------------------------------------------------------------------

    def copy(self, sink: StateSink, clock_ms: int) -> None:
        """Hand over all there is, to a sink that has nothing; saves know nothing of it."""
        name = self.stream.name
        sink.put_source(self._state(clock_ms))
        self._put_rows(sink, self.rows.base)
        for number, piece in enumerate(self.pending.pieces()):
            sink.put_pending(name, number, piece)

    def _put_rows(self, sink: StateSink, first: int) -> None:
        """From this ordinal on, segments that begin before it whole."""
        name = self.stream.name
        for part in self.rows.sealed_from(first):
            sink.seal(name, part.first, part.batch(self.rows.schema))
            first = part.end
        for ordinal, rows in self.rows.rows().slices(max(first, self.rows.base), self.rows.end):
            sink.append_rows(name, ordinal, rows)

    def _put_history(self, sink: StateSink, below: int) -> int:
        """In place of all rows that are stored below an ordinal, segments that begin there, whole. Returns
        where they end.
        """
        name, schema, end = self.stream.name, self.rows.schema, below
        sink.cut_rows(name, below)
        for part in self.rows.rows().parts:
            if part.first < below:
                sink.seal(name, part.first, part.batch(schema))
                end = part.end
        return end

    def save(self, sink: StateSink, clock_ms: int) -> Saved:
        """Hand over what changed since the last save; :meth:`saved` confirms it."""
        name = self.stream.name
        sink.put_source(self._state(clock_ms))
        end = self.rows.end
        if self._unsaved_below is not None:
            self._put_rows(sink, max(self._saved_end, self._put_history(sink, self._unsaved_below)))
        else:
            self._put_rows(sink, self._saved_end)
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
        self._unsaved_below = None
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
            self.clock.partitions(),
            self.rows.origin,
            self.rows.whole_from_ms,
            self.unreadable,
            self.counted_from_ms,
            None if self.promises is None else self.promises.state(self.rows.end - self.rows.base),
            self.sheds.runs,
        )

    def restore_state(self, state: SourceState) -> None:
        """The clock and counts as saved."""
        self.clock.restore(state.now_ms, state.clock_ms, dict(state.partitions))
        self.retained_from_ms = state.retained_from_ms
        self.late, self.rejected, self.unreadable = state.late, state.rejected, state.unreadable
        self.counted_from_ms = state.counted_from_ms
        self.sheds.runs = state.sheds
        self.rows.origin, self.rows.whole_from_ms = state.origin, state.whole_from_ms
        self._saved_end, self._saved_base = state.end, state.base

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
        self.queries.errors[:] = 0
        self._view = None

    def restore_errors(self, counts: Mapping[int, int]) -> None:
        """The errors of predicates, by slot, as saved."""
        known = self.queries.errors
        self.queries.count_errors({slot: count - int(known[slot]) for slot, count in counts.items()})
        self._view = None

    def _check(self) -> None:
        if self.promises is not None:
            self.promises._check()
        self.pending._check()
        self.rows._check()
        self.queries._check()
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
