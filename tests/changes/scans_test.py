"""Scans of every window: their rows at every instant of a way, and what changes between."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from tests.changes.ways import FEW, bound, check_changes, check_scan, random_transition, seeds, with_slots

WINDOWS = (
    "",
    "[NOW]",
    "[RANGE 3 MILLISECONDS]",
    "[RANGE 5 MILLISECONDS SLIDE 4 MILLISECONDS]",
    "[UNBOUNDED SLIDE 5 MILLISECONDS]",
    "[NOW SLIDE 3 MILLISECONDS]",
    "BEGIN TIMESTAMP '1970-01-01 00:00:00.005' END TIMESTAMP '1970-01-01 00:00:00.012'",
    "BEGIN TIMESTAMP '1970-01-01 00:00:00.005' END NOW",
    "BEGIN TIMESTAMP '1970-01-01 00:00:00.004' END NOW - INTERVAL '3' MILLISECOND",
    "BEGIN NOW - INTERVAL '7' MILLISECOND END NOW - INTERVAL '2' MILLISECOND",
    "[ROWS 1]",
    "[ROWS 3]",
    "[ROWS 2 WHERE v > 0]",
    "[PARTITION BY k ROWS 1]",
    "[PARTITION BY k ROWS 2 WHERE w = 'a']",
)
FUNCTIONS = (
    "TUMBLE(s, INTERVAL '4' MILLISECOND)",
    "HOP(s, INTERVAL '2' MILLISECOND, INTERVAL '5' MILLISECOND)",
    "HOP(s, INTERVAL '5' MILLISECOND, INTERVAL '2' MILLISECOND)",
    "SESSION(s, INTERVAL '3' MILLISECOND)",
    "SESSION(s PARTITION BY k, INTERVAL '4' MILLISECOND)",
)
CLAUSES = ("", "[NOW]", "[RANGE 6 MILLISECONDS]", "[ROWS 3]", "[PARTITION BY k ROWS 1]")
SCANS = [f"s {window}" for window in WINDOWS]
SCANS += [f"{function} {clause}" for function in FUNCTIONS for clause in CLAUSES]
PREDICATES = ("", "WHERE v > 0", "WHERE w = 'b' AND k < 2")


@pytest.mark.parametrize("scan", SCANS)
@FEW
@given(seeds)
def test_the_rows_of_a_window_at_every_instant(scan: str, seed: int) -> None:
    rng = random.Random(seed)
    source, begin, clause = scan.partition("BEGIN")  # which stands behind WHERE
    query = bound(f"SELECT * FROM {source} {rng.choice(PREDICATES)} {begin}{clause}")
    transition = random_transition(rng, ["s"])
    if rng.random() < 0.5:
        transition = with_slots(transition, query)
    check_scan(query, transition)
    check_changes(query, transition, rng.choice(("changes", "istream", "rstream")))


@pytest.mark.parametrize("table", ["h", "m"])
@FEW
@given(seeds)
def test_the_rows_of_a_table_at_every_instant(table: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(f"SELECT * FROM {table} {rng.choice(('', 'WHERE p > 0', 'WHERE k < 2'))}")
    transition = random_transition(rng, [table])
    check_scan(query, transition)
    check_changes(query, transition, rng.choice(("changes", "istream", "rstream")))
