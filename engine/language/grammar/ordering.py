"""``ORDER BY x DESC NULLS LAST``, ``LIMIT n OFFSET m``, and ``FETCH FIRST n ROWS ONLY`` or ``WITH TIES``."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from tureen.errors import SyntaxRefused

Expressions = Callable[[Cursor], exp.Expr]

_ROWS_MAX = 2**63 - 1


def parse_order(cursor: Cursor, expression: Expressions) -> list[nodes.OrderItem]:
    """The next token is ORDER."""
    cursor.advance()
    cursor.expect_word("BY", "write ORDER BY and the columns")
    return cursor.listed(lambda: _item(cursor, expression))


def _item(cursor: Cursor, expression: Expressions) -> nodes.OrderItem:
    token = cursor.token
    is_all = cursor.word == "ALL" and cursor.peek().token_type not in (TokenType.L_PAREN, TokenType.DOT)
    key = cursor.node(nodes.AllColumns(), cursor.advance()) if is_all else expression(cursor)
    descending = False
    if cursor.word in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        descending = cursor.advance().text.upper().startswith("DESC")
    elif cursor.word == "USING":
        raise cursor.not_supported("ORDER BY ... USING is not supported", "write ASC or DESC")
    nulls_first = None
    if cursor.take_words("NULLS"):
        if cursor.word not in ("FIRST", "LAST"):
            raise cursor.expected("FIRST or LAST after NULLS")
        nulls_first = cursor.advance().text.upper() == "FIRST"
    item = nodes.OrderItem(this=key, descending=descending, nulls_first=nulls_first)
    return cursor.node(item, token, key)


def parse_limits(cursor: Cursor, *, ordered: bool) -> tuple[int | None, int | None, bool]:
    """LIMIT and OFFSET in either order, or FETCH FIRST: (limit, offset, whether with ties), None where the
    text says none. ordered: there is an ORDER BY.
    """
    counts: dict[str, int | None] = {}
    ties = False
    while cursor.word in ("LIMIT", "FETCH", "OFFSET"):
        what = "OFFSET" if cursor.word == "OFFSET" else "LIMIT"
        if what in counts:
            raise cursor.refuse(SyntaxRefused, f"{cursor.word} is given twice", hint="leave one of them out")
        is_fetch = cursor.word == "FETCH"
        counts[what] = _PARTS[cursor.word](cursor)
        if is_fetch:
            ties = _with_ties(cursor, ordered=ordered)
        if cursor.at(TokenType.COMMA):
            raise cursor.not_supported("LIMIT m, n is not supported", "write LIMIT n OFFSET m")
    limit, offset = counts.get("LIMIT"), counts.get("OFFSET")
    if limit is not None and limit + (offset or 0) >= _ROWS_MAX:
        limit = None  # no answer has so many rows
    return limit, offset, ties


def _offset(cursor: Cursor) -> int:
    cursor.advance()
    count = _count(cursor)
    if cursor.word in ("ROW", "ROWS"):
        cursor.advance()
    return count


def _limit(cursor: Cursor) -> int | None:
    cursor.advance()
    if cursor.word in ("ALL", "NULL"):
        cursor.advance()
        return None
    count = _count(cursor)
    if cursor.at(TokenType.MOD) or cursor.word == "PERCENT":
        raise cursor.not_supported("a LIMIT in percent is not supported", "write a number of rows")
    if cursor.word == "BY":
        raise cursor.not_supported(
            "LIMIT ... BY is not supported",
            "write ROW_NUMBER() OVER (PARTITION BY x ORDER BY y) AS n in a subquery, then WHERE n <= 3",
        )
    return count


def _fetch(cursor: Cursor) -> int:
    """``FETCH FIRST n ROWS``."""
    cursor.advance()
    if cursor.word not in ("FIRST", "NEXT"):
        raise cursor.expected("FIRST", "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10")
    cursor.advance()
    count = _count(cursor) if cursor.at(TokenType.NUMBER) else 1
    if cursor.word not in ("ROW", "ROWS"):
        raise cursor.expected("ROWS", "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10")
    cursor.advance()
    return count


def _with_ties(cursor: Cursor, *, ordered: bool) -> bool:
    """``ONLY`` or ``WITH TIES``, behind the rows of FETCH."""
    if cursor.word != "WITH":
        cursor.expect_word("ONLY", "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10")
        return False
    if not ordered:
        raise cursor.refuse(
            SyntaxRefused,
            "WITH TIES needs an ORDER BY: rows tie that are equal in its keys",
            hint="write ORDER BY and the columns before FETCH, or FETCH FIRST 10 ROWS ONLY",
        )
    cursor.advance()
    cursor.expect_word("TIES", "write FETCH FIRST 10 ROWS WITH TIES")
    return True


def _count(cursor: Cursor) -> int:
    token = cursor.expect(TokenType.NUMBER, "a number of rows", "write a number, as in LIMIT 10")
    if token.text.isascii() and token.text.isdigit() and int(token.text[:100]) > _ROWS_MAX:
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, "this number of rows is too large", hint=f"the largest is {_ROWS_MAX}"
        )
    if not token.text.isascii() or not token.text.isdigit():
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, "this is not a number of rows", hint="write a number, as in LIMIT 10"
        )
    return int(token.text)


_PARTS: dict[str, Callable[[Cursor], int | None]] = {"LIMIT": _limit, "FETCH": _fetch, "OFFSET": _offset}
