"""WITH PREFERENCE, bound: the priorities of each scan, and what such a query may be.

A priority is about one scan: the column that its estimates are of says which. It is an expression over that
column and the estimates alone, since it is asked for values of the column in parts of the stream, not for
rows. So that whatever was found is part of the exact answer, or an estimate where it is an aggregate, a query
with a preference selects from one stream, or joins streams by equality, and has no stage whose rows are fewer
or others where more rows come in.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from engine.language.bind.environment import Environment
from engine.language.bind.preferred import (
    check_changes,
    check_from,
    check_query,
    check_relation,
    check_windows,
)
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import ESTIMATES, Scope
from engine.language.bind.summaries import ANY, unknown_summary
from engine.language.bind.windows import bind_duration
from engine.language.places import Place, Text, shown
from engine.language.preference import ATTRIBUTE, COUNT, FREQUENCY, Preference, Priority
from engine.language.query import Query
from engine.language.render import render_name, render_span
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Expression, Function, children
from engine.model.source import Stream
from engine.model.summary import SummaryDefinition
from engine.model.types import BIGINT, DOUBLE
from engine.windows.clauses import NOW, Instant, TimeWindow
from tureen.errors import NotSupported, QueryError, SyntaxRefused, TypeMismatch, UnknownSummary

_PROPERTIES = {"count": (COUNT, BIGINT), "frequency": (FREQUENCY, DOUBLE)}
_EXAMPLE = "SUMMARY.Estimate.Count(column)"


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A scan of a FROM whose sources only select: its first column among those of all, and its stream."""

    first: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class EstimateProperty:
    """``summary.Estimate.property(column)`` where it stands. column: its place among the columns of FROM."""

    summary: exp.Expr
    column: int
    property: str
    place: Place


@dataclass(slots=True)
class Estimates:
    """The estimates of one priority, as they are met. A bound one stands as a column of its own: ESTIMATES
    and its place in ``found`` below it.
    """

    found: list[EstimateProperty] = field(default_factory=list)

    def bind(self, node: exp.Expr, scope: Scope) -> Expression:
        """Raises UnknownColumn, TypeMismatch."""
        column = bind_scalar(node.args["column"], scope)
        if not isinstance(column, Column):
            raise scope.place(node.args["column"]).refuse(
                TypeMismatch,
                "this column is computed by a subquery or a view; a summary is of a column of a stream",
                hint="select from the stream itself",
            )
        which = str(node.args["property"])
        self.found.append(EstimateProperty(node.args["summary"], column.index, which, scope.place(node)))
        return Column(ESTIMATES - len(self.found) + 1, which, _PROPERTIES[which][1])


def bind_preference(
    tree: exp.Expr, relation: BoundRelation, scope: Scope, env: Environment
) -> Preference | None:
    """What the WITH PREFERENCE of a SELECT says; ``relation``, ``scope``: of its FROM. None without one.

    Raises QueryError and LimitExceeded with a place.
    """
    clause = tree.args.get("preference")
    if clause is None:
        return None
    place = env.text.of_node(clause)
    check_from(tree, env.text)
    check_relation(relation, place)
    check_windows([relation.scan, *(join.inner.scan for join in relation.joins)], tree, env.text)
    scanned = _scanned(relation)
    binding = replace(scope.binding, text=Text(env.text.sql))  # no literal of it is traced
    plain = replace(scope, clause="WITH PREFERENCE", binding=binding)
    written: Sequence[exp.Expr] = clause.args["priorities"]
    found = [_priority(node, scanned, plain, env) for node in written]
    by_scan: dict[int, Priority] = {}
    for node, priority in zip(written, found, strict=True):
        if priority.scan in by_scan:
            raise env.text.of_node(node).refuse(
                SyntaxRefused,
                f"{shown(priority.source)} has two priorities",
                hint="write one priority for each source",
            )
        by_scan[priority.scan] = priority
    for place_of, scan in enumerate(scanned):
        if place_of not in by_scan:
            raise place.refuse(
                SyntaxRefused,
                f"{shown(scan.stream.name)} has no priority",
                hint=f"write one for each source: {_EXAMPLE}, with a column of {shown(scan.stream.name)}",
            )
    fade, window = clause.args.get("fade"), clause.args.get("window")
    return Preference(
        order=clause.args.get("order") or "desc",
        priorities=tuple(by_scan[at] for at in range(len(scanned))),
        fade=1.0 if fade is None else float(fade.this),
        window_ms=None if window is None else _window_ms(window, by_scan, plain, env),
    )


