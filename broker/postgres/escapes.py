"""PostgreSQL's strings with escapes in SELECTs that DuckDB evaluates: they mean the same as over streams."""

from __future__ import annotations

import re

from broker.postgres.places import place_at
from engine.language.grammar.escaped import HINT, unescaped
from tureen.errors import SyntaxRefused

_PIECE = re.compile(
    r"""(?<![\w$])[eE]'(?P<escaped>(?:[^'\\]|\\.|'')*)'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*|/\*.*?\*/"""
    r"""|(?P<tag>\$\w*\$).*?(?P=tag)""",
    re.DOTALL,
)
"""What is passed over as a whole, and what has escapes."""


def without_escapes(sql: str) -> str:
    r"""A text with plain strings instead. What is left stands where it stood. Raises SyntaxRefused.

    >>> without_escapes(r"SELECT E'a\u00e9' AS x, 'E\n'")
    "SELECT 'aé'       AS x, 'E\\n'"
    """
    if "e'" not in sql.lower():
        return sql
    return _PIECE.sub(_plain, sql)


def _plain(found: re.Match[str]) -> str:
    if found["escaped"] is None:
        return found[0]
    try:
        text = unescaped(found["escaped"].replace("''", "'"))
    except ValueError as wrong:
        place = place_at(found.string, found.start())
        raise SyntaxRefused(str(wrong), hint=HINT, **place) from None
    return ("'" + text.replace("'", "''") + "'").ljust(len(found[0]))
