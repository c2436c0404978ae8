"""Bound expressions and windows as SQL that binds to them again.

Unlike :mod:`engine.language.render`, whose text is for people, what is written here is read: columns by the
names that the text around gives them, literals so that they get their types back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.sort.stage import SortKey
from engine.language.instants import date_text, time_text, timestamp_text
from engine.language.render import quoted, render_name, render_span
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
from engine.model.types import Kind, Logical
from engine.windows.clauses import Instant, RowWindow, TimeWindow, Window

Name = Callable[[int], str]
"""How a column is written, by its place."""

_PLAIN = (
    *(Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIME, Kind.INTERVAL),
    Kind.NULL,
)


def expression_sql(expression: Expression, name: Name) -> str:
    """One expression, in brackets where it has parts."""

    def sql(part: Expression) -> str:
        return expression_sql(part, name)

    match expression:
        case Column(index=index):
            return name(index)
        case Literal():
            return literal_sql(expression)
        case Compare(op, left, right) | Arithmetic(op, left, right):
            return f"({sql(left)} {op} {sql(right)})"
        case And(operands):
            return f"({' AND '.join(map(sql, operands))})"
        case Or(operands):
            return f"({' OR '.join(map(sql, operands))})"
        case Not(operand):
            return f"(NOT {sql(operand)})"
        case IsNull(operand):
            return f"({sql(operand)} IS NULL)"
        case In(operand, choices):  # these get the type of what they are compared with
            return f"({sql(operand)} IN ({', '.join(map(_plain_sql, choices))}))"
        case Like(operand, pattern, escape, ignore_case):
            tail = "" if escape is None else f" ESCAPE {quoted(escape)}"
            return f"({sql(operand)} {'ILIKE' if ignore_case else 'LIKE'} {quoted(pattern)}{tail})"
        case Negate(operand):
            return f"(-{sql(operand)})"
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {sql(condition)} THEN {sql(value)}" for condition, value in branches)
            return f"(CASE {whens} ELSE {sql(otherwise)} END)"
        case Cast(operand, type_, lenient):
            return f"{'TRY_CAST' if lenient else 'CAST'}({sql(operand)} AS {type_})"
        case Function("~", (operand,)):
            return f"(~{sql(operand)})"
        case Function("[]", (operand, place)):
            return f"{sql(operand)}[{sql(place)}]"
        case Function("[:]", (operand, first, last)):
            return f"{sql(operand)}[{sql(first)}:{sql(last)}]"
        case Function(".", (operand, Literal(value=member))):
            return f"({sql(operand)}).{render_name(str(member))}"
        case Function("ARRAY", parts):
            return f"ARRAY[{', '.join(map(sql, parts))}]"
        case Function("STRUCT", parts):
            return f"STRUCT({_members_sql(parts, name)})"
        case Function(operator, (left, right)) if not operator[0].isalpha():
            return f"({sql(left)} {operator} {sql(right)})"
        case Function("EXTRACT", (Literal(value=part), operand)):
            return f"EXTRACT({part} FROM {sql(operand)})"
        case Function(function, arguments):
            return f"{function}({arguments_sql(arguments, name)})"


def literal_sql(literal: Literal) -> str:
    """With its type."""
    text = _plain_sql(literal)
    plain = literal.type.kind in _PLAIN and literal.type.logical in (None, Logical.BYTES)
    return text if plain else f"CAST({text} AS {literal.type})"


def _members_sql(parts: Sequence[Expression], name: Name) -> str:
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return ", ".join(
        f"{expression_sql(value, name)} AS {render_name(str(member.value))}"
        for member, value in pairs
        if isinstance(member, Literal)
    )


def arguments_sql(arguments: Sequence[Expression], name: Name) -> str:
    """What stands in the brackets of a call."""
    return ", ".join(_argument_sql(argument, name) for argument in arguments)


def _argument_sql(argument: Expression, name: Name) -> str:
    """A literal gets the type that the function takes."""
    return _plain_sql(argument) if isinstance(argument, Literal) else expression_sql(argument, name)


def _plain_sql(literal: Literal) -> str:
    value, kind = literal.value, literal.type.kind
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"X'{value}'" if literal.type.logical is Logical.BYTES else quoted(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if kind is Kind.DATE and isinstance(value, int):
        return f"DATE '{date_text(value)}'"
    if kind is Kind.TIMESTAMP and isinstance(value, int):
        return f"TIMESTAMP '{timestamp_text(value)}'"
    if kind is Kind.TIME and isinstance(value, int):
        return f"TIME '{time_text(value)}'"
    if kind is Kind.INTERVAL and isinstance(value, int):
        return f"{'-' if value < 0 else ''}INTERVAL '{abs(value)}' MILLISECOND"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return quoted(str(value))
    return str(value)


def call_sql(call: AggregateCall, name: Name) -> str:
    """One aggregate."""
    inside = arguments_sql(call.arguments, name) or "*"
    if call.order:
        inside += " ORDER BY " + ", ".join(sort_key_sql(key, name) for key in call.order)
    distinct = "DISTINCT " if call.distinct else ""
    keep = "" if call.filter is None else f" FILTER (WHERE {expression_sql(call.filter, name)})"
    return f"{call.function}({distinct}{inside}){keep}"


def sort_key_sql(key: SortKey, name: Name) -> str:
    """What ORDER BY has of one key."""
    nulls = "" if key.nulls_first == key.descending else " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return expression_sql(key.expression, name) + (" DESC" if key.descending else "") + nulls


def sample_sql(sample: Sample) -> str:
    """What stands in the brackets behind SAMPLE."""
    least = "" if sample.down_to is None else f" DOWN TO {sample.down_to.normalize():f}"
    seed = "" if sample.seed is None else f", {sample.seed}"
    return f"{sample.percent.normalize():f}{least}{seed}"


def bracket_sql(window: Window, name: Name, down_to_ms: int | None = None) -> str | None:
    """What stands in the brackets behind a source; "" for none, None where the window is no such clause.
    down_to_ms: how short it may become.
    """
    if isinstance(window, RowWindow):
        keys = ", ".join(expression_sql(key, name) for key in window.keys)
        by = f"PARTITION BY {keys} " if keys else ""
        where = "" if window.filter is None else f" WHERE {expression_sql(window.filter, name)}"
        return f"{by}ROWS {window.rows}{where}"
    slide = "" if window.slide_ms is None else f" SLIDE {render_span(window.slide_ms)}"
    if not window.end.relative or window.end.ms:
        return None
    if window.begin is None:
        return f"UNBOUNDED{slide}" if slide else ""
    if not window.begin.relative or window.begin.ms > 0:
        return None
    if not window.begin.ms:
        return f"NOW{slide}"
    least = "" if down_to_ms is None else f" DOWN TO {render_span(down_to_ms)}"
    return f"RANGE {render_span(-window.begin.ms)}{least}{slide}"


def ends_sql(window: TimeWindow) -> tuple[str, str] | None:
    """BEGIN and END of a window; None where it has no beginning."""
    return None if window.begin is None else (_instant_sql(window.begin), _instant_sql(window.end))


def _instant_sql(instant: Instant) -> str:
    if not instant.relative:
        return f"TIMESTAMP '{timestamp_text(instant.ms)}'"
    return f"NOW - {render_span(-instant.ms)}" if instant.ms else "NOW"
