"""Texts of several statements: where they are cut, and what each begins with.

The broker parses; this only finds the semicolons between statements, past quotes and comments. O(text).
"""

from __future__ import annotations

import re

EXECUTED = frozenset(
    ["ALTER", "CREATE", "DROP", "SHOW", "LIST", "DESCRIBE", "DESC", "EXPLAIN", "PAUSE", "RESUME", "TERMINATE"]
)
"""What statements begin with that are carried out, not registered."""

SELECTS = frozenset({"SELECT", "WITH", "ISTREAM", "DSTREAM", "RSTREAM"})
"""What a query begins with."""

_TOKEN = re.compile(
    r"""(?P<skip> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ ) | (?P<end> ; )""",
    re.VERBOSE | re.DOTALL,
)
_EMIT = re.compile(r"\bEMIT\s+CHANGES\b", re.IGNORECASE)
_INTO = re.compile(r"\bEMIT\s+CHANGES\s+INTO\b\s*(\w*)", re.IGNORECASE)
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
    bare = _TOKEN.sub(" ", sql)
    return _EMIT.search(bare) is not None and _INTO.search(bare) is None


def written_to(sql: str) -> str | None:
    """What a text says of the topic of its changes: the name behind INTO, "" where it leaves that open (or
    quotes it), None where it has no EMIT CHANGES.

    >>> written_to("SELECT v FROM s EMIT CHANGES INTO Big"), written_to("SELECT v FROM s EMIT CHANGES")
    ('big', '')
    >>> written_to("SELECT v FROM s")
    """
    bare = _TOKEN.sub(" ", sql)
    if _EMIT.search(bare) is None:
        return None
    into = _INTO.search(bare)
    return into[1].lower() if into is not None and into[1] else ""


def _blank_end(text: str) -> int:
    found = _BLANK.match(text)
    return found.end() if found else 0
