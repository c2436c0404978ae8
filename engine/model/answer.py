"""What a reader gets: an answer that says at which position and instant it is true."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from engine.model.approximation import Approximation
from engine.model.batch import Column
from engine.model.maintenance import PutOff
from engine.model.step import Parameters, Position
from engine.model.tolerance import EXACT, Tolerance


class AnswerColumns:
    """The columns of an answer, each of n rows: arrays, or Arrow's. A table is made of them when one is asked
    for, and kept. Readers may share it. total: rows of the answer of which these are the first.
    """

    __slots__ = ("_table", "columns", "n", "schema", "total")

    def __init__(
        self,
        schema: pa.Schema,
        columns: Sequence[Column | pa.ChunkedArray],
        n: int,
        total: int | None = None,
    ) -> None:
        self.schema = schema
        self.columns = columns
        self.n = n
        self.total = n if total is None else total
        self._table: pa.Table | None = None

    @classmethod
    def of_table(cls, table: pa.Table) -> AnswerColumns:
        made = cls(table.schema, table.columns, table.num_rows)
        made._table = table
        return made

    def first(self, rows: int | None) -> AnswerColumns:
        """The first of them, without a copy; None, or as many as there are: these."""
        if rows is None or rows >= self.n:
            return self
        if self._table is not None:
            table = self._table.slice(0, rows)
            return AnswerColumns(table.schema, table.columns, rows, self.total)
        columns = [
            one.slice(0, rows) if isinstance(one, Column) else one.slice(0, length=rows)
            for one in self.columns
        ]
        return AnswerColumns(self.schema, columns, rows, self.total)

    @property
    def table(self) -> pa.Table:
        if self._table is None:
            arrays = [_chunked(one) if isinstance(one, Column) else one for one in self.columns]
            self._table = pa.Table.from_arrays(arrays, schema=self.schema)
        return self._table

    def batches(self) -> list[pa.RecordBatch]:
        """The rows as Arrow's batches, one where no table stands and an array holds all text of a column."""
        if self._table is None:
            with contextlib.suppress(OverflowError):
                arrays = [
                    one.to_arrow() if isinstance(one, Column) else one.combine_chunks()
                    for one in self.columns
                ]
                return [pa.RecordBatch.from_arrays(arrays, schema=self.schema)]
        return list(self.table.to_batches())

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(one.nbytes for one in self.columns)


def _chunked(column: Column) -> pa.Array | pa.ChunkedArray:
    """As Arrow, in chunks where one array does not hold all text."""
    try:
        return column.to_arrow()
    except OverflowError:
        middle = len(column) // 2
        halves = map(_chunked, (column.slice(0, middle), column.slice(middle, len(column))))
        parts = [one.chunks if isinstance(one, pa.ChunkedArray) else [one] for one in halves]
        return pa.chunked_array([*parts[0], *parts[1]])


@dataclass(frozen=True, slots=True)
class Lost:
    """Records of a source, or of several, that gave no row: such an answer lacks them.

    late: their timestamps were at or before NOW, or they broke a constraint. rejected: too far ahead of the
    clock. unreadable: the rest, which did not fit the columns. since_ms: the clock from which they are
    counted, ms since 1970; None: since a time that is not known.
    """

    late: int = 0
    rejected: int = 0
    unreadable: int = 0
    since_ms: int | None = None

    @property
    def broken(self) -> int:
        """Records that are dead letters."""
        return self.rejected + self.unreadable

    def plus(self, late: int = 0, rejected: int = 0, unreadable: int = 0) -> Lost:
        """With so many more."""
        return Lost(self.late + late, self.rejected + rejected, self.unreadable + unreadable, self.since_ms)

    @classmethod
    def of(cls, sources: Collection[Lost]) -> Lost:
        """The sum of what several sources lost, counted since the first of their ``since_ms``; None if one
        has none.
        """
        if len(sources) == 1:
            return next(iter(sources))
        times = [one.since_ms for one in sources if one.since_ms is not None]
        return cls(
            sum(one.late for one in sources),
            sum(one.rejected for one in sources),
            sum(one.unreadable for one in sources),
            min(times) if times and len(times) == len(sources) else None,
        )


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """A source that has not yet what its topic held when its reading began: an answer over it lacks that.

    read, of: offsets of all partitions; of: None while Kafka has not told where they end. waiting: rows that
    were read and are above NOW. lost: it reads no more, since its topic or records of it are gone.
    """

    source: str
    read: int
    of: int | None
    waiting: int
    lost: bool = False

    @property
    def is_read(self) -> bool:
        """Whether all is read, so that what is lacking is above NOW."""
        return self.of is not None and self.read >= self.of

    def as_dict(self) -> dict[str, str | int | None]:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one query.

    rows: in (timestamp, partition, offset) order, columns as selected.
    position: the step it is true after. now_ms: NOW of the query; None before the first row.
    complete: False when rows the window reaches back to are retained no more (or never were), or a source has
    not yet what its topic held.
    complete_from_ms: the instant from which on all rows are retained; None when all that it needs are.
    approximation: what of it is not exact, and why; empty: it is exact.
    errors: values of the selected columns that could not be computed and stand as NULL.
    lost: records of its sources that gave no row.
    catching_up: of its sources those that have not yet what their topics held.
    condition_errors: rows whose condition could not be computed, which are not in it, since it stands.
    """

    query_id: str
    rows: AnswerColumns
    position: Position
    now_ms: int | None
    complete: bool = True
    complete_from_ms: int | None = None
    approximation: tuple[Approximation, ...] = ()
    errors: int = 0
    lost: Lost = field(default_factory=Lost)
    catching_up: tuple[CatchingUp, ...] = ()
    condition_errors: int = 0

    @property
    def approximate(self) -> bool:
        """Whether it is not exact."""
        return bool(self.approximation)

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self.rows.table


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A standing query as lists show it. ``predicate_errors``: rows whose predicate ended as an error, while
    matches were kept. parameters: of the placeholders in ``sql``, where it has any. strategy: of the
    operators that its changes come from; where nobody follows it what it asks for. approximation: of its
    answer. weight, tolerance: of its options, else of its text. put_off: that its answer is not kept,
    though it is to be.
    """

    query_id: str
    sql: str
    parameters: Parameters | None
    sources: tuple[str, ...]
    maintenance: str
    weight: float
    born: Position
    predicate_errors: int
    paused: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    strategy: str = "auto"
    approximation: tuple[Approximation, ...] = ()
    tolerance: Tolerance = EXACT
    put_off: PutOff | None = None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source as lists show it: NOW, retained rows from which instant, rows waiting above NOW, records
    that gave no row, of each constraint how many rows broke it, and how many of its values are forgotten.
    """

    name: str
    sql: str
    now_ms: int | None
    retained_from_ms: int | None
    rows: int
    pending: int
    lost: Lost
    next_offsets: dict[int, int]
    violations: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()
