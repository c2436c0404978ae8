"""A bound query as a plan: a graph of operators with names, as :mod:`tureen.plan_files.schema` has them.

An operator has columns with names, and expressions name those of the operator below. The names of columns are
those that the plan's text gives them, so that the text binds to the query again. What version 1 has no
operators for (all versions of a table, the latest of several rows, a preference) gives no plan: the query is
then exported as its text, whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

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
from engine.language.bind.outputs import unique
from engine.language.query import Emit, Query, Scan
from engine.language.render import render_name, render_span
from engine.language.sampling import without_sample
from engine.language.sql_text import (
    Name,
    bracket_sql,
    call_sql,
    ends_sql,
    expression_sql,
    sample_sql,
    sort_key_sql,
)
from engine.model.expressions import And, Or
from engine.model.source import SourceName, Stream
from engine.windows.assignment import WINDOW_COLUMNS, Hop
from engine.windows.clauses import TimeWindow

PLAN_VERSION = 1


class NoPlan(Exception):
    """The query has an operator that plans do not have."""


def plan_of(query: Query, streams: Mapping[SourceName, Stream]) -> dict[str, Any]:
    """The plan of a query. streams: those that it reads. Raises NoPlan. O(size)."""
    if query.preference is not None:
        raise NoPlan("a preference")
    writer = _Writer(streams)
    output, _ = writer.query(query)
    plan: dict[str, Any] = {"version": PLAN_VERSION, "nodes": writer.nodes, "output": output}
    return plan | _changes(query)


def bare(query: Query) -> Query:
    """The query without its text and the names of the views that it was written with: equal where two mean
    the same in the same way.
    """
    stages = tuple(
        stage if stage.right_input is None else stage.with_right_input(bare(stage.right_input))
        for stage in query.stages
    )
    return replace(query, sql="", uses=(), stages=stages)


Value = TypeVar("Value")


def commuted(value: Value) -> Value:
    """A query, or any part of it, with conditions that may stand in any order in one order: equal where two
    mean the same but for that.
    """
    found: Any = value
    if isinstance(value, tuple):
        found = tuple(commuted(one) for one in value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: commuted(getattr(value, one.name)) for one in fields(value) if one.init}
        if isinstance(value, And | Or):
            parts["operands"] = tuple(sorted(parts["operands"], key=repr))
        elif isinstance(value, Join):
            parts["keys"] = tuple(sorted(parts["keys"], key=repr))
        found = replace(value, **parts)
    return cast("Value", found)


def _changes(query: Query) -> dict[str, Any]:
    """What a plan says of the changes of a query's answer, and of what it allows."""
    found: dict[str, Any] = {}
    allowed = query.tolerance.named() | ({} if query.weight is None else {"weight": query.weight})
    if allowed:
        found["with"] = allowed
    emit = query.emit
    if query.operator is not None and not (emit is not None and emit.on_close):
        found["stream"] = query.operator
    if emit is not None:
        found["emit"] = _emit(emit)
    return found


def _emit(emit: Emit) -> dict[str, Any]:
    plain, found = Emit(), dict[str, Any]()
    for name in ("into", "on_close", "format", "encoding", "snapshot"):
        if getattr(emit, name) != getattr(plain, name):
            found[name] = getattr(emit, name)
    return found


