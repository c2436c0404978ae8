"""Statements as stable text: for EXPLAIN and for the golden files.

One line for each clause; expressions in SQL's own notation, fully bracketed, literals with their type where
it is not plain.
"""

from __future__ import annotations

from engine.language.expressions import (
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
from engine.language.grammar.words import RESERVED
from engine.language.instants import date_text, timestamp_text
from engine.language.query import Aggregate, CreateStream, DropStream, Project, Query, Statement
from engine.model.types import Kind
from engine.windows.clauses import Instant, RowWindow, Window


def render_statement(statement: Statement) -> str:
    """The whole statement, several lines."""
    match statement:
        case Query():
            return _query(statement)
        case CreateStream():
            return _create(statement)
        case DropStream(name, if_exists):
            return f"drop stream {_name(name)}" + (" if it exists" if if_exists else "")


def _query(query: Query) -> str:
    scan = query.scan
    lines = [f"select from {_name(scan.source)}", f"  window {render_window(scan.window)}"]
    if scan.predicate is not None:
        lines.append(f"  where {render_expression(scan.predicate)}")
    for stage in query.stages:
        match stage:
            case Project(outputs):
                lines += [
                    f"  {_name(output.name)} {output.type} = {render_expression(output.expression)}"
                    for output in outputs
                ]
            case Aggregate(calls=calls):
                lines += [f"  count rows as {_name(call.name)}" for call in calls]
    return "\n".join(lines)


def _create(create: CreateStream) -> str:
    stream = create.stream
    lines = [
        f"create stream {_name(stream.name)}" + (" if it does not exist" if create.if_not_exists else "")
    ]
    lines += [f"  {_name(f.name)} {f.type}{'' if f.nullable else ' not null'}" for f in stream.schema]
    lines.append(f"  topic {stream.topic}, {create.partitions} partitions")
    if stream.timestamp_column is None:
        lines.append("  arrival time")
    else:
        lines.append(
            f"  event time {_name(stream.timestamp_column)}, lateness {stream.lateness_ms} ms, "
            f"at most {stream.future_max_ms} ms ahead"
        )
    advances = ", then NOW advances" if stream.idle_advances else ""
    lines.append(f"  idle after {stream.idle_timeout_ms} ms{advances}")
    lines.append(f"  retain {stream.retain_ms} ms")
    return "\n".join(lines)


def render_window(window: Window) -> str:
    """A window clause as one line."""
    if isinstance(window, RowWindow):
        return f"last {window.rows} rows"
    begin = "beginning" if window.begin is None else _instant(window.begin)
    return f"{begin} to {_instant(window.end)}"


def _instant(instant: Instant) -> str:
    if not instant.relative:
        return f"TIMESTAMP '{timestamp_text(instant.ms)}'"
    return f"NOW - {-instant.ms} ms" if instant.ms else "NOW"


def render_expression(expression: Expression) -> str:
    """SQL-like text of one expression."""
    match expression:
        case Column(name=name):
            return _name(name)
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
            tail = "" if escape is None else f" ESCAPE {_quoted(escape)}"
            return f"({render_expression(operand)} {word} {_quoted(pattern)}{tail})"
        case Negate(operand):
            return f"(-{render_expression(operand)})"
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {render_expression(c)} THEN {render_expression(v)}" for c, v in branches)
            return f"(CASE {whens} ELSE {render_expression(otherwise)} END)"
        case Cast(operand, type_, lenient):
            return f"{'TRY_CAST' if lenient else 'CAST'}({render_expression(operand)} AS {type_})"
        case Function(name, arguments):
            return f"{name}({', '.join(render_expression(argument) for argument in arguments)})"


def _literal(literal: Literal) -> str:
    value, kind = literal.value, literal.type.kind
    if value is None:
        return "NULL" if kind is Kind.NULL else f"NULL::{literal.type}"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if kind is Kind.DATE and isinstance(value, int):
        return f"DATE '{date_text(value)}'"
    if kind is Kind.TIMESTAMP and isinstance(value, int):
        return f"TIMESTAMP '{timestamp_text(value)}'"
    if kind is Kind.INTEGER:
        return str(value)
    return f"{value}::{literal.type}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    plain = name.isidentifier() and name == name.lower() and name.upper() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'
