"""Queries as stable text: for EXPLAIN and for the golden files.

One line for each clause; expressions in SQL's own notation, fully bracketed, literals with their type where
it is not plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output
from engine.algebra.rules import asked_of
from engine.algebra.sort.stage import SortKey
from engine.language.grammar.words import RESERVED
from engine.language.instants import date_text, time_text, timestamp_text
from engine.language.preference import ATTRIBUTE, COUNT, Preference, Priority
from engine.language.query import Emit, Query, Scan
from engine.language.rules.tree import transform
from engine.model.expressions import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
)
from engine.model.sample import Sample
from engine.model.source import DAY_MS, HOUR_MS, MINUTE_MS
from engine.model.types import STRING, Kind
from engine.windows.assignment import Assignment, Session
from engine.windows.clauses import Instant, RowWindow, Window


def render_query(query: Query) -> str:
    """The scan, then a line for each stage; what is inside another stands deeper."""
    is_constant = query.stages[0].reads_nothing
    lines = [f"{'constants beside' if is_constant else 'select from'} {render_name(query.source)}"]
    if query.views:
        lines.append(f"  by way of {render_names(query.views)}")
    if not is_constant:
        lines += ["  " + line for line in render_scan(query.scan)]
    for stage in query.stages:
        lines += ["  " + line for line in render_stage(stage)]
    if query.operator is not None:
        lines.append(f"  {query.operator}")
    if query.preference is not None:
        lines += ["  " + line for line in render_preference(query.preference)]
    if query.tolerance.named():
        lines.append(f"  allows {render_amounts(query.tolerance.named())}")
    if query.weight is not None:
        lines.append(f"  weight {query.weight:g}")
    if query.emit is not None:
        lines.append(f"  {render_emit(query.emit)}")
    return "\n".join(lines)


def render_preference(preference: Preference) -> list[str]:
    """What is wanted first, as lines: a priority for each scan, in the order of the scans. The window is
    that of the scans.
    """
    form = "" if preference.form == "count" else f", by {preference.form}"
    fade = "" if preference.fade == 1.0 else f", fade {preference.fade:g}"
    return [
        f"preference {preference.order}{form}{fade}",
        *(f"  {render_name(each.source)} by {render_priority(each)}" for each in preference.priorities),
    ]


def render_priority(priority: Priority) -> str:
    """The expression of a priority, with estimates as a text has them."""
    return render_expression(_with_estimates(priority))


def _with_estimates(priority: Priority) -> Expression:
    """The expression of a priority, its estimates shown as a text has them."""

    def estimate(node: Expression) -> Expression:
        if not isinstance(node, Column) or node.index == ATTRIBUTE:
            return node
        which = "Count" if node.index == COUNT else "Frequency"
        text = f"{render_name(priority.summary)}.Estimate.{which}"
        return ShownColumn(node.index, node.name, node.type, text)

    return transform(priority.expression, estimate)


def render_emit(emit: Emit) -> str:
    """Where changes go, as one line."""
    into = "" if emit.into is None else f" into {emit.into}"
    closed = " of closed windows" if emit.on_close else ""
    first = ", after a snapshot" if emit.snapshot else ""
    if emit.insert is not None:
        return f"insert into {render_name(emit.insert.stream)}{closed}{first}"
    return f"emit changes{closed}{into} as {emit.format} in {emit.encoding}{first}"


def render_amounts(amounts: Mapping[str, float]) -> str:
    """Values with their names before them."""
    return ", ".join(f"{name} {value:g}" for name, value in amounts.items())


def render_scan(scan: Scan) -> list[str]:
    """Which rows of its stream, as lines."""
    lines = [] if scan.sample is None else [render_sample(scan.sample)]
    if scan.assignment is not None:
        lines.append(f"windows {render_assignment(scan.assignment)}")
    least = "" if scan.window_down_to_ms is None else f", down to {render_span(scan.window_down_to_ms)}"
    lines.append("all versions" if scan.history else f"window {render_window(scan.window)}{least}")
    if scan.predicate is not None:
        lines.append(f"where {render_expression(scan.predicate)}")
    return lines


def render_sample(sample: Sample) -> str:
    """A SAMPLE as one line."""
    least = "" if sample.down_to is None else f", down to {sample.down_to.normalize():f} percent"
    seed = "" if sample.seed is None else f", seed {sample.seed}"
    return f"sample {sample.percent.normalize():f} percent{least}{seed}"


@asked_of("text", each=True)
def render_stage(stage: Stage) -> list[str]:
    """A stage as lines, the first of which names it."""
    raise AssertionError(stage)


def render_inner(query: Query) -> list[str]:
    """The second input of a stage as lines, deeper than the stage's own."""
    return ["  " + line for line in render_query(query).split("\n")]


