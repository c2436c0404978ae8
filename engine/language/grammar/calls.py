"""Function calls, with the forms of SQL that have words between the arguments."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.evaluation.temporal import PARTS
from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration, starts_duration
from engine.language.grammar.gathered import (
    DISTINCT,
    GATHERED,
    gathered,
    gathered_arguments,
    once,
    order_of_distinct,
)
from engine.language.grammar.ordering import Expressions, parse_order
from engine.language.grammar.over import parse_over, starts_over
from engine.language.grammar.subqueries import refuse_values
from engine.language.grammar.text_calls import TEXT_CALLS
from engine.language.grammar.time_calls import TIME_CALLS, parse_time_call
from engine.language.grammar.words import CLOCKS, FUNCTIONS_REFUSED, INSTANT_CLOCKS
from tureen.errors import NotSupported, SyntaxRefused

_DURATIONS = {
    "TUMBLE": "INTERVAL '1' MINUTE",
    "HOP": "INTERVAL '1' MINUTE, INTERVAL '5' MINUTE",
    "SESSION": "INTERVAL '5' MINUTE",
}
WINDOW_CALLS = frozenset(name + part for name in _DURATIONS for part in ("", "_START", "_END"))


def parse_call(cursor: Cursor, expression: Expressions, operand: Expressions) -> exp.Expr:
    """``name(arguments)``; the next token is the name, the one after it a bracket. operand: reads what binds
    tighter than IN.
    """
    token = cursor.token
    name = token.text.upper()
    if name in CLOCKS or name in INSTANT_CLOCKS:
        return parse_clock(cursor)
    cursor.check_word(token)
    if name in WINDOW_CALLS:
        return _window_call(cursor, expression)
    cursor.advance()
    cursor.advance()
    if name in TIME_CALLS:
        return parse_time_call(cursor, name, token, expression)
    if name in TEXT_CALLS:
        return TEXT_CALLS[name](cursor, token, operand)
    distinct = False
    arguments: list[exp.Expr] = []
    ignores: Token | None = None
    order: list[nodes.OrderItem] = []
    star = cursor.take(TokenType.STAR)
    if star:
        cursor.expect(TokenType.R_PAREN, ")")
    else:
        with cursor.nested():
            distinct = _take_distinct(cursor)
            special = _SPECIAL.get(name)
            arguments = special(cursor, expression) if special else _plain(cursor, expression, name)
            if cursor.word == "ORDER" and cursor.word_ahead() == "BY":
                order = parse_order(cursor, expression)
            if cursor.take_words("SEPARATOR"):
                arguments.append(expression(cursor))
            ignores = _ignores_nulls(cursor)
            cursor.expect(TokenType.R_PAREN, ") or a comma")
        if name == "TRIM" and len(arguments) > 1 and isinstance(arguments[-1], exp.Var):
            name = str(arguments.pop().this)
    ignores = ignores or _ignores_nulls(cursor)
    if cursor.word == "WITHIN" and cursor.word_ahead() == "GROUP":
        arguments, order = _within_group(cursor, expression, name, arguments)
    condition = _filter(cursor, expression)
    ignores = ignores or _ignores_nulls(cursor)
    if name in GATHERED:
        arguments = gathered_arguments(cursor, name, token, arguments)
    is_once = distinct and name in DISTINCT and not starts_over(cursor)
    if is_once:
        order = order_of_distinct(cursor, token, arguments, order)
    call = nodes.Call(
        name="ARRAY_AGG" if name in GATHERED else name,
        expressions=arguments,
        star=star,
        distinct=distinct and not is_once,
        filter=condition,
        order=order,
    )
    call = cursor.node(call, token, *arguments, *([] if condition is None else [condition]), *order)
    found = _over(cursor, call, token, expression, ignores)
    if is_once:
        found = once(cursor, token, found)
    return gathered(cursor, name, token, found) if name in GATHERED else found


def _take_distinct(cursor: Cursor) -> bool:
    """Whether DISTINCT is next; it is stepped over, as ALL is, which means nothing."""
    if cursor.word == "ALL" and cursor.peek().token_type is not TokenType.COMMA:
        cursor.advance()
        return False
    return cursor.take_words("DISTINCT")


def _over(
    cursor: Cursor, call: nodes.Call, token: Token, expression: Expressions, ignores: Token | None
) -> exp.Expr:
    """The call, over a window where OVER is next. ignores: the first of IGNORE NULLS, where that stands."""
    if starts_over(cursor):
        ignored = ignores is not None and ignores.text.upper() == "IGNORE"
        return parse_over(cursor, call, token, expression, ignore_nulls=ignored)
    if ignores is not None:
        raise cursor.not_supported(
            f"{ignores.text.upper()} NULLS without OVER is not supported",
            "aggregates pass NULLs over; only ARRAY_AGG keeps them",
            ignores,
        )
    return call


def parse_clock(cursor: Cursor) -> exp.Expr:
    """``NOW()``, ``CURRENT_TIMESTAMP``; the next token is the name. Raises NotSupported for a clock that
    means no instant.
    """
    token = cursor.token
    name = token.text.upper()
    if name not in INSTANT_CLOCKS:
        raise cursor.not_supported(
            f"{name} cannot be part of an expression: it would change an answer without new rows",
            "compare with an instant: WHERE at > NOW() - INTERVAL '1' DAY",
        )
    cursor.advance()
    if cursor.take(TokenType.L_PAREN):
        cursor.expect(TokenType.R_PAREN, ")", "write NOW()")
    return cursor.node(nodes.NowCall(), token)


def _ignores_nulls(cursor: Cursor) -> Token | None:
    """``IGNORE NULLS`` or ``RESPECT NULLS``: the first token."""
    if cursor.word not in ("IGNORE", "RESPECT") or cursor.word_ahead() != "NULLS":
        return None
    token = cursor.advance()
    cursor.advance()
    return token


def _within_group(
    cursor: Cursor, expression: Expressions, name: str, arguments: list[exp.Expr]
) -> tuple[list[exp.Expr], list[nodes.OrderItem]]:
    """``WITHIN GROUP (ORDER BY x)`` behind a call: the arguments that mean it, and what sorts the rows."""
    token = cursor.advance()
    cursor.advance()
    cursor.expect(TokenType.L_PAREN, "( after WITHIN GROUP", "write WITHIN GROUP (ORDER BY x)")
    with cursor.nested():
        if cursor.word != "ORDER":
            raise cursor.expected("ORDER BY", "write WITHIN GROUP (ORDER BY x)")
        order = parse_order(cursor, expression)
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    if name in ("STRING_AGG", "LISTAGG", "ARRAY_AGG"):
        return arguments, order
    wanted = _OF_THE_ORDERED.get(name)
    if wanted is None or len(arguments) != wanted or len(order) > 1:
        raise cursor.text.of_token(token).refuse(
            NotSupported,
            f"{name} does not take WITHIN GROUP so",
            hint="write PERCENTILE_CONT(0.5), PERCENTILE_DISC(0.5) or MODE() WITHIN GROUP (ORDER BY x)",
        )
    (item,) = order
    descends = [cursor.node(exp.Boolean(this=True), item)] if wanted and item.args["descending"] else []
    return [item.this, *arguments, *descends], []


_OF_THE_ORDERED = {"PERCENTILE_CONT": 1, "PERCENTILE_DISC": 1, "MODE": 0}
"""Functions of the one key of WITHIN GROUP -> how many arguments they have besides."""


def _window_call(cursor: Cursor, expression: Expressions) -> exp.Expr:
    """``TUMBLE([column,] duration, ...)``, ``TUMBLE_END(...)``; the next token is the name."""
    token = cursor.advance()
    name, _, part = token.text.upper().partition("_")
    cursor.advance()
    usage = f"write {name}(column, {_DURATIONS[name]})"
    with cursor.nested():
        column = None
        if not starts_duration(cursor):
            column = expression(cursor)
            cursor.expect(TokenType.COMMA, "a comma and a time", usage)
        durations = cursor.listed(lambda: parse_duration(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma", usage)
    if len(durations) < (2 if name == "HOP" else 1) or len(durations) > (1 if name == "SESSION" else 3):
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, f"{name} does not take {len(durations)} times", hint=usage
        )
    call = nodes.WindowCall(name=name, column=column, durations=durations, part=part.lower() or None)
    return cursor.node(call, token, *([] if column is None else [column]))


def _filter(cursor: Cursor, expression: Expressions) -> exp.Expr | None:
    """``FILTER (WHERE condition)``."""
    if cursor.word != "FILTER" or cursor.peek().token_type is not TokenType.L_PAREN:
        return None
    cursor.advance()
    cursor.advance()
    with cursor.nested():
        cursor.expect_word("WHERE", "write FILTER (WHERE condition)")
        condition = expression(cursor)
        cursor.expect(TokenType.R_PAREN, ")")
    return condition


def _plain(cursor: Cursor, expression: Expressions, name: str = "") -> list[exp.Expr]:
    if cursor.at(TokenType.R_PAREN):
        return []
    refuse_values(cursor)
    return cursor.listed(lambda: _argument(cursor, expression, name))


def _argument(cursor: Cursor, expression: Expressions, name: str) -> exp.Expr:
    """An argument. Raises NotSupported for an INTERVAL of a function that other systems have."""
    if cursor.word == "INTERVAL" and name in FUNCTIONS_REFUSED:
        raise cursor.not_supported(f"{name} is not supported", FUNCTIONS_REFUSED[name])
    return expression(cursor)


def _extract(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """EXTRACT(part FROM value)."""
    token = cursor.token
    if token.token_type not in (TokenType.VAR, TokenType.STRING) or cursor.word_ahead() != "FROM":
        raise cursor.expected("a part and FROM", "write EXTRACT(HOUR FROM t)")
    cursor.advance()
    part = cursor.node(exp.Literal(this=token.text.lower(), is_string=True), token)
    cursor.advance()
    return [part, expression(cursor)]


def _part_first(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """``DATE_TRUNC('hour', t)``, ``DATE_TRUNC(HOUR, t)``."""
    token = cursor.token
    if cursor.word.lower() not in PARTS or cursor.peek().token_type is not TokenType.COMMA:
        arguments = _plain(cursor, expression)
        unit = arguments[-1]
        if len(arguments) == 2 and isinstance(unit, exp.Column) and unit.name.lower() in PARTS:
            raise cursor.text.of_node(unit).refuse(
                SyntaxRefused, "the part comes first", hint="write DATE_TRUNC('hour', t)"
            )
        return arguments
    part = cursor.node(exp.Literal(this=token.text.lower(), is_string=True), cursor.advance())
    cursor.advance()
    return [part, *_plain(cursor, expression)]


def _unit_first(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """``TIMESTAMPDIFF(HOUR, a, b)``, ``DATEDIFF(a, b)``, of which a may be a column of a part's name."""
    token = cursor.token
    is_word = cursor.word.lower() in PARTS and cursor.peek().token_type is TokenType.COMMA
    arguments = _plain(cursor, expression)
    if is_word and len(arguments) == 3:
        arguments[0] = cursor.node(exp.Literal(this=token.text.lower(), is_string=True), token)
    return arguments


