"""Followed GROUP BY queries that come together over rows that are there: what they are told adds up to their
answers, to the bit those of the reference, and DuckDB's. Rows have few patterns of queries, or many.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Body, CreateSource, Records, Register, Registration
from engine.reference import Reference
from tests.capacities import small
from tests.differential.agreement import EngineSubject, exact_rows, plain_rows
from tests.strategies import batch_of

CREATE = (
    "CREATE STREAM s (a BIGINT, k STRING, x DOUBLE, ts TIMESTAMP NOT NULL)"
    " WITH (topic = 's', timestamp = 'ts', future_max = '1 day') RETAIN 1 DAY"
)
WHOLE = "SELECT {keys}COUNT(*) AS n, COUNT(x) AS m, SUM(a) AS t, {call}(x) AS s FROM {source} WHERE {where}"
SHAPES = (
    ("k, ", "SUM", "a >= {}", " GROUP BY k"),
    ("k, a, ", "SUM", "a < {} OR a IS NULL", " GROUP BY k, a"),
    ("x, ", "SUM", "a <> {}", " GROUP BY x"),
    ("", "SUM", "a >= {}", ""),
    ("k, ", "MIN", "a >= {}", " GROUP BY k"),
)
KEYS = ("", "a", "b", "ü" * 20, None)
DOUBLES = (0.0, -0.0, 1.5, 1e300, -1e300, 2.0**-1070, float("nan"), float("inf"), None)


def texts(shape: tuple[str, ...], constants: list[int], source: str) -> list[str]:
    keys, call, where, ending = shape
    whole = WHOLE.replace("{where}", where).replace("{call}", call).replace("{keys}", keys)
    return [whole.replace("{source}", source).format(constant) + ending for constant in constants]


PARSED = parse(CREATE, {}, Limits())
assert isinstance(PARSED, CreateStream)
STREAM = PARSED.stream


class Followed:
    """An engine, and what its changes add up to, by query; and a reference where there is one."""

    def __init__(self, engine: Engine, reference: Reference | None = None) -> None:
        self.subject, self.reference = EngineSubject(engine), reference
        self.sums: dict[str, Counter[Any]] = {}
        self.step(CreateSource(STREAM, CREATE))

    def step(self, body: Body) -> None:
        step = self.subject.next_step(10**6, body)
        result = self.subject.apply(step)
        assert not result.failed
        if self.reference is not None:
            self.reference.apply(step)
        for each in result.changes:
            self._add(each)

    def _add(self, changes: Changes) -> None:
        for place, query_id in enumerate(changes.query_ids):
            low, high = changes.starts[place : place + 2].tolist()
            rows = exact_rows(plain_rows(changes.table.slice(low, high - low)))
            for row, weight in zip(rows, changes.weights[low:high].tolist(), strict=True):
                self.sums.setdefault(query_id, Counter())[row] += weight

    def register(self, asked: list[str], first: int) -> None:
        """Queries come together, by the names q<first>, ..."""
        self.step(
            Register(
                tuple(
                    Registration(f"q{place}", f"{text} EMIT CHANGES")
                    for place, text in enumerate(asked, first)
                )
            )
        )

    def ingest(self, batch: Batch) -> None:
        last = {int(partition): int(offset) + 1 for partition, offset in [(0, batch.offset[-1])]}
        self.step(Records(SourceName("s"), batch, next_offsets=last))

    def folded(self, query_id: str) -> Counter[Any]:
        return +self.sums.get(query_id, Counter())

    def answer(self, query_id: str) -> Counter[Any]:
        return Counter(exact_rows(self.subject.answer(query_id).rows))


ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.sampled_from(KEYS), st.sampled_from(DOUBLES)),
    max_size=20,
)


@settings(max_examples=25)
@given(
    rows=ROWS, later=ROWS, shape=st.sampled_from(SHAPES), constants=st.lists(st.integers(-1, 10), max_size=40)
)
def test_they_are_told_what_the_reference_answers(
    rows: list[Any], later: list[Any], shape: tuple[str, ...], constants: list[int]
) -> None:
    followed = Followed(Engine(state=small()), Reference())
    asked = texts(shape, constants, "s [RANGE 1 HOUR]")
    half, place = len(asked) // 2, 0
    for sent, coming, first in (
        (rows, asked[:half], 0),
        (later, asked[half:], half),
        ([], [], 0),
    ):
        values = [*sent, (1, "a", 1.0)]
        at = range(place, place + len(values))
        place = at.stop
        moved = [(0, offset, offset, row) for offset, row in zip(at, values, strict=True)]
        followed.ingest(batch_of(STREAM.schema, moved))
        followed.register(coming, first)
    assert followed.reference is not None
    for number in range(len(asked)):
        expected = Counter(exact_rows(followed.reference.answer(f"q{number}").rows))
        assert followed.answer(f"q{number}") == followed.folded(f"q{number}") == expected


@pytest.mark.parametrize("different", [7, 5_000], ids=["few patterns", "many patterns"])
@pytest.mark.parametrize("shape", SHAPES[:2], ids=["ten keys", "thousands of keys"])
def test_many_over_many_rows_are_told_what_duckdb_answers(shape: tuple[str, ...], different: int) -> None:
    rng, count, queries = np.random.default_rng(different), 4_000, 80
    table = pa.table(
        {
            "a": pa.array(rng.integers(0, different, count), pa.int64(), mask=rng.random(count) < 0.02),
            "k": pa.array(
                [f"k{number}" for number in rng.integers(0, 10, count)], mask=rng.random(count) < 0.1
            ),
            "x": pa.array(rng.integers(-1000, 1000, count) / 4, mask=rng.random(count) < 0.1),
            "ts": pa.array(np.arange(count) // 3, pa.timestamp("ms")),
        }
    )
    constants = rng.integers(-1, different + 1, queries).tolist()
    asked, followed = texts(shape, constants, "s [RANGE 1 HOUR]"), Followed(Engine(state=small()))
    times = np.arange(count) // 3
    for first, stop, coming in ((0, 2_000, (0, 1)), (2_000, 3_990, (1, queries)), (3_990, count, (0, 0))):
        rows, offsets = table.slice(first, stop - first), np.arange(first, stop)
        followed.ingest(
            Batch.from_arrow(STREAM.schema, rows, np.zeros(len(rows)), offsets, times[first:stop])
        )
        followed.register(asked[slice(*coming)], coming[0])
    with duckdb.connect() as database:
        there = table.slice(0, int(np.searchsorted(times, times[-1])))  # NOW is before the last instant
        database.register("there", there)
        for number in rng.choice(queries, 10, replace=False).tolist():
            answer = followed.answer(f"q{number}")
            assert answer == followed.folded(f"q{number}")
            theirs = database.sql(texts(shape, [constants[number]], "there")[0]).to_arrow_table()
            theirs = theirs.set_column(
                theirs.schema.get_field_index("t"), "t", theirs.column("t").cast(pa.int64())
            )
            assert answer == Counter(exact_rows(plain_rows(theirs)))


def test_predicates_of_one_hash_come_together() -> None:
    """Python gives -1 and -2 the same."""
    followed = Followed(Engine(state=small()))
    followed.register(texts(SHAPES[1], [9, 3, 0, -1], "s [RANGE 1 HOUR]"), 0)
    rows = [(0, place, place, (value, "a", 1.0)) for place, value in enumerate((-3, -1, 5, 5))]
    followed.ingest(batch_of(STREAM.schema, rows))
    keys = [sorted(row[1][1] for row in followed.folded(f"q{number}")) for number in (2, 3)]
    assert keys == [[-3, -1], [-3]]
    assert followed.folded("q2") == followed.answer("q2")
