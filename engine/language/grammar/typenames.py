"""Type names as written: ``DECIMAL(10, 2)``, ``DOUBLE PRECISION``, ``TIMESTAMP(3)``."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.words import NOT_NESTED
from engine.language.places import shown

_COMPOSED = ("ARRAY", "LIST", "MULTISET", "MAP", "ROW", "STRUCT")
"""Types made of others."""
_TYPED_LITERALS = ("TIMESTAMP", "DATE", "TIMESTAMPTZ", "TIME")


def starts_typed_literal(cursor: Cursor) -> bool:
    """Whether ``TIMESTAMP '...'`` or ``DATE '...'`` is next."""
    return cursor.word in _TYPED_LITERALS and cursor.peek().token_type is TokenType.STRING


def parse_type_name(cursor: Cursor) -> nodes.TypeName:
    """One type; whether it is known is decided when it is bound."""
    token = cursor.token
    if token.token_type is not TokenType.VAR:
        raise cursor.expected("a type", "such as BIGINT, DOUBLE, STRING or TIMESTAMP")
    cursor.check_word(token)
    cursor.advance()
    name = token.text.upper()
    if name in _COMPOSED and (cursor.at(TokenType.LT) or cursor.at(TokenType.L_PAREN)):
        raise cursor.not_supported(
            f"the type {shown(name)} of other types is not supported", NOT_NESTED, token
        )
    if name == "DOUBLE" and cursor.take_words("PRECISION"):
        name = "DOUBLE"
    elif name == "CHARACTER" and cursor.take_words("VARYING"):
        name = "VARCHAR"
    numbers: list[int] = []
    if cursor.at(TokenType.L_PAREN):
        cursor.advance()
        while True:
            figure = cursor.expect(TokenType.NUMBER, "a number")
            if not figure.text.isdigit() or len(figure.text) > 9:
                raise cursor.expected("a whole number before this")
            numbers.append(int(figure.text))
            if not cursor.take(TokenType.COMMA):
                break
        cursor.expect(TokenType.R_PAREN, ")")
    if cursor.word in ("WITH", "WITHOUT") and cursor.word_ahead() == "TIME":
        cursor.take_words(cursor.word, "TIME", "ZONE")
    cursor.take_words("WITH", "LOCAL", "TIME", "ZONE")
    if cursor.at(TokenType.L_BRACKET) or cursor.word in ("ARRAY", "MULTISET"):
        raise cursor.not_supported("array types are not supported", NOT_NESTED)
    if cursor.word in ("UNSIGNED", "SIGNED"):
        raise cursor.not_supported(f"{cursor.word} is not supported", "write INTEGER or BIGINT alone")
    return cursor.node(nodes.TypeName(name=name, numbers=numbers), token)
