"""A bound query: what a registered text means, ready for the engine.

    Query = Scan, then stages

The scan says which rows of a stream the query is about: a window, and a predicate that the Query SteM shares
with all other queries. The stages are relational operators, each a function of a relation at an instant:
rows in order, with columns. Columns of a stage's expressions are numbered by what the stage before gives.

    SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] WHERE v > 5 GROUP BY k HAVING COUNT(*) > 2 ORDER BY n LIMIT
    3

    scan       s, the last hour, v > 5      the columns of s
    aggregate  by k: COUNT(*)               k, COUNT(*)
    filter     COUNT(*) > 2                 the same
    sort, limit                             the same
    project    k, n                         k, n

An answer is a bag whose rows have an order all the same, so that every evaluator gives the same table: rows
of a scan in (timestamp, partition, offset) order, groups and distinct rows in the order of their first row,
and sorting is stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output
from engine.algebra.streamed.stage import Streamed, StreamOperator
from engine.language.preference import Preference
from engine.model.expressions import Expression
from engine.model.paths import Path
from engine.model.record_format import KeyFormat, RecordFormat
from engine.model.sample import Sample
from engine.model.source import Derived, SourceName, Stream
from engine.model.summary import SummaryDefinition, SummaryName, SummarySettings
from engine.model.tolerance import EXACT, Tolerance
from engine.model.types import Type
from engine.windows.assignment import Assignment
from engine.windows.clauses import RowWindow, Window


@dataclass(frozen=True, slots=True)
class Scan:
    """FROM source [window] WHERE predicate.

    predicate: a BOOLEAN expression over the stream's columns; None: every row. assignment: a table function,
    which gives each row once for each window it is in, with two more columns, window_start and window_end,
    and makes the last instant of that window the row's instant; the clause then applies to those. history:
    of a table every version, with one more column, ``deleted`` (BOOLEAN): whether it takes its key away.
    sample: what SAMPLE says, for those who name it; which rows it keeps is said by a comparison of the sample
    key (:mod:`engine.language.sampling`), a conjunct of the predicate, or of the filter of a window of rows.
    window_down_to_ms: how short the window, ``[RANGE t]``, may become for its query, 0 < this <= t; None: it
    stays. A scan is the same whatever may become of it.
    """

    source: SourceName
    window: Window
    predicate: Expression | None = None
    assignment: Assignment | None = None
    history: bool = False
    sample: Sample | None = field(default=None, compare=False)
    window_down_to_ms: int | None = field(default=None, compare=False)

    def predicates(self) -> Iterator[Expression]:
        """The predicates over rows of the source: its own, and that of a window of rows."""
        if self.predicate is not None:
            yield self.predicate
        window = self.window
        if isinstance(window, RowWindow) and window.filter is not None and self.assignment is None:
            yield window.filter


ResultFormat = Literal["upsert", "debezium", "diff"]
ResultEncoding = Literal["json", "avro", "json_schema", "protobuf"]


JsonValue = bool | int | float | str | None | list[Any] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class InsertTarget:
    """The stream of INSERT INTO stream SELECT, and its topic. paths: where the columns of the answer stand in
    its records, one each; none where all are members of their names.
    """

    stream: SourceName
    topic: str
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """EMIT CHANGES: whenever the answer changes, that is written to a topic.

    into: the last part of the topic's name; None: the topics that all share. on_close: only what closed
    windows give, which is final; the query's operator is ISTREAM. snapshot: the answer as it stands when the
    query comes is written first. insert: of INSERT, whose rows become records of a stream; then into, format
    and encoding say nothing.
    """

    into: str | None = None
    on_close: bool = False
    format: ResultFormat = "upsert"
    encoding: ResultEncoding = "json"
    snapshot: bool = True
    insert: InsertTarget | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT. At least one stage gives columns (Project or Aggregate). uses: the views and derived streams
    that its text names, and those that they name, and the stream that it inserts into. operator: which
    changes of its answer leave it, None: as :func:`engine.changes.operator.operator_of` says; emit: where to.
    Neither changes the answer. tolerance, weight: what the text says of them; weight None: nothing.
    preference: which part of the answer is wanted first, where there is no time for all of it; None: all of
    it, always.
    """

    sql: str
    scan: Scan
    stages: tuple[Stage, ...]
    uses: tuple[SourceName, ...] = ()
    operator: StreamOperator | None = None
    emit: Emit | None = None
    tolerance: Tolerance = EXACT
    weight: float | None = None
    preference: Preference | None = None

    @property
    def has_down_to(self) -> bool:
        """Whether its text lets a window or a sample become smaller. O(scans)."""
        return any(
            scan.window_down_to_ms is not None or (scan.sample and scan.sample.down_to) is not None
            for scan in self.scans()
        )

    @property
    def summaries(self) -> tuple[SummaryName, ...]:
        """The summaries that its preference takes estimates from, each once, in order."""
        priorities = () if self.preference is None else self.preference.priorities
        return tuple(dict.fromkeys(one.summary for one in priorities))

    @property
    def views(self) -> tuple[SourceName, ...]:
        """The views among what it uses: all but the stream that it inserts into."""
        inserted = None if self.emit is None or self.emit.insert is None else self.emit.insert.stream
        return tuple(name for name in self.uses if name != inserted)

    @property
    def source(self) -> SourceName:
        """The source of its own scan."""
        return self.scan.source

    @property
    def sources(self) -> tuple[SourceName, ...]:
        """The sources that its scans read, each once, in order."""
        return tuple(dict.fromkeys(scan.source for scan in self.scans()))

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """Names, no two alike, and types of the answer's columns."""
        for stage in reversed(self.stages):  # a Project stands behind every Join
            if stage.computed is not None:
                return stage.computed
        raise AssertionError("a query gives columns")

    @property
    def outputs(self) -> tuple[Output, ...] | None:
        """Its columns, where it does nothing but compute columns of each row of its scan; else None."""
        return self.stages[0].outputs_of_rows if len(self.stages) == 1 else None

    @property
    def selects(self) -> bool:
        """Whether what it makes of a row of its scan depends on that row alone."""
        return all(stage.is_row_by_row for stage in self.stages)

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Those of its own stages that make groups, from the scan up."""
        return tuple(stage.aggregate for stage in self.stages if stage.aggregate is not None)

    def scans(self) -> Iterator[Scan]:
        """Its own scan, then those of inner queries."""
        yield self.scan
        for stage in self.stages:
            if stage.right_input is not None:
                yield from stage.right_input.scans()

    def scans_behind(self, behind_ms: int | None = 0) -> Iterator[tuple[Scan, int | None]]:
        """Yields the scans of :meth:`scans`, each with how long before NOW, in ms, it is looked at for the
        streams that are made above it; None: from the first row on. behind_ms: how long before NOW the query
        itself is looked at.
        """
        behind = [behind_ms]
        for stage in reversed(self.stages):
            if stage.stream is not None and behind[-1] is not None:
                reach_ms = stage.stream.reach_ms
                behind.append(None if reach_ms is None else behind[-1] + reach_ms)
            else:
                behind.append(behind[-1])
        yield self.scan, behind[-1]
        for place, stage in enumerate(self.stages, start=1):
            if stage.right_input is not None:
                yield from stage.right_input.scans_behind(behind[len(self.stages) - place])

    @property
    def last_stream(self) -> int | None:
        """The place of the last of its own stages that makes a stream of what is below; None: none does."""
        places = range(len(self.stages) - 1, -1, -1)
        return next((place for place in places if self.stages[place].stream), None)

    @property
    def has_streams(self) -> bool:
        """Whether a stage, or one of an inner query, makes a stream of what is below: the answer is no
        function of the sources at one instant.
        """
        return has_streams(self.stages)

    def predicates(self) -> tuple[tuple[SourceName, Expression], ...]:
        """What the Query SteMs keep matches of: each predicate over rows of a source once, in order."""
        found = [(scan.source, predicate) for scan in self.scans() for predicate in scan.predicates()]
        return tuple(found) if len(found) < 2 else tuple(dict.fromkeys(found))


def has_streams(stages: Iterable[Stage]) -> bool:
    """Whether one of these, or one of an inner query, makes a stream of what is below."""
    return any(
        stage.stream is not None or (stage.right_input is not None and stage.right_input.has_streams)
        for stage in stages
    )


def streams_of(query: Query) -> Iterator[Streamed]:
    """The stages that make a stream of what is below, those of inner queries too."""
    for stage in query.stages:
        if stage.stream is not None:
            yield stage.stream
        elif stage.right_input is not None:
            yield from streams_of(stage.right_input)


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM, CREATE TABLE; ``if_not_exists`` makes an equal definition no error. ``partitions``: for
    a new topic. create_topic: a topic that is missing is made; else it is refused.
    """

    stream: Stream
    sql: str
    partitions: int = 1
    if_not_exists: bool = False
    create_topic: bool = True


