"""``SAMPLE(p)`` after a stream: a percentage of its rows."""

from __future__ import annotations

from decimal import Decimal

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.model.sample import PERCENT_MAX, PERCENT_MIN
from tureen.errors import SyntaxRefused

DIGITS_MAX = 40
_FORM = "write a percentage, as in FROM s SAMPLE(10) [RANGE 1 HOUR]"


def starts_sample(cursor: Cursor) -> bool:
    """Whether SAMPLE and a bracket are next: no name stands there, since a name SAMPLE needs AS before its
    bracket.
    """
    return (
        cursor.word == "SAMPLE" and cursor.at(TokenType.VAR) and cursor.peek().token_type is TokenType.L_PAREN
    )


def parse_sample(cursor: Cursor) -> nodes.SampleClause:
    """``SAMPLE(p)``; the next token is SAMPLE. Raises SyntaxRefused for a percentage that is none."""
    token = cursor.advance()
    cursor.advance()
    place = cursor.place
    negative = cursor.take(TokenType.DASH)
    number = cursor.expect(TokenType.NUMBER, "a percentage", _FORM)
    percent = Decimal(number.text) if len(number.text) <= DIGITS_MAX else Decimal("NaN")
    if negative or percent.is_nan() or not PERCENT_MIN <= percent <= PERCENT_MAX:
        raise place.refuse(
            SyntaxRefused,
            f"a sample is more than 0 and at most {PERCENT_MAX} percent of the rows",
            hint=f"{_FORM}; the least is SAMPLE({PERCENT_MIN})",
        )
    if cursor.at(TokenType.COMMA):
        raise cursor.not_supported(
            "a seed of SAMPLE is not supported", "leave it out: the topic of the source gives the seed"
        )
    if cursor.word == "DOWN":
        raise cursor.not_supported("SAMPLE(p DOWN TO q) is not supported", "write the one percentage")
    cursor.expect(TokenType.R_PAREN, ")", _FORM)
    return cursor.node(nodes.SampleClause(this=percent), token)
