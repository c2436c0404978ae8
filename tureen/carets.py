"""Show where in a text an error stands.

    SELECT delai FROM flights
           ^
    there is no column named 'delai' (line 1, column 8)
    hint: did you mean delay?

Works from the text, the line and the column alone, so that a client needs nothing of the server.
"""

from __future__ import annotations

from tureen.errors import TureenError

WIDTH_MAX = 100


def render(sql: str, error: TureenError) -> str:
    """The line with a caret under the column, then the error; the error alone where it has no place.

    Long lines are cut around the column; control characters are shown as blanks.
    """
    if error.line is None or error.column is None:
        return str(error)
    lines = sql.split("\n")
    if not 1 <= error.line <= len(lines):
        return str(error)
    line = "".join(char if char.isprintable() else " " for char in lines[error.line - 1])
    column = min(max(error.column, 1), len(line) + 1) - 1
    start = max(0, column - WIDTH_MAX // 2) if len(line) > WIDTH_MAX else 0
    shown = line[start : start + WIDTH_MAX]
    before, after = "…" if start else "", "…" if start + WIDTH_MAX < len(line) else ""
    return f"{before}{shown}{after}\n{' ' * (len(before) + column - start)}^\n{error}"