@dataclass(frozen=True, slots=True)
class CreateFromTopic:
    """CREATE STREAM | TABLE ... FROM TOPIC: a :class:`CreateStream` whose columns, and options that are not
    given, whoever carries it out infers from the topic's records, once.

    kind: what it makes. given: options as SQL writes their values, by name. format: as given; None: inferred.
    key_format, timestamp: as given.
    """

    name: SourceName
    kind: Literal["stream", "table"]
    topic: str
    given: Mapping[str, str]
    format: RecordFormat | None = None
    key_format: KeyFormat | None = None
    timestamp: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateFromQuery:
    """CREATE VIEW, or CREATE STREAM | TABLE ... AS SELECT. query: what it means at present. replace: one of
    this name gives way; if_not_exists: an equal definition is no error. materialized: of CREATE MATERIALIZED
    VIEW the text of EMIT CHANGES behind its SELECT, "" without one; None: it is another statement.
    """

    derived: Derived
    query: Query
    sql: str
    replace: bool = False
    if_not_exists: bool = False
    materialized: str | None = None

    @property
    def plain(self) -> str:
        """The statement that makes the view alone, of a materialized one."""
        return f'CREATE VIEW "{self.derived.name}" AS {self.derived.sql}'


@dataclass(frozen=True, slots=True)
class CreateSummary:
    """CREATE SUMMARY; ``if_not_exists`` makes an equal definition no error."""

    definition: SummaryDefinition
    sql: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSummary:
    """DROP SUMMARY name."""

    name: SummaryName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSummary:
    """ALTER SUMMARY name SET (...): settings that may change while it stands; None: as it is."""

    name: SummaryName
    theta: float | None = None
    zone_rows_min: int | None = None

    def applied(self, settings: SummarySettings) -> SummarySettings:
        """The settings with these."""
        return replace(
            settings,
            theta=settings.theta if self.theta is None else self.theta,
            zone_rows_min=settings.zone_rows_min if self.zone_rows_min is None else self.zone_rows_min,
        )


