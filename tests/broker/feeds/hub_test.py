"""The hub between an engine's steps and the readers of feeds, without a broker."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from broker.feeds.hub import Hub
from broker.feeds.memory import RecentChanges
from broker.feeds.reader import ChangeLines, Reader
from broker.node.request_work import RequestWork
from engine.model.answer import Answer
from engine.model.step import Body, Position, Rejoin, SetApart, Step, StepResult
from tests.engine.feed import Feed, ticks
from tureen.errors import LimitExceeded, MustRefetch, TureenError

SHARD = 2
SQL = "SELECT k, v FROM s [RANGE 5 MILLISECONDS] WHERE v <> 30"


class Bridge:
    """An engine whose steps are committed to a hub, as a shard does it."""

    def __init__(self, bytes_max: int = 1_000_000, sql: str = SQL, **feed: str) -> None:
        self.feed = Feed(sql, **feed)
        self.woken = 0
        self.hub = Hub(bytes_max, 60.0, self._wake)
        self.work = RequestWork("feeds", 1, 64, "answer_ms_max", 60_000)
        self._done = len(self.feed.told)

    def _wake(self) -> None:
        self.woken += 1

    def follow(self, query_id: str = "q0") -> RecentChanges:
        memory = RecentChanges(query_id, SHARD)
        self.hub.add(memory)
        self.feed.engine.follow(query_id)
        self.hub.begin(memory, self.feed.engine.view(), "k5tq2a")
        return memory

    def commit(self, results: Iterable[StepResult] = (), touched: Iterable[str] = ()) -> None:
        """What was done since the last commit, or these results."""
        done = list(results) or self.feed.told[self._done :]
        self._done = len(self.feed.told)
        self.hub.committed(SHARD, self.feed.engine.view(), done, set(touched))

    def step(self, body: Body) -> None:
        engine, feed = self.feed.engine, self.feed
        engine.enqueue(Step(Position(0, engine.position.sequence + 1), feed.clock_ms, body))
        feed.told += engine.run()

    def reader(self, memory: RecentChanges) -> Reader:
        return Reader(self.hub, memory, self.work, 1_000, lambda sources: 0)


def fold(answer: Counter[str], pieces: Iterable[ChangeLines]) -> None:
    for piece in pieces:
        for line in piece.lines:
            for weight, _, values in json.loads(line)["changes"]:
                answer[json.dumps(values)] += weight


def answer_of(answer: Answer) -> Counter[str]:
    rows = zip(*(column.to_pylist() for column in answer.table.columns), strict=True)
    return Counter(json.dumps(row) for row in rows)


async def drained(reader: Reader) -> list[ChangeLines]:
    """All there is now."""
    pieces: list[ChangeLines] = []
    while found := await reader.more():
        pieces += found
    return pieces


@pytest.mark.parametrize("bytes_max", [1_000_000, 1])
def test_whoever_begins_at_any_step_has_the_answer_at_every_later_one(bytes_max: int) -> None:
    """Where next to nothing is remembered, what is missing is worked out again."""

    async def told() -> None:
        bridge = Bridge(bytes_max)
        readers: list[tuple[Reader, Counter[str]]] = []
        memory: RecentChanges | None = None
        for turn in range(12):
            for first in range(2 + turn % 3):  # several steps a commit
                bridge.feed.put(*ticks([10 * turn + 3 * first, 10 * turn + 3 * first + 1]))
            bridge.commit()
            memory = memory or bridge.follow()
            reader = bridge.reader(memory)
            readers.append((reader, answer_of(await reader.snapshot())))
            for number, (one, known) in enumerate(readers):
                if (turn + number) % 3:  # the others fall behind
                    fold(known, await drained(one))
                    assert +known == Counter(json.dumps(row) for row in bridge.feed.rows())
                    assert one.progress().position == bridge.feed.engine.position
        assert bridge.hub.size > 0

    asyncio.run(told())


@pytest.mark.parametrize("bytes_max", [1_000_000, 1])
def test_readers_of_a_query_that_is_set_apart_get_each_change_once(bytes_max: int) -> None:
    """Wherever they begin; they stay where they are until it rejoins."""

    async def told() -> None:
        bridge = Bridge(bytes_max, sql="SELECT k, COUNT(*) AS n FROM s [RANGE 5 MILLISECONDS] GROUP BY k")
        engine, memory = bridge.feed.engine, bridge.follow()
        bridge.feed.put(*ticks([10, 11, 12]))
        before = bridge.reader(memory)
        readers = [(before, answer_of(await before.snapshot()))]
        bridge.step(SetApart(("q0",)))
        for turn in range(5):
            bridge.feed.put(*ticks([20 + 3 * turn, 21 + 3 * turn]))
            bridge.commit()
            reader = bridge.reader(memory)
            readers.append((reader, answer_of(await reader.snapshot())))
            for one, known in readers:
                was = one.cursor
                fold(known, await drained(one))
                assert one.progress() == was or turn == 0 or bytes_max == 1
        (apart,) = engine.apart()
        apart.run()
        bridge.step(Rejoin(("q0",)))
        bridge.commit()
        for one, known in readers:
            fold(known, await drained(one))
            assert +known == Counter(json.dumps(row) for row in bridge.feed.rows())
            assert one.progress().position == engine.position

    asyncio.run(told())


def test_only_what_changes_wakes_and_once_for_all_of_it() -> None:
    bridge = Bridge()
    memory = bridge.follow()
    bridge.feed.put(*ticks([10, 11, 12]))
    bridge.feed.put(*ticks([13]))
    bridge.commit()
    assert bridge.woken == 1
    assert bridge.hub.touched() == [memory]
    bridge.feed.put((30, "a", 30.0))  # takes rows out of the window
    bridge.commit()
    assert bridge.woken == 2
    bridge.hub.touched()
    bridge.feed.put((40, "a", 30.0), (50, "a", 30.0))
    bridge.commit()
    assert bridge.woken == 2
    assert bridge.hub.touched() == []


def test_ends() -> None:
    for give, reason in (
        (lambda bridge: bridge.hub.ended(SHARD, None), "stopping"),
        (lambda bridge: bridge.hub.ended(SHARD, TureenError("a defect")), "failed"),
        (lambda bridge: bridge.commit([broken(bridge, LimitExceeded("changes_max", 1))]), "must_refetch"),
        (lambda bridge: bridge.commit([broken(bridge, ValueError("a defect"))]), "failed"),
        (lambda bridge: (bridge.feed.engine.unregister("q0"), bridge.commit(touched=["q0"])), "unregistered"),
        (
            lambda bridge: (
                bridge.feed.engine.unregister("q0"),
                bridge.feed.engine.register("q0", "SELECT v FROM s"),
                bridge.commit(touched=["q0"]),
            ),
            "must_refetch",
        ),
    ):
        bridge = Bridge()
        memory = bridge.follow()
        bridge.feed.put(*ticks([10, 11]))
        bridge.commit()
        bridge.hub.ended(SHARD + 1, None)  # another shard's end is none of its business
        assert memory.end is None
        give(bridge)
        reading = bridge.hub.read(memory, 0, 10)
        assert reading.end is not None
        assert reading.end.reason == reason
        assert (reading.end.error is None) == (reason in ("stopping", "unregistered"))
        assert bridge.hub.memory("q0") is None

        async def told(bridge: Bridge = bridge, memory: RecentChanges = memory) -> None:
            reader = bridge.reader(memory)
            assert memory.since is not None
            reader.cursor = replace(
                reader.cursor, position=replace(reader.cursor.position, sequence=memory.since)
            )
            assert len(await drained(reader)) == 1  # what came before the end is told before it
            assert reader.end == memory.end

        asyncio.run(told())


def broken(bridge: Bridge, error: Exception) -> StepResult:
    return StepResult(bridge.feed.engine.position, broken={"q0": error})


def test_changes_whose_rows_are_gone_are_not_made_up() -> None:
    async def told() -> None:
        bridge = Bridge(1, retain="8 MILLISECONDS")
        bridge.feed.put(*ticks([10, 11, 12]))
        bridge.commit()
        reader = bridge.reader(bridge.follow())
        await reader.snapshot()
        for first in (200, 300):
            bridge.feed.put(*ticks(range(first, first + 100, 2)))
        bridge.commit()
        with pytest.raises(MustRefetch):
            await reader.more()

    asyncio.run(told())


def test_what_another_text_tells_in_the_same_commit_is_not_given_as_of_the_one_before() -> None:
    async def told() -> None:
        bridge = Bridge(sql=f"{SQL} EMIT CHANGES")
        memory = bridge.follow()
        engine = bridge.feed.engine
        bridge.feed.put(*ticks([10, 11]))
        bridge.commit()
        reader = bridge.reader(memory)
        await reader.snapshot()
        bridge.feed.put(*ticks([12]))
        gone = engine.unregister("q0")
        came = engine.register("q0", "SELECT v FROM s [RANGE 5 MILLISECONDS] EMIT CHANGES")
        bridge.feed.put(*ticks([13, 14, 15]))
        before, after = bridge.feed.told[-2:]
        assert before.changes
        assert after.changes
        bridge.commit([before, gone, came, after], touched=["q0"])
        assert [piece.cursor.position for piece in await drained(reader)] == [before.position]
        assert reader.end is not None
        assert reader.end.reason == "must_refetch"

    asyncio.run(told())
