"""``GROUP BY a, (b, c), ROLLUP (d, e), CUBE (f, g), GROUPING SETS ((h, i), h, ())``.

Each item gives sets of keys, a plain one a single set; the sets of the clause are all ways to take one of
each item and put them together. So there are at most SETS_MAX of them, which is known before they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import parse_expression
from tureen.errors import SyntaxRefused

SETS_MAX = 64
_MANY = ("ROLLUP", "CUBE")

KeySet = tuple[int, ...]
"""Places of keys."""


class GroupingKeys:
    """keys: as written, each once unless literals stand in it."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._places: dict[exp.Expr, int] = {}
        self.keys: list[exp.Expr] = []

    def key(self) -> int:
        """The place of the key that is next."""
        word = self._cursor.word
        if word in _MANY and self._cursor.peek().token_type is TokenType.L_PAREN:
            raise self._cursor.refuse(
                SyntaxRefused,
                f"{word} is not allowed in a set of columns",
                hint=f"write it beside the set: GROUPING SETS ((a, b), {word} (c))",
            )
        key = parse_expression(self._cursor)
        if key.find(exp.Literal) is None and key in self._places:
            return self._places[key]
        self._places[key] = len(self.keys)
        self.keys.append(key)
        return self._places[key]


def parse_group_by(cursor: Cursor) -> tuple[list[exp.Expr], tuple[KeySet, ...] | None]:
    """The keys of GROUP BY and its grouping sets; no keys where it is not next, no sets where there is one
    set of all keys. Raises LimitExceeded.
    """
    if cursor.word != "GROUP":
        return [], None
    cursor.advance()
    cursor.expect_word("BY", "write GROUP BY and the columns")
    if cursor.word == "ALL" and cursor.peek().token_type is not TokenType.COMMA:
        return [cursor.node(nodes.AllColumns(), cursor.advance())], None
    found = GroupingKeys(cursor)
    token = cursor.token
    items = cursor.listed(lambda: _item(cursor, found))
    if cursor.word == "WITH" and cursor.word_ahead() in _MANY:
        if any(len(item) > 1 for item in items):
            raise cursor.refuse(
                SyntaxRefused, f"WITH {cursor.word_ahead()} follows columns alone", hint="leave it out"
            )
        cursor.advance()
        items = [_many(cursor, cursor.advance(), [key for (key,) in items])]
    _check(cursor, token, items)
    sets = tuple(_together(parts) for parts in product(*items))
    is_plain = len(sets) == 1 and len(sets[0]) == len(found.keys) > 0
    return found.keys, None if is_plain else sets


def _together(parts: Sequence[KeySet]) -> KeySet:
    """One set of all keys of these, each once."""
    return tuple(dict.fromkeys(key for part in parts for key in part))


def _check(cursor: Cursor, token: Token, items: Sequence[Sequence[KeySet]]) -> None:
    """Raise LimitExceeded where one of each item gives too many sets."""
    count = 1
    for item in items:
        count *= len(item)
    if count > SETS_MAX:
        raise cursor.text.of_token(token).exceeded(
            "grouping_sets_max", SETS_MAX, count, hint="name fewer sets: GROUPING SETS ((a, b), (a), ())"
        )


def _item(cursor: Cursor, found: GroupingKeys) -> list[KeySet]:
    """The sets of one item."""
    token = cursor.token
    if cursor.word == "GROUPING" and cursor.word_ahead() == "SETS":
        cursor.advance()
        cursor.advance()
        cursor.expect(TokenType.L_PAREN, "( and sets of columns", "write GROUPING SETS ((a, b), (a), ())")
        with cursor.nested():
            sets = [one for item in cursor.listed(lambda: _item(cursor, found)) for one in item]
            cursor.expect(TokenType.R_PAREN, ") or a comma")
        return sets
    if cursor.word in _MANY and cursor.peek().token_type is TokenType.L_PAREN:
        cursor.advance()
        cursor.advance()
        with cursor.nested():
            parts = cursor.listed(lambda: _set(cursor, found))
            cursor.expect(TokenType.R_PAREN, ") or a comma")
        return _many(cursor, token, parts)
    return [_set(cursor, found)]


def _many(cursor: Cursor, token: Token, parts: Sequence[KeySet]) -> list[KeySet]:
    """The sets of ROLLUP, the first few parts of all, or of CUBE, any of them, the largest first."""
    if token.text.upper() == "ROLLUP":
        return [_together(parts[:count]) for count in range(len(parts), -1, -1)]
    if 2 ** len(parts) > SETS_MAX:
        raise cursor.text.of_token(token).exceeded(
            "grouping_sets_max", SETS_MAX, 2 ** len(parts), hint="name fewer columns in CUBE"
        )
    return [_together(chosen) for chosen in _subsets(parts)]


def _subsets(parts: Sequence[KeySet]) -> Iterator[Sequence[KeySet]]:
    for count in range(len(parts), -1, -1):
        yield from combinations(parts, count)


def _set(cursor: Cursor, found: GroupingKeys) -> KeySet:
    """``()``, ``(a, b)``, or one key, which may stand in brackets too."""
    if not cursor.at(TokenType.L_PAREN) or not _is_list(cursor):
        return (found.key(),)
    cursor.advance()
    if cursor.take(TokenType.R_PAREN):
        return ()
    with cursor.nested():
        keys = cursor.listed(found.key)
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    return _together([(key,) for key in keys])


def _is_list(cursor: Cursor) -> bool:
    """Whether the bracket that is next encloses several keys, or none, and is no part of an expression.
    O(tokens in it).
    """
    if cursor.peek().token_type is TokenType.R_PAREN:
        return True
    depth, ahead, commas = 0, 0, 0
    while True:
        kind = cursor.peek(ahead).token_type
        if kind is TokenType.BREAK:
            return False
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        commas += kind is TokenType.COMMA and depth == 1
        if not depth:
            break
        ahead += 1
    return commas > 0 and cursor.word_ahead(ahead + 1) not in ("IN", "NOT")
