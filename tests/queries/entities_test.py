"""Entities: what they use, who pays for it, and what can be set."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.attributes import Attribute, NumberRange
from engine.model.batch import Batch
from engine.model.step import Position, Register, Registration, Step
from engine.model.usage import PERIOD, Laps, Stopwatch, Usage
from engine.queries.entities import Report, kind_of
from tests.capacities import small_engine
from tureen.errors import AttributeRefused, UnknownEntity

TIMED = "WITH (timestamp = 'ts') RETAIN 1 DAY"
QUERIES = {
    "narrow": "SELECT k, v FROM s WHERE v > 0.5",
    "wide": "SELECT k, v FROM s WHERE v > 0.1",
    "groups": "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT CHANGES",
    "sums": "SELECT k, SUM(v) AS n FROM s [RANGE 1 MINUTE] GROUP BY k EMIT CHANGES",
    "joined": "SELECT s.k, u.v FROM s [RANGE 1 MINUTE], u [RANGE 1 MINUTE] WHERE s.k = u.k",
    "followed": "SELECT s.k, u.v FROM s [RANGE 1 MINUTE], u [RANGE 1 MINUTE] WHERE s.k = u.k EMIT CHANGES",
    "kept": "SELECT MAX(v) AS top FROM u",
}


class Clock:
    """One ns a look: what is measured is how often it was looked at."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def __call__(self) -> int:
        return next(self._ticks)


def running(clock: Clock | None = None, **options: dict[str, str]) -> Engine:
    engine = small_engine(clock=clock)
    for name in "su":
        engine.create(f"CREATE STREAM {name} (k STRING, v DOUBLE, ts TIMESTAMP) {TIMED}")
    for name, sql in QUERIES.items():
        one = Registration(name, sql, options=options.get(name, {}))
        position = Position(0, engine.position.sequence + 1)
        engine.enqueue(Step(position, 0, Register((one,))))
        (result,) = engine.run()
        assert not result.failed
    return engine


