"""A slow, obvious evaluator of what the engine promises: rows as tuples, one at a time, all recomputed.

It takes the steps that the engine takes and answers the same questions; tests hold the engine against it.
Nothing is shared with the engine but the model, the parser and the binder. Readable before all else: every
rule of time, windows and retention stands here once, as plain code over lists.

How it reads the rules where a short text leaves room:

*   The clock is the largest ``clock_ms`` of any step so far, whatever its body.
*   Event time. In a step over a stream a partition is *held* (not idle) when it lags, has rows in the step,
    or had a record less than ``idle_timeout_ms`` ago. This set stands for the whole step. A row too far
    ahead of the clock is a record as well: it keeps its partition active, but moves no timestamp and not
    NOW. A partition is known once a row or ``lagging`` named it.
*   NOW is brought up to date at the begin of the step and after each of its rows, never back. While no
    partition is held, it is at least the largest timestamp seen, and goes on with the clock from the
    instant at which the last partition fell idle if the stream says so.
*   Arrival time. A partition lags during a step while it has rows to come or is in ``lagging``, and then
    holds NOW below its last timestamp; NOW never passes clock - 1, where all others stand.
*   Rows above NOW wait. They enter at the end of a step, sorted by (timestamp, partition, offset); no row
    that enters later sorts before them, since it would have been late.
*   Retention is brought up to date at the end of every step for every stream that has a NOW.
    ``retained_from`` hides rows from time windows even while a ``[ROWS n]`` window keeps them, so a time
    window is incomplete as soon as it reaches below ``retained_from`` and any row that ever entered lies
    there.
*   Predicate errors are counted over the rows that a registration finds retained and each that enters
    later.

Cost: O(rows) a step and a query for nearly everything. For tests and small data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from engine.language.expressions import Value
from engine.language.query import Aggregate, Project, Query
from engine.language.statements import parse
from engine.limits import Limits
from engine.model.batch import Batch, Column
from engine.model.source import SourceName, Stream
from engine.model.step import (
    BEGINNING,
    CreateSource,
    DropSource,
    Heartbeat,
    Position,
    Records,
    Refusal,
    Register,
    Registration,
    Step,
    StepResult,
    Unregister,
)
from engine.model.types import Kind
from engine.reference_expressions import evaluate
from engine.reference_values import ERROR, decimal_of
from engine.windows.clauses import RowWindow, TimeWindow, Window
from tureen.errors import (
    HandleInUse,
    InstantOutOfRange,
    LimitExceeded,
    NotSupported,
    SourceConflict,
    StepOutOfOrder,
    TureenError,
    UnknownQuery,
    UnknownSource,
)

Values = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """What :class:`engine.model.answer.Answer` says, in plain Python.

    rows: in (timestamp, partition, offset) order. predicate_errors: of the query so far.
    """

    rows: list[Values]
    now_ms: int | None
    complete: bool
    complete_from_ms: int | None
    predicate_errors: int
    errors: int


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A row at its place in the order of the stream; no two share a place."""

    timestamp: int
    partition: int
    offset: int
    values: Values = field(compare=False)


@dataclass(slots=True)
class Partition:
    """What is known of a partition's time."""

    timestamp_max: int | None = None
    active_clock: int | None = None


@dataclass(slots=True)
class Source:
    """A stream with all rows that ever entered; those below ``base`` are gone for every answer."""

    stream: Stream
    now: int | None = None
    partitions: dict[int, Partition] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    pending: list[Row] = field(default_factory=list)
    retained_from: int | None = None
    base: int = 0

    def first_at_or_after(self, timestamp: int) -> int:
        """The ordinal of the first row with this timestamp or a later one."""
        return sum(row.timestamp < timestamp for row in self.rows)

    def raise_now(self, candidate: int) -> None:
        self.now = candidate if self.now is None else max(self.now, candidate)


@dataclass(slots=True)
class Standing:
    """A standing query."""

    registration: Registration
    query: Query
    predicate_errors: int = 0


