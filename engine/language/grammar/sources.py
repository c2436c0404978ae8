"""FROM: sources with their windows, and joins among them.

    FROM a [window] x JOIN b [window] y ON x.k = y.k LEFT JOIN (c JOIN d USING (k)) ON ..., e

Joins are read from left to right; brackets around some of them make these come first.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes, source_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.emit import starts_operator
from engine.language.grammar.samples import parse_sample, starts_sample
from engine.language.grammar.scalar import parse_expression
from engine.language.grammar.series import parse_series, starts_series
from engine.language.grammar.subqueries import (
    parse_stream,
    parse_subquery,
    starts_lateral,
    starts_query,
    starts_values,
)
from engine.language.grammar.table_functions import parse_table_function
from engine.language.grammar.unnest import parse_unnest, starts_unnest
from engine.language.grammar.values import parse_rows
from engine.language.grammar.windows import parse_bracket_window
from engine.language.grammar.words import CLAUSES_REFUSED, RESERVED
from tureen.errors import SyntaxRefused

_SIDES = ("INNER", "LEFT", "RIGHT", "FULL")
_SOFT = ("ASOF", "SEMI", "ANTI")
"""Words of joins that are names unless a join follows."""
_ON = "write JOIN b ON a.key = b.key, JOIN b USING (key), or CROSS JOIN b"


def parse_from(cursor: Cursor) -> nodes.FromItem | nodes.FromList:
    """What stands behind FROM."""
    token = cursor.token
    first = _item(cursor)
    joins: list[nodes.JoinItem] = []
    while _starts_join(cursor):
        joins.append(_join(cursor, after_comma=any(join.args["comma"] for join in joins)))
    if not joins:
        return first
    return cursor.node(nodes.FromList(this=first, joins=joins), token, first, *joins)


def _starts_join(cursor: Cursor) -> bool:
    word = cursor.word
    if word == "OUTER" and cursor.word_ahead() == "JOIN":
        raise cursor.expected("LEFT, RIGHT or FULL before OUTER JOIN", "write FULL OUTER JOIN")
    return cursor.at(TokenType.COMMA) or word in ("JOIN", "CROSS", "NATURAL", *_SIDES) or _soft_join(cursor)


def _soft_join(cursor: Cursor) -> bool:
    return cursor.word in _SOFT and cursor.word_ahead() in ("JOIN", "OUTER", *_SIDES, *_SOFT)


def _join(cursor: Cursor, *, after_comma: bool) -> nodes.JoinItem:
    token = cursor.token
    if cursor.take(TokenType.COMMA):
        item = _item(cursor)
        return cursor.node(nodes.JoinItem(this=item, kind="cross", comma=True), token, item)
    natural = cursor.take_words("NATURAL")
    kind, asof = _kind(cursor)
    if natural and (asof or kind in ("cross", "semi", "anti")):
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, "NATURAL goes with JOIN, LEFT JOIN, RIGHT JOIN and FULL JOIN", hint="write USING"
        )
    if after_comma and kind in ("right", "full"):
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused,
            f"what a {kind.upper()} JOIN after a comma keeps is ambiguous",
            hint="write CROSS JOIN in place of the comma, or brackets: FROM a, (b RIGHT JOIN c ON ...)",
        )
    item = _item(cursor)
    on = None
    using: list[exp.Identifier] = []
    if cursor.word == "MATCH_CONDITION":
        raise cursor.not_supported(
            "MATCH_CONDITION is not supported",
            "write it into ON: ASOF LEFT JOIN b ON a.key = b.key AND a.ts >= b.ts",
        )
    if kind == "cross":
        if cursor.word in ("ON", "USING"):
            raise cursor.refuse(
                SyntaxRefused, f"CROSS JOIN has no {cursor.word}", hint="write JOIN, or leave it out"
            )
    elif natural:
        if cursor.word in ("ON", "USING"):
            raise cursor.refuse(
                SyntaxRefused, f"NATURAL JOIN has no {cursor.word}", hint="leave NATURAL or it out"
            )
    elif cursor.take_words("ON"):
        on = parse_expression(cursor)
    elif cursor.take_words("USING"):
        using = parse_names(cursor)
        if not using:
            raise cursor.expected("( and columns after USING", _ON)
    else:
        refuse_clause(cursor)
        raise cursor.expected("ON or USING", _ON)
    join = nodes.JoinItem(this=item, kind=kind, asof=asof, comma=False, on=on, using=using, natural=natural)
    return cursor.node(join, token, item, *(() if on is None else (on,)))


def _kind(cursor: Cursor) -> tuple[str, bool]:
    """The words up to JOIN: (kind, whether ASOF is among them)."""
    token = cursor.token
    if cursor.take_words("CROSS"):
        cursor.expect_word("JOIN", "write CROSS JOIN")
        return "cross", False
    asof = cursor.take_words("ASOF")
    side = cursor.word if cursor.word in _SIDES else ""
    if side:
        cursor.advance()
    if side in ("LEFT", "RIGHT", "FULL") and cursor.take_words("OUTER"):
        pass
    asof = asof or cursor.take_words("ASOF")
    kind = side.lower() or "inner"
    if cursor.word in ("SEMI", "ANTI"):
        if side not in ("", "LEFT"):
            word = cursor.word
            raise cursor.not_supported(
                f"{side} {word} JOIN is not supported",
                f"write FROM a {word} JOIN b ON ..., which is about the rows of a",
                token,
            )
        kind = cursor.advance().text.lower()
    cursor.expect_word("JOIN", _ON)
    if asof and kind not in ("inner", "left"):
        raise cursor.not_supported(
            f"ASOF {kind.upper()} JOIN is not supported", "write ASOF JOIN or ASOF LEFT JOIN", token
        )
    return kind, asof


def _item(cursor: Cursor) -> nodes.FromItem:
    token = cursor.token
    this: exp.Expr
    lateral = cursor.take_words("LATERAL")
    if lateral and not starts_unnest(cursor) and not starts_lateral(cursor):
        raise cursor.not_supported(
            "LATERAL stands before (SELECT ...), (VALUES ...) and UNNEST(...) alone",
            "write CROSS JOIN LATERAL (SELECT ...) AS t, or CROSS JOIN UNNEST(s.a) AS t(x)",
        )
    if cursor.at(TokenType.L_PAREN):
        this = _in_brackets(cursor)
    else:
        if starts_operator(cursor):
            this = parse_stream(cursor)
        elif starts_values(cursor):
            this = parse_rows(cursor)
        elif starts_series(cursor):
            this = parse_series(cursor)
        elif starts_unnest(cursor):
            this = parse_unnest(cursor)
        elif cursor.peek().token_type is TokenType.L_PAREN and cursor.at(TokenType.VAR):
            this = parse_table_function(cursor)
        else:
            this = cursor.name("a stream after FROM")
            if cursor.at(TokenType.DOT):
                raise cursor.not_supported(
                    "a name with a dot is not supported",
                    "leave out the part before the dot, or quote a name that contains a dot",
                )
    as_of = _as_of(cursor, this)
    _refuse_foreign(cursor)
    window, sample = _clauses(cursor, None, None)
    alias = None
    names: list[exp.Identifier] = []
    if cursor.take_words("AS"):
        alias = cursor.name("a name after AS")
    elif cursor.at(TokenType.IDENTIFIER) or (
        cursor.at(TokenType.VAR)
        and cursor.word not in RESERVED
        and cursor.word not in CLAUSES_REFUSED
        and cursor.word != "MATCH_CONDITION"
        and not _soft_join(cursor)
        and not (cursor.word == "OUTER" and cursor.word_ahead() == "JOIN")
    ):
        alias = cursor.name("a name")
    if alias is not None:
        names = parse_names(cursor)
        if isinstance(this, source_nodes.Series) and not names:
            names = [alias]  # as in PostgreSQL
    as_of = as_of or _as_of(cursor, this)
    window, sample = _clauses(cursor, window, sample)
    lateral = lateral and not isinstance(this, source_nodes.Unnest)  # which is so in any case
    item = nodes.FromItem(
        this=this, window=window, sample=sample, alias=alias, names=names, lateral=lateral, as_of=as_of
    )
    return cursor.node(item, token, this)


def _as_of(cursor: Cursor, this: exp.Expr) -> exp.Expr | None:
    """The instant of ``FOR SYSTEM_TIME AS OF instant``, where that is next behind a name."""
    if not isinstance(this, exp.Identifier) or not cursor.take_words("FOR", "SYSTEM_TIME", "AS", "OF"):
        return None
    return parse_expression(cursor)


def _clauses(
    cursor: Cursor, window: exp.Expr | None, sample: exp.Expr | None
) -> tuple[exp.Expr | None, exp.Expr | None]:
    """(window, sample) with those that are next, in either order; what a stream has already is given."""
    while True:
        if cursor.at(TokenType.L_BRACKET):
            if window is not None:
                raise cursor.refuse(SyntaxRefused, "a stream has one window")
            window = parse_bracket_window(cursor)
        elif starts_sample(cursor):
            if sample is not None:
                raise cursor.refuse(SyntaxRefused, "a stream has one SAMPLE", hint="leave one of them out")
            sample = parse_sample(cursor)
        else:
            return window, sample


def _in_brackets(cursor: Cursor) -> exp.Expr:
    """``(query)``, or ``(joins)``; the bracket is next."""
    cursor.advance()
    if starts_query(cursor):
        return parse_subquery(cursor, is_stream=True)
    names = (TokenType.VAR, TokenType.IDENTIFIER)
    if not cursor.at(TokenType.L_PAREN) and not (
        cursor.token.token_type in names and cursor.peek().token_type is not TokenType.R_PAREN
    ):
        raise cursor.expected("SELECT", "write FROM stream, or FROM (SELECT ...)")
    with cursor.nested():
        inside = parse_from(cursor)
        if not isinstance(inside, nodes.FromList):
            raise cursor.expected("a join", "write FROM stream, FROM (SELECT ...), or FROM (a JOIN b ON ...)")
        cursor.expect(TokenType.R_PAREN, ") after the joins")
    return inside


def parse_names(cursor: Cursor) -> list[exp.Identifier]:
    """``(name, ...)`` if that is next."""
    if not cursor.take(TokenType.L_PAREN):
        return []
    names = cursor.listed(lambda: cursor.name("a column's name"))
    cursor.expect(TokenType.R_PAREN, ") or a comma")
    return names


def refuse_clause(cursor: Cursor) -> None:
    """Raise NotSupported where a clause of SQL begins that is not supported."""
    _refuse_foreign(cursor)
    refused = CLAUSES_REFUSED.get(cursor.word)
    if refused is not None:
        raise cursor.not_supported(f"{refused[0]} is not supported", refused[1])


def _refuse_foreign(cursor: Cursor) -> None:
    """Raise NotSupported for a clause of another system whose first word may be a name."""
    ahead, kind = cursor.word_ahead(), cursor.peek().token_type
    match cursor.word:
        case "PARTITION" if ahead == "BY":
            what, hint = (
                "PARTITION BY here",
                "write GROUP BY, or a window: s [PARTITION BY k ROWS 3]; joins need no repartitioning",
            )
        case "OUTPUT" if ahead in ("EVERY", "LAST", "FIRST", "ALL", "SNAPSHOT", "AFTER", "WHEN"):
            what, hint = "OUTPUT", "fetch the answer when you need it, or write EMIT CHANGES"
        case "MATCH_RECOGNIZE" if kind is TokenType.L_PAREN:
            what, hint = "MATCH_RECOGNIZE", "join the stream with itself, with conditions on both times"
        case "RANGE" | "ROWS" | "LAST" if kind is TokenType.NUMBER:
            what, hint = "a window without brackets", "write it as FROM s [RANGE 30 MINUTES]"
        case _:
            if not cursor.at(TokenType.HASH):
                return
            what, hint = (
                "# after a stream",
                "write a window, as in FROM s [RANGE 30 SECONDS]; comments begin with --",
            )
    raise cursor.not_supported(f"{what} is not supported", hint)
