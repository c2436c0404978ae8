"""Names between backticks, as Flink SQL and ksqlDB quote them: here between double quotes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token

from engine.language.dialect import Tureen, tokenize
from engine.language.places import Text
from engine.language.translation.edits import Edit, Tokens


class _Backticks(Tureen.Tokenizer):
    """Reads them as names."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]


_Backticks._COMMENTS = Tureen.Tokenizer._COMMENTS


def tokens_with_backticks(sql: str) -> Sequence[Token]:
    """The tokens of a text. Raises SyntaxRefused for a string, quoted name or comment that does not end."""
    if "`" in sql:
        try:
            return list(_Backticks(dialect=Tureen).tokenize(sql))
        except TokenError:  # told in the terms of this language
            pass
    return tokenize(Text(sql))


def quoted_names(tokens: Tokens) -> Iterator[Edit]:
    """```a b``` as ``"a b"``."""
    for place in range(len(tokens)):
        begin = tokens.begin(place)
        if tokens.sql.startswith("`", begin):
            name = tokens.text(place).replace('"', '""')
            yield Edit(begin, tokens.end(place), f'"{name}"')
