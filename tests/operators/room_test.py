"""Answers ask for memory before they make large arrays, end where there is none, and the next is right."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.interruption import ROOM_ASKED_MIN, bounded
from engine.operators.join import KEY_BYTES, PAIR_BYTES
from engine.stems import stream_strings
from tests.capacities import small_engine
from tureen.errors import MemoryBudgetExceeded

ROWS = 300_000
QUERIES = {
    "order": "SELECT v FROM s ORDER BY v DESC LIMIT 3",
    "groups": "SELECT v, COUNT(*) AS n, AVG(x) AS a FROM s GROUP BY v ORDER BY n DESC, v LIMIT 3",
    "strings": "SELECT MAX(k) AS last, COUNT(DISTINCT k) AS n FROM s",
    "join": "SELECT COUNT(*) AS n FROM s a JOIN s b ON a.v = b.v",
    "many": "SELECT v, x FROM s",
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_strings, "GENERATION_STRINGS", 100_000)
        made = small_engine()
        made.create(
            "CREATE STREAM s (k STRING, v BIGINT, x DOUBLE, ts TIMESTAMP) "
            "WITH (timestamp = 'ts', retain = '1 day')"
        )
        for query, sql in QUERIES.items():
            made.register(query, sql)
        schema = made.catalogue["s"].schema
        for low in range(0, ROWS, BATCH_ROWS_MAX):
            i = np.arange(low, min(ROWS, low + BATCH_ROWS_MAX))
            columns = {
                "k": pa.array([f"key {each:07d} of many" for each in i.tolist()]),
                "v": i // 2,
                "x": i / 7,
                "ts": pa.array(i, pa.timestamp("ms")),
            }
            made.ingest("s", Batch.from_arrow(schema, pa.table(columns), np.zeros(len(i)), i, i), 10**9)
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_an_answer_ends_where_there_is_no_memory_and_the_next_is_right(engine: Engine, query: str) -> None:
    asked: list[int] = []

    def refuse(nbytes: int) -> None:
        asked.append(nbytes)
        raise MemoryBudgetExceeded("it does not fit", 0, 0)

    with bounded(refuse), pytest.raises(MemoryBudgetExceeded):
        engine.view().snapshot(query, rows_max=ROWS)
    assert len(asked) == 1
    with bounded(asked.append):
        found = engine.view().snapshot(query, rows_max=ROWS).table
    assert min(asked) >= ROOM_ASKED_MIN
    assert sum(asked[1:]) >= ROWS * 8
    seen = np.arange(ROWS - 1)  # the last is above NOW
    match query:
        case "order":
            assert found["v"].to_pylist() == sorted((seen // 2).tolist())[:-4:-1]
        case "groups":
            assert found["n"].to_pylist() == [2, 2, 2]
            assert found["a"].to_pylist() == pytest.approx([(4 * v + 1) / 14 for v in range(3)])
        case "strings":
            assert found.to_pylist() == [{"last": f"key {ROWS - 2:07d} of many", "n": ROWS - 1}]
        case "join":
            assert found["n"].to_pylist() == [4 * (ROWS // 2 - 1) + 1]
        case "many":
            assert found["v"].to_numpy().tolist() == (seen // 2).tolist()


def test_extremes_and_counts_of_strings_ask_for_no_strings(engine: Engine) -> None:
    engine.register(
        "extremes",
        "SELECT v % 10 AS g, MIN(k) AS a, MAX(k) AS b, COUNT(k) AS n FROM s GROUP BY v % 10 ORDER BY g",
    )
    asked: list[int] = []
    with bounded(asked.append):
        found = engine.view().snapshot("extremes").table.to_pylist()
    assert sum(asked) < 24 * ROWS  # numbers of the key, and no strings, whose bytes are as many again
    seen = np.arange(ROWS - 1)
    for row in found:
        of_group = seen[seen // 2 % 10 == row["g"]]
        assert row["n"] == len(of_group)
        assert (row["a"], row["b"]) == tuple(f"key {i:07d} of many" for i in (of_group[0], of_group[-1]))


def test_strings_that_are_few_ask_for_little() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_strings, "GENERATION_STRINGS", 500)
        made = small_engine()
        made.create("CREATE STREAM s (k STRING, ts TIMESTAMP) WITH (timestamp = 'ts', retain = '1 day')")
        made.register("few", "SELECT k, COUNT(*) AS n FROM s GROUP BY k")
        schema = made.catalogue["s"].schema
        for low in range(0, ROWS, BATCH_ROWS_MAX):
            i = np.arange(low, min(ROWS, low + BATCH_ROWS_MAX))
            texts = pa.array([f"{'long' * 50} {each // 100_000} {each % 400}" for each in i.tolist()])
            columns = {"k": texts, "ts": pa.array(i, pa.timestamp("ms"))}
            made.ingest("s", Batch.from_arrow(schema, pa.table(columns), np.zeros(len(i)), i, i), 10**9)
    asked: list[int] = []
    with bounded(asked.append):
        found = made.view().snapshot("few").table
    assert len(found) == 1_200
    assert sum(asked) < 40 * ROWS  # the strings of the rows would be 200 bytes each


def test_pairs_that_come_piece_by_piece_are_asked_for_once(engine: Engine) -> None:
    query = "SELECT COUNT(*) AS n FROM s a LEFT JOIN s b ON a.v = b.v AND a.x + b.x >= 0"
    engine.register("pieces", query)
    asked: list[int] = []
    with bounded(asked.append):
        found = engine.view().snapshot("pieces").table
    pairs = 4 * (ROWS // 2 - 1) + 1
    assert found["n"].to_pylist() == [pairs]
    assert len(asked) > 3
    assert sum(asked) < 2 * 8 * 4 * ROWS + PAIR_BYTES * pairs + 2 * KEY_BYTES * ROWS
