"""``SAMPLE(p DOWN TO q, seed)`` after a source: a percentage of its rows.

DOWN TO says to how many percent the rate may fall where time is short (Motwani et al., Query Processing,
Resource Management, and Approximation in a Data Stream Management System, CIDR 2003, section 5); the seed
draws other rows than those that all queries share. Both may be left out.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.model.sample import PERCENT_MAX, PERCENT_MIN, SEED_MAX
from tureen.errors import SyntaxRefused

DIGITS_MAX = 40
_FORM = "write a percentage, as in FROM s SAMPLE(10) [RANGE 1 HOUR]"
_LOW_FORM = "write the higher percentage first, as in SAMPLE(100 DOWN TO 5)"
_SEED_FORM = f"write a whole number from 0 to {SEED_MAX}, as in SAMPLE(10, 7)"


def starts_sample(cursor: Cursor) -> bool:
    """Whether SAMPLE and a bracket are next: no name stands there, since a name SAMPLE needs AS before its
    bracket.
    """
    return (
        cursor.word == "SAMPLE" and cursor.at(TokenType.VAR) and cursor.peek().token_type is TokenType.L_PAREN
    )


def parse_sample(cursor: Cursor) -> nodes.SampleClause:
    """The next token is SAMPLE. Raises SyntaxRefused for a percentage or a seed that is none."""
    token = cursor.advance()
    cursor.advance()
    clause = nodes.SampleClause(this=_percentage(cursor))
    if cursor.take_words("DOWN", "TO"):
        place = cursor.place
        least = _percentage(cursor)
        if least > clause.this:
            raise place.refuse(SyntaxRefused, "DOWN TO is above the percentage before it", hint=_LOW_FORM)
        clause.set("down_to", least)
    if cursor.take(TokenType.COMMA):
        clause.set("seed", _seed(cursor))
    cursor.expect(TokenType.R_PAREN, ")", _FORM)
    return cursor.node(clause, token)


def _percentage(cursor: Cursor) -> Decimal:
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
    return percent


def _seed(cursor: Cursor) -> int:
    place = cursor.place
    negative = cursor.take(TokenType.DASH)
    text = cursor.expect(TokenType.NUMBER, "a seed", _SEED_FORM).text
    if negative or not text.isdecimal() or len(text) > DIGITS_MAX or int(text) > SEED_MAX:
        raise place.refuse(SyntaxRefused, "this is not a seed of SAMPLE", hint=_SEED_FORM)
    return int(text)