def _substring(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """SUBSTRING(text FROM start FOR length), or with commas."""
    arguments = _plain(cursor, expression)
    if len(arguments) == 1 and cursor.take_words("FROM"):
        arguments.append(expression(cursor))
        if cursor.take_words("FOR"):
            arguments.append(expression(cursor))
    return arguments


def _trim(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """TRIM(text), TRIM(text, characters), TRIM([LEADING|TRAILING|BOTH] [characters] FROM text)."""
    token = cursor.token
    side = cursor.word
    function = {"LEADING": "LTRIM", "TRAILING": "RTRIM", "BOTH": "TRIM"}.get(side)
    follows = cursor.peek().token_type
    if function is None or follows in (TokenType.COMMA, TokenType.R_PAREN):
        arguments = _plain(cursor, expression)
        if len(arguments) == 1 and cursor.take_words("FROM"):
            return [expression(cursor), *arguments]
        return arguments
    cursor.advance()
    characters = [] if cursor.word == "FROM" else [expression(cursor)]
    cursor.expect_word("FROM", "write TRIM(LEADING 'x' FROM text)")
    return [expression(cursor), *characters, cursor.node(exp.Var(this=function), token)]


def _members(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """``STRUCT(x AS name, column, name := x, 'name', x)``: names and values in turn."""
    found: list[exp.Expr] = []

    def one() -> exp.Expr:
        value = expression(cursor)
        if cursor.take_words("AS"):
            name = cursor.field("a member's name")
            found.extend([_name(cursor, name), value])
        elif isinstance(value, exp.Column):
            found.extend([_name(cursor, value.this), value])
        else:
            raise cursor.expected("AS and a member's name", "write STRUCT(x AS name, ...)")
        return value

    if not cursor.at(TokenType.R_PAREN):
        cursor.listed(one)
    return found


def _name(cursor: Cursor, name: exp.Expr) -> exp.Expr:
    return cursor.node(exp.Literal(this=str(name.this), is_string=True), name)


def _json_members(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """``JSON_OBJECT('name': x, KEY 'name' VALUE x, 'name' VALUE x, 'name', x)``: names and values in turn."""
    found: list[exp.Expr] = []

    def one() -> exp.Expr:
        if cursor.word == "KEY" and cursor.peek().token_type in (TokenType.STRING, TokenType.VAR):
            cursor.advance()
        found.append(expression(cursor))
        if cursor.take(TokenType.COLON) or cursor.take_words("VALUE"):
            found.append(expression(cursor))
        return found[-1]

    if not cursor.at(TokenType.R_PAREN):
        cursor.listed(one)
    return found


_SPECIAL: dict[str, Callable[[Cursor, Expressions], list[exp.Expr]]] = {
    "EXTRACT": _extract,
    "DATE_TRUNC": _part_first,
    "DATE_PART": _part_first,
    **dict.fromkeys(("DATE_DIFF", "DATEDIFF", "TIMESTAMPDIFF", "DATEADD", "TIMESTAMPADD"), _unit_first),
    "SUBSTRING": _substring,
    "TRIM": _trim,
    "STRUCT": _members,
    "JSON_OBJECT": _json_members,
    "JSON_BUILD_OBJECT": _json_members,
    "JSON_OBJECTAGG": _json_members,
}
