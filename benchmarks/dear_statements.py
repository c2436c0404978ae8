"""Statements that are as dear as the limits of the language allow, each in another way.

For benchmarks and trials of what one request may take from all others. They read a stream of :data:`COLUMNS`;
:func:`rows` gives rows whose strings are all different, as they are dearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

COLUMNS = "id BIGINT, v DOUBLE, text STRING, ts TIMESTAMP NOT NULL"
TEXT_MAX = 64 * 1024
"""Characters of a statement (`sql_bytes_max`)."""
LETTERS = np.array(list("abcdefghijklmnop"))


def rows(count: int, seed: int, begin_ms: int = 0) -> Iterator[dict[str, Any]]:
    """Rows a millisecond apart."""
    rng = np.random.default_rng(seed)
    texts = LETTERS[rng.integers(0, len(LETTERS), (count, 60))]
    for place, (letters, v) in enumerate(zip(texts, rng.random(count).tolist(), strict=True)):
        yield {"id": place, "v": v, "text": "".join(letters), "ts": begin_ms + place}


def likes(count: int) -> str:
    """So many patterns of which no row has any: each is looked for in each string to its end."""
    return " OR ".join(
        f"text LIKE '%{'abcdefgh'[i % 8]}%{'abcdefgh'[i // 8 % 8]}_{i:03}%'" for i in range(count)
    )


def statements(stream: str) -> dict[str, str]:
    """By what is dear of each."""
    return {
        "like": f"SELECT id FROM {stream} WHERE {likes(300)}",
        "long_like": _filled(f"SELECT id FROM {stream} WHERE ", lambda i: f"text LIKE '%a{i}%'", " OR "),
        "products": _filled(f"SELECT id FROM {stream} WHERE ", lambda i: f"(id = {i} OR v = {i})", " AND "),
        "sums": _filled(f"SELECT id FROM {stream} WHERE ", lambda i: f"(id = {i} AND v = {i})", " OR "),
        "strings": _filled(f"SELECT id FROM {stream} WHERE text IN (", lambda i: f"'{i}'", ", ", ")"),
        "computed": _filled(f"SELECT id FROM {stream} WHERE id IN (", lambda i: f"v + {i}", ", ", ")"),
        "unions": _filled("", lambda i: f"SELECT id FROM {stream}", " UNION ALL ", size=256 * 32),
        "sorts": _filled(f"SELECT id FROM {stream} ORDER BY ", lambda i: f"id + {i}", ", "),
        "grouped": f"SELECT id, COUNT(*) FROM {stream} [RANGE 1 HOUR] WHERE {likes(1_000)} GROUP BY id",
        "joined": f"SELECT a.id FROM {stream} [ROWS 20000] AS a JOIN {stream} [ROWS 20000] AS b "
        "ON a.v < b.v AND a.text LIKE '%x%' AND a.id + b.id < 0",
        "above": _above(stream, 120),
    }


def _filled(head: str, part: Callable[[int], str], between: str, tail: str = "", size: int = TEXT_MAX) -> str:
    """As many parts as a statement has room for."""
    parts: list[str] = []
    left = size - len(head) - len(tail)
    while (left := left - len(between) - len(found := part(len(parts)))) >= 0:
        parts.append(found)
    return head + between.join(parts) + tail


def _above(stream: str, depth: int) -> str:
    """A condition over many operators below it."""
    named = ", ".join(
        f"c{i} AS (SELECT id, v, text FROM {f'c{i - 1}' if i else stream} ORDER BY id LIMIT {10_000 - i})"
        for i in range(depth)
    )
    head = f"WITH {named} SELECT id FROM c{depth - 1} WHERE "
    return _filled(head, lambda i: f"text LIKE '%a{i}%'", " OR ")
