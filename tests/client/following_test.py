"""Following queries on a real broker: iterators, callbacks, live answers, the command line."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable

import pytest

import tureen
from tests.client.cli import tureen_
from tests.client.conftest import Broker
from tests.kafka import wait_until
from tureen.changes import ChangesEvent, EndEvent, Event, ProgressEvent, SnapshotEvent
from tureen.errors import PositionRefused, UnknownQuery
from tureen.folding import Fold
from tureen.results import ResultTopic


class Prices:
    """A stream of a test's own: one row a second of its time, each in its own step where that is wanted."""

    def __init__(self, broker: Broker, client: tureen.Client) -> None:
        self.name = f"prices_{uuid.uuid4().hex[:8]}"
        self.sent = 0
        self._broker = broker
        self._client = client
        client.create(
            f"CREATE STREAM {self.name} (city STRING NOT NULL, price DOUBLE, at TIMESTAMP NOT NULL) "
            f"WITH (topic = '{self.name}', timestamp = 'at', idle_timeout = '50 milliseconds') RETAIN 1 DAY"
        )

    def send(self, *rows: tuple[str, float]) -> None:
        """Rows, and wait until NOW is that of the last one."""
        self._broker.produce(
            self.name,
            [
                {"city": city, "price": price, "at": 1_000_000 + 1_000 * (self.sent + place)}
                for place, (city, price) in enumerate(rows)
            ],
        )
        self.sent += len(rows)
        wait_until(lambda: self._now_ms() == self.last_ms, what="the rows are in")

    @property
    def last_ms(self) -> int:
        return 1_000_000 + 1_000 * (self.sent - 1)

    def _now_ms(self) -> int | None:
        return next(one.now_ms for one in self._client.sources() if one.name == self.name)


@pytest.fixture
def prices(broker: Broker, client: tureen.Client) -> Prices:
    return Prices(broker, client)


def until(feed: tureen.client.ChangeFeed, done: Callable[[Event], bool]) -> list[Event]:
    """Events up to the one that it is."""
    found = []
    for event in feed:
        found.append(event)
        if done(event):
            return found
    raise AssertionError(f"it ended before: {found}")


def at(ms: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, ChangesEvent) and event.now_ms is not None and event.now_ms >= ms


def weighed(events: list[Event]) -> list[tuple[int, int, tuple[object, ...]]]:
    return [tuple(change) for event in events if isinstance(event, ChangesEvent) for change in event]  # type: ignore[misc]


def test_an_answer_and_its_changes_and_back_again(client: tureen.Client, prices: Prices) -> None:
    prices.send(("Bern", 1.0), ("Zug", 2.0))
    query = client.register(f"SELECT city, price FROM {prices.name} [RANGE 1 SECOND]")
    with query.changes() as feed:
        first = next(feed)
        assert isinstance(first, SnapshotEvent)
        assert (first.rows, first.now_ms, first.reset) == ((("Bern", 1.0), ("Zug", 2.0)), 1_001_000, False)
        assert [(column.name, column.type) for column in first.columns] == [
            ("city", "STRING"),
            ("price", "DOUBLE"),
        ]
        prices.send(("Rom", 3.0))
        told = until(feed, at(1_002_000))
    assert weighed(told) == [(-1, 1_001_001, ("Bern", 1.0)), (1, 1_002_000, ("Rom", 3.0))]
    kept = feed.position

    prices.send(("Genf", 4.0), ("Bern", 5.0))
    since = list(query.changes(kept, live=False))
    assert [change[2][0] for change in weighed(since) if change[0] > 0] == ["Genf", "Bern"]
    assert isinstance(since[-1], EndEvent)
    polled = list(query.changes(kept, live=False, poll=True))
    assert weighed(polled) == weighed(since)
    fold = Fold()
    for event in [first, *told, *since]:
        fold.apply(event)
    answer = query.snapshot()
    assert fold.to_arrow().to_pylist() == answer.rows()
    assert answer.change_position is not None
    assert weighed(list(query.changes(answer.change_position, live=False))) == []
    query.unregister()


def test_long_polls_wait_for_changes(client: tureen.Client, prices: Prices) -> None:
    query = client.register(f"SELECT city, price FROM {prices.name} WHERE price > 1")
    prices.send(("Bern", 1.0), ("Zug", 2.0))
    with query.changes(poll=True, silence=5.0) as feed:
        fold = Fold()
        fold.apply(next(feed))
        prices.send(("Rom", 3.0))
        for event in until(feed, at(1_002_000)):
            fold.apply(event)
    assert [row["city"] for row in fold.dicts()] == ["Zug", "Rom"]
    query.unregister()


