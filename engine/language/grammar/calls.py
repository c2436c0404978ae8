"""Function calls, with the forms of SQL that have words between the arguments."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.words import CLOCKS

Expressions = Callable[[Cursor], exp.Expr]


def parse_call(cursor: Cursor, expression: Expressions) -> exp.Expr:
    """``name(arguments)``; the next token is the name, the one after it a bracket."""
    token = cursor.token
    name = token.text.upper()
    if name in CLOCKS:
        raise cursor.not_supported(
            f"{name}() cannot be part of an expression: it would change an answer without new rows",
            "use a window, such as FROM s [RANGE 10 MINUTES] or BEGIN NOW - 10 MINUTES END NOW",
        )
    cursor.check_word(token)
    cursor.advance()
    cursor.advance()
    if cursor.at(TokenType.STAR):
        cursor.advance()
        cursor.expect(TokenType.R_PAREN, ")")
        call = cursor.node(nodes.Call(name=name, star=True), token)
    else:
        with cursor.nested():
            arguments = _SPECIAL.get(name, _plain)(cursor, expression)
            cursor.expect(TokenType.R_PAREN, ") or a comma")
        if name == "TRIM" and len(arguments) > 1 and isinstance(arguments[-1], exp.Var):
            name = str(arguments.pop().this)
        call = cursor.node(nodes.Call(name=name, expressions=arguments), token, *arguments)
    refuse_over(cursor, token)
    return call


def refuse_over(cursor: Cursor, token: Token) -> None:
    """Raise NotSupported for what may follow an aggregate."""
    if cursor.word in ("OVER", "FILTER", "WITHIN") and cursor.peek().token_type in (
        TokenType.L_PAREN,
        TokenType.VAR,
    ):
        raise cursor.not_supported(
            f"{cursor.word} after a function is not served",
            "only COUNT(*) alone is served over several rows",
            token,
        )


def _plain(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    if cursor.at(TokenType.R_PAREN):
        return []
    if cursor.word == "DISTINCT":
        raise cursor.not_supported("DISTINCT is not served", "remove duplicates where you fetch the answer")
    if cursor.word in ("SELECT", "WITH", "VALUES"):
        raise cursor.not_supported("a subquery is not served", "write the values themselves")
    arguments = [expression(cursor)]
    while cursor.take(TokenType.COMMA):
        arguments.append(expression(cursor))
    return arguments


def _extract(cursor: Cursor, expression: Expressions) -> list[exp.Expr]:
    """EXTRACT(part FROM value)."""
    token = cursor.token
    if token.token_type not in (TokenType.VAR, TokenType.STRING) or cursor.word_ahead() != "FROM":
        raise cursor.expected("a part and FROM", "write EXTRACT(HOUR FROM t)")
    cursor.advance()
    part = cursor.node(exp.Literal(this=token.text.lower(), is_string=True), token)
    cursor.advance()
    return [part, expression(cursor)]


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


_SPECIAL: dict[str, Callable[[Cursor, Expressions], list[exp.Expr]]] = {
    "EXTRACT": _extract,
    "SUBSTRING": _substring,
    "TRIM": _trim,
}
