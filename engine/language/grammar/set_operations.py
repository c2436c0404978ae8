"""``query UNION [ALL] query``, ``INTERSECT [ALL]``, ``EXCEPT [ALL] [ON (columns)]``; BY NAME or CORRESPONDING
behind one of them.

They are read from left to right, INTERSECT before the others; brackets around some make these come first.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.emit import refuse_changes
from engine.language.grammar.sources import parse_names
from engine.language.grammar.subqueries import parse_subquery, starts_values
from engine.language.grammar.words import SET_OPERATIONS
from tureen.errors import SyntaxRefused

Sets = nodes.SelectQuery | nodes.SetQuery
Operand = Callable[[], Sets]

_COLUMNS = "write EXCEPT ALL ON (column, ...) SELECT ..., with columns of both sides"


def parse_sets(cursor: Cursor, select: Callable[[Cursor], nodes.SelectQuery]) -> Sets:
    """A SELECT, which ``select`` reads up to its ORDER BY, or several with set operations between them."""

    def side() -> Sets:
        if cursor.take(TokenType.L_PAREN):
            return parse_subquery(cursor)
        return select(cursor)

    def intersections() -> Sets:
        return _chain(cursor, ("INTERSECT",), side)

    return _chain(cursor, ("UNION", "EXCEPT"), intersections)


def refuse_early_order(cursor: Cursor) -> None:
    """Raise SyntaxRefused where a set operation follows what belongs behind all of them."""
    if cursor.word in SET_OPERATIONS:
        word = cursor.word
        raise cursor.refuse(
            SyntaxRefused,
            f"{word} must come before ORDER BY, LIMIT and OFFSET, which are about all rows",
            hint=f"put a SELECT into brackets if they are about its rows alone: (SELECT ...) {word} ...",
        )


def _chain(cursor: Cursor, words: tuple[str, ...], operand: Operand) -> Sets:
    """Operands with these words between them."""
    token = cursor.token
    first = operand()
    steps: list[nodes.SetStep] = []
    while cursor.word in words:
        steps.append(_step(cursor, operand))
    if not steps:
        return first
    for query in (first, *(step.args["query"] for step in steps)):
        hint = f"enclose the whole query: {{}} (SELECT ... {steps[0].args['kind'].upper()} SELECT ...)"
        refuse_changes(cursor, query, f"a side of {steps[0].args['kind'].upper()}", hint)
    return cursor.node(nodes.SetQuery(this=first, steps=steps), token, first, *steps)


def _step(cursor: Cursor, operand: Operand) -> nodes.SetStep:
    """An operation, which is next, and its right side."""
    token = cursor.advance()
    word = token.text.upper()
    copies = cursor.take_words("ALL")
    if not copies:
        cursor.take_words("DISTINCT")
    written = f"{word} ALL" if copies else word
    matched, names = _matched(cursor)
    if matched is not None:
        written = f"{written} {matched.upper()}"
    elif cursor.word == "ON":
        if written != "EXCEPT ALL":
            raise cursor.not_supported(f"{written} has no ON", "ON belongs to EXCEPT ALL")
        cursor.advance()
        names = parse_names(cursor)
        if not names:
            raise cursor.expected("( and columns after ON", _COLUMNS)
    if cursor.word != "SELECT" and not (cursor.at(TokenType.L_PAREN) or starts_values(cursor)):
        hint = "put a query that begins with WITH into brackets" if cursor.word == "WITH" else None
        raise cursor.expected(f"SELECT after {written}", hint or f"write SELECT ... {written} SELECT ...")
    query = operand()
    by, on = ([], names) if matched is None else (names, [])
    step = nodes.SetStep(kind=word.lower(), all=copies, on=on, matched=matched, by=by, query=query)
    return cursor.node(step, token, query)


def _matched(cursor: Cursor) -> tuple[str | None, list[exp.Identifier]]:
    """``BY NAME`` or ``CORRESPONDING [BY (names)]``: how columns meet, None where that is not said, and the
    names.
    """
    if cursor.take_words("BY", "NAME"):
        return "by name", []
    if not cursor.take_words("CORRESPONDING"):
        return None, []
    names: list[exp.Identifier] = []
    if cursor.take_words("BY"):
        names = parse_names(cursor)
        if not names:
            raise cursor.expected("( and columns", "write CORRESPONDING BY (a, b)")
    return "corresponding", names