def with_preference(query: Query, tree: exp.Expr, env: Environment) -> Query:
    """The query of a SELECT that nothing is around, its scans with the window of its preference.

    Raises NotSupported and SyntaxRefused for what a query with a preference cannot be.
    """
    preference = query.preference
    if preference is None:
        return query
    check_windows(query.scans(), tree, env.text)
    check_query(query, preference, tree, env)
    check_changes(tree, env.text)
    if preference.window_ms is None:
        return query
    return _windowed(query, TimeWindow(Instant(relative=True, ms=-preference.window_ms), NOW))


def _windowed(query: Query, window: TimeWindow) -> Query:
    stages = tuple(
        stage if stage.right_input is None else stage.with_right_input(_windowed(stage.right_input, window))
        for stage in query.stages
    )
    return replace(query, scan=replace(query.scan, window=window), stages=stages)


def _scanned(relation: BoundRelation) -> list[_Scanned]:
    """The scans of a relation that was checked, in the order of ``Query.scans()``."""
    return [
        _Scanned(0, relation.stream),
        *(_Scanned(join.offset, join.inner.stream) for join in relation.joins),
    ]


# --- one priority ---------------------------------------------------------------------------------


def _of_another(estimate: EstimateProperty, of_source: bool, name: str) -> QueryError:
    """An estimate is of another column than the first, which has this name. of_source: of the same source."""
    if of_source:
        return estimate.place.refuse(
            NotSupported,
            "a priority is about one column of one source",
            hint=f"write estimates of {shown(name)} alone",
        )
    return estimate.place.refuse(
        NotSupported,
        "a priority is about one source, this estimate is of another one",
        hint="separate the priorities of two sources by a comma",
    )


def _priority(node: exp.Expr, scanned: Sequence[_Scanned], scope: Scope, env: Environment) -> Priority:
    """Raises QueryError with a place."""
    place = env.text.of_node(node)
    estimates = Estimates()
    expression = bind_scalar(node, replace(scope, estimates=estimates))
    if not estimates.found:
        raise place.refuse(
            NotSupported,
            "a priority needs an estimate of a summary",
            hint=f"write {_EXAMPLE}, which may be part of an expression",
        )
    first = estimates.found[0]
    at = _scan_of(first.column, scanned)
    source = scanned[at]
    column = first.column - source.first
    name = source.stream.schema.fields[column].name
    definitions = []
    for estimate in estimates.found:
        if estimate.column != first.column:
            raise _of_another(estimate, _scan_of(estimate.column, scanned) == at, name)
        definitions.append(_summary(estimate, source.stream, name, env))
        if definitions[-1].name != definitions[0].name:
            raise estimate.place.refuse(
                NotSupported, "a priority takes its estimates from one summary", hint="name the same summary"
            )
    if not expression.type.is_numeric:
        raise place.refuse(
            TypeMismatch,
            f"a priority is a number, this is {expression.type}",
            hint=f"write a number, such as {_EXAMPLE}",
        )
    _check_functions(expression, place)
    columns = [_column_of(estimate) for estimate in estimates.found]
    attribute = Column(ATTRIBUTE, name, source.stream.schema.fields[column].type)

    def settled(part: Expression) -> Expression:
        if not isinstance(part, Column):
            return part
        if part.index <= ESTIMATES:
            return columns[ESTIMATES - part.index]
        if part.index == first.column:
            return attribute
        raise place.refuse(
            NotSupported,
            f"{shown(part.name)} is not the column that the summary is of: priorities are asked for values "
            f"of {shown(name)}, not for rows",
            hint=f"write an expression over {shown(name)} and its estimates",
        )

    return Priority(
        at, source.stream.name, definitions[0].name, column, rewrite(transform(expression, settled))
    )


