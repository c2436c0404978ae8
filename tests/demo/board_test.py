"""The demo's board in an engine alone: every answer is what its plain computation over the files says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from broker.demo.audience import same
from broker.demo.board import BOARD, CREATES, Tile
from broker.demo.flights import Kept, Replayed, load, planes
from engine.engine import Engine
from engine.language.query import CreateFromQuery
from engine.model import step
from engine.model.batch import Batch, versions
from engine.model.source import Stream
from engine.views.view import View

ROWS = 24_000
BATCHES = 6


@pytest.fixture(scope="module")
def streams() -> dict[str, Replayed]:
    return {one.name: one for one in load(ROWS)}


@pytest.fixture(scope="module")
def aircraft() -> Kept:
    return planes()


@pytest.fixture(scope="module")
def views(streams: dict[str, Replayed], aircraft: Kept) -> list[View]:
    """What the engine shows before the first batch and after each."""
    engine = board(streams, aircraft)
    found = [engine.view()]
    for number in range(BATCHES):
        for stream in streams.values():
            edges = np.linspace(0, len(stream.ts_ms), BATCHES + 1).astype(int).tolist()
            feed(engine, stream, *list(pairwise(edges))[number])
        found.append(engine.view())
    return found


def board(streams: dict[str, Replayed], aircraft: Kept) -> Engine:
    """An engine in which the board stands: the table is there, of the streams no row yet."""
    engine = Engine()
    for source in (*streams.values(), aircraft):
        engine.create(source.sql)
    keep(engine, aircraft)
    for sql in CREATES:
        made = engine.prepare(sql)
        assert isinstance(made, CreateFromQuery)
        apply(engine, step.CreateDerived(made.derived))
    registrations = (step.Registration(one.title, one.sql, options=one.options) for one in BOARD)
    apply(engine, step.Register(tuple(registrations)))
    return engine


def apply(engine: Engine, body: step.Body) -> None:
    engine.enqueue(step.Step(step.Position(0, engine.position.sequence + 1), 0, body))
    (result,) = engine.run()
    assert not result.failed


def keep(engine: Engine, table: Kept) -> None:
    declared = engine.catalogue[table.name]
    assert isinstance(declared, Stream)
    count = table.table.num_rows
    arrived = np.zeros(count, np.int64)
    batch = Batch.from_arrow(declared.schema, table.table, np.zeros(count), np.arange(count), arrived)
    engine.ingest(table.name, versions(declared, batch), 1)


def feed(engine: Engine, stream: Replayed, begin: int, end: int) -> None:
    declared = engine.catalogue[stream.name]
    assert isinstance(declared, Stream)
    rows = stream.table.slice(begin, end - begin).combine_chunks()
    batch = Batch.from_arrow(
        declared.schema, rows, stream.partition[begin:end], np.arange(begin, end), stream.ts_ms[begin:end]
    )
    engine.ingest(stream.name, batch, int(stream.ts_ms[-1]))


@pytest.mark.parametrize("tile", BOARD, ids=lambda tile: tile.title)
def test_each_answer_is_what_the_files_say(
    tile: Tile, views: list[View], streams: dict[str, Replayed], aircraft: Kept
) -> None:
    data = streams | {aircraft.name: aircraft}
    for view in views:
        answer = view.snapshot(tile.title)
        expected = tile.expected(data, answer.now_ms)
        assert answer.complete
        assert same(answer.table, expected, tile.within), (answer.table.to_pylist(), expected.to_pylist())


def test_only_what_is_granted_may_differ() -> None:
    months = next(one for one in BOARD if one.title.startswith("the months"))
    assert months.within.keys() < {"month", "aircraft", "routes", "spread", "tenth", "miles"}
    for name, other in (("miles", 1), ("aircraft", 500)):
        expected = months.expected({"flights": load(2_000)[0]}, 10**13)
        at = expected.column_names.index(name)
        wrong = expected.set_column(at, name, [[value + other for value in expected[name].to_pylist()]])
        assert not same(wrong, expected, months.within)
        assert same(expected, expected, months.within)
