"""Joins of every kind, IN and EXISTS: their rows at every instant of a way, and what changes between."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from tests.changes.ways import FEW, bound, check_changes, random_transition, seeds

WINDOWS = ("", "[RANGE 4 MILLISECONDS]", "[ROWS 2]", "[NOW]")
JOINS = (
    "SELECT * FROM s {a} JOIN u {b} ON s.k = u.k",
    "SELECT s.k, n, v FROM s {a} JOIN u {b} ON s.k = u.k AND s.v < u.n",
    "SELECT s.k, n FROM s {a}, u {b} WHERE u.n > 1",
    "SELECT * FROM s {a} LEFT JOIN u {b} ON s.k = u.k",
    "SELECT * FROM s {a} LEFT JOIN u {b} ON s.k = u.k AND s.v < u.n WHERE w = 'a'",
    "SELECT * FROM s {a} RIGHT JOIN u {b} ON s.k = u.k",
    "SELECT * FROM s {a} FULL JOIN u {b} ON s.k = u.k AND s.v < u.n",
    "SELECT * FROM s {a} SEMI JOIN u {b} ON s.k = u.k",
    "SELECT * FROM s {a} ANTI JOIN u {b} ON s.k = u.k AND u.n <> s.v",
    "SELECT * FROM s {a} ASOF JOIN u {b} ON s.k = u.k AND s.ts >= u.ts",
    "SELECT * FROM s {a} ASOF LEFT JOIN u {b} ON s.k = u.k AND s.ts > u.ts",
    "SELECT * FROM s {a} ASOF LEFT JOIN u {b} ON s.k >= u.n",
    "SELECT * FROM s {a} ASOF JOIN u {b} ON s.w = 'a' AND s.k > u.n",
    "SELECT * FROM s {a} WHERE k IN (SELECT k FROM u {b})",
    "SELECT * FROM s {a} WHERE k NOT IN (SELECT k FROM u {b})",
    "SELECT * FROM s {a} WHERE EXISTS (SELECT 1 FROM u {b} WHERE u.k = s.k)",
    "SELECT * FROM s {a} WHERE NOT EXISTS (SELECT 1 FROM u {b} WHERE u.k = s.k)",
    "SELECT * FROM s {a} WHERE EXISTS (SELECT 1 FROM u {b} WHERE n > 0)",
    "SELECT * FROM s {a} JOIN (SELECT k, COUNT(*) AS c FROM u {b} GROUP BY k) AS x ON s.k = x.k",
    "SELECT s.k, COUNT(*) AS c, SUM(v) AS t FROM s {a} LEFT JOIN u {b} ON s.k = u.k GROUP BY s.k",
    "SELECT w, COUNT(n) AS c FROM s {a} JOIN u {b} ON s.k = u.k WHERE v > 0 GROUP BY w HAVING COUNT(n) > 1",
    "SELECT s.k, h.p, n FROM s {a} JOIN h ON s.k = h.k JOIN u {b} ON u.k = h.k",
)
TABLES = (
    "SELECT * FROM s {a} JOIN h ON s.k = h.k",
    "SELECT * FROM s {a} LEFT JOIN h ON s.k = h.k",
    "SELECT * FROM h LEFT JOIN s {a} ON s.k = h.k",
    "SELECT * FROM s {a} JOIN m ON s.k = m.k",
    "SELECT * FROM s {a} LEFT JOIN m ON s.k = m.k",
    "SELECT * FROM s {a} WHERE k NOT IN (SELECT p FROM h)",
)


@pytest.mark.parametrize("text", JOINS)
@FEW
@given(seeds)
def test_joins_at_every_instant(text: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text.format(a=rng.choice(WINDOWS), b=rng.choice(WINDOWS)))
    transition = random_transition(rng, query.sources)
    check_changes(query, transition, rng.choice(("changes", "istream", "dstream")))


@pytest.mark.parametrize("text", TABLES)
@FEW
@given(seeds)
def test_joins_with_tables_at_every_instant(text: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text.format(a=rng.choice(WINDOWS)))
    transition = random_transition(rng, query.sources)
    check_changes(query, transition, rng.choice(("changes", "istream", "rstream")))