def feed(engine: Engine, steps: int, rows: int = 40, ahead_ms: int = 0) -> None:
    """ahead_ms: of the newest row is the clock."""
    rng = np.random.default_rng(3)
    for step, name in itertools.product(range(steps), "su"):
        stamps = [1_000 * step + place for place in range(rows)]
        table = pa.table(
            {
                "k": pa.array([f"k{each}" for each in rng.integers(0, 5, rows)], pa.string()),
                "v": pa.array(rng.random(rows), pa.float64()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
            }
        )
        offsets = np.arange(step * rows, (step + 1) * rows)
        batch = Batch.from_arrow(engine.catalogue[name].schema, table, np.zeros(rows), offsets, stamps)
        engine.ingest(name, batch, stamps[-1] + ahead_ms)


def paid(engine: Engine, report: Report) -> tuple[float, float]:
    """What all queries pay, with what nobody does: (ns, bytes)."""
    found = [report.paid(query) for query in engine._queries.values()]
    unread = [part for part in report.parts if not part.readers]
    return (
        sum(one.cpu_ns for one in found) + sum(part.usage.cpu_ns for part in unread),
        sum(one.nbytes for one in found) + sum(part.nbytes for part in unread),
    )


def test_shares_of_queries_are_the_whole() -> None:
    engine = running(Clock(), kept={"maintenance": "eager"}, wide={"paused": "true"})
    feed(engine, 2 * PERIOD)
    engine.view()
    report = engine.entities()
    cpu_ns, nbytes = paid(engine, report)
    assert report.cpu_ns > 0
    assert math.isclose(cpu_ns, report.cpu_ns)
    assert math.isclose(nbytes, report.nbytes())


def test_queries_are_behind_the_newest_record_whatever_time_the_clock_shows() -> None:
    engine = running()
    feed(engine, 2, ahead_ms=10**12)
    report = engine.entities()
    part = report.part("source/s")
    assert part is not None
    assert part.listed()["lag_ms"] == 10**12 + 1
    assert [report.paid(engine._queries[name]).behind_ms for name in ("narrow", "joined")] == [1, 1]


def test_memory_is_what_the_footprint_counts() -> None:
    engine = running(kept={"maintenance": "eager"})
    feed(engine, 10, rows=400)
    engine.view()
    counted = engine.footprint().total
    assert counted > 0
    assert abs(engine.entities().nbytes() - counted) <= counted / 20  # keys' numbers are no index's own


def test_all_time_of_steps_is_in_some_entity() -> None:
    clock = Clock()
    engine = running(clock)
    before = engine.entities().cpu_ns
    began = clock()
    feed(engine, PERIOD * 4 + 1)  # the last transition is measured operator by operator
    spent = clock() - began
    assert engine.entities().cpu_ns - before >= 0.8 * spent


def test_what_is_shared_is_paid_by_those_that_share_it_alone() -> None:
    engine = running(Clock())
    feed(engine, 2 * PERIOD)
    report = engine.entities()
    shared = {name: set(report.entities_of(query)) for name, query in engine._queries.items()}
    joins = {part.id for part in report.parts if part.id.startswith("join/")}
    assert len(joins) == 1
    assert {name for name, ids in shared.items() if joins <= ids} == {"joined", "followed"}
    assert {name for name, ids in shared.items() if any(id_.startswith("sink/") for id_ in ids)} == {
        "groups",
        "sums",
        "followed",
    }
    for part in report.parts:
        if part.id.startswith(("operator/", "sink/", "join/")):
            assert part.readers == sum(part.id in ids for ids in shared.values()), part.id


def test_rows_are_counted_where_they_pass() -> None:
    engine = running()
    feed(engine, 3, rows=40)
    report = engine.entities()
    source, stem = report.part("source/s"), report.part("query-stem/s")
    assert source is not None
    assert stem is not None
    assert source.usage.rows_in == 120
    assert source.usage.rows_out == stem.usage.rows_in == 119  # the last is above NOW
    groups = [part for part in report.parts if part.id.startswith("operator/s/group")]
    assert sum(part.usage.rows_out for part in groups) > 0
    assert all(part.usage.bytes_out > 0 for part in groups)
    assert report.paid(engine._queries["joined"]).rows_in == 238


def test_statistics_change_no_answer() -> None:
    measured, plain = running(Clock()), running()
    for engine in (measured, plain):
        feed(engine, PERIOD + 3)
    for name in QUERIES:
        assert measured.view().snapshot(name).table.equals(plain.view().snapshot(name).table)


def test_ids_are_the_same_in_another_engine() -> None:
    one, other = running(), running()
    assert [part.id for part in one.entities().parts] == [part.id for part in other.entities().parts]
    ids = [part.id for part in one.entities().parts]
    assert len(set(ids)) == len(ids)


def test_reads_name_entities() -> None:
    engine = running()
    feed(engine, 2)
    report = engine.entities()
    ids = {part.id for part in report.parts}
    assert all(set(part.reads) <= ids for part in report.parts)
    assert {part.kind for part in report.parts} >= {
        "engine",
        "settings",
        "source",
        "synopsis",
        "operator",
        "queue",
        "sink",
    }
    assert kind_of("query/abc") == "query"


@pytest.mark.parametrize(
    ("entity", "name", "value", "error"),
    [
        ("query-stem/s", "policy", "clairvoyant", AttributeRefused),
        ("query-stem/s", "slots", 7, AttributeRefused),
        ("query-stem/s", "none", 7, AttributeRefused),
        ("query-stem/nowhere", "policy", "tickets", UnknownEntity),
        ("nothing", "policy", "tickets", UnknownEntity),
        ("state-buffers", "state_partitions", 0, AttributeRefused),
        ("state-buffers", "state_partitions", True, AttributeRefused),
        ("state-buffers", "state_partitions", None, AttributeRefused),
        ("state-buffers", "state_partitions", math.nan, AttributeRefused),
        ("state-buffers", "expiry_lazy_fraction", 0.0, AttributeRefused),
    ],
)
def test_what_cannot_be_set_is_refused_and_changes_nothing(
    entity: str, name: str, value: Any, error: type[Exception]
) -> None:
    engine = running()
    before = engine.stats()
    with pytest.raises(error):
        engine.set_attribute(entity, name, value)
    assert engine.stats() == before


def test_what_can_be_set_is_set() -> None:
    engine = running()
    for entity, attributes in engine.modules().items():
        for attribute in attributes:
            for choice in attribute.choices:
                engine.set_attribute(entity, attribute.name, choice)
                assert engine.stats()[entity][attribute.name] == choice


def test_type_and_unit_follow_from_value_and_name() -> None:
    assert (Attribute("now_ms", 3, "").type, Attribute("now_ms", 3, "").measured_in) == ("integer", "ms")
    assert Attribute("kept_bytes", 3, "").measured_in == "bytes"
    assert Attribute("rows", 3, "").measured_in == "rows"
    assert Attribute("policy", "a", "").measured_in is None
    assert Attribute("on", True, "").type == "boolean"
    bounded = Attribute("rate", 0.5, "", bounds=NumberRange(0, 1, low_excluded=True))
    assert [bounded.refusal(value) is None for value in (0, 0.1, 1, 1.1, True, "1")] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]
    long = Attribute("window_ms", 3_600_000, "", bounds=NumberRange(600_000, 3_600_000))
    assert long.refusal(1) == "integer from 600,000 to 3,600,000"
    assert bounded.as_dict()["accepts"] == "above 0 to 1"


def test_time_of_one_inside_another_is_not_counted_twice() -> None:
    watch, outer, inner = Stopwatch(Clock()), Usage(), Usage()
    with watch.on(outer):
        with watch.on(inner):
            pass
        with watch.on(inner):
            pass
    assert (outer.cpu_ns, inner.cpu_ns) == (3, 2)


def test_time_that_was_not_measured_one_by_one_is_divided_as_that_which_was() -> None:
    laps, left, right = Laps(Clock()), Usage(), Usage()
    for _ in range(PERIOD + 1):
        measured = laps.begin()
        if measured is not None:
            for usage, visits in ((left, 1), (right, 3)):
                for _ in range(visits):
                    measured.enter(usage)
                    measured.leave()
        laps.end()
    assert math.isclose(right.cpu_ns, 3 * left.cpu_ns)
