"""Table functions in FROM: TUMBLE, HOP and SESSION.

    TUMBLE(s, [ts,] size [, offset])
    HOP(s, [ts,] slide, size [, offset])
    SESSION(s [PARTITION BY k, ...], [ts,] gap)

``TABLE`` may stand before the stream, ``DESCRIPTOR(ts)`` for the time column, and ``TABLE( ... )`` around
the whole.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import source_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration, starts_duration
from engine.language.grammar.windows import parse_partition_keys
from engine.language.grammar.words import FUNCTIONS_REFUSED, ROWS_OF_ELEMENTS
from tureen.errors import SyntaxRefused

USAGE = {
    "TUMBLE": "write TUMBLE(stream, INTERVAL '1' MINUTE)",
    "HOP": "write HOP(stream, slide, size), such as HOP(stream, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
    "SESSION": "write SESSION(stream PARTITION BY key, INTERVAL '5' MINUTE)",
}
_DURATIONS = {"TUMBLE": (1, 2), "HOP": (2, 3), "SESSION": (1, 1)}
_SERVED = (
    "the table functions are TUMBLE, HOP, SESSION, GENERATE_SERIES, RANGE and UNNEST; or write the stream's "
    "name and a window"
)


def parse_table_function(cursor: Cursor) -> source_nodes.TableFunction:
    """A table function; the next tokens are its name, or TABLE, and an opening bracket."""
    if cursor.word == "TABLE" and cursor.peek().token_type is TokenType.L_PAREN:
        cursor.advance()
        cursor.advance()
        function = _function(cursor)
        cursor.expect(TokenType.R_PAREN, ")", "write TABLE(TUMBLE(...))")
        return function
    return _function(cursor)


def _function(cursor: Cursor) -> source_nodes.TableFunction:
    token, name = cursor.token, cursor.word
    usage = USAGE.get(name)
    if usage is None:
        if cursor.at(TokenType.VAR) and cursor.peek().token_type is TokenType.L_PAREN:
            instead = FUNCTIONS_REFUSED[name] if name in ROWS_OF_ELEMENTS else _SERVED
            raise cursor.not_supported(f"there is no table function {name}", instead)
        raise cursor.expected("a table function", _SERVED)
    cursor.advance()
    cursor.expect(TokenType.L_PAREN, "(", usage)
    bare_table = cursor.word == "TABLE" and cursor.peek().token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    if bare_table and cursor.word_ahead() != "PARTITION":
        cursor.advance()
    if cursor.at(TokenType.L_PAREN):
        raise cursor.not_supported(
            f"a subquery in {name} is not supported",
            f"name a stream; put the condition in WHERE after {name}(...)",
        )
    this = cursor.name("a stream")
    keys: list[exp.Expr] = []
    if cursor.word == "PARTITION":
        if name != "SESSION":
            raise cursor.refuse(
                SyntaxRefused, f"{name} has no PARTITION BY", hint="leave it out and write GROUP BY"
            )
        keys = parse_partition_keys(cursor)
    column: exp.Expr | None = None
    durations: list[exp.Expr] = []
    fewest, most = _DURATIONS[name]
    while cursor.take(TokenType.COMMA):
        if starts_duration(cursor):
            if len(durations) == most:
                raise cursor.refuse(SyntaxRefused, f"{name} takes no more times", hint=usage)
            durations.append(parse_duration(cursor))
        elif column is None and not durations:
            column = _column(cursor)
        else:
            raise cursor.expected("a time such as INTERVAL '1' MINUTE", usage)
    if len(durations) < fewest:
        raise cursor.expected("a comma and a time such as INTERVAL '1' MINUTE", usage)
    cursor.expect(TokenType.R_PAREN, ")", usage)
    function = source_nodes.TableFunction(this=this, name=name, keys=keys, column=column, durations=durations)
    return cursor.node(function, token, *keys)


def _column(cursor: Cursor) -> exp.Expr:
    """``ts``, or ``DESCRIPTOR(ts)``."""
    if cursor.word == "DESCRIPTOR" and cursor.peek().token_type is TokenType.L_PAREN:
        cursor.advance()
        cursor.advance()
        column = cursor.name("the time column")
        cursor.expect(TokenType.R_PAREN, ")", "write DESCRIPTOR(column)")
        return column
    return cursor.name("the time column, or a time such as INTERVAL '1' MINUTE")