class _Writer:
    """Collects the nodes of a plan."""

    def __init__(self, streams: Mapping[SourceName, Stream]) -> None:
        self._streams = streams
        self.nodes: dict[str, dict[str, Any]] = {}

    def query(self, query: Query) -> tuple[str, list[str]]:
        """The name of a query's last node, and those of its columns."""
        name, columns = self._scan(query.scan)
        for stage in query.stages:
            name, columns = self._stage(stage, name, columns)
        return name, columns

    def _add(self, word: str, node: dict[str, Any]) -> str:
        """Its name; that of an equal node, where there is one."""
        for known, other in self.nodes.items():
            if other == node:
                return known
        name, count = word, 1
        while name in self.nodes:
            count += 1
            name = f"{word}_{count}"
        self.nodes[name] = node
        return name

    def _scan(self, scan: Scan) -> tuple[str, list[str]]:
        if scan.history:
            raise NoPlan("all versions of a table")
        stream = self._streams[scan.source]
        columns = [field.name for field in stream.schema]
        own = _namer(columns)
        node: dict[str, Any] = {"op": "scan", "source": str(scan.source)}
        if scan.sample is not None:
            node["sample"] = sample_sql(scan.sample)
            scan = without_sample(scan, stream)
        if scan.assignment is not None:
            columns = [*columns, *WINDOW_COLUMNS]
            assignment = scan.assignment
            if isinstance(assignment, Hop):
                tumbles = assignment.size_ms == assignment.slide_ms
                function = {"name": "tumble" if tumbles else "hop"}
                if not tumbles:
                    function["slide"] = render_span(assignment.slide_ms)
                function["size"] = render_span(assignment.size_ms)
                if assignment.offset_ms:
                    function["offset"] = render_span(assignment.offset_ms)
                node["function"] = function
            else:
                session: dict[str, Any] = {"name": "session", "gap": render_span(assignment.gap_ms)}
                if assignment.keys:
                    session["partition"] = [expression_sql(key, own) for key in assignment.keys]
                node["function"] = session
        named = _namer(columns)
        bracket = bracket_sql(scan.window, named, scan.window_down_to_ms)
        if bracket is None:
            assert isinstance(scan.window, TimeWindow)
            ends = ends_sql(scan.window)
            if ends is None or scan.window.slide_ms is not None:
                raise NoPlan("a window without a beginning that ends before NOW")
            node["begin"], node["end"] = ends
        elif bracket:
            node["window"] = bracket
        if scan.predicate is not None:
            node["where"] = expression_sql(scan.predicate, named)
        return self._add(str(scan.source), node), columns

    def _stage(self, stage: Stage, below: str, columns: list[str]) -> tuple[str, list[str]]:
        named = _namer(columns)
        node: dict[str, Any]
        match stage:
            case Filter(predicate):
                node = {"op": "filter", "input": below, "where": expression_sql(predicate, named)}
                return self._add("filter", node), columns
            case Project(outputs):
                found = {output.name: expression_sql(output.expression, named) for output in outputs}
                return self._add("project", {"op": "project", "input": below, "columns": found}), [*found]
            case Aggregate(keys, calls):
                node = {"op": "aggregate", "input": below}
                if keys:
                    node["keys"] = {key.name: expression_sql(key.expression, named) for key in keys}
                if calls:
                    node["calls"] = {call.name: call_sql(call, named) for call in calls}
                names = [*(key.name for key in keys), *(call.name for call in calls)]
                return self._add("aggregate", node), names
            case Distinct():
                return self._add("distinct", {"op": "distinct", "input": below}), columns
            case Sort(order):
                by = [sort_key_sql(key, named) for key in order]
                return self._add("sort", {"op": "sort", "input": below, "by": by}), columns
            case Limit(count, offset):
                node = {"op": "limit", "input": below}
                if count is not None:
                    node["count"] = count
                if offset or count is None:
                    node["offset"] = offset
                return self._add("limit", node), columns
            case RowNumber():
                return self._row_number(stage, below, columns)
            case Join():
                return self._join(stage, below, columns)
            case SemiJoin():
                inner, inner_columns = self.query(stage.inner)
                node = {"op": "semi_join", "input": below, "inner": inner}
                if stage.keys:
                    qualified = _namer(columns, "l")
                    pairs = zip(stage.keys, inner_columns, strict=True)
                    node["keys"] = [[expression_sql(key, qualified), column] for key, column in pairs]
                if stage.negated:
                    node["negated"] = True
                if stage.null_aware:
                    node["null_aware"] = True
                return self._add("semi_join", node), columns
            case SetOperation(kind, inner_query, all_, on):
                right, right_columns = self.query(inner_query)
                node = {"op": "set_operation", "left": below, "right": right, "kind": kind}
                if all_:
                    node["all"] = True
                if on is not None:
                    if any(columns[place] != right_columns[other] for place, other in on):
                        raise NoPlan("EXCEPT ALL ON columns of two names")
                    node["on"] = [columns[place] for place, _ in on]
                return self._add(kind, node), columns
            case Streamed(operator, window, sample):
                node = {"op": "stream", "input": below, "operator": operator}
                if sample is not None:
                    node["sample"] = sample_sql(sample)
                if bracket := bracket_sql(window, named):
                    node["window"] = bracket
                return self._add("stream", node), columns

    def _row_number(self, stage: RowNumber, below: str, columns: list[str]) -> tuple[str, list[str]]:
        named = _namer(columns)
        number, count = "row_number", 1
        while number in columns:
            count += 1
            number = f"row_number_{count}"
        node: dict[str, Any] = {"op": "row_number", "input": below}
        if stage.keys:
            node["partition"] = [expression_sql(key, named) for key in stage.keys]
        if stage.order:
            node["order"] = [sort_key_sql(key, named) for key in stage.order]
        node["as"] = number
        if stage.count is not None:
            node["first"] = stage.count
        return self._add("row_number", node), [*columns, number]

    def _join(self, join: Join, below: str, columns: list[str]) -> tuple[str, list[str]]:
        right, right_columns = self.query(join.inner)
        left_name, right_name = _namer(columns, "l"), _namer(right_columns, "r")

        def either(place: int) -> str:
            return left_name(place) if place < len(columns) else right_name(place - len(columns))

        parts = [
            f"({expression_sql(left, left_name)} = {expression_sql(inner, right_name)})"
            for left, inner in join.keys
        ]
        kind: str = join.kind
        if join.latest is not None:
            if kind not in ("inner", "left"):
                raise NoPlan("the latest of several rows")
            kind = "asof" if kind == "inner" else "asof left"
            op = ">" if join.latest.strict else ">="
            outer, inner = join.latest.outer, join.latest.inner
            parts.append(f"({expression_sql(outer, left_name)} {op} {expression_sql(inner, right_name)})")
        if join.condition is not None:
            parts.append(expression_sql(join.condition, either))
        if not parts and kind == "inner":
            kind = "cross"
        node: dict[str, Any] = {"op": "join", "left": below, "right": right, "kind": kind}
        if kind != "cross":
            node["on"] = " AND ".join(parts) or "TRUE"
        gives = kind not in ("semi", "anti")
        return self._add("join", node), unique([*columns, *right_columns]) if gives else columns


def _namer(columns: Sequence[str], qualifier: str | None = None) -> Name:
    before = "" if qualifier is None else f"{qualifier}."

    def name(place: int) -> str:
        if not 0 <= place < len(columns):
            raise NoPlan("a column without a name")
        return before + render_name(columns[place])

    return name
