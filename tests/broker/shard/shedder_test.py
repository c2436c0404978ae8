"""The controller of a worker's streams: who sheds, how much, what is not read, and when it ends."""

from __future__ import annotations

import numpy as np

from broker.shard.shedder import LOOK_S, Shedder
from broker.shard.taken import TakenRows
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.shed import LEVEL_MAX, Shed
from engine.model.source import SourceName
from engine.model.step import Records
from engine.overload.shed_order import ShedOrder
from tests.queries.shedding import subject_of

S = SourceName("s")
RESERVE = 100_000
ROW_BYTES = 100
ROWS = 100


def taken(count: int, shed: Shed | None = None) -> TakenRows:
    """A step of so many records."""
    schema = subject_of().engine.view().stream(S).stored_schema
    body = Records(S, Batch.empty(schema), {0: count}, shed=shed)
    unread = 0 if shed is None else shed.unread
    return TakenRows(body, [None] * (count - unread), np.arange(0), [], count * ROW_BYTES, ())


def overloaded(*texts: str) -> tuple[Shedder, Engine]:
    """After a backlog has grown to the reserve; rows take 10 ms each."""
    subject = subject_of()
    for number, text in enumerate(texts):
        subject.register(f"q{number}", text, {})
    shedder = Shedder(0, ShedOrder(RESERVE))
    shedder.look(subject.engine, {S: 0}, 0.0)
    shedder.took(S, taken(ROWS), ROWS * 10_000_000)
    shedder.look(subject.engine, {S: RESERVE // ROW_BYTES}, 1.0)
    return shedder, subject.engine


def test_stream_that_catches_up_with_what_was_there_sheds_nothing() -> None:
    subject = subject_of()
    subject.register("q", "SELECT v FROM s WITH (max_fn = 1)", {})
    shedder = Shedder(0, ShedOrder(RESERVE))
    for look in range(10):
        shedder.look(subject.engine, {S: 1_000_000 - look * ROWS}, look * 1.0)
        shedder.took(S, taken(ROWS), ROWS * 1_000_000)
        assert not shedder.shares
        assert shedder.backlog_bytes(S) == 0


def test_what_nobody_sees_is_passed_over_many_steps_at_a_time() -> None:
    shedder, engine = overloaded("SELECT v FROM s WITH (max_fn = 1)")
    assert shedder.shares[S] > 0
    shedding, rows = shedder.shedding(engine, S, ROWS)
    assert shedding is not None
    assert (shedding.level, shedding.unread) == (LEVEL_MAX, True)
    assert rows > ROWS


def test_what_an_exact_query_sees_is_read() -> None:
    shedder, engine = overloaded("SELECT v FROM s WITH (max_fn = 1)", "SELECT v FROM s")
    shedding, rows = shedder.shedding(engine, S, ROWS)
    assert shedding is not None
    assert (shedding.level, shedding.unread, rows) == (LEVEL_MAX, False, ROWS)


def test_no_more_is_shed_than_queries_allow() -> None:
    shedder, engine = overloaded("SELECT v FROM s WITH (max_fn = 0.1)")
    shed = came = 0
    for _ in range(200):
        shedding, rows = shedder.shedding(engine, S, ROWS)
        came += rows
        shed += rows if shedding is not None else 0
        ranges = {0: (0, rows)}
        shedder.took(S, taken(rows, None if shedding is None else Shed(shedding.level, ranges)), rows)
    assert 0.05 * came < shed <= 0.1 * came


def test_streams_of_exact_queries_shed_nothing() -> None:
    shedder, engine = overloaded("SELECT v FROM s")
    assert not shedder.shares
    assert shedder.shedding(engine, S, ROWS) == (None, ROWS)


def test_shedding_ends_when_the_queue_is_short_again() -> None:
    shedder, engine = overloaded("SELECT v FROM s WITH (max_fn = 1)")
    shedder.look(engine, {}, 1.0 + LOOK_S)
    assert shedder.shares
    shedder.look(engine, {}, 7.0)
    assert not shedder.shares
