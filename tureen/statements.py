"""Texts of several statements: where they are cut, and what each begins with.

The broker parses; this only finds the semicolons between statements, past quotes and comments, which may
contain others. O(text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tureen.errors import TureenError

EXECUTED = frozenset(
    [
        "ALTER",
        "CREATE",
        "DROP",
        "INSERT",
        "SHOW",
        "LIST",
        "DESCRIBE",
        "DESC",
        "EXPLAIN",
        "PAUSE",
        "RESUME",
        "TERMINATE",
    ]
)
"""What statements begin with that are carried out, not registered."""

SELECTS = frozenset({"SELECT", "WITH", "ISTREAM", "DSTREAM", "RSTREAM"})
"""What a query begins with."""

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*|/\*|;""")
_COMMENT = re.compile(r"/\*|\*/")
_EMIT = re.compile(r"\bEMIT\s+CHANGES\b", re.IGNORECASE)
_INTO = re.compile(r"\bEMIT\s+CHANGES\s+INTO\b\s*(\w*)", re.IGNORECASE)
_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement of a text of several. offset: characters of the text before it. line, column: where it
    begins, from 1.
    """

    sql: str
    offset: int
    line: int
    column: int

    def place(self, error: TureenError) -> None:
        """Have a refusal of the statement tell its place in the whole text: the begin of the statement where
        it has none.
        """
        registered = registered_text(self.sql)
        before = "" if registered is None else self.sql[: len(self.sql) - len(registered)]
        line, column = self.line + before.count("\n"), self.column + len(before)
        if "\n" in before:
            column = len(before) - before.rindex("\n")
        if error.line is None or error.column is None:
            error.line, error.column = self.line, self.column
        else:
            error.column += column - 1 if error.line == 1 else 0
            error.line += line - 1


def split(text: str) -> list[str]:
    """The statements of a text, without their semicolons; blanks and comments alone are none.

    >>> split("CREATE STREAM s (v STRING); SELECT v FROM s WHERE v <> ';' -- done;")
    ['CREATE STREAM s (v STRING)', "SELECT v FROM s WHERE v <> ';' -- done;"]
    """
    return [one.sql for one in placed(text)]


def placed(text: str) -> list[Placed]:
    """As :func:`split`, with where each statement begins.

    >>> placed("SHOW QUERIES;\\n  SHOW VIEWS;")[1]
    Placed(sql='SHOW VIEWS', offset=16, line=2, column=3)
    """
    ends = [start for start, _ in _tokens(text) if text[start] == ";"]
    found: list[Placed] = []
    line, counted, begin = 1, 0, 0
    for end in (*ends, len(text)):
        one = text[begin:end]
        if _blank_end(one) < len(one):
            offset = begin + len(one) - len(one.lstrip())
            line += text.count("\n", counted, offset)
            counted = offset
            found.append(Placed(one.strip(), offset, line, offset - text.rfind("\n", 0, offset)))
        begin = end + 1
    return found


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each string, quoted name, comment and semicolon."""
    place = 0
    while (token := _TOKEN.search(text, place)) is not None:
        place = token.end()
        if token[0] == "/*":
            depth = 1
            while depth and (mark := _COMMENT.search(text, place)) is not None:
                depth += 1 if mark[0] == "/*" else -1
                place = mark.end()
            place = len(text) if depth else place
        yield token.start(), place


def _bare(text: str) -> str:
    """A text with blanks in the place of strings, quoted names, comments and semicolons."""
    parts, begin = [], 0
    for start, end in _tokens(text):
        parts.append(text[begin:start])
        begin = end
    return " ".join([*parts, text[begin:]])


def blanked(text: str, *, strings: bool = True) -> str:
    """A text of the same length with blanks in the place of comments and semicolons, and of strings and
    quoted names where those are to go, too.

    >>> blanked("a 'b' /* c */ d;"), blanked("a 'b' /* c */ d;", strings=False)
    ('a             d ', "a 'b'         d ")
    """
    parts, begin = [], 0
    for start, end in _tokens(text):
        kept = not strings and text[start] in "'\""
        parts += [text[begin:start], text[start:end] if kept else re.sub(r"[^\n]", " ", text[start:end])]
        begin = end
    return "".join([*parts, text[begin:]])


def keyword(sql: str) -> str:
    """The first word of a statement, upper-case.

    >>> keyword("/* all */ select 1")
    'SELECT'
    """
    word = re.match(r"\w+", sql[_blank_end(sql) :])
    return word[0].upper() if word else ""


def is_select(sql: str) -> bool:
    """Whether a text is a SELECT, perhaps one that begins with a bracket, rather than a name or a handle.

    >>> is_select("(SELECT v FROM s) UNION SELECT w FROM s"), is_select("wbpy4mk74giav5jp")
    (True, False)
    """
    return keyword(sql[_blank_end(sql) :].lstrip("( \t\n")) in SELECTS


def is_query(sql: str) -> bool:
    """Whether a text is registered rather than executed: a SELECT, or what the broker will say is nothing.

    >>> is_query("WITH t AS (SELECT v FROM s) SELECT v FROM t"), is_query("SHOW QUERIES")
    (True, False)
    """
    return keyword(sql) not in EXECUTED


def registered_text(sql: str) -> str | None:
    """What REGISTER stands before; None where a text does not begin with it.

    >>> registered_text("REGISTER SELECT v FROM s"), registered_text("SELECT v FROM s")
    ('SELECT v FROM s', None)
    """
    if keyword(sql) != "REGISTER":
        return None
    begin = _blank_end(sql) + len("REGISTER")
    return sql[begin:].strip()


def is_followed(sql: str) -> bool:
    """Whether a query's changes are for whoever registers it: EMIT CHANGES, and not INTO a topic.

    >>> is_followed("SELECT 1 FROM s EMIT CHANGES -- "), is_followed("SELECT 1 FROM s EMIT CHANGES INTO t")
    (True, False)
    >>> is_followed("SELECT 'EMIT CHANGES' FROM s")
    False
    """
    bare = _bare(sql)
    return _EMIT.search(bare) is not None and _INTO.search(bare) is None


def written_to(sql: str) -> str | None:
    """What a text says of the topic of its changes: the name behind INTO, "" where it leaves that open (or
    quotes it), None where it has no EMIT CHANGES.

    >>> written_to("SELECT v FROM s EMIT CHANGES INTO Big"), written_to("SELECT v FROM s EMIT CHANGES")
    ('big', '')
    >>> written_to("SELECT v FROM s")
    """
    bare = _bare(sql)
    if _EMIT.search(bare) is None:
        return None
    into = _INTO.search(bare)
    return into[1].lower() if into is not None and into[1] else ""


def _blank_end(text: str) -> int:
    """How many characters of blanks and comments a text begins with."""
    place = 0
    for start, end in _tokens(text):
        if text[start : start + 2] not in ("--", "/*") or text[place:start].strip():
            break
        place = end
    blanks = _BLANKS.match(text, place)
    return blanks.end() if blanks else place
