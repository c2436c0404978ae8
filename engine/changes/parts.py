"""Which queries shards answer in parts, each from its own rows.

Parts answer a query if their answers, put together as bags, are its answer at every instant, and their
changes are its changes. That is followed up from the scans on, of each relation on the way:

    in parts    every row is in one shard, the one of its key; ``held``: the columns that still tell that key
    whole       every shard has all of it: a table without a key, and what is made of such alone

    stage                                in parts, if
    scan of a stream, TUMBLE, HOP        always; windows go by NOW, which is one and the same everywhere
    SESSION, [PARTITION BY ... ROWS n]   the key is among what rows are partitioned by
    [ROWS n], LIMIT, FETCH FIRST         never: the n rows are those of all shards
    conditions, columns                  always
    GROUP BY, DISTINCT, ROW_NUMBER       the key is among the columns
    join, IN, EXISTS                     both sides are in parts, and equal in their keys; or one side is
                                         whole and none of its rows is kept for having no partner
    NOT IN                               the other side is whole: a NULL anywhere decides about all rows
    UNION ALL                            both sides are in parts, and a column has the key of both; or none
                                         has, and nothing above needs one
    INTERSECT, EXCEPT                    both sides are in parts, and the same compared column has the key of
                                         both; or the right one is whole, and a compared column has the key
    RSTREAM                              never: it tells all rows when any of them changes

What leaves an answer is told by one shard alone only if equal rows are in one shard. Where they need not be,
a row that comes in one while an equal one goes in another is told by both. Folded, that is no change; of
ISTREAM and DSTREAM it would be one too many, so there the key must be among the columns, or rows never go as
far as the operator sees (:mod:`engine.language.exits`): by RETAIN every row goes, which DSTREAM tells.

Cost: O(stages * columns).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.changes.operator import operator_over
from engine.changes.result_key import result_key
from engine.language.exits import leave
from engine.language.query import Query, Scan
from engine.model.expressions import Cast, Column, Expression
from engine.model.source import SourceName, Stream
from engine.model.types import Kind, Type
from engine.windows.assignment import WINDOW_COLUMNS, Session
from engine.windows.clauses import RowWindow

Streams = Mapping[SourceName, Stream]

Keys = Mapping[str, str]
"""The column by which rows of a source are spread over shards. Every shard has a table without one."""


@dataclass(frozen=True, slots=True)
class PartRows:
    """A relation of one shard. whole: every shard has all of it; then held means nothing. width: of its
    columns. held: columns that have the key's value, in each row. type: of the key.
    """

    whole: bool
    width: int
    held: frozenset[int] = frozenset()
    type: Type | None = None

    def is_held_by(self, expressions: Iterable[Expression]) -> bool:
        """Whether one of these tells the key."""
        return self.whole or any(plain_column(one) in self.held for one in expressions)

    def giving(self, expressions: Iterable[Expression], more: int = 0) -> PartRows:
        """With these as its columns, and some that tell nothing."""
        told = list(expressions)
        held = frozenset(n for n, one in enumerate(told) if plain_column(one) in self.held)
        return replace(self, width=len(told) + more, held=held)

    def has_key_type_of(self, other: PartRows) -> bool:
        """Whether equal values of the keys of both, which are not whole, have one hash."""
        assert self.type is not None
        assert other.type is not None
        return self.type == other.type or (self.type.is_integer and other.type.is_integer)

    def together(self, inner: PartRows, pairs: Pairs) -> bool:
        """Whether partners, which are equal in these, are in one shard."""
        return self.has_key_type_of(inner) and any(
            plain_column(one) in self.held and plain_column(other) in inner.held for one, other in pairs
        )

    def moved_to(self, inner: PartRows, pairs: Pairs) -> PartRows | None:
        """Rows that every shard has, as those that stay where their partners are: in one shard. None: these
        are not told by their key.
        """
        columns = [plain_column(one) for one, other in pairs if plain_column(other) in inner.held]
        held = frozenset(column for column in columns if column is not None)
        return PartRows(False, self.width, held, inner.type) if held else None


Pairs = Iterable[tuple[Expression, Expression]]
"""What partners are equal in: an expression over the relation, and one over inner's columns."""


@asked_of("parts")
def rows_in_parts(stage: Stage, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    """What a stage gives in each shard, or why it needs all rows in one place. inner: what its second input
    gives; None: it has one input.
    """
    return rows


def why_not_in_parts(query: Query, streams: Streams, keys: Keys) -> str | None:
    """Say why shards cannot answer a query in parts; None: they do. streams: all that it reads."""
    rows = _of_query(query, streams, keys)
    return rows if isinstance(rows, str) else _why_not_told(query, rows, streams)


def _of_query(query: Query, streams: Streams, keys: Keys) -> PartRows | str:
    rows = _of_scan(query.scan, streams, keys)
    for stage in query.stages:
        if isinstance(rows, str):
            break
        inner = None if stage.right_input is None else _of_query(stage.right_input, streams, keys)
        rows = inner if isinstance(inner, str) else rows_in_parts(stage, rows, inner)
    return rows


def _of_scan(scan: Scan, streams: Streams, keys: Keys) -> PartRows | str:
    stream = streams[scan.source]
    width = len(stream.schema) + int(scan.history)
    if scan.assignment is not None:
        width += len(WINDOW_COLUMNS)
    named = keys.get(scan.source)
    if named is None:
        unkeyed = f"stream {scan.source} has no key by which it is cut"
        return PartRows(True, width) if stream.is_table else unkeyed
    key = stream.schema.index(named)
    assert key is not None
    rows = PartRows(False, width, frozenset({key}), stream.schema.fields[key].type)
    if isinstance(scan.assignment, Session) and not rows.is_held_by(scan.assignment.keys):
        return f"SESSION over {scan.source} is not partitioned by {named}"
    window = scan.window
    if isinstance(window, RowWindow) and not rows.is_held_by(window.keys):
        return f"[ROWS {window.rows}] over {scan.source} counts rows of all keys, not those of each {named}"
    return rows


def _why_not_told(query: Query, rows: PartRows, streams: Streams) -> str | None:
    """Why changes of parts are not those of the whole."""
    if rows.whole:
        return "it reads only tables of which every shard has all rows"
    read = {name: streams[name] for name in query.sources}
    operator = operator_over(query, read)
    if operator == "rstream":
        return "RSTREAM gives all rows whenever one of any key changes"
    if operator == "changes":
        key = result_key(query, read)
        if key is not None and not rows.held & set(key):
            return "the columns that identify rows of the answer do not contain the key"
        return None
    tables = [name for name, stream in read.items() if stream.is_table]
    if not rows.held and leave(query, tables, operator):
        return f"{operator.upper()} is over columns without the key"
    return None


def plain_column(expression: Expression) -> int | None:
    """The column that an expression has the value of, a wider integer perhaps."""
    if isinstance(expression, Column):
        return expression.index
    if isinstance(expression, Cast) and expression.operand.type.kind is Kind.INTEGER:
        return plain_column(expression.operand) if expression.type.kind is Kind.BIGINT else None
    return None
