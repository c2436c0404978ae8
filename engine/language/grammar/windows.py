"""Windows: a clause in brackets after a stream, or BEGIN ... END ... at the end of a query.

The clauses are ``[RANGE t DOWN TO u SLIDE s WHERE p]``, ``[NOW SLIDE s WHERE p]``, ``[UNBOUNDED SLIDE s WHERE
p]`` and ``[PARTITION BY k, ... ROWS n WHERE p]``; DOWN TO, SLIDE, WHERE and PARTITION BY may be left out.
DOWN TO says how short the window may become where memory is short (section 5 there). PRECEDING may stand
behind a size, as SQL-99 and CQL write it (Motwani et al., Query Processing, Resource Management, and
Approximation in a Data Stream Management System, CIDR 2003, section 2), and says nothing more.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration, parse_now_offset
from engine.language.grammar.scalar import number, parse_expression, string
from engine.language.grammar.typenames import starts_typed_literal
from tureen.errors import SyntaxRefused

KEYS_MAX = 100

_FORMS = "write [RANGE 10 MINUTES], [ROWS 100], [NOW] or [UNBOUNDED]"
_WITHOUT_BRACKETS = "write it without brackets: FROM s BEGIN NOW - 10 MINUTES END NOW"
_ENDS = "write NOW, NOW - 10 MINUTES, TIMESTAMP '2024-01-31 12:00:00' or milliseconds since 1970"


def parse_bracket_window(cursor: Cursor) -> exp.Expr:
    """``[ ... ]``; the next token is the opening bracket."""
    token = cursor.advance()
    if cursor.word == "PARTITION":
        keys = parse_partition_keys(cursor)
        if cursor.word != "ROWS":
            raise cursor.expected("ROWS", "write [PARTITION BY key ROWS 100]")
        return _close(cursor, _rows(cursor, keys), token, keys)
    if cursor.word == "ROWS" and cursor.word_ahead() != "UNBOUNDED":
        return _close(cursor, _rows(cursor, []), token, [])
    clause: exp.Expr
    if cursor.take_words("RANGE"):
        if cursor.take_words("UNBOUNDED"):
            clause = nodes.UnboundedClause()
        elif cursor.take_words("NOW"):
            clause = nodes.NowClause()
        else:
            clause = nodes.RangeClause(this=parse_duration(cursor).this)
        if not isinstance(clause, nodes.NowClause):
            _preceding(cursor)
    elif cursor.take_words("NOW"):
        clause = nodes.NowClause()
    elif cursor.take_words("ROWS", "UNBOUNDED") or cursor.take_words("UNBOUNDED"):
        clause = nodes.UnboundedClause()
        _preceding(cursor)
    else:
        forms = _WITHOUT_BRACKETS if cursor.word == "BEGIN" else _FORMS
        raise cursor.expected("RANGE, ROWS, NOW, UNBOUNDED or PARTITION BY", forms)
    if isinstance(clause, nodes.RangeClause) and cursor.take_words("DOWN", "TO"):
        clause.set("down_to", parse_duration(cursor))
    refuse_down_to(cursor)
    if cursor.take_words("SLIDE"):
        clause.set("slide", parse_duration(cursor))
    return _close(cursor, clause, token, [])


def refuse_down_to(cursor: Cursor) -> None:
    """Raise SyntaxRefused where DOWN TO is said of a window that is no ``[RANGE t]``."""
    if cursor.word == "DOWN" and cursor.word_ahead() == "TO":
        raise cursor.refuse(
            SyntaxRefused,
            "only a window with a length of time has DOWN TO",
            hint="write [RANGE 1 HOUR DOWN TO 10 MINUTES], or leave DOWN TO out",
        )


def parse_partition_keys(cursor: Cursor) -> list[exp.Expr]:
    """``PARTITION BY k1, k2``; the next token is PARTITION."""
    cursor.advance()
    cursor.expect_word("BY", "write PARTITION BY and the keys")
    keys = [parse_expression(cursor)]
    while cursor.at(TokenType.COMMA) and not _starts_argument(cursor):
        cursor.advance()
        if len(keys) == KEYS_MAX:
            raise cursor.place.exceeded("partition_keys_max", KEYS_MAX, hint="partition by fewer keys")
        keys.append(parse_expression(cursor))
    return keys


def _starts_argument(cursor: Cursor) -> bool:
    """Whether the comma that is next ends the keys: an argument of a table function stands behind it."""
    ahead = cursor.peek()
    if ahead.token_type in (TokenType.NUMBER, TokenType.STRING):
        return True
    word = cursor.word_ahead()
    return word == "INTERVAL" or (word == "DESCRIPTOR" and cursor.peek(2).token_type is TokenType.L_PAREN)


def _rows(cursor: Cursor, keys: list[exp.Expr]) -> exp.Expr:
    cursor.advance()
    hint = "write [PARTITION BY key ROWS 100]" if keys else "write [ROWS 100]"
    rows = cursor.expect(TokenType.NUMBER, "a number of rows", hint)
    if not rows.text.isdigit() or len(rows.text) > 18:
        raise cursor.text.of_token(rows).refuse(
            SyntaxRefused, "this is not a number of rows", hint="write [ROWS 100]"
        )
    _preceding(cursor)
    refuse_down_to(cursor)
    if cursor.word == "SLIDE":
        raise cursor.refuse(
            SyntaxRefused,
            "SLIDE belongs to a window of time",
            hint="write [RANGE 10 MINUTES SLIDE 1 MINUTE], or leave SLIDE out",
        )
    return nodes.RowsClause(this=int(rows.text), keys=keys)


def _preceding(cursor: Cursor) -> None:
    """PRECEDING, which may be left out. Raises NotSupported for FOLLOWING."""
    if cursor.word == "FOLLOWING":
        raise cursor.not_supported(
            "a window does not hold rows that follow",
            "write PRECEDING, or leave it out: a window ends at NOW",
        )
    cursor.take_words("PRECEDING")


def _close(cursor: Cursor, clause: exp.Expr, token: Token, below: list[exp.Expr]) -> exp.Expr:
    """WHERE and the closing bracket; the whole clause as a node."""
    if cursor.take_words("WHERE"):
        where = parse_expression(cursor)
        clause.set("where", where)
        below = [*below, where]
    cursor.expect(TokenType.R_BRACKET, "]", _FORMS)
    return cursor.node(clause, token, *below)


def parse_begin_end(cursor: Cursor) -> nodes.BeginEnd:
    """``BEGIN e END e``; the next token is BEGIN."""
    token = cursor.advance()
    begin = _end_of_window(cursor)
    cursor.expect_word("END", "a window is BEGIN e END e; " + _ENDS)
    end = _end_of_window(cursor)
    refuse_down_to(cursor)
    return cursor.node(nodes.BeginEnd(begin=begin, end=end), token)


def _end_of_window(cursor: Cursor) -> exp.Expr:
    if cursor.take(TokenType.L_PAREN):
        with cursor.nested():
            inside = _end_of_window(cursor)
            cursor.expect(TokenType.R_PAREN, ")")
        return inside
    if cursor.word == "NOW":
        return parse_now_offset(cursor)
    if starts_typed_literal(cursor) and cursor.word in ("TIMESTAMP", "DATE"):
        cursor.advance()
        return string(cursor)
    if cursor.at(TokenType.STRING):
        return string(cursor)
    token = cursor.token
    if cursor.at(TokenType.DASH):
        cursor.advance()
        literal = number(cursor)
        return cursor.node(exp.Literal(this="-" + str(literal.this), is_string=False), token)
    if cursor.at(TokenType.NUMBER):
        return number(cursor)
    raise cursor.expected("an end of the window", _ENDS)