@dataclass(frozen=True, slots=True)
class DescribeSummary:
    """DESCRIBE SUMMARY name: its definition, and what it knows at present."""

    definition: SummaryDefinition


@dataclass(frozen=True, slots=True)
class DropStream:
    """DROP STREAM name, DROP TABLE name where ``table``, or DROP VIEW name where ``view``.

    materialized: with the query of its name. cascade: with the queries, views and derived streams that read
    it.
    """

    name: SourceName
    if_exists: bool = False
    view: bool = False
    table: bool = False
    cascade: bool = False
    materialized: bool = False


@dataclass(frozen=True, slots=True)
class InsertedRow:
    """A row of INSERT. key: that of its record, as JSON has it; None: it has none. members: of its
    record, those of columns that are not NULL. line, column: where the row begins in the text, from 1.
    """

    key: Any
    members: Mapping[str, JsonValue]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO a stream or a table: records that are to be written to its topic."""

    stream: Stream
    rows: tuple[InsertedRow, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW what: queries, streams, tables, sources (streams, tables and views), views, functions, summaries.
    ``extended``: of queries, with all that is known of each.
    """

    what: Literal["queries", "streams", "tables", "sources", "views", "functions", "summaries"]
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE name: the columns and settings of a stream, the columns and text of a view.

    columns: of the stream, or of what the view selects.
    """

    name: SourceName
    columns: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN: of a query that is not registered, or of a standing one by its handle or id.

    The other of the two is None. ``analyze``: run it, and tell what it cost.
    """

    query: Query | None
    handle: str | None = field(default=None, repr=False)
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class CreateQuery:
    """CREATE QUERY: a query that is registered under a name. query: what its text means. if_not_exists:
    whatever has the name will do.
    """

    name: str
    query: Query
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameQuery:
    """ALTER QUERY ... RENAME TO: another name for the query that a handle, an id or a name names."""

    handle: str = field(repr=False)
    name: str


@dataclass(frozen=True, slots=True)
class Control:
    """PAUSE, RESUME, or TERMINATE or DROP of the query that a handle, an id or a name names. release: rows
    are not kept for its windows while it is paused. if_exists: one that is not there is none to end.
    """

    action: Literal["pause", "resume", "terminate"]
    handle: str = field(repr=False)
    release: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterQuery:
    """ALTER QUERY ... AS: another text for the query that a handle names. query: what the text means."""

    handle: str = field(repr=False)
    query: Query


Statement = (
    Query
    | CreateStream
    | CreateFromTopic
    | CreateFromQuery
    | CreateQuery
    | Insert
    | RenameQuery
    | CreateSummary
    | AlterSummary
    | DescribeSummary
    | DropSummary
    | DropStream
    | Show
    | Describe
    | Explain
    | Control
    | AlterQuery
)
