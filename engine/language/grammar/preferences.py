"""``WITH PREFERENCE [ASC | DESC | WEIGHTED] p1, p2, ... [FADE FACTOR a] [WINDOW w]`` behind a query, and the
estimates that stand in its priorities: ``SUMMARY.Estimate.Count(s.column)``.

It stands behind LIMIT and before EMIT, beside ``WITH (weight = 3)``, and is said of a whole query alone.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, figure 3b.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.grammar.ordering import Expressions
from engine.language.grammar.words import EARLIER
from engine.language.places import near
from tureen.errors import SyntaxRefused

EXAMPLE = "WITH PREFERENCE desc SUMMARY.Estimate.Count(s.column)"
_ORDERS = ("ASC", "DESC", "WEIGHTED")
_PROPERTIES = ("COUNT", "FREQUENCY")
_NEVER = ("HAVING", "LIMIT", "FETCH", "OFFSET")
"""What would give rows that the exact answer lacks."""
_ESTIMATES = "write SUMMARY.Estimate.Count(column) or SUMMARY.Estimate.Frequency(column)"
_FADE = "write FADE FACTOR 0.8, or FADE FACTOR 80 %: above 0 and at most 1"
_DIGITS_MAX = 40


def starts_preference(cursor: Cursor) -> bool:
    """Whether WITH PREFERENCE is next, where a query has ended: WITH begins no other query there."""
    return cursor.word == "WITH" and cursor.word_ahead() == "PREFERENCE"


def parse_preference(cursor: Cursor, expression: Expressions) -> nodes.PreferenceClause | None:
    """What stands behind a query, None where that is no WITH PREFERENCE."""
    if not starts_preference(cursor):
        return None
    token = cursor.advance()
    cursor.advance()
    order = None
    if cursor.word in _ORDERS and cursor.peek().token_type is not TokenType.DOT:
        order = cursor.advance().text.lower()
    priorities = cursor.listed(lambda: expression(cursor))
    fade = window = None
    while cursor.word in ("FADE", "WINDOW"):
        word = cursor.word
        if (fade if word == "FADE" else window) is not None:
            raise cursor.refuse(SyntaxRefused, f"{word} is given twice", hint="leave one of them out")
        if word == "FADE":
            fade = _fade(cursor)
        else:
            window = _window(cursor)
    _refuse_behind(cursor, priorities)
    clause = nodes.PreferenceClause(order=order, priorities=priorities, fade=fade, window=window)
    return cursor.node(clause, token, *priorities)


def _refuse_behind(cursor: Cursor, priorities: Sequence[exp.Expr]) -> None:
    """Raise SyntaxRefused for what stands before the clause, and for a word that is misspelt; NotSupported
    for what no query with a preference has.
    """
    if starts_preference(cursor):
        raise cursor.refuse(SyntaxRefused, "WITH PREFERENCE is given twice", hint="leave one of them out")
    if cursor.word in _NEVER:
        raise cursor.not_supported(
            f"{cursor.word} beside WITH PREFERENCE is not supported: "
            "rows that were not found would decide what it gives",
            f"leave out {cursor.word}, or WITH PREFERENCE",
        )
    if cursor.word in EARLIER:
        raise cursor.refuse(
            SyntaxRefused,
            f"{cursor.word} must come before WITH PREFERENCE",
            hint=f"write {EXAMPLE} at the end, before EMIT CHANGES",
        )
    if cursor.word in _ORDERS:
        raise cursor.refuse(
            SyntaxRefused,
            f"{cursor.word} must come before the priorities",
            hint=f"write WITH PREFERENCE {cursor.word.lower()} and one priority for each source",
        )
    if cursor.at(TokenType.L_PAREN):
        raise cursor.expected("a comma, FADE FACTOR, WINDOW or the end of the query", _ESTIMATES)
    if cursor.word == "SUMMARY" and isinstance(priorities[-1], exp.Column):
        raise cursor.expected("a comma", f"a preference is ASC, DESC or WEIGHTED: write {EXAMPLE}")
    hint = near(cursor.word, ["FADE", "WINDOW"]) if cursor.word not in ("", "WITH", "EMIT") else None
    if hint is not None:
        raise cursor.expected("FADE FACTOR, WINDOW or the end of the query", hint)


def _fade(cursor: Cursor) -> exp.Expr:
    """``FADE FACTOR 0.8``, ``FADE FACTOR 80 %``, as a share in (0, 1]."""
    cursor.advance()
    cursor.expect_word("FACTOR", _FADE)
    token, place = cursor.token, cursor.place
    negative = cursor.take(TokenType.DASH)
    dot = cursor.take(TokenType.DOT)
    text = ("0." if dot else "") + cursor.expect(TokenType.NUMBER, "a number after FADE FACTOR", _FADE).text
    try:
        share = Decimal(text) if len(text) <= _DIGITS_MAX else Decimal("NaN")
    except ArithmeticError:
        share = Decimal("NaN")
    if cursor.take(TokenType.MOD) or cursor.take_words("PERCENT"):
        share /= 100
    fade = float(share)
    if negative or not 0.0 < fade <= 1.0:
        raise place.refuse(SyntaxRefused, "a fade factor is above 0 and at most 1", hint=_FADE)
    return cursor.node(nodes.FadeFactor(this=fade), token)


def _window(cursor: Cursor) -> nodes.Duration:
    """``WINDOW 1 MINUTE``: of every source."""
    cursor.advance()
    if cursor.word_ahead() == "AS" or cursor.word == "UNBOUNDED":
        named = cursor.word != "UNBOUNDED"
        raise cursor.not_supported(
            "a named window is not supported" if named else "WINDOW UNBOUNDED is not supported",
            "write WINDOW and a time, which is the window of every source: WINDOW 1 MINUTE"
            + ("" if named else "; without WINDOW the query is about all rows that the summaries reach"),
        )
    return parse_duration(cursor)


def starts_estimate(cursor: Cursor, second: exp.Identifier) -> bool:
    """Whether ``name.second`` is followed by ``.Count(``; the dot is next."""
    return (
        second.name == "estimate"
        and not second.args.get("quoted")
        and cursor.peek().token_type is TokenType.VAR
        and cursor.peek(2).token_type is TokenType.L_PAREN
    )


def parse_estimate(cursor: Cursor, token: Token, summary: exp.Identifier) -> nodes.EstimateCall:
    """``summary.Estimate`` stands before: ``.Count(column)`` is next."""
    cursor.advance()
    word = cursor.word
    if word not in _PROPERTIES:
        raise cursor.not_supported(f"there is no estimate named {cursor.token.text[:40]!r}", _ESTIMATES)
    cursor.advance()
    cursor.advance()
    names = (TokenType.VAR, TokenType.IDENTIFIER)
    if cursor.token.token_type not in names:
        raise cursor.expected("a column", _ESTIMATES)
    place = cursor.token
    first = cursor.name("a column")
    second = cursor.field("a column after the dot") if cursor.take(TokenType.DOT) else None
    if not cursor.at(TokenType.R_PAREN):
        raise cursor.text.of_token(place).refuse(
            SyntaxRefused,
            "an estimate is of one column, not of an expression",
            hint=f"{_ESTIMATES}; the estimate itself may be part of an expression",
        )
    cursor.advance()
    column = exp.Column(this=first) if second is None else exp.Column(this=second, table=first)
    column = cursor.node(column, place)
    node = nodes.EstimateCall(summary=summary, property=word.lower(), column=column)
    return cursor.node(node, token, column)
