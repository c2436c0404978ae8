"""PostgreSQL takes a string for an interval where a function wants one; here INTERVAL stands before it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from engine.language.translation.edits import Edit, Tokens


def intervals_of_bins(tokens: Tokens) -> Iterator[Edit]:
    """``DATE_BIN('1 hour', t, origin)``."""
    for place in tokens.find("DATE_BIN"):
        if tokens.kind(place + 1) is TokenType.L_PAREN and tokens.kind(place + 2) is TokenType.STRING:
            begin = tokens.begin(place + 2)
            yield Edit(begin, begin, "INTERVAL ")
