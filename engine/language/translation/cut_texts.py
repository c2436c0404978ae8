"""``x::varchar(10)`` and ``CAST(x AS VARCHAR(10))``, which cut a text: here SUBSTRING does."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from engine.language.translation.edits import Edit, Tokens

_OPENING = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}
_VALUES = (TokenType.STRING, TokenType.NUMBER)


def cut_texts(tokens: Tokens) -> Iterator[Edit]:
    """A cast to STRING of the same value, of which SUBSTRING takes the first characters."""
    for place in range(1, len(tokens)):
        if not _is_limited(tokens, place):
            continue
        if tokens.kind(place - 1) is TokenType.DCOLON:
            operand, end = _operand(tokens, place - 1), tokens.end(place + 3)
            type_ = "STRING"
        elif tokens.word(place - 1) == "AS" and tokens.kind(place + 4) is TokenType.R_PAREN:
            operand, end = _operand(tokens, place + 5), tokens.end(place + 4)
            type_ = "STRING)"
        else:
            continue
        if operand is not None:
            yield Edit(tokens.begin(operand), tokens.begin(operand), "SUBSTRING(")
            yield Edit(tokens.begin(place), end, f"{type_}, 1, {tokens.text(place + 2)})")


def _is_limited(tokens: Tokens, place: int) -> bool:
    """Whether VARCHAR(n) stands at a place."""
    return (
        tokens.word(place) == "VARCHAR"
        and tokens.kind(place + 1) is TokenType.L_PAREN
        and tokens.kind(place + 2) is TokenType.NUMBER
        and tokens.kind(place + 3) is TokenType.R_PAREN
    )


def _operand(tokens: Tokens, end: int) -> int | None:
    """Where the value begins that ends before a place: a name with members, subscripts and casts, a call, a
    literal, a bracket; None where it is something else. O(its tokens).
    """
    place = end - 1
    while True:
        kind = tokens.kind(place)
        while kind in _OPENING:
            opened = _opening(tokens, place)
            if opened is None:
                return None
            if not _goes_on(tokens, opened):
                return opened
            place = opened - 1
            kind = tokens.kind(place)
        if not (tokens.is_name(place) or kind in _VALUES):
            return None
        if tokens.kind(place - 1) not in (TokenType.DOT, TokenType.DCOLON):
            return place
        place -= 2


def _goes_on(tokens: Tokens, opened: int) -> bool:
    """Whether what a bracket opens belongs to what stands before it: a call or a subscript."""
    before = tokens.kind(opened - 1)
    is_keyword = tokens.word(opened - 1) in (
        "SELECT",
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "ON",
        "HAVING",
        "BY",
        "IN",
    )
    return not is_keyword and (tokens.is_name(opened - 1) or before in _OPENING)


def _opening(tokens: Tokens, place: int) -> int | None:
    """The place of the bracket that is closed at one."""
    depth = 0
    for at in range(place, -1, -1):
        kind = tokens.kind(at)
        depth += (kind in _OPENING) - (kind in _OPENING.values())
        if not depth:
            return at
    return None