def join_words(lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """What the operator of a join is called, and by what it joins. lines: the text of the join."""
    kind, _, rest = lines[0].partition(" join")
    rest = rest.lstrip(", ")
    word = " ".join(each for each in kind.replace("as of", "asof").split() if each != "inner")
    return f"{word} join".lstrip(), (rest,) if rest else ()


@dataclass(frozen=True, slots=True)
class ShownColumn(Column):
    """A column of a join's inner query, and how it is shown."""

    text: str


def inner_name(inner: Query) -> str:
    """What stands before the names of a join's inner columns: the source; ``joined``, where it joins
    several; ``constants``, where it reads none.

    Columns in the join's condition are called ``source.column`` where they are inner's.
    """
    if inner.stages and inner.stages[0].reads_nothing:
        return "constants"
    return "joined" if any(stage.join for stage in inner.stages) else inner.source


def render_output(output: Output) -> str:
    """A column with what it is computed from."""
    return f"{render_name(output.name)} {output.type} = {render_expression(output.expression)}"


def render_sort_key(key: SortKey) -> str:
    """What rows are sorted by, and how."""
    nulls = "" if key.nulls_first == key.descending else " nulls first" if key.nulls_first else " nulls last"
    return render_expression(key.expression) + (" descending" if key.descending else "") + nulls


def render_call(call: AggregateCall) -> str:
    """An aggregate, with what it is of."""
    inside = ", ".join(render_expression(argument) for argument in call.arguments) or "*"
    if call.order:
        inside += " ORDER BY " + ", ".join(map(render_sort_key, call.order))
    distinct = "DISTINCT " if call.distinct else ""
    keep = "" if call.filter is None else f" FILTER (WHERE {render_expression(call.filter)})"
    return f"{render_name(call.name)} {call.type} = {call.function}({distinct}{inside}){keep}"


def render_names(names: Sequence[str]) -> str:
    """Names, one after another."""
    return ", ".join(render_name(name) for name in names)


def render_window(window: Window) -> str:
    """A window clause as one line."""
    if isinstance(window, RowWindow):
        of = f" of each {', '.join(render_expression(key) for key in window.keys)}" if window.keys else ""
        where = "" if window.filter is None else f" where {render_expression(window.filter)}"
        return f"last {window.rows} rows{of}{where}"
    begin = "beginning" if window.begin is None else _instant(window.begin)
    slide = "" if window.slide_ms is None else f" every {render_span(window.slide_ms)}"
    return f"{begin} to {_instant(window.end)}{slide}"


def render_assignment(assignment: Assignment) -> str:
    """What a table function does, as one line."""
    if isinstance(assignment, Session):
        of = f" of each {', '.join(render_expression(k) for k in assignment.keys)}" if assignment.keys else ""
        return f"session{of}, gap {render_span(assignment.gap_ms)}"
    offset = f", offset {render_span(assignment.offset_ms)}" if assignment.offset_ms else ""
    if assignment.size_ms == assignment.slide_ms:
        return f"tumble {render_span(assignment.size_ms)}{offset}"
    return f"hop {render_span(assignment.size_ms)} every {render_span(assignment.slide_ms)}{offset}"


def _instant(instant: Instant) -> str:
    if not instant.relative:
        return f"TIMESTAMP '{timestamp_text(instant.ms)}'"
    return f"NOW - {render_span(-instant.ms)}" if instant.ms else "NOW"


def render_span(ms: int) -> str:
    """A length of time in the largest unit that gives a whole number."""
    for unit, length in (("day", DAY_MS), ("hour", HOUR_MS), ("minute", MINUTE_MS), ("second", 1_000)):
        if ms and ms % length == 0:
            return f"{ms // length} {unit}" + ("s" if ms != length else "")
    return f"{ms} ms"


def render_expression(expression: Expression) -> str:
    """SQL-like text of one expression."""
    match expression:
        case ShownColumn(text=text):
            return text
        case Column(name=name):
            return render_name(name)
        case Literal():
            return _literal(expression)
        case Compare(op, left, right):
            return f"({render_expression(left)} {op} {render_expression(right)})"
        case Arithmetic(op, left, right, type_):
            typed = f"::{type_}" if type_.kind is Kind.DECIMAL else ""
            return f"({render_expression(left)} {op} {render_expression(right)}){typed}"
        case And(operands):
            return "(" + " AND ".join(render_expression(operand) for operand in operands) + ")"
        case Or(operands):
            return "(" + " OR ".join(render_expression(operand) for operand in operands) + ")"
        case Not(operand):
            return f"(NOT {render_expression(operand)})"
        case IsNull(operand):
            return f"({render_expression(operand)} IS NULL)"
        case In(operand, choices):
            return f"({render_expression(operand)} IN ({', '.join(_literal(choice) for choice in choices)}))"
        case Like(operand, pattern, escape, ignore_case):
            word = "ILIKE" if ignore_case else "LIKE"
            tail = "" if escape is None else f" ESCAPE {quoted(escape)}"
            return f"({render_expression(operand)} {word} {quoted(pattern)}{tail})"
        case Negate(operand):
            return f"(-{render_expression(operand)})"
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {render_expression(c)} THEN {render_expression(v)}" for c, v in branches)
            return f"(CASE {whens} ELSE {render_expression(otherwise)} END)"
        case Cast(operand, type_, lenient):
            return f"{'TRY_CAST' if lenient else 'CAST'}({render_expression(operand)} AS {type_})"
        case Function("[]", (operand, place)):
            return f"{render_expression(operand)}[{render_expression(place)}]"
        case Function(".", (operand, Literal(value=member))):
            return f"{render_expression(operand)}.{render_name(str(member))}"
        case Function("->" | "->>" | "#>" | "#>>" as operator, (left, right)):
            return f"({render_expression(left)} {operator} {render_expression(right)})"
        case Function(name, arguments):
            return f"{name}({', '.join(render_expression(argument) for argument in arguments)})"


def _literal(literal: Literal) -> str:
    value, kind = literal.value, literal.type.kind
    if value is None:
        return "NULL" if kind is Kind.NULL else f"NULL::{literal.type}"
    if isinstance(value, str):
        return quoted(value) if literal.type == STRING else f"{quoted(value)}::{literal.type}"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if kind is Kind.DATE and isinstance(value, int):
        return f"DATE '{date_text(value)}'"
    if kind is Kind.TIMESTAMP and isinstance(value, int):
        return f"TIMESTAMP '{timestamp_text(value)}'"
    if kind is Kind.TIME and isinstance(value, int):
        return f"TIME '{time_text(value)}'"
    if kind is Kind.INTEGER:
        return str(value)
    return f"{value}::{literal.type}"


def quoted(text: str) -> str:
    """The literal of a string."""
    return "'" + text.replace("'", "''") + "'"


def render_name(name: str) -> str:
    """A name as SQL takes it: in quotes where it needs them."""
    plain = name.isidentifier() and name == name.lower() and name.upper() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'