def test_feeds_of_a_paused_query_are_silent_and_end_when_it_goes(
    client: tureen.Client, prices: Prices
) -> None:
    prices.send(("Bern", 1.0))
    query = client.register(f"SELECT city FROM {prices.name}")
    with query.changes() as feed:
        next(feed)
        query.pause()
        prices.send(("Zug", 1.0))
        prices.send(("Thun", 1.0))
        query.resume()
        *silent, told = until(feed, lambda event: isinstance(event, ChangesEvent))
        assert all(isinstance(event, ProgressEvent) for event in silent)
        assert sorted(weighed([told])) == [(1, 1_002_000, ("Thun",)), (1, 1_002_000, ("Zug",))]
    with query.changes() as feed:
        assert next(feed).rows == (("Bern",), ("Zug",), ("Thun",))  # type: ignore[union-attr]
        query.unregister()
        assert until(feed, lambda event: isinstance(event, EndEvent))[-1].reason == "unregistered"  # type: ignore[union-attr]
        with pytest.raises(StopIteration):
            next(feed)
    with pytest.raises(UnknownQuery):
        next(query.changes())


def test_positions_that_are_none(client: tureen.Client, prices: Prices) -> None:
    query, other = (client.register(f"SELECT city FROM {prices.name} WHERE price > {n}") for n in (1, 2))
    position = other.snapshot().change_position
    for wrong in ("nonsense", position):
        with pytest.raises(PositionRefused):
            next(query.changes(wrong))
    for one in (query, other):
        one.unregister()


def test_callbacks_and_live_answers(client: tureen.Client, prices: Prices) -> None:
    prices.send(("Bern", 1.0))
    query = client.register(
        f"SELECT city, COUNT(*) AS n, SUM(price) AS total FROM {prices.name} GROUP BY city"
    )
    seen: list[Event] = []
    with query.on_change(seen.append) as subscription, query.follow(key=["city"]) as live:
        assert live.get("Bern") == {"city": "Bern", "n": 1, "total": 1.0}
        prices.send(("Zug", 2.0), ("Bern", 4.0))
        assert live.wait_for(lambda: live.get("Bern") == {"city": "Bern", "n": 2, "total": 5.0}, 20)
        assert live.get("Zug") == {"city": "Zug", "n": 1, "total": 2.0}
        assert Counter(map(str, live.dicts())) == Counter(map(str, query.snapshot().rows()))
        wait_until(lambda: subscription.position == live.position, what="the callback was called")
    assert isinstance(seen[0], SnapshotEvent)
    assert weighed(seen)[-1][2] == ("Bern", 2, 5.0)
    query.unregister()


def test_asyncio_follows_as_well(broker: Broker, client: tureen.Client, prices: Prices) -> None:
    prices.send(("Bern", 1.0))
    handle = client.register(f"SELECT city, price FROM {prices.name}").handle

    async def work() -> None:
        async with tureen.connect_async(broker.url) as connected:
            query = connected.query(handle)
            async with await query.follow(key=["city"]) as live, query.changes() as feed:
                assert (await anext(feed)).rows == (("Bern", 1.0),)  # type: ignore[union-attr]
                await asyncio.to_thread(prices.send, ("Zug", 2.0))
                async for event in feed:
                    if isinstance(event, ChangesEvent):
                        assert event.came() == [{"city": "Zug", "price": 2.0}]
                        break
                assert await live.wait_for(lambda: live.get("Zug"), 20)

    asyncio.run(work())
    client.unregister(handle)


def test_watch_once_as_json_and_as_lines(broker: Broker, client: tureen.Client, prices: Prices) -> None:
    prices.send(("Bern", 1.0), ("Zug", 2.0))
    query = client.register(f"SELECT city, price FROM {prices.name} [RANGE 1 SECOND]")
    told = tureen_("watch", query.handle, "--once", "--json", broker=broker)
    first, *_, last = map(json.loads, told.stdout.splitlines())
    assert (first["type"], first["rows"]) == ("snapshot", [["Bern", 1.0], ["Zug", 2.0]])
    assert (last["type"], last["reason"]) == ("end", "caught_up")
    prices.send(("Rom", 3.0))
    shown = tureen_("watch", query.handle, "--once", "--since", first["position"], broker=broker)
    assert [line.split("\t") for line in shown.stdout.splitlines()] == [
        ["-", "1970-01-01 00:16:41.001", "Bern", "1"],
        ["+", "1970-01-01 00:16:42", "Rom", "3"],
    ]
    assert "--since" in shown.stderr
    before = {one.query_id for one in client.queries()}
    shown = tureen_("watch", f"SELECT city FROM {prices.name} WHERE price > 2", "--once", broker=broker)
    assert shown.stdout == "\tat\tcity\n=\t\tRom\n"
    wait_until(lambda: {one.query_id for one in client.queries()} <= before, what="it is gone again")
    assert tureen_("watch", tureen.new_handle(), broker=broker).exit_code == 1
    assert tureen_("watch", "SELECT v FROM not_there", broker=broker).exit_code == 1
    refused = tureen_("watch", query.handle, "--since", "x", "--json", broker=broker)
    assert json.loads(refused.stdout)["error"]["code"] == "position_refused"
    query.unregister()


