"""Tureen's SQL as a sqlglot dialect: how a text is cut into tokens, and which grammar reads them.

``sqlglot.parse_one(text, dialect=Tureen)`` gives one tree of sqlglot nodes; what SQL lacks (window clauses,
CREATE STREAM)
are nodes of :mod:`engine.language.grammar.nodes`. Words are no tokens of their own: the
grammar reads a word by its place, so that ``date``, ``key`` or ``rows`` can be column names.

The grammar is a plain recursive descent without backtracking: O(tokens), a handful of frames a nesting level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.parser import Parser as SqlglotParser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer as SqlglotTokenizer

from engine.language.grammar.cursor import Cursor
from engine.language.grammar.statement import parse_statement
from engine.language.places import Text
from engine.model.limits import Limits
from tureen.errors import SyntaxRefused


class Tureen(Dialect):
    """Double quotes for names, single quotes for strings (doubled inside), ``--`` and ``/* */`` comments."""

    class Tokenizer(SqlglotTokenizer):
        """Only operators of more than one character are keywords here."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "||": TokenType.DPIPE,
            "::": TokenType.DCOLON,
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "==": TokenType.ADJACENT,
            "->": TokenType.ARROW,
            "->>": TokenType.DARROW,
            "#>": TokenType.HASH_ARROW,
            "#>>": TokenType.DHASH_ARROW,
        }
        HINT_START = "/*"
        COMMANDS: ClassVar[set[TokenType]] = set()
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"']

    class Parser(SqlglotParser):
        """Hands the tokens to the grammar."""

        def parse(self, raw_tokens: list[Token], sql: str) -> list[Any]:
            return [parse_statement(Cursor(Text(sql), raw_tokens, Limits()))]


# sqlglot adds template comments to every dialect; here braces are no comment.
Tureen.Tokenizer._COMMENTS = {"--": None, "/*": "*/"}


def parse_tree(text: Text, limits: Limits) -> exp.Expr:
    """The tree of one statement. Raises SyntaxRefused, NotSupported, LimitExceeded with line and column."""
    return parse_statement(Cursor(text, tokenize(text), limits))


def tokenize(text: Text) -> list[Token]:
    """The tokens of a text. Raises SyntaxRefused for a string, quoted name or comment that does not end."""
    try:
        tokens = Tureen.Tokenizer(dialect=Tureen).tokenize(text.sql)
    except TokenError:
        offset, kind = _unclosed(text.sql)
        raise text.at(offset).refuse(
            SyntaxRefused, f"this {kind} does not end", hint=f"close it with {_CLOSING[kind]}"
        ) from None
    offset, kind = _unclosed(text.sql) if "/*" in text.sql else (-1, "")
    if kind:
        raise text.at(offset).refuse(
            SyntaxRefused, f"this {kind} does not end", hint=f"close it with {_CLOSING[kind]}"
        )
    return list(_numbers_cut(tokens, text.sql))


_LINE_END = re.compile(r"[\n\r]")
_HAS_SIGN_BEHIND = re.compile(r"[\d.]+[eE]\d+[+-].*", re.ASCII)
_PIECE = re.compile(r"(?P<sign>[+-])|\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def _numbers_cut(tokens: Sequence[Token], sql: str) -> Iterator[Token]:
    """The tokens, with numbers such as ``1e0+2`` cut at the sign: sqlglot takes the first sign behind
    an ``e`` for that of the exponent, wherever it stands. Cost: O(characters).
    """
    place = 0  # where the last number that was cut ends
    for token in tokens:
        if token.end < place:
            continue
        start = max(token.start, place)
        is_number = token.token_type is TokenType.NUMBER and _HAS_SIGN_BEHIND.fullmatch(token.text)
        if start == token.start and not is_number:
            yield token
            continue
        place = start
        while place <= token.end:
            piece = _PIECE.match(sql, place)
            end = piece.end() if piece else token.end + 1
            kind = TokenType.NUMBER if piece else TokenType.VAR
            if piece and piece["sign"]:
                kind = TokenType.PLUS if piece["sign"] == "+" else TokenType.DASH
            yield Token(kind, sql[place:end], token.line, token.col, place, end - 1)
            place = end


_CLOSING = {"string": "'", "quoted name": '"', "comment": "*/"}


def _unclosed(sql: str) -> tuple[int, str]:
    """Where the last string, name or comment that does not end begins, and what it is; (-1, '') if none."""
    place, size = 0, len(sql)
    while place < size:
        char = sql[place]
        if char in "'\"":
            start = place
            place += 1
            while place < size and not (sql[place] == char and sql[place + 1 : place + 2] != char):
                place += 2 if sql[place] == char else 1
            if place >= size:
                return start, "string" if char == "'" else "quoted name"
            place += 1
        elif sql.startswith("--", place):
            end = _LINE_END.search(sql, place)
            place = size if end is None else end.start()
        elif sql.startswith("/*", place):
            start, depth = place, 1
            place += 2
            while depth and place < size:
                if sql.startswith("/*", place):
                    depth, place = depth + 1, place + 2
                elif sql.startswith("*/", place):
                    depth, place = depth - 1, place + 2
                else:
                    place += 1
            if depth:
                return start, "comment"
        else:
            place += 1
    return -1, ""
