"""PostgreSQL's strings with escapes: ``E'a\\tb'``.

Source: PostgreSQL's documentation, "String Constants with C-Style Escapes".
"""

from __future__ import annotations

import re
import sys

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar.cursor import Cursor
from tureen.errors import SyntaxRefused

_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|[^\\]+", re.DOTALL
)
_HIGH, _LOW, _BEYOND = range(0xD800, 0xDC00), range(0xDC00, 0xE000), 0x10000
"""Codes of the halves of surrogate pairs, and the first character that needs one."""
HINT = "write E'...' with \\n, \\t, \\u00e9, \\\\"
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HALF = "half a surrogate pair is not a character"
_UNFINISHED = re.compile(r"(?:[^\\]|\\[^'])*\\(?:'|\Z)", re.DOTALL)


def parse_escaped(cursor: Cursor, prefix: Token) -> exp.Expr:
    """The literal; the next token is the E. Raises SyntaxRefused."""
    cursor.advance()
    token = cursor.expect(TokenType.STRING, "a string in single quotes")
    place = cursor.text.of_token(token)
    if _UNFINISHED.match(token.text):
        raise place.refuse(SyntaxRefused, "\\' does not stand for a quote", hint="double it: E'it''s'")
    try:
        text = unescaped(token.text)
    except ValueError as wrong:
        raise place.refuse(SyntaxRefused, str(wrong), hint=HINT) from None
    return cursor.node(exp.Literal(this=text, is_string=True), prefix)


def unescaped(text: str) -> str:
    r"""What a text with escapes stands for. Raises ValueError.

    >>> unescaped(r"a\tb\\\u00e9\xc3\xa9\q"), unescaped(r"\ud83d\ude00")
    ('a\tb\\ééq', '😀')
    """
    found = bytearray()
    high: int | None = None
    for one in _ESCAPE.finditer(text):
        octal, hexadecimal, short, long, letter = one.groups()
        if high is not None and short is None and long is None:
            raise ValueError(_HALF)
        if octal is not None or hexadecimal is not None:
            found.append((int(octal, 8) if octal is not None else int(hexadecimal, 16)) & 0xFF)
        elif short is not None or long is not None:
            code = int(short or long, 16)
            if high is not None and code in _LOW:
                code, high = _BEYOND + ((high - _HIGH.start) << 10) + code - _LOW.start, None
            if high is not None or code in _LOW:
                raise ValueError(_HALF)
            if code > sys.maxunicode:
                raise ValueError(f"{one[0]} is no character")
            if code in _HIGH:
                high = code
            else:
                found += chr(code).encode()
        elif letter in ("u", "U"):
            raise ValueError(f"\\{letter} stands before {4 if letter == 'u' else 8} hexadecimal digits")
        elif letter is not None:
            found += _LETTERS.get(letter, letter).encode()
        else:
            found += one[0].encode("utf-8", "surrogatepass")
    if high is not None:
        raise ValueError(_HALF)
    if 0 in found:
        raise ValueError("a string cannot contain the character U+0000")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise ValueError("the bytes of this string are no UTF-8") from None
