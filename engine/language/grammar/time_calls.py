"""Calls about time that have an INTERVAL among their arguments, and AT TIME ZONE, as calls that have none."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_interval
from engine.language.grammar.intervals import (
    parse_interval_literal,
    parse_make_interval,
    starts_interval,
)
from engine.language.grammar.ordering import Expressions

_ADDED = "write DATE_ADD(t, INTERVAL '5' DAY), or t + INTERVAL '5' DAY"
_LOCAL_CALLS = ("DATE_TRUNC", "DATE_BIN", "MONTH_BIN", "ADD_MONTHS", "TO_TIMESTAMP", "EPOCH_MS")
_MONDAY_MS = 946_857_600_000
"""3 January 2000, from which TIME_BUCKET counts."""


def parse_time_call(cursor: Cursor, name: str, token: Token, expression: Expressions) -> exp.Expr:
    """The arguments of one of TIME_CALLS, and the closing bracket."""
    with cursor.nested():
        found = TIME_CALLS[name](cursor, expression, token)
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    return found


def _added(way: type[exp.Add] | type[exp.Sub]) -> Callable[[Cursor, Expressions, Token], exp.Expr]:
    """``DATE_ADD(t, INTERVAL '5' DAY)``, ``DATE_ADD(t, n)`` in days, ``DATE_ADD('day', n, t)``."""

    def parse(cursor: Cursor, expression: Expressions, token: Token) -> exp.Expr:
        first = expression(cursor)
        cursor.expect(TokenType.COMMA, "a comma", _ADDED)
        if starts_interval(cursor):
            interval = parse_interval_literal(cursor)
            return cursor.node(way(this=first, expression=interval), first, first, interval)
        arguments = [first, expression(cursor)]
        if cursor.take(TokenType.COMMA):
            arguments.append(expression(cursor))
        else:
            day = cursor.node(exp.Literal(this="day", is_string=True), token)
            arguments = [day, arguments[1], first]
        if way is exp.Sub:
            arguments[1] = cursor.node(exp.Neg(this=arguments[1]), arguments[1], arguments[1])
        return cursor.node(nodes.Call(name="DATEADD", expressions=arguments), token, *arguments)

    return parse


def _binned(name: str) -> Callable[[Cursor, Expressions, Token], exp.Expr]:
    """``DATE_BIN(INTERVAL '5' MINUTE, t, origin)``, ``TIME_BUCKET(INTERVAL '3' MONTH, t)``."""

    def parse(cursor: Cursor, expression: Expressions, token: Token) -> exp.Expr:
        call = "DATE_BIN"
        if starts_interval(cursor) or cursor.at(TokenType.STRING):
            start = cursor.token
            months, ms = parse_interval(cursor)
            if months is not None:
                if ms or name == "DATE_BIN":
                    raise cursor.not_supported(
                        "DATE_BIN takes a time of fixed length",
                        "write TIME_BUCKET(INTERVAL '3' MONTH, t), or DATE_TRUNC('month', t)",
                        start,
                    )
                call = "MONTH_BIN"
            length = ms if months is None else months
            first: exp.Expr = cursor.node(exp.Literal(this=str(length), is_string=False), start)
        else:
            first = expression(cursor)
        arguments = [first]
        while cursor.take(TokenType.COMMA):
            arguments.append(expression(cursor))
        if name == "TIME_BUCKET" and call == "DATE_BIN" and len(arguments) == 2:
            ms_of = cursor.node(exp.Literal(this=str(_MONDAY_MS), is_string=False), token)
            origin = nodes.Call(name="TO_TIMESTAMP", expressions=[ms_of])
            arguments.append(cursor.node(origin, token, ms_of))
        return cursor.node(nodes.Call(name=call, expressions=arguments), token, *arguments)

    return parse


TIME_CALLS: dict[str, Callable[[Cursor, Expressions, Token], exp.Expr]] = {
    **dict.fromkeys(("DATE_ADD", "TIMESTAMP_ADD"), _added(exp.Add)),
    **dict.fromkeys(("DATE_SUB", "TIMESTAMP_SUB"), _added(exp.Sub)),
    "MAKE_INTERVAL": parse_make_interval,
    "DATE_BIN": _binned("DATE_BIN"),
    "TIME_BUCKET": _binned("TIME_BUCKET"),
}


def parse_zone(cursor: Cursor, operand: exp.Expr, zone: Callable[[Cursor], exp.Expr]) -> exp.Expr:
    """``operand AT TIME ZONE zone``; the next token is AT.

    Of an instant it is what a clock in the zone shows; of what a clock shows (what AT TIME ZONE gives, cut or
    moved, or a literal without a zone) it is the instant, as PostgreSQL has it.
    """
    cursor.advance()
    if not cursor.take_words("TIME", "ZONE"):
        raise cursor.expected("TIME ZONE after AT", "write t AT TIME ZONE 'Europe/Berlin'")
    name = zone(cursor)
    to_utc = _is_local(operand)
    call = nodes.Call(
        name="TO_UTC_TIMESTAMP" if to_utc else "FROM_UTC_TIMESTAMP", expressions=[operand, name]
    )
    call.meta["is_local"] = not to_utc
    call.meta["written"] = "AT TIME ZONE"
    return cursor.node(call, operand, operand, name)


def _is_local(node: exp.Expr) -> bool:
    """Whether an expression is what a clock shows, by how it is written."""
    inside = node.unnest()
    if isinstance(inside, nodes.Call):
        if "is_local" in inside.meta:
            return bool(inside.meta["is_local"])
        return inside.args["name"] in _LOCAL_CALLS and any(map(_is_local, inside.expressions))
    if isinstance(inside, exp.Add | exp.Sub):
        return _is_local(inside.this)
    if isinstance(inside, exp.Cast):
        literal = inside.this
        written = isinstance(literal, exp.Literal) and literal.args.get("is_string")
        return bool(written) and not _has_zone(str(literal.this))
    return False


def _has_zone(text: str) -> bool:
    """Whether the text of an instant ends with an offset or a Z."""
    time = text.partition(":")[2]
    return any(sign in time for sign in "zZ+-")
