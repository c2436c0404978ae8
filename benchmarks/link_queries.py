"""The five queries of the experiments with update patterns, over the links (Golab and Oezsu, section 6.1)."""

from __future__ import annotations

from benchmarks.connection_answers import Answers
from benchmarks.update_patterns import Query


def pairs(protocol: str) -> Query:
    """Query 1: rows of a protocol of links 1 and 2, joined on their source."""
    return Query(
        lambda window: (
            f"""SELECT a.src, a.dst, b.dst AS other
            FROM link1 {window} AS a JOIN link2 {window} AS b ON a.src = b.src
            WHERE a.protocol = '{protocol}' AND b.protocol = '{protocol}'"""
        ),
        (0, 1),
        lambda answers, unit: answers.pairs(unit, protocol),
    )


SOURCES = Query(lambda window: f"SELECT DISTINCT src FROM link1 {window}", (0,), Answers.sources)
"""Query 2: the distinct sources of link 1."""

ENDS = Query(lambda window: f"SELECT DISTINCT src, dst FROM link1 {window}", (0,), Answers.ends)
"""Query 2: its distinct pairs of source and destination."""


def _minus(window: str) -> str:
    return f"SELECT src, dst FROM link1 {window} EXCEPT ALL ON (src) SELECT src, dst FROM link2 {window}"


NEGATION = Query(_minus, (0, 1), Answers.negation)
"""Query 3: link 1 minus link 2 on the source."""

COMMON = Query(
    lambda window: (
        f"""SELECT a.src FROM (SELECT DISTINCT src FROM link1 {window}) AS a
        JOIN (SELECT DISTINCT src FROM link2 {window}) AS b ON a.src = b.src"""
    ),
    (0, 1),
    Answers.common_sources,
)
"""Query 4: the distinct sources of link 1 joined with those of link 2."""

ABSENT_JOINED = Query(
    lambda window: (
        f"""SELECT n.src, n.dst, c.dst AS other
        FROM (SELECT src, dst FROM link1 {window} AS a
            WHERE NOT EXISTS (SELECT 1 FROM link2 {window} AS b WHERE b.src = a.src)) AS n
        JOIN link3 {window} AS c ON n.src = c.src WHERE c.protocol = 'ftp'"""
    ),
    (0, 1, 2),
    Answers.absent_joined,
)
"""Query 5 as sets, the negation first."""

JOINED_ABSENT = Query(
    lambda window: (
        f"""SELECT a.src, a.dst, c.dst AS other
        FROM link1 {window} AS a JOIN link3 {window} AS c ON a.src = c.src
        WHERE c.protocol = 'ftp' AND NOT EXISTS (SELECT 1 FROM link2 {window} AS b WHERE b.src = a.src)"""
    ),
    (0, 1, 2),
    Answers.absent_joined,
)
"""Query 5 as sets, the join first."""

NEGATION_JOINED = Query(
    lambda window: (
        f"""SELECT n.src, n.dst, c.dst AS other FROM ({_minus(window)}) AS n
        JOIN link3 {window} AS c ON n.src = c.src WHERE c.protocol = 'ftp'"""
    ),
    (0, 1, 2),
    Answers.negation_joined,
)
"""Query 5: query 3 joined with ftp of link 3 on the source."""
