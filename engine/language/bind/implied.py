"""Conditions that follow from others by the keys of a join.

    FROM a JOIN b ON a.k = b.k WHERE a.k = 17       b.k = 17 as well, which b's scan can be asked for

A column that equals constants, and is equalled by a key of a join, lets no row of the other side be a partner
that has another value there. So where that side gives nothing but partners its scan need not give such rows:
fewer rows meet, and what a row means to a query is seen before it meets any. Only columns are looked at, of
one type, so that what is added errs nowhere.

    a condition on the left goes to the right side of    INNER, LEFT, SEMI, ANTI, ASOF
    one on the right to the left side of                 INNER, RIGHT, SEMI, and joins before it that keep
                                                         the left rows' own columns

Cost: O(stages * keys), once more for each condition that goes to the left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.language.query import Query, Scan
from engine.language.rules import rewrite
from engine.model.expressions import And, Column, Compare, Expression, In, Literal, conjunction
from engine.model.source import Stream
from engine.windows.assignment import WINDOW_COLUMNS, Hop
from engine.windows.clauses import TimeWindow

_TO_RIGHT = ("inner", "left", "semi", "anti")
_TO_LEFT = ("inner", "right", "semi")

Equal = dict[int, Expression]
"""Places of columns that are NULL or equal constants -> the condition that says so, of some column."""


def with_implied(query: Query, streams: Mapping[str, object]) -> Query:
    """The query, its scans asked for what joins imply. streams: those it reads are among them."""
    told = _to_left(query, streams)
    while told is not query:
        query = told
        told = _to_left(query, streams)
    stages = list(query.stages)
    equal, width = _of_predicate(query.scan.predicate), _width(query.scan, streams)
    is_over_scans = True  # columns are those of scans, one behind the other
    for place, stage in enumerate(stages):
        inner, join = stage.right_input, stage.join
        if inner is not None:
            if join is not None and is_over_scans and join.kind in _TO_RIGHT:
                inner = _narrowed(inner, join, equal, streams)
            if join is not None and join.kind not in ("semi", "anti"):
                equal |= {width + at: condition for at, condition in _of_columns(inner).items()}
                width += len(inner.columns)
            stages[place] = stage.with_right_input(with_implied(inner, streams))
        elif stage.condition_of_rows is None:
            is_over_scans = False
    return replace(query, stages=tuple(stages))


def _narrowed(inner: Query, join: Join, equal: Equal, streams: Mapping[str, object]) -> Query:
    """The inner query, with what is known of the left keys asked of its scan."""
    columns, known = _scan_columns(inner), _of_columns(inner)
    for left, right in join.keys:
        if not (isinstance(left, Column) and isinstance(right, Column) and left.type == right.type):
            continue
        column = columns.get(right.index)
        if left.index in equal and right.index not in known and column is not None:
            inner = _asked(inner, column, equal[left.index], streams)
    return inner


def _to_left(query: Query, streams: Mapping[str, object]) -> Query:
    """The query, with one more condition on its own scan; itself where there is none to add."""
    own = _of_predicate(query.scan.predicate)
    width = _width(query.scan, streams)
    for stage in query.stages:
        join = stage.join
        if join is None:
            if stage.condition_of_rows is not None or stage.seeks_partners:
                continue
            break
        known = _of_columns(join.inner) if join.kind in _TO_LEFT else {}
        for left, right in join.keys:
            if (
                isinstance(left, Column)
                and isinstance(right, Column)
                and left.type == right.type
                and right.index in known
                and left.index < width
                and left.index not in own
            ):
                asked = _asked(query, left, known[right.index], streams)
                if asked is not query:
                    return asked
        if join.kind not in _TO_RIGHT:
            break
    return query


def _asked(query: Query, column: Column, condition: Expression, streams: Mapping[str, object]) -> Query:
    """The query, its scan asked for a condition on one of its columns; itself where windows would change, or
    the scan is asked for as much already.
    """
    scan = query.scan
    if scan.assignment is not None and not (
        isinstance(scan.assignment, Hop)
        and isinstance(scan.window, TimeWindow)
        and column.index < _width(replace(scan, assignment=None), streams)
    ):
        return query
    told = _of(condition, column)
    predicate = rewrite(told if scan.predicate is None else conjunction([scan.predicate, told]))
    return query if predicate == scan.predicate else replace(query, scan=replace(scan, predicate=predicate))


def _of(condition: Expression, column: Column) -> Expression:
    """The condition, asked of another column."""
    if isinstance(condition, In):
        return replace(condition, operand=column)
    assert isinstance(condition, Compare)
    return replace(condition, left=column)


def _of_predicate(predicate: Expression | None) -> Equal:
    """What a predicate says of single columns."""
    found: Equal = {}
    for part in _parts(predicate):
        match part:
            case Compare("=", Column(index=index), Literal()) | In(Column(index=index)):
                found.setdefault(index, part)
    return found


def _parts(predicate: Expression | None) -> Iterable[Expression]:
    if isinstance(predicate, And):
        return predicate.operands
    return () if predicate is None else (predicate,)


def _of_columns(inner: Query) -> Equal:
    """What is known of the columns that a query gives which only selects."""
    known = _of_predicate(inner.scan.predicate)
    return {
        place: known[column.index] for place, column in _scan_columns(inner).items() if column.index in known
    }


def _scan_columns(inner: Query) -> dict[int, Column]:
    """The columns of a query that are its scan's, where it only selects."""
    *filters, last = inner.stages
    if last.outputs_of_rows is None or any(stage.condition_of_rows is None for stage in filters):
        return {}
    given = [output.expression for output in last.outputs_of_rows]
    return {place: column for place, column in enumerate(given) if isinstance(column, Column)}


def _width(scan: Scan, streams: Mapping[str, object]) -> int:
    stream = streams[scan.source]
    assert isinstance(stream, Stream)
    added = len(WINDOW_COLUMNS) if scan.assignment is not None else int(scan.history)
    return len(stream.schema) + added
