"""What is said where the semicolon between two statements is missing."""

from __future__ import annotations

from engine.language.grammar.cursor import Cursor

_FIRST = (
    *("SELECT", "CREATE", "INSERT", "DROP", "SHOW", "DESCRIBE", "EXPLAIN", "ALTER", "PAUSE", "RESUME"),
    "TERMINATE",
)


def semicolon_missing(cursor: Cursor) -> str | None:
    """A hint where the next word begins a statement, or the one before it, which was read as a name
    (``FROM s CREATE VIEW ...``); None elsewhere.
    """
    for word in (cursor.word_ahead(-1), cursor.word):
        if word in _FIRST:
            return f"end the statement before {word} with ;"
    return None