def test_watch_is_ended_by_ctrl_c(broker: Broker, client: tureen.Client, prices: Prices) -> None:
    query = client.register(f"SELECT city FROM {prices.name}")
    process = subprocess.Popen(
        [sys.executable, "-m", "tureen", "watch", query.handle, "--json"],
        env=broker.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["rows"] == []
    prices.send(("Bern", 1.0))
    line = json.loads(process.stdout.readline())
    while line["type"] == "progress":
        line = json.loads(process.stdout.readline())
    assert [change[2] for change in line["changes"]] == [["Bern"]]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    query.unregister()


def test_a_terminal_shows_a_table_that_changes(broker: Broker, prices: Prices) -> None:
    prices.send(("Bern", 1.0))
    pid, terminal = pty.fork()
    if pid == 0:
        environment = broker.environment | {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "tureen", "sql"], environment)
    seen = ""

    def until_seen(text: str) -> bool:
        nonlocal seen
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 65_536).decode()
        return text in seen

    try:
        wait_until(lambda: until_seen("tureen> "), what="the prompt")
        os.write(terminal, f"SELECT city FROM {prices.name} [RANGE 1 SECOND] EMIT CHANGES;\n".encode())
        wait_until(lambda: until_seen("1 row,"), what="the answer")
        prices.send(("Zug", 1.0), ("Rom", 1.0))
        wait_until(lambda: until_seen("+   Rom"), what="the row that came")
        assert re.search(r"9m-.*9mBern", seen)  # struck out
        seen = ""
        os.write(terminal, b"\x03")
        wait_until(lambda: until_seen("tureen> "), what="the prompt again")  # the query was only asked
        os.write(terminal, b"exit\n")
        wait_until(lambda: os.waitpid(pid, os.WNOHANG) != (0, 0), what="it ends")
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)


def test_a_snapshot_tells_where_its_changes_go_on(
    broker: Broker, client: tureen.Client, prices: Prices
) -> None:
    query = client.register(f"SELECT city FROM {prices.name}")
    shown = tureen_("snapshot", query.handle, "--format", "table", broker=broker)
    position = query.snapshot().change_position
    assert position is not None
    assert f"tureen watch HANDLE --since {position}" in shown.stderr
    prices.send(("Bern", 1.0))
    told = [event for event in query.changes(position, live=False) if not isinstance(event, ProgressEvent)]
    assert [type(event) for event in told] == [ChangesEvent, EndEvent]
    query.unregister()


@pytest.mark.parametrize("form", ["upsert", "debezium", "diff"])
def test_a_result_topic_folded_is_the_answer(
    broker: Broker, client: tureen.Client, prices: Prices, form: str
) -> None:
    prices.send(("Bern", 1.0), ("Zug", 2.0))
    into = f"INTO {prices.name}" if form != "upsert" else ""
    query = client.register(
        f"SELECT city, COUNT(*) AS n, SUM(price) AS total FROM {prices.name} GROUP BY city "
        f"EMIT CHANGES {into} WITH (format = '{form}')"
    )
    kafka = {"bootstrap.servers": broker.bootstrap}
    with ResultTopic(
        kafka,
        query.query_id,
        into=prices.name if into else None,
        form=form,  # type: ignore[arg-type]
        service_id=broker.service_id,
    ) as results:
        wait_until(lambda: results.read() and len(results.rows()) == 2, what="the answer")
        prices.send(("Bern", 4.0), ("Rom", 8.0))
        wait_until(lambda: results.read() and len(results.rows()) == 3, what="the changes")
        answer = query.snapshot()
        assert sorted(map(str, results.rows())) == sorted(map(str, answer.rows()))
        assert results.position is not None
    query.unregister()