def _column_of(estimate: EstimateProperty) -> Column:
    """What an estimate is among the columns of a priority."""
    index, type_ = _PROPERTIES[estimate.property]
    return Column(index, estimate.property, type_)


def _scan_of(column: int, scanned: Sequence[_Scanned]) -> int:
    """The scan that gives a column of FROM."""
    return max(at for at, scan in enumerate(scanned) if scan.first <= column)


def _check_functions(expression: Expression, place: Place) -> None:
    """Raise NotSupported for a function of the user's own: a priority is computed within a step."""
    if isinstance(expression, Function) and expression.implementation is not None:
        raise place.refuse(
            NotSupported,
            f"{shown(expression.name)} is a function of your own, which a priority cannot call",
            hint="write the priority with built-in functions",
        )
    for child in children(expression):
        _check_functions(child, place)


def _summary(estimate: EstimateProperty, stream: Stream, column: str, env: Environment) -> SummaryDefinition:
    """The summary that an estimate is taken from. Raises UnknownSummary, SyntaxRefused, TypeMismatch."""
    name, place = str(estimate.summary.this), env.text.of_node(estimate.summary)
    what = f"{render_name(stream.name)} ({render_name(column)})"
    if name != ANY:
        found = env.summaries.get(name)
        if found is None:
            raise unknown_summary(name, env, place)
        if (found.stream, found.attribute) != (stream.name, column):
            raise place.refuse(
                TypeMismatch,
                f"{shown(name)} is a summary of {shown(found.stream)} ({shown(found.attribute)}), "
                f"the estimate is of {shown(what)}",
                hint="name a summary of that column; SHOW SUMMARIES lists them",
            )
        return found
    fitting = [one for one in env.summaries.values() if (one.stream, one.attribute) == (stream.name, column)]
    if len(fitting) > 1:
        names = " or ".join(sorted(shown(render_name(one.name)) for one in fitting))
        raise place.refuse(
            SyntaxRefused,
            f"several summaries are of {shown(what)}",
            hint=f"write {names} in place of SUMMARY",
        )
    if not fitting:
        raise UnknownSummary(
            shown(stream.name),
            f"there is no summary of {shown(what)}",
            hint=f"write CREATE SUMMARY name ON {shown(what)} WITH GRANULARITY 10 SECONDS AND COLLAPSE(4, 3)",
            line=place.line,
            column=place.column,
        )
    return fitting[0]


# --- the window -----------------------------------------------------------------------------------


def _window_ms(window: exp.Expr, priorities: dict[int, Priority], scope: Scope, env: Environment) -> int:
    """Raises SyntaxRefused, LimitExceeded, NotSupported where a summary does not reach so far."""
    window_ms = bind_duration(window, scope, "WINDOW is")
    for priority in priorities.values():
        definition = env.summaries[priority.summary]
        if window_ms > definition.reach_ms:
            raise _too_long(window, definition, window_ms, env)
    return window_ms


def _too_long(
    window: exp.Expr, definition: SummaryDefinition, window_ms: int, env: Environment
) -> QueryError:
    depth = definition.depth
    while replace(definition, depth=depth).reach_ms < window_ms:
        depth += 1
    return env.text.of_node(window).refuse(
        NotSupported,
        f"WINDOW is longer than the summary {shown(definition.name)} reaches, "
        f"{render_span(definition.reach_ms)}",
        hint=f"write a shorter window, or a summary of greater depth: COLLAPSE({definition.rate}, {depth})",
    )
