"""Texts of several statements: where they are cut, and what each begins with.

The broker parses; this only finds the semicolons between statements, past quotes and comments. O(text).
"""

from __future__ import annotations

import re

EXECUTED = frozenset(
    {"CREATE", "DROP", "SHOW", "LIST", "DESCRIBE", "DESC", "EXPLAIN", "PAUSE", "RESUME", "TERMINATE"}
)
"""What statements begin with that are carried out, not registered."""

_TOKEN = re.compile(
    r"""(?P<skip> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ ) | (?P<end> ; )""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


def split(text: str) -> list[str]:
    """The statements of a text, without their semicolons; blanks and comments alone are none.

    >>> split("CREATE STREAM s (v STRING); SELECT v FROM s WHERE v <> ';' -- done;")
    ['CREATE STREAM s (v STRING)', "SELECT v FROM s WHERE v <> ';' -- done;"]
    """
    found, begin = [], 0
    for token in _TOKEN.finditer(text):
        if token["end"]:
            found.append(text[begin : token.start()])
            begin = token.end()
    found.append(text[begin:])
    return [one.strip() for one in found if _blank_end(one) < len(one)]


def keyword(sql: str) -> str:
    """The first word of a statement, upper-case.

    >>> keyword("/* all */ select 1")
    'SELECT'
    """
    word = re.match(r"\w+", sql[_blank_end(sql) :])
    return word[0].upper() if word else ""


def is_query(sql: str) -> bool:
    """Whether a text is registered rather than executed: a SELECT, or what the broker will say is nothing.

    >>> is_query("WITH t AS (SELECT v FROM s) SELECT v FROM t"), is_query("SHOW QUERIES")
    (True, False)
    """
    return keyword(sql) not in EXECUTED


def _blank_end(text: str) -> int:
    found = _BLANK.match(text)
    return found.end() if found else 0
