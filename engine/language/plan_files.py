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

from engine.algebra.operator import Operator
from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.language.query import Emit, Query, Scan
from engine.language.render import render_name, render_span
from engine.language.sampling import without_sample
from engine.language.sql_text import (
    Name,
    bracket_sql,
    ends_sql,
    expression_sql,
    sample_sql,
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
    writer = PlanWriter(streams)
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
        unordered = found.unordered if isinstance(found, Operator) else ()
        for name in ("operands",) if isinstance(value, And | Or) else unordered:
            parts[name] = tuple(sorted(parts[name], key=repr))
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
        if emit.insert is not None:
            names = [name for name, _ in query.columns]
            found["emit"] |= {"insert": str(emit.insert.stream), "columns": names}
    return found


def _emit(emit: Emit) -> dict[str, Any]:
    plain, found = Emit(), dict[str, Any]()
    for name in ("into", "on_close", "format", "encoding", "snapshot"):
        if getattr(emit, name) != getattr(plain, name):
            found[name] = getattr(emit, name)
    return found


class PlanWriter:
    """Collects the nodes of a plan."""

    def __init__(self, streams: Mapping[SourceName, Stream]) -> None:
        self._streams = streams
        self.nodes: dict[str, dict[str, Any]] = {}

    def query(self, query: Query) -> tuple[str, list[str]]:
        """The name of a query's last node, and those of its columns."""
        name, columns = "", list[str]()
        if not query.stages[0].reads_nothing:
            name, columns = self._scan(query.scan)
        for stage in query.stages:
            name, columns = plan_node(stage, name, columns, self)
        return name, columns

    def add(self, word: str, node: dict[str, Any]) -> str:
        """Returns the name of a node; that of an equal one, where there is one. word: what it begins with."""
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
        own = namer(columns)
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
        named = namer(columns)
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
        return self.add(str(scan.source), node), columns


@asked_of("text", each=True)
def plan_node(stage: Stage, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    """The name of the node that a stage becomes, and those of its columns. below: the name of the node that
    it reads; columns: those of its columns. Raises NoPlan.
    """
    raise AssertionError(stage)


def namer(columns: Sequence[str], qualifier: str | None = None) -> Name:
    """What names columns by their places, behind a qualifier; it raises NoPlan for a place without one."""
    before = "" if qualifier is None else f"{qualifier}."

    def name(place: int) -> str:
        if not 0 <= place < len(columns):
            raise NoPlan("a column without a name")
        return before + render_name(columns[place])

    return name
