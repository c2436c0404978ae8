"""Regions of one attribute mean what the expression evaluator says, at every value that matters."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from engine.domains import regions
from engine.language.evaluate import truth
from engine.model.batch import Batch, Column
from engine.stems import placement
from engine.stems.factors import factors
from engine.stems.query_stem import QueryStem
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.segment_bits import Matrix
from tests.capacities import small_engine

NAN, INF = math.nan, math.inf
COLUMNS = {
    "BOOLEAN": [True, False, None],
    "INTEGER": [-(2**31), -1, 0, 1, 2, 5, 6, 2**31 - 1, None],
    "BIGINT": [-(2**63), -(2**53) - 1, -1, 0, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, None],
    "DOUBLE": [-INF, -1e300, -0.0, 0.0, 5e-324, 2.5, math.nextafter(2.5, 3), 3.0, INF, NAN, None],
    "DECIMAL(6, 2)": [
        Decimal("-1.00"),
        Decimal("0.00"),
        Decimal("1.25"),
        Decimal("1.26"),
        Decimal("9999.99"),
        None,
    ],
    "STRING": ["", "a", "ab", "ab\0", "abc", "b", "\U0010ffff", "é", None],
    "DATE": [-1, 0, 1, 15_706, None],
    "TIMESTAMP": [-1, 0, 1, 86_400_000, 1_357_034_400_000, None],
}
PREDICATES = {
    "BOOLEAN": ["c", "NOT c", "c = FALSE", "c IS NULL", "c IS NOT NULL AND c <> TRUE"],
    "INTEGER": [
        "c > 1",
        "c >= 1.5",
        "c < 2.5 OR c = 5",
        "c <> 2.5",
        "c = 2.5",
        "NOT (c BETWEEN 1 AND 5)",
        "c IN (1, 5, 6)",
        "c NOT IN (1, 5)",
        "c IN (1, NULL)",
        "c NOT IN (1, NULL)",
        "c > 99999999999",
        "c < 99999999999",
        "c IS NULL OR c = 0",
        "c < 1e0",
        "5 > c",
        "c > 1 AND (c < 6 OR c IS NULL)",
        "c = NULL OR c = 1",
    ],
    "BIGINT": [
        "c > 2.5",
        "c <= 9223372036854775807",
        "c < -9223372036854775807",
        "c = 9007199254740993",
        "c > 2e0",
    ],
    "DOUBLE": [
        "c > 2.5",
        "c >= 2.5",
        "c = 0",
        "c < 0",
        "c <> 2.5",
        "c > CAST('Infinity' AS DOUBLE)",
        "c IN (0, 3)",
        "NOT (c > 2)",
        "c BETWEEN 0 AND 3",
    ],
    "DECIMAL(6, 2)": ["c = 1.25", "c > 1.255", "c <= 1.255", "c <> 1.255", "c IN (0, 1.26)", "c < 100000"],
    "STRING": [
        "c = 'ab'",
        "c > 'ab'",
        "c >= 'ab' AND c < 'b'",
        "c LIKE 'ab%'",
        "c LIKE 'ab'",
        "c NOT LIKE 'a%'",
        "c LIKE '%'",
        "c IN ('', 'b')",
        "c <> ''",
        "c LIKE '\U0010ffff%'",
    ],
    "DATE": ["c = DATE '1970-01-02'", "c > TIMESTAMP '1970-01-01 12:00:00'", "c <= '1970-01-01'"],
    "TIMESTAMP": ["c >= TIMESTAMP '2013-01-01 10:00:00'", "c > DATE '1970-01-01'", "c = '1970-01-02'"],
}
CASES = [(type_, predicate) for type_, predicates in PREDICATES.items() for predicate in predicates]


@pytest.mark.parametrize(("type_", "predicate"), CASES)
def test_region_and_evaluator_agree(type_, predicate):
    engine = small_engine()
    engine.create(f"CREATE STREAM s (c {type_})")
    bound = engine.prepare(f"SELECT c FROM s WHERE {predicate}").scan.predicate
    field = engine.catalogue["s"].schema.fields[0]
    column = Column.from_arrow(field.type, pa.array(COLUMNS[type_], field.type.arrow))
    expected, error = truth(bound, [column], len(column))
    assert error is None or not error.any()

    taken = factors(bound)
    assert not taken.residuals, "an index serves this predicate"
    for term in taken.terms:
        for region in term.values():
            region._check()
    schema = engine.catalogue["s"].schema
    rows = Batch(
        schema, (column,), *(np.zeros(len(column), dtype) for dtype in (np.int32, np.int64, np.int64))
    )
    for share in (-1.0, 0.99):  # all dense, then all selective that can be
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(placement, "SHARE_MAX", share)
            patch.setattr(placement, "PATH_MIN", 1)
            stem = QueryStem(schema)
            (slot,) = stem.add([bound]).slots
        stem._check()
        assert accepted(stem, slot, rows) == expected.tolist()
        found = stem.probe([slot], stem.cohorts).match(rows, 0)
        scanned = np.zeros(len(column), np.bool_)
        scanned[found.lists.rows] = True
        if len(found.bits):
            scanned |= found.bits[0] > 0
        assert scanned.tolist() == expected.tolist()


def accepted(stem: QueryStem, slot: int, rows: Batch) -> list[bool]:
    """Which rows the slot accepts, whichever cohort it is in."""
    out = np.full((max(1, stem.words), len(rows)), 2**64 - 1, np.uint64)
    pairs = stem.match(rows, Matrix(out), 0)
    place = stem.cohorts.of(slot)
    if place != SELECTIVE:
        return [bool(int(bits) >> (place & 63) & 1) for bits in out[place >> 6]]
    assert (pairs.slots == slot).all()
    return [row in pairs.rows for row in range(len(rows))]


def test_a_disjunction_is_united_in_about_the_time_of_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counted(a: object, b: object) -> bool:
        nonlocal compared
        compared += 1
        return less(a, b)

    less = regions._less
    monkeypatch.setattr(regions, "_less", counted)
    engine = small_engine()
    engine.create("CREATE STREAM s (c INTEGER)")
    counts = []
    for alternatives in (200, 800):
        compared = 0
        either = " OR ".join(f"c BETWEEN {3 * n} AND {3 * n + 1}" for n in range(alternatives))
        predicate = engine.prepare(f"SELECT c FROM s WHERE {either}").scan.predicate
        (term,) = factors(predicate).terms
        assert len(term[0].intervals) == alternatives
        counts.append(compared)
    assert counts[1] < 8 * counts[0]
