"""Data and helpers that ``query_stem_test.py`` shares with other tests."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa

CREATE = "CREATE STREAM s (k INTEGER, v BIGINT, d DOUBLE, t STRING, b BOOLEAN, m DECIMAL(6, 2), ts TIMESTAMP)"

STRINGS = ["", "a", "ab", "ab\0", "abc", "b", "ba", "c", "é"]


def constant(rng: random.Random, column: str) -> str:
    match column:
        case "k" | "v":
            return str(rng.randint(-2, 40))
        case "d":
            return rng.choice(
                ["0", "1.5", "2", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "-1e300"]
            )
        case "t":
            return "'" + rng.choice([s for s in STRINGS if "\0" not in s]) + "'"
        case "m":
            return rng.choice(["0", "1.25", "1.255", "-3"])
        case _:
            return f"TIMESTAMP '1970-01-01 00:00:0{rng.randint(0, 9)}'"


def simple(rng: random.Random) -> str:
    """One conjunct over one column."""
    column = rng.choice(["k", "k", "v", "v", "d", "t", "t", "b", "m", "ts"])
    if column == "b":
        return rng.choice(["b", "NOT b", "b IS NULL", "b = FALSE"])
    form = rng.randrange(8)
    if form == 0:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if form == 1:
        choices = ", ".join(constant(rng, column) for _ in range(rng.randint(1, 4)))
        return f"{column} {rng.choice(['', 'NOT '])}IN ({choices}{rng.choice(['', '', ', NULL'])})"
    if form == 2 and column == "t":
        return f"t {rng.choice(['', 'NOT '])}LIKE '{rng.choice(['a', 'ab', 'b', 'z'])}%'"
    if form == 3:
        return f"{column} BETWEEN {constant(rng, column)} AND {constant(rng, column)}"
    return f"{column} {rng.choice(['=', '=', '<', '<=', '>', '>=', '<>'])} {constant(rng, column)}"


def predicate(rng: random.Random, depth: int = 2) -> str:
    """Anything: conjunctions, disjunctions over several columns, residuals that err."""
    form = rng.randrange(9 if depth else 3)
    if form < 3:
        return simple(rng)
    if form == 8:
        return rng.choice(
            ["k < v + 3", "10 / k > 2", "k % 3 = 1", "v * v > 100", "t LIKE '%b_'", "1 / v = 0"]
        )
    operands = [predicate(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    if form == 7:
        return f"NOT ({operands[0]} AND {operands[1]})"
    return "(" + f" {'OR' if form == 6 else 'AND'} ".join(operands) + ")"


def table(rng: random.Random, n: int) -> pa.Table:
    def some(values):
        return [None if rng.random() < 0.1 else rng.choice(values) for _ in range(n)]

    return pa.table(
        {
            "k": pa.array(some(range(-2, 40)), pa.int32()),
            "v": pa.array(some([*range(-2, 40), -(2**63), 2**63 - 1]), pa.int64()),
            "d": pa.array(some([0.0, -0.0, 1.5, 2.0, float("nan"), float("inf"), -1e300]), pa.float64()),
            "t": pa.array(some(STRINGS), pa.string()),
            "b": pa.array(some([True, False]), pa.bool_()),
            "m": pa.array(some([Decimal(0), Decimal("1.25"), Decimal("1.26")]), pa.decimal128(6, 2)),
            "ts": pa.array(some(range(0, 9_000, 500)), pa.timestamp("ms")),
        }
    )