class Reference:
    """The engine as the rules say it, without a thought for speed."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.position: Position = BEGINNING
        self.clock = 0
        self.sources: dict[str, Source] = {}
        self.queries: dict[str, Standing] = {}

    # --- steps --------------------------------------------------------------------------------------

    def apply(self, step: Step) -> StepResult:
        """Apply one step. Raises StepOutOfOrder."""
        if step.position.sequence != self.position.sequence + 1 or step.position.epoch < self.position.epoch:
            raise StepOutOfOrder(f"{step.position} does not follow {self.position}")
        self.position = step.position
        self.clock = max(self.clock, step.clock_ms)
        result = StepResult(step.position)
        match step.body:
            case CreateSource(stream):
                result = replace(result, failed=refusals(stream.name, partial(self._create, stream)))
            case DropSource(name):
                result = replace(result, failed=refusals(name, partial(self._drop, name)))
            case Register(registrations):
                failed: dict[str, Exception] = {}
                for registration in registrations:
                    failed |= refusals(registration.query_id, partial(self._register, registration))
                result = replace(result, failed=failed)
            case Unregister(query_ids):
                for query_id in query_ids:
                    self.queries.pop(query_id, None)
            case Records(name, batch, next_offsets, lagging):
                result = self._records(step.position, name, batch, next_offsets, lagging)
            case Heartbeat(name, lagging):
                result = self._records(step.position, name, None, {}, lagging)
        for known, source in self.sources.items():
            self._retain(known, source)
        return result

    def _create(self, stream: Stream) -> None:
        known = self.sources.get(stream.name)
        if known is None:
            self.sources[stream.name] = Source(stream)
        elif known.stream != stream:
            raise SourceConflict(f"stream {stream.name!r} exists with another definition")

    def _drop(self, name: SourceName) -> None:
        if name not in self.sources:
            raise UnknownSource(name)
        if any(query.query.source == name for query in self.queries.values()):
            raise SourceConflict(f"stream {name!r} is read by a query")
        del self.sources[name]

    def _register(self, registration: Registration) -> None:
        known = self.queries.get(registration.query_id)
        if known is not None:
            if known.registration.sql == registration.sql:
                return
            raise HandleInUse(registration.query_id)
        if len(self.queries) >= self.limits.queries_max:
            raise LimitExceeded("queries_max", self.limits.queries_max)
        catalogue: Mapping[str, Stream] = {name: source.stream for name, source in self.sources.items()}
        selection = parse(registration.sql, catalogue, self.limits)
        if not isinstance(selection, Query):
            raise NotSupported("only a SELECT can stand as a query")
        query = Standing(registration, selection)
        source = self.sources[selection.source]
        for row in source.rows[source.base :]:
            self._count_error(query, row)
        self.queries[registration.query_id] = query

    def _count_error(self, query: Standing, row: Row) -> None:
        predicate = query.query.scan.predicate
        if predicate is not None and evaluate(predicate, row.values) is ERROR:
            query.predicate_errors += 1

    # --- time ---------------------------------------------------------------------------------------

    def _records(
        self,
        position: Position,
        name: SourceName,
        batch: Batch | None,
        next_offsets: Mapping[int, int],
        lagging: frozenset[int],
    ) -> StepResult:
        source = self.sources.get(name)
        if source is None:
            raise StepOutOfOrder(f"stream {name!r} was not created")
        rows = [] if batch is None else python_rows(batch)
        for partition in {row.partition for row in rows} | lagging:
            source.partitions.setdefault(partition, Partition())
        late: list[int] = []
        rejected: list[Refusal] = []
        idle: frozenset[int] = frozenset()
        if source.stream.event_time:
            idle = self._event_time(source, rows, lagging, late, rejected)
        else:
            self._arrival_time(source, rows, lagging)
        entered = self._enter(source, name)
        return StepResult(position, source.now, idle, entered, tuple(late), tuple(rejected))

    def _event_time(
        self,
        source: Source,
        rows: list[Row],
        lagging: frozenset[int],
        late: list[int],
        rejected: list[Refusal],
    ) -> frozenset[int]:
        """Take the rows in, move NOW; return the partitions that are idle."""
        stream = source.stream
        held = set(lagging) | {row.partition for row in rows}
        for number, partition in source.partitions.items():
            if (
                partition.active_clock is not None
                and self.clock - partition.active_clock < stream.idle_timeout_ms
            ):
                held.add(number)
        self._watermark(source, held)
        for place, row in enumerate(rows):
            partition = source.partitions[row.partition]
            partition.active_clock = self.clock
            if row.timestamp > self.clock + stream.future_max_ms:
                rejected.append(Refusal(place, "future"))
                continue
            if source.now is not None and row.timestamp <= source.now:
                late.append(place)
            else:
                source.pending.append(row)
            seen = partition.timestamp_max
            partition.timestamp_max = row.timestamp if seen is None else max(seen, row.timestamp)
            self._watermark(source, held)
        if not held:
            self._all_idle(source)
        had_records = {n for n, partition in source.partitions.items() if partition.active_clock is not None}
        return frozenset(had_records - held)

    def _watermark(self, source: Source, held: set[int]) -> None:
        """NOW of event time: the least watermark of the held partitions, once each of them has one."""
        largest = [source.partitions[number].timestamp_max for number in held]
        seen = [timestamp for timestamp in largest if timestamp is not None]
        if seen and len(seen) == len(largest):
            source.raise_now(min(seen) - source.stream.lateness_ms - 1)

    def _all_idle(self, source: Source) -> None:
        stream = source.stream
        partitions = source.partitions.values()
        seen = [p.timestamp_max for p in partitions if p.timestamp_max is not None]
        if not seen:
            return
        source.raise_now(max(seen))
        if stream.idle_advances:
            idle_since = max(p.active_clock for p in partitions if p.active_clock is not None)
            source.raise_now(max(seen) + self.clock - (idle_since + stream.idle_timeout_ms))

    def _arrival_time(self, source: Source, rows: list[Row], lagging: frozenset[int]) -> None:
        self._arrival_now(source, {row.partition for row in rows} | lagging)
        for place, row in enumerate(rows):
            timestamp = row.timestamp if source.now is None else max(row.timestamp, source.now + 1)
            source.pending.append(replace(row, timestamp=timestamp))
            partition = source.partitions[row.partition]
            seen = partition.timestamp_max
            partition.timestamp_max = timestamp if seen is None else max(seen, timestamp)
            self._arrival_now(source, {later.partition for later in rows[place + 1 :]} | lagging)

    def _arrival_now(self, source: Source, behind: set[int] | frozenset[int]) -> None:
        watermarks = [self.clock - 1]
        for number in behind:
            timestamp = source.partitions[number].timestamp_max
            if timestamp is None:
                return
            watermarks.append(timestamp - 1)
        source.raise_now(min(watermarks))

    def _enter(self, source: Source, name: SourceName) -> int:
        now = source.now
        if now is None:
            return 0
        entering = sorted(row for row in source.pending if row.timestamp <= now)
        source.pending = [row for row in source.pending if row.timestamp > now]
        assert not entering or not source.rows or source.rows[-1] < entering[0]
        source.rows.extend(entering)
        for query in self.queries.values():
            if query.query.source == name:
                for row in entering:
                    self._count_error(query, row)
        return len(entering)

    def _retain(self, name: str, source: Source) -> None:
        if source.now is None:
            return
        windows = [q.query.scan.window for q in self.queries.values() if q.query.source == name]
        reaches = [w.reach_ms for w in windows if isinstance(w, TimeWindow)]
        widest = max([source.stream.retain_ms, *(reach for reach in reaches if reach is not None)])
        retained_from = source.now - widest
        if source.retained_from is not None:
            retained_from = max(source.retained_from, retained_from)
        source.retained_from = retained_from
        base = source.first_at_or_after(retained_from)
        for window in windows:
            if isinstance(window, RowWindow):
                base = min(base, len(source.rows) - window.rows)
        source.base = max(source.base, base)

    # --- answers ------------------------------------------------------------------------------------

    def answer(self, query_id: str, at_ms: int | None = None) -> ReferenceAnswer:
        """The answer after the last step, at NOW or an earlier instant.

        Raises UnknownQuery; InstantOutOfRange: after NOW, or the window at ``at_ms`` reaches below what
        is retained.
        """
        query = self.queries.get(query_id)
        if query is None:
            raise UnknownQuery()
        source = self.sources[query.query.source]
        now = source.now
        if now is None:
            if at_ms is not None:
                raise InstantOutOfRange(at_ms, None, 0)
            return self._select(query, [], None, None)
        if at_ms is not None and at_ms > now:
            raise InstantOutOfRange(at_ms, source.retained_from, now)
        instant = now if at_ms is None else at_ms
        held, complete_from = self._window(source, query.query.scan.window, instant)
        if at_ms is not None and complete_from is not None:
            raise InstantOutOfRange(at_ms, source.retained_from, now)
        return self._select(query, held, instant, complete_from)

    def standing(self) -> list[str]:
        """The ids of the queries that stand, in order of registration."""
        return list(self.queries)

    def _window(self, source: Source, window: Window, instant: int) -> tuple[list[Row], int | None]:
        """The rows in a window at an instant, and from when it is complete, None where it is."""
        retained_from = source.retained_from
        assert retained_from is not None
        visible = [row for row in source.rows if row.timestamp <= instant]
        if isinstance(window, RowWindow):
            begin_ordinal = len(visible) - window.rows
            complete = source.base == 0 or begin_ordinal >= source.base
            rows = visible[max(begin_ordinal, source.base) :]
            if complete:
                return rows, None
            kept = source.rows[source.base :]
            return rows, kept[0].timestamp if kept else instant + 1
        begin, end = window.bounds_ms(instant)
        complete = source.first_at_or_after(retained_from) == 0 or (
            begin is not None and begin >= retained_from
        )
        first = retained_from if begin is None else max(begin, retained_from)
        rows = [row for row in visible[source.base :] if first <= row.timestamp <= end]
        return rows, None if complete else retained_from

    def _select(
        self, query: Standing, rows: list[Row], now: int | None, complete_from: int | None
    ) -> ReferenceAnswer:
        predicate = query.query.scan.predicate
        (stage,) = query.query.stages
        matching = [row for row in rows if predicate is None or evaluate(predicate, row.values) is True]
        answers: list[Values] = []
        errors = 0
        if isinstance(stage, Aggregate):
            answers.append((len(matching),))
        elif isinstance(stage, Project):
            for row in matching:
                values = [evaluate(output.expression, row.values) for output in stage.outputs]
                errors += sum(value is ERROR for value in values)
                answers.append(tuple(None if value is ERROR else value for value in values))
        return ReferenceAnswer(
            answers, now, complete_from is None, complete_from, query.predicate_errors, errors
        )


def refusals(name: str, change: Callable[[], None]) -> dict[str, Exception]:
    """Make a change; what refuses it, under this name."""
    try:
        change()
    except TureenError as refusal:
        return {name: refusal}
    return {}


def python_rows(batch: Batch) -> list[Row]:
    """The rows of a batch as tuples of Python values."""
    columns = [python_values(column) for column in batch.columns]
    return [
        Row(
            int(batch.timestamp[i]),
            int(batch.partition[i]),
            int(batch.offset[i]),
            tuple(column[i] for column in columns),
        )
        for i in range(len(batch))
    ]


def python_values(column: Column) -> list[Value]:
    """The values of a column as :mod:`engine.model.types` says they are in Python."""
    values: list[Value] = []
    for i, value in enumerate(column.values.tolist()):
        valid = column.type.kind is not Kind.NULL and (column.valid is None or bool(column.valid[i]))
        values.append(_python_value(column, value) if valid else None)
    return values


def _python_value(column: Column, value: Any) -> Value:
    kind = column.type.kind
    if kind is Kind.STRING:
        assert column.dictionary is not None
        text: str = column.dictionary[value].as_py()
        return text
    if kind is Kind.DECIMAL:
        return decimal_of(value, column.type.scale)
    plain: Value = value
    return plain
