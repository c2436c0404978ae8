"""A slow, obvious evaluator of what the engine promises: rows as tuples, one at a time, all recomputed.

It takes the steps that the engine takes and answers the same questions; tests hold the engine against it.
Nothing is shared with the engine but the model, the parser and the binder. Readable before all else: every
rule of time (:mod:`engine.reference.watermarks`), windows and retention stands in this folder once, as plain
code over lists.

How it reads the rules where a short text leaves room:

*   The clock is the largest ``clock_ms`` of any step so far, whatever its body; it begins anew where no
    source is left.
*   Rows above NOW wait. They enter at the end of a step, sorted by (timestamp, partition, offset); no row
    that enters later sorts before them, since it would have been late.
*   Retention is brought up to date at the end of every step for every stream that has a NOW.
    ``retained_from`` hides rows from time windows even while a ``[ROWS n]`` window keeps them, so a time
    window is incomplete as soon as it reaches below ``retained_from`` and any row that ever entered lies
    there.
*   Predicate errors are counted for each predicate, however many queries share it, while a query that keeps
    matches holds it: over the rows that the first of them finds retained, and each that enters later.
*   ``none``, ``lazy`` and ``eager`` answer alike, so here they differ in nothing but that count. A query that
    is paused refuses, and answers afterwards as if it had never been.

Cost: O(rows) a step and a query for nearly everything. For tests and small data alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.expressions import Expression
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import (
    BEGINNING,
    Alter,
    Backfill,
    CreateDerived,
    CreateSource,
    DropSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    StepResult,
    Unregister,
)
from engine.overload.tolerated import unseen_if_shed
from engine.reference.changes import Told, Way, exact_retention
from engine.reference.expressions import evaluate
from engine.reference.following import Following, copies
from engine.reference.history import prepend
from engine.reference.retention import Reader, retain
from engine.reference.rows import Row, Source, Values, python_rows, versions
from engine.reference.seen import At, now_of, seen_at
from engine.reference.stages import answer as answer_of
from engine.reference.values import ERROR
from engine.reference.watermarks import promise, take_in
from engine.reference.windows import gone_versions, lacks_versions
from tureen.errors import (
    BackfillRefused,
    HandleInUse,
    InstantOutOfRange,
    LimitExceeded,
    NotSupported,
    QueryPaused,
    SourceConflict,
    StepOutOfOrder,
    TureenError,
    UnknownQuery,
    UnknownSource,
)


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """What :class:`engine.model.answer.Answer` says, in plain Python.

    rows: in the order of the query's relation. predicate_errors: of the query so far.
    """

    rows: list[Values]
    now_ms: int | None
    complete: bool
    complete_from_ms: int | None
    predicate_errors: int
    errors: int


@dataclass(slots=True)
class Standing:
    """A standing query."""

    registration: Registration
    query: Query

    @property
    def options(self) -> QueryOptions:
        return QueryOptions.of(self.registration.options)

    @property
    def keeps_matches(self) -> bool:
        return self.options.maintenance != "none" and not self.options.paused


class Reference:
    """The engine as the rules say it, without a thought for speed."""

    def __init__(self, limits: Limits | None = None, functions: FunctionCatalogue = BUILT_IN) -> None:
        self.limits = limits or Limits()
        self.functions = functions
        self.position: Position = BEGINNING
        self.clock = 0
        self.sources: dict[str, Source] = {}
        self.derived: dict[str, Derived] = {}
        self.queries: dict[str, Standing] = {}
        self.errors: dict[tuple[SourceName, Expression], int] = {}
        self.following = Following()
        self.told: list[Told] = []

    # --- steps --------------------------------------------------------------------------------------

    def apply(self, step: Step) -> StepResult:
        """Apply one step; ``told`` is then what changed in the answers that are followed. Raises
        StepOutOfOrder.
        """
        if step.position.sequence != self.position.sequence + 1 or step.position.epoch < self.position.epoch:
            raise StepOutOfOrder(f"{step.position} does not follow {self.position}")
        self.position = step.position
        self.clock = max(self.clock, step.clock_ms)
        was, stood = copies(self.sources), self._telling()
        self.told = []
        if isinstance(step.body, Backfill):
            return self._backfill(step.position, step.body, was, stood)
        result = self._carried_out(step)
        if not self.sources:
            self.clock = 0
        moved = copies(self.sources)
        for known, source in self.sources.items():
            self._retain(known, source)
        over = step.body.source if isinstance(step.body, Records | Heartbeat) else None
        readers = None
        if over is not None and not self.sources[over].stream.is_table:
            readers = exact_retention(over, [standing.query for standing in self.queries.values()])
        stay = {query_id: query for query_id, query in self._telling().items() if query_id in stood}
        self.told += self.following.changes(stay, Way(was, moved, self.sources, over, readers))
        return result

    def _carried_out(self, step: Step) -> StepResult:
        """What the body of a step does, and what of it is refused."""
        failed: dict[str, Exception] = {}
        match step.body:
            case CreateSource(stream):
                failed = refusals(stream.name, partial(self._create, stream))
            case CreateDerived(derived):
                failed = refusals(derived.name, partial(self._create_derived, derived))
            case DropSource(name):
                failed = refusals(name, partial(self._drop, name))
            case Register(registrations):
                for registration in registrations:
                    failed |= refusals(registration.query_id, partial(self._register, registration))
            case Alter(registrations):
                for registration in registrations:
                    failed |= refusals(registration.query_id, partial(self._alter, registration))
            case Unregister(query_ids):
                for query_id in query_ids:
                    self._unregister(query_id)
                self._recount_errors()
            case Records(name, batch, _, lagging):
                source, since = self.sources[name], step.body.complete_from_ms
                if since is not None:
                    known = source.complete_from
                    source.complete_from = since if known is None else max(since, known)
                shed = step.body.shed
                if shed is not None:
                    source.shed += [(p, *bounds, shed.level) for p, bounds in shed.ranges.items()]
                result = self._records(step.position, name, batch, lagging)
                if shed is not None and shed.unread:
                    self._lack_unread(source, batch)
                return result
            case Heartbeat(name, lagging, below):
                failed = refusals(name, partial(self._promise, name, below)) if below else {}
                if not failed:
                    return self._records(step.position, name, None, lagging)
                source = self.sources[name]
                return StepResult(step.position, source.now, source.idle, failed=failed)
        return StepResult(step.position, failed=failed)

    def _backfill(
        self, position: Position, body: Backfill, was: Mapping[str, Source], stood: Mapping[str, Query]
    ) -> StepResult:
        source = self.sources[body.source]
        try:
            rows = prepend(source, body)
        except BackfillRefused as refusal:
            return StepResult(position, failed={body.source: refusal})
        for reader, predicate in self.errors:
            if reader == body.source:
                self.errors[reader, predicate] += errors_of(predicate, source, rows)
        for known, other in self.sources.items():
            self._retain(known, other)
        self.told = list(self.following.history(stood, was, self.sources))
        return StepResult(position, source.now, entered=len(rows))

    def follow(self, query_id: str) -> None:
        """Tell the changes of a query from the next step on."""
        self.following.asked.add(query_id)

    def _telling(self) -> dict[str, Query]:
        """The queries that have an answer."""
        return {
            query_id: standing.query
            for query_id, standing in self.queries.items()
            if not standing.options.paused
        }

    def _create(self, stream: Stream) -> None:
        known = self.sources.get(stream.name)
        if stream.name in self.derived:
            raise SourceConflict(f"{stream.name!r} is a view")
        if known is None:
            self.sources[stream.name] = Source(stream)
        elif known.stream != stream:
            raise SourceConflict(f"stream {stream.name!r} exists with another definition")

    def _create_derived(self, derived: Derived) -> None:
        name = derived.name
        if self.derived.get(name) == derived:
            return
        if name in self.sources:
            raise SourceConflict(f"{name!r} is a stream")
        self._refuse_if_used(name)
        self._parse(derived.sql, besides=name)
        self.derived[name] = derived

    def _drop(self, name: SourceName) -> None:
        if name not in self.sources and name not in self.derived:
            raise UnknownSource(name)
        self._refuse_if_used(name)
        self.sources.pop(name, None)
        self.derived.pop(name, None)

    def _refuse_if_used(self, name: SourceName) -> None:
        """By a query, or by another view."""
        readers = [standing.query for standing in self.queries.values()]
        if any(name in (*query.sources, *query.uses) for query in readers):
            raise SourceConflict(f"{name!r} is read")
        if any(other.name != name and self._reads(other, name) for other in self.derived.values()):
            raise SourceConflict(f"{name!r} is read by a view")

    def _reads(self, view: Derived, name: SourceName) -> bool:
        """One that cannot be understood, since a function is missing, reads whatever its text mentions."""
        try:
            query = self._parse(view.sql)
        except TureenError:
            return f'"{name}"' in view.sql or name in re.findall(r"\w+", view.sql.lower())
        return name in (*query.sources, *query.uses)

    def _parse(self, sql: str, besides: SourceName | None = None) -> Query:
        catalogue: dict[str, Stream | Derived] = {n: source.stream for n, source in self.sources.items()}
        catalogue |= {name: derived for name, derived in self.derived.items() if name != besides}
        query = parse(sql, catalogue, self.limits, functions=self.functions)
        if not isinstance(query, Query):
            raise NotSupported("only a SELECT can be asked or registered")
        return query

    def _register(self, registration: Registration) -> None:
        known = self.queries.get(registration.query_id)
        text = text_of(registration)
        if known is not None and text_of(known.registration) != text:
            raise HandleInUse(registration.query_id)
        QueryOptions.of(registration.options)
        if known is None and len(self.queries) >= self.limits.queries_max:
            raise LimitExceeded("queries_max", self.limits.queries_max)
        query = self._unseeing(self._parse(text), registration)
        standing = self.queries[registration.query_id] = Standing(registration, query)
        self._recount_errors()
        was_told = known is not None and not known.options.paused
        if was_told and standing.options.paused:
            self.following.pauses(registration.query_id, query, self.sources)
        elif not was_told and not standing.options.paused:
            self.told += self.following.resumes(registration.query_id, query, self.sources)

    def _alter(self, registration: Registration) -> None:
        """What is told of it is not modelled here: tests hold it against the sum of all that was told."""
        known = self.queries.get(registration.query_id)
        if known is None:
            raise UnknownQuery()
        QueryOptions.of(registration.options)
        query = self._unseeing(self._parse(text_of(registration)), registration)
        self.queries[registration.query_id] = Standing(registration, query)
        self._recount_errors()

    def _unseeing(self, query: Query, registration: Registration) -> Query:
        """The query as it sees rows that are shed."""
        tolerance = query.tolerance.under(QueryOptions.of(registration.options).tolerance)
        return unseen_if_shed(query, {name: self.sources[name].stream for name in query.sources}, tolerance)

    def _unregister(self, query_id: str) -> None:
        gone = self.queries.pop(query_id, None)
        if gone is not None and (not gone.options.paused or query_id in self.following.last):
            self.told += self.following.ends(query_id, gone.query, self.sources)
        self.following.asked.discard(query_id)

    # --- predicate errors -----------------------------------------------------------------------------

    def _recount_errors(self) -> None:
        """Begin to count for predicates that came, forget those that went."""
        held = {
            pair
            for standing in self.queries.values()
            if standing.keeps_matches
            for pair in standing.query.predicates()
        }
        self.errors = {pair: count for pair, count in self.errors.items() if pair in held}
        for name, predicate in held - self.errors.keys():
            source = self.sources[name]
            self.errors[name, predicate] = errors_of(predicate, source, retained(source))

    def _predicate_errors(self, standing: Standing) -> int:
        if not standing.keeps_matches:
            return 0
        return sum(self.errors.get(pair, 0) for pair in standing.query.predicates())

    def _lack_unread(self, source: Source, batch: Batch) -> None:
        """What was not read is no later than what was, by more than the lateness."""
        read = set(zip(batch.partition.tolist(), batch.offset.tolist(), strict=True))
        stamps = [
            row.timestamp for row in source.rows + source.pending if (row.partition, row.offset) in read
        ]
        latest = max([*stamps, *([] if source.now is None else [source.now])], default=self.clock)
        lateness = source.stream.lateness_ms if source.stream.event_time else 0
        source.complete_from = max(latest + lateness + 1, source.complete_from or 0)

    # --- rows ---------------------------------------------------------------------------------------

    def _promise(self, name: SourceName, below: Mapping[int, int]) -> None:
        promise(self.sources[name], below, self.clock)

    def _records(
        self,
        position: Position,
        name: SourceName,
        batch: Batch | None,
        lagging: frozenset[int],
    ) -> StepResult:
        source = self.sources.get(name)
        if source is None:
            raise StepOutOfOrder(f"stream {name!r} was not created")
        read = versions if source.stream.is_table else python_rows
        rows = [] if batch is None else read(batch)
        taken = take_in(source, rows, lagging, self.clock)
        entered = self._enter(source, name)
        source.idle = taken.idle
        return StepResult(position, source.now, taken.idle, entered, tuple(taken.late), tuple(taken.rejected))

    def _enter(self, source: Source, name: SourceName) -> int:
        now = source.now
        if now is None:
            return 0
        entering = sorted(row for row in source.pending if row.timestamp <= now)
        source.pending = [row for row in source.pending if row.timestamp > now]
        assert not entering or not source.rows or source.rows[-1] < entering[0]
        source.rows.extend(entering)
        for reader, predicate in self.errors:
            if reader == name:
                self.errors[reader, predicate] += errors_of(predicate, source, entering)
        return len(entering)

    def _retain(self, name: str, source: Source) -> None:
        readers = []
        for standing in self.queries.values():
            scans = [(scan, ms) for scan, ms in standing.query.scans_behind() if scan.source == name]
            if scans:
                at = seen_at(standing.query, self.sources, now_of(standing.query, self.sources))
                readers.append(Reader(at[name].instant, scans))
        retain(source, readers, self.limits.held_rows_max)

    # --- answers ------------------------------------------------------------------------------------

    def answer(self, query_id: str, at_ms: int | None = None) -> ReferenceAnswer:
        """The answer after the last step, at NOW or an earlier instant.

        Raises UnknownQuery, QueryPaused; InstantOutOfRange: after NOW, or the window at ``at_ms`` reaches
        below what is retained.
        """
        query = self.queries.get(query_id)
        if query is None:
            raise UnknownQuery()
        if query.options.paused:
            raise QueryPaused()
        now = now_of(query.query, self.sources)
        instant = now if at_ms is None else at_ms
        if instant is not None and (now is None or instant > now):
            raise InstantOutOfRange(instant, None, now or 0)
        at = seen_at(query.query, self.sources, instant)
        rows, errors, complete_from = answer_of(query.query, at)
        if at_ms is not None and (complete_from is not None or _lacks_versions(query.query, at)):
            raise InstantOutOfRange(at_ms, complete_from, now or 0)
        return ReferenceAnswer(
            rows, instant, complete_from is None, complete_from, self._predicate_errors(query), errors
        )

    def standing(self) -> list[str]:
        """The ids of the queries that stand, in order of registration."""
        return list(self.queries)


def retained(source: Source) -> list[Row]:
    """The rows that are there; of a table all versions that an answer may want."""
    if not source.stream.is_table:
        return source.rows[source.base :]
    gone = gone_versions(source)
    return [row for place, row in enumerate(source.rows) if place not in gone]


def _lacks_versions(query: Query, at: At) -> bool:
    """Whether an instant is too early for a table whose history is read."""
    histories = [at[scan.source] for scan in query.scans() if scan.history]
    return any(seen.instant is not None and lacks_versions(seen.source, seen.instant) for seen in histories)


def errors_of(predicate: Expression, source: Source, rows: list[Row]) -> int:
    """How many of the rows end as an error."""
    return sum(evaluate(predicate, source.read(row)) is ERROR for row in rows)


def refusals(name: str, change: Callable[[], None]) -> dict[str, Exception]:
    """Make a change; what refuses it, under this name."""
    try:
        change()
    except TureenError as refusal:
        return {name: refusal}
    return {}
