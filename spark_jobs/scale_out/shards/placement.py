"""Which shards answer a query: all parts, each from its own rows, or the lane, which has all rows.

Parts answer it if their answers, put together as bags, are its answer at every instant, and their changes are
its changes. That is followed up from the scans on, of each relation on the way:

    in parts    every row is in one shard, the one of its key; ``held``: the columns that still tell that key
    whole       every shard has all of it: a table without a key, and what is made of such alone

    stage                                in parts, if
    scan of a stream, TUMBLE, HOP        always; windows go by NOW, which is one and the same everywhere
    SESSION, [PARTITION BY ... ROWS n]   the key is among what rows are partitioned by
    [ROWS n], LIMIT                      never: the n rows are those of all shards
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

Pure; cost: O(stages * columns).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.changes.operator import operator_over
from engine.changes.result_key import result_key
from engine.language.exits import leave
from engine.language.query import Query, Scan
from engine.model.expressions import Cast, Column, Expression
from engine.model.source import SourceName, Stream
from engine.model.types import Kind, Type
from engine.windows.assignment import WINDOW_COLUMNS, Session
from engine.windows.clauses import RowWindow
from spark_jobs.scale_out.shards.layout import Layout, key_type
from tureen.errors import NotSupported

Place = Literal["parts", "lane"]

Streams = Mapping[SourceName, Stream]


class _Whole(Exception):
    """Why a query needs all rows in one place."""


def place(query: Query, streams: Streams, layout: Layout) -> Place:
    """Where a query is answered. streams: all that it reads.

    Raises NotSupported: it needs all rows of a stream that the lane does not have; there are no shards.
    """
    if not layout.shards:
        raise NotSupported(
            "this scale-out has no shards, and the query needs more than single rows",
            hint="start one with --shards, and a --key for each stream to partition by",
            line=1,
            column=1,
        )
    reason = why_not_in_parts(query, streams, layout)
    if reason is None:
        return "parts"
    cut_only = [name for name in query.sources if not layout.lane_has(streams[name])]
    if not cut_only:
        return "lane"
    options = " ".join(f"--whole {name}" for name in cut_only)
    keys = ", ".join(f"{name} by {layout.keys[name]}" for name in cut_only)
    raise NotSupported(
        f"shards cannot answer this each for itself: {reason}",
        hint=f"rows are cut: {keys}. Begin a scale-out with {options}, and one shard also has all rows, as "
        "far as one machine goes; or let a broker answer it",
        line=1,
        column=1,
    )


def why_not_in_parts(query: Query, streams: Streams, layout: Layout) -> str | None:
    """Say why a query cannot be answered in parts; None: parts answer it."""
    try:
        found = _of_query(query, streams, layout)
        _check_output(query, found, streams)
    except _Whole as reason:
        return str(reason)
    return None


@dataclass(frozen=True, slots=True)
class _Rows:
    """A relation. whole: every shard has all of it; then held means nothing. width: of its columns. held:
    columns that have the key's value, in each row. type: of the key.
    """

    whole: bool
    width: int
    held: frozenset[int] = frozenset()
    type: Type | None = None

    def is_held_by(self, expressions: Iterable[Expression]) -> bool:
        """Whether one of these tells the key."""
        return self.whole or any(_plain(one) in self.held for one in expressions)

    def giving(self, expressions: Iterable[Expression], more: int = 0) -> _Rows:
        """With these as its columns, and some that tell nothing."""
        told = list(expressions)
        held = frozenset(n for n, one in enumerate(told) if _plain(one) in self.held)
        return replace(self, width=len(told) + more, held=held)


def _of_query(query: Query, streams: Streams, layout: Layout) -> _Rows:
    rows = _of_scan(query.scan, streams, layout)
    for stage in query.stages:
        rows = _above(stage, rows, streams, layout)
    return rows


def _of_scan(scan: Scan, streams: Streams, layout: Layout) -> _Rows:
    stream = streams[scan.source]
    width = len(stream.schema) + int(scan.history)
    if scan.assignment is not None:
        width += len(WINDOW_COLUMNS)
    if not layout.parts_have(stream):
        raise _Whole(f"stream {scan.source} has no key by which it is cut")
    if scan.source not in layout.keys:
        return _Rows(True, width)
    key = stream.schema.index(layout.keys[scan.source])
    assert key is not None
    rows = _Rows(False, width, frozenset({key}), key_type(stream, layout))
    named = layout.keys[scan.source]
    if isinstance(scan.assignment, Session) and not rows.is_held_by(scan.assignment.keys):
        raise _Whole(f"SESSION over {scan.source} is not partitioned by {named}")
    window = scan.window
    if isinstance(window, RowWindow) and not rows.is_held_by(window.keys):
        raise _Whole(
            f"[ROWS {window.rows}] over {scan.source} counts rows of all keys, not those of each {named}"
        )
    return rows


def _above(stage: Stage, rows: _Rows, streams: Streams, layout: Layout) -> _Rows:
    match stage:
        case Project(outputs):
            return rows.giving(output.expression for output in outputs)
        case Filter() | Sort():
            return rows
        case Aggregate(keys, calls):
            by = [key.expression for key in keys]
            if not rows.is_held_by(by):
                raise _Whole("groups have rows of several keys")
            return rows.giving(by, len(calls))
        case Distinct():
            if not rows.whole and not rows.held:
                raise _Whole("DISTINCT is over columns without the key")
            return rows
        case RowNumber(keys):
            if not rows.is_held_by(keys):
                raise _Whole("ROW_NUMBER counts rows of several keys")
            return replace(rows, width=rows.width + 1)
        case Limit():
            if not rows.whole:
                raise _Whole("LIMIT chooses among rows of all keys")
            return rows
        case SemiJoin():
            return _member(stage, rows, _of_query(stage.inner, streams, layout))
        case Join():
            return _joined(stage, rows, _of_query(stage.inner, streams, layout))
        case SetOperation():
            return _combined(stage, rows, _of_query(stage.inner, streams, layout))
        case Streamed():
            raise _Whole("a window over a subquery counts and orders changes of all keys")


def _member(stage: SemiJoin, rows: _Rows, inner: _Rows) -> _Rows:
    """IN, EXISTS and their negations."""
    if inner.whole:
        return rows
    if not stage.keys:
        raise _Whole("EXISTS looks at rows of all keys")
    if stage.negated and stage.null_aware:
        raise _Whole("NOT IN looks at NULLs of all keys; NOT EXISTS with an equality of the keys does not")
    pairs = [(key, number) for number, key in enumerate(stage.keys)]
    if rows.whole:
        if stage.negated:
            raise _Whole("rows without a partner would stay in every shard")
        return _moved(rows, inner, pairs, "IN or EXISTS")
    if not _together(rows, inner, pairs):
        raise _Whole("IN or EXISTS does not compare the keys of both sides")
    return rows


def _joined(stage: Join, rows: _Rows, inner: _Rows) -> _Rows:
    pairs = [(key, _plain(other)) for key, other in stage.keys]
    sided = stage.kind in ("semi", "anti")
    width = rows.width + (0 if sided else inner.width)
    shifted = frozenset(rows.width + column for column in inner.held)
    if rows.whole and inner.whole:
        return _Rows(True, width)
    if inner.whole:
        if stage.kind in ("right", "full"):
            raise _Whole(
                f"a {stage.kind.upper()} JOIN keeps rows of a table of which every shard has all rows"
            )
        return replace(rows, width=width)
    if rows.whole:
        if stage.kind in ("left", "full", "anti"):
            raise _Whole("the join keeps rows of a table of which every shard has all rows")
        if stage.kind == "semi":
            return _moved(rows, inner, pairs, "the join")
        return _Rows(False, width, shifted, inner.type)
    if not _together(rows, inner, pairs):
        raise _Whole("the join does not compare the keys of both sides")
    held: frozenset[int]
    match stage.kind:
        case "inner":
            held = rows.held | shifted
        case "right":
            held = shifted
        case "full":
            held = frozenset()
        case _:
            held = rows.held
    return _Rows(False, width, held, rows.type)


def _combined(stage: SetOperation, rows: _Rows, inner: _Rows) -> _Rows:
    """Rows of two relations, or those of one that the other has equal ones of, or has not."""
    word = stage.kind.upper()
    if rows.whole and inner.whole:
        return rows
    if rows.whole or (inner.whole and stage.kind == "union"):
        raise _Whole(f"a side of {word} is made of tables of which every shard has all rows")
    if stage.kind == "union":
        return replace(rows, held=rows.held & inner.held if _alike(rows.type, inner.type) else frozenset())
    pairs = [(place, place) for place in range(rows.width)] if stage.on is None else stage.on
    if inner.whole:
        if not any(place in rows.held for place, _ in pairs):
            raise _Whole(f"{word} does not compare the key")
        return rows
    together = _alike(rows.type, inner.type)
    if not (together and any(place in rows.held and other in inner.held for place, other in pairs)):
        raise _Whole(f"{word} does not compare the keys of both sides")
    return rows


Pairs = Iterable[tuple[Expression, int | None]]
"""What is equal: an expression over the relation, and a column of inner's."""


