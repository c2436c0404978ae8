"""Equal rows added and removed at one instant cancel, as many as there are of both; others stay in order."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given

from engine.changes.course import FOREVER, NEVER
from engine.changes.equality import codes_of, codes_of_table
from engine.changes.lives import Lives, Way
from engine.changes.net import events, netted, uncancelled
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, STRING
from tests.changes.ways import seeds
from tests.operators.relations import PRICE, relation

TYPES = (DOUBLE, STRING)
VALUES = ((0.0, -0.0, float("nan"), None), ("a", "b", None))
WAY = Way(2, 8)


def random_lives(rng: random.Random) -> tuple[Lives, list[str]]:
    n = rng.randint(0, 14)
    rows = [tuple(rng.choice(values) for values in VALUES) for _ in range(n)]
    begins = [rng.choice((NEVER, *range(10))) for _ in rows]
    ends = [rng.choice((begin + 1 + rng.randint(0, 4) if begin > 0 else 5, FOREVER)) for begin in begins]
    lives = Lives(relation(TYPES, rows), np.array(begins, np.int64), np.array(ends, np.int64))
    return lives, [repr(row) for row in rows]


@given(seeds)
def test_what_is_left_is_the_difference_of_the_bags(seed: int) -> None:
    lives, rows = random_lives(random.Random(seed))
    places, weights, instants = netted(lives, *events(lives, WAY))
    found: dict[int, Counter[str]] = {}
    for place, weight, instant in zip(places.tolist(), weights.tolist(), instants.tolist(), strict=True):
        found.setdefault(instant, Counter())[rows[place]] += weight
    bags = {t: Counter(rows[place] for place in lives.at(t).tolist()) for t in range(2, 9)}
    for instant in range(3, 9):
        expected = Counter(bags[instant])
        expected.subtract(bags[instant - 1])
        assert found.get(instant, Counter()) == Counter({r: n for r, n in expected.items() if n})
        assert sum(abs(n) for n in expected.values()) == np.count_nonzero(instants == instant)
    order = list(zip(instants.tolist(), weights.tolist(), strict=True))
    assert order == sorted(order)


@given(seeds)
def test_rows_of_one_owner_cancel_alone(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(0, 12)
    told = sorted(
        (rng.randint(0, 1), rng.randint(0, 1), rng.choice((-1, 1)), rng.choice("ab")) for _ in range(n)
    )
    owners, at_ms, weights = (np.array([row[place] for row in told], np.int64) for place in range(3))
    table = pa.table({"x": pa.array([row[3] for row in told], pa.string())})
    kept = uncancelled(table, weights.astype(np.int8), at_ms, owners.astype(np.int32))
    assert kept.tolist() == sorted(kept.tolist())
    expected = Counter[tuple[int, int, str]]()
    for owner, at, weight, value in told:
        expected[owner, at, value] += weight
    left = Counter[tuple[int, int, str]]()
    for place in kept.tolist():
        owner, at, weight, value = told[place]
        left[owner, at, value] += weight
    assert {key: count for key, count in expected.items() if count} == dict(left)
    assert len(kept) == sum(map(abs, expected.values()))


@given(seeds)
def test_codes_tell_rows_apart_to_the_bit(seed: int) -> None:
    rng = random.Random(seed)
    pools = ((0.0, -0.0, float("nan"), None, 1.5), ("", "a", None), (True, False, None), (1, 2**40, None))
    types = (DOUBLE, STRING, BOOLEAN, BIGINT)
    rows = [tuple(rng.choice(pool) for pool in pools) for _ in range(rng.randint(0, 12))]
    given_rows = relation(types, rows)
    texts = [repr(row) for row in rows]
    arrays = [column.to_arrow() for column in given_rows.columns]
    table = pa.Table.from_arrays(arrays, [f"c{place}" for place in range(len(arrays))])
    for codes in (codes_of(given_rows.columns, len(rows)).tolist(), codes_of_table(table).tolist()):
        for one, text in zip(codes, texts, strict=True):
            assert [other == one for other in codes] == [other == text for other in texts]


def test_codes_of_arrays() -> None:
    table = pa.table(
        {"x": pa.array([[1.0, None], [1.0, None], [-0.0], [0.0], None, []], pa.list_(pa.float64()))}
    )
    codes = codes_of_table(table).tolist()
    assert codes[0] == codes[1]
    assert len(set(codes)) == 5


def test_decimals_are_compared_by_value() -> None:
    given_rows = relation((PRICE,), [(Decimal("1.50"),), (Decimal("1.5"),), (None,)])
    one, other, null = codes_of(given_rows.columns, 3).tolist()
    assert one == other != null
