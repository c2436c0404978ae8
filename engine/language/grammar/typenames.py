"""Type names as written: ``DECIMAL(10, 2)``, ``DOUBLE PRECISION``, ``TIMESTAMP(3)``, ``ARRAY<BIGINT>``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from tureen.errors import SyntaxRefused

_COMPOSED = {"ARRAY": "ARRAY", "LIST": "ARRAY", "MAP": "MAP", "ROW": "STRUCT", "STRUCT": "STRUCT"}
"""Types made of others, by all names that they have."""
_USAGES = {
    "ARRAY": "write ARRAY<BIGINT>",
    "MAP": "write MAP<STRING, BIGINT>",
    "STRUCT": "write STRUCT<name STRING, size BIGINT>",
}
_TYPED_LITERALS = ("TIMESTAMP", "DATE", "TIMESTAMPTZ", "TIME", "JSON", "UUID")


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
        return _array(cursor, _composed(cursor, token))
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
    if cursor.word in ("UNSIGNED", "SIGNED"):
        raise cursor.not_supported(f"{cursor.word} is not supported", "write INTEGER or BIGINT alone")
    return _array(cursor, cursor.node(nodes.TypeName(name=name, numbers=numbers), token))


def _composed(cursor: Cursor, token: Token) -> nodes.TypeName:
    """``ARRAY<type>``, ``MAP<STRING, type>``, ``STRUCT<name type, ...>``, or with round brackets; the name
    was read.
    """
    name = _COMPOSED[token.text.upper()]
    closing = TokenType.GT if cursor.at(TokenType.LT) else TokenType.R_PAREN
    cursor.advance()
    names: list[exp.Identifier] = []
    types: list[nodes.TypeName] = []
    with cursor.nested():
        while True:
            if len(types) >= cursor.limits.columns_max:
                raise cursor.place.exceeded("columns_max", cursor.limits.columns_max)
            if name == "STRUCT":
                names.append(cursor.field("a member's name"))
                cursor.take(TokenType.COLON)
            types.append(parse_type_name(cursor))
            if not cursor.take(TokenType.COMMA):
                break
        cursor.expect(closing, "> or a comma" if closing is TokenType.GT else ") or a comma", _USAGES[name])
    if name != "STRUCT" and len(types) != (2 if name == "MAP" else 1):
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused,
            f"{name} is made of {'two types' if name == 'MAP' else 'one type'}",
            hint=_USAGES[name],
        )
    return cursor.node(nodes.TypeName(name=name, types=types, names=names), token, *types)


def _array(cursor: Cursor, element: nodes.TypeName) -> nodes.TypeName:
    """``type[]`` and ``type ARRAY`` behind a type."""
    while cursor.at(TokenType.L_BRACKET) or cursor.word == "ARRAY":
        with cursor.nested():
            if cursor.advance().token_type is TokenType.L_BRACKET:
                cursor.take(TokenType.NUMBER)  # no length is checked
                cursor.expect(TokenType.R_BRACKET, "]", "write BIGINT[], or ARRAY<BIGINT>")
        element = cursor.node(nodes.TypeName(name="ARRAY", types=[element]), element, element)
    return element