def _together(rows: _Rows, inner: _Rows, pairs: Pairs) -> bool:
    """Whether partners are in one shard: equal keys, of types with one hash."""
    return _alike(rows.type, inner.type) and any(
        _plain(key) in rows.held and column in inner.held for key, column in pairs
    )


def _moved(rows: _Rows, inner: _Rows, pairs: Pairs, what: str) -> _Rows:
    """Rows that every shard has stay where their partners are: in one, if those are told by their key."""
    columns = [_plain(key) for key, column in pairs if column in inner.held]
    held = frozenset(column for column in columns if column is not None)
    if not held:
        raise _Whole(f"{what} does not compare the key")
    return _Rows(False, rows.width, held, inner.type)


def _check_output(query: Query, rows: _Rows, streams: Streams) -> None:
    if rows.whole:
        raise _Whole("it reads only tables of which every shard has all rows")
    read = {name: streams[name] for name in query.sources}
    operator = operator_over(query, read)
    if operator == "rstream":
        raise _Whole("RSTREAM gives all rows whenever one of any key changes")
    if operator == "changes":
        key = result_key(query, read)
        if key is not None and not rows.held & set(key):
            raise _Whole("the columns that identify rows of the answer do not contain the key")
        return
    tables = [name for name, stream in read.items() if stream.is_table]
    if not rows.held and leave(query, tables, operator):
        raise _Whole(f"{operator.upper()} is over columns without the key")


def _plain(expression: Expression) -> int | None:
    """The column that an expression has the value of, a wider integer perhaps."""
    if isinstance(expression, Column):
        return expression.index
    if isinstance(expression, Cast) and expression.operand.type.kind is Kind.INTEGER:
        return _plain(expression.operand) if expression.type.kind is Kind.BIGINT else None
    return None


def _alike(one: Type | None, other: Type | None) -> bool:
    """Whether equal values of both have one hash."""
    assert one is not None
    assert other is not None
    return one == other or (one.is_integer and other.is_integer)
