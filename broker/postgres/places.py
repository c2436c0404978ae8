"""Where something stands in the text of a statement."""

from __future__ import annotations


def place_at(sql: str, start: int) -> dict[str, int]:
    """Line and column, from 1, of a character."""
    before = sql[:start]
    return {"line": before.count("\n") + 1, "column": start - before.rfind("\n")}
