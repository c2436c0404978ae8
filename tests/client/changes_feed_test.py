"""Iterators, callbacks and live answers over connections that break and hang."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

import tureen
from tests.client.feed_server import HOLD, FeedServer
from tests.client.feeds import Course
from tests.kafka import wait_until
from tureen.changes import ChangesEvent, EndEvent, Event, SnapshotEvent
from tureen.errors import BrokerUnavailable, LimitExceeded, NotSupported, UnknownColumn, UnknownQuery

COURSE = Course(
    [("Rom", 0.5)],
    [[(1, n, f"city {n}", float(n))] for n in range(1, 7)] + [[(-1, 7, "Rom", 0.5)]],
    end={"reason": "caught_up"},
)
GONE = Course(COURSE.rows, COURSE.steps, end={"reason": "unregistered"})
Answer = Callable[[dict[str, str]], Iterator[bytes | None]]


def whole(course: Course = COURSE) -> Answer:
    return lambda asked: iter([course.feed(asked.get("since"))])


def torn(size: int, rest: bool = False, course: Course = COURSE) -> Answer:
    """So many bytes; then the connection is cut, or says nothing more."""
    return lambda asked: iter([course.feed(asked.get("since"))[:size], *([HOLD] if rest else [])])


def rows_told(events: list[Event]) -> list[Event]:
    return [one for one in events if isinstance(one, SnapshotEvent | ChangesEvent)]


ANSWERS: list[tuple[float, list[Answer]]] = [
    (20.0, [whole()]),
    (20.0, [torn(1), torn(250), torn(333), whole()]),
    (0.2, [torn(400, rest=True), whole()]),
]


@pytest.mark.parametrize(("silence", "answers"), ANSWERS, ids=["whole", "cut", "silent"])
def test_both_iterators_tell_everything_once(silence: float, answers: list[Answer]) -> None:
    with FeedServer(*answers) as server, tureen.connect(server.url) as client:
        feed = client.changes("h", silence=silence)
        events = list(feed)
        assert rows_told(events) == COURSE.events()
        assert events[-1] == EndEvent("7", "caught_up")
        assert feed.position == "7"
        # Who waits for a short while only asks once more where an answer waited for a core.
        assert len(server.asked) == len(answers) or (silence < 1 and len(server.asked) > len(answers))

    async def awaited(url: str) -> list[Event]:
        async with tureen.connect_async(url) as client, client.changes("h", silence=silence) as feed:
            return [event async for event in feed]

    with FeedServer(*answers) as server:
        assert rows_told(asyncio.run(awaited(server.url))) == COURSE.events()


def test_one_who_left_goes_on_from_the_position_that_was_kept() -> None:
    with FeedServer(whole()) as server, tureen.connect(server.url) as client:
        seen: list[Event] = []
        with client.changes("h") as feed:
            for event in feed:
                seen.append(event)
                if len(seen) == 4:
                    break
        kept = seen[-1].position
        assert (kept, feed.position) == ("3", "3")
        seen += rows_told(list(client.changes("h", kept, live=False)))
        assert seen == COURSE.events()
        assert server.asked[-1] == {"since": "3", "live": "false"}


def test_any_thread_ends_a_feed_that_waits() -> None:
    with FeedServer(torn(600, rest=True)) as server, tureen.connect(server.url) as client:
        feed = client.changes("h")
        next(feed)
        told = threading.Event()
        left: list[Event] = []

        def read() -> None:
            for event in feed:
                left.append(event)
                told.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert told.wait(10)
        feed.close()
        reader.join(10)
        assert not reader.is_alive()
        with pytest.raises(StopIteration):
            next(feed)


def test_a_callback_is_called_until_it_is_stopped() -> None:
    with FeedServer(torn(250), torn(500, rest=True)) as server, tureen.connect(server.url) as client:
        seen: list[Event] = []
        with client.query("h").on_change(seen.append) as subscription:
            wait_until(lambda: len(seen) > 3, what="events")
            assert not subscription.wait(0)
        stopped = len(seen)
        assert subscription.wait(10)
        assert seen == COURSE.events()[:stopped]
        assert subscription.position == seen[-1].position
        assert subscription.error is None


def test_what_a_callback_raises_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        if event.position == "2":
            raise ZeroDivisionError("by the callback")

    with FeedServer(whole()) as server, tureen.connect(server.url) as client:
        query = client.query("h")
        subscription = query.on_change(broken)
        with pytest.raises(ZeroDivisionError):
            subscription.wait(10)
        assert subscription.position == "1"  # so it is told again to who goes on from there
        assert isinstance(subscription.error, ZeroDivisionError)
        assert "by the callback" in caplog.text
        told: list[tuple[str, str | None]] = []
        with query.on_change(
            broken, on_error=lambda e, event: told.append((str(e), event.position))
        ) as other:
            assert other.wait(10)
            assert other.ended == EndEvent("7", "caught_up")
        assert told == [("by the callback", "2")]
        with pytest.raises(ZeroDivisionError), query.on_change(broken) as third:
            wait_until(lambda: third.error is not None, what="the error")


def test_callbacks_of_asyncio_may_be_coroutines() -> None:
    async def work(url: str) -> None:
        seen: list[Event] = []

        async def keep(event: Event) -> None:
            await asyncio.sleep(0)
            seen.append(event)
            if event.position == "5":
                raise ZeroDivisionError

        async with tureen.connect_async(url) as client:
            subscription = client.query("h").on_change(keep)
            with pytest.raises(ZeroDivisionError):
                await subscription.wait(10)
            assert seen == COURSE.events()[:6]
            assert subscription.position == "4"
            async with client.query("h").on_change(seen.append, "6") as rest:
                assert await rest.wait(10)
            assert seen[6:] == COURSE.events(since=6)

    with FeedServer(whole()) as server:
        asyncio.run(work(server.url))


def test_a_live_answer_is_the_answer_at_its_position() -> None:
    steady = torn(10_000, rest=True, course=Course(COURSE.rows, COURSE.steps))
    with FeedServer(torn(300), steady) as server, tureen.connect(server.url) as client:
        with client.query("h").follow(key=["city"]) as live:
            assert live.wait_for(lambda: live.get("Rom") is None, 10)
            assert live.get("city 3") == {"city": "city 3", "price": 3.0}
            assert live.of("city 9") == []
            assert (len(live), live.position, live.now_ms) == (6, "7", 7)
            assert live.to_arrow().to_pylist() == live.dicts()
            assert live.to_pandas().to_dict("records") == live.to_polars().to_dicts() == live.dicts()
            assert [row[1] for row in live.rows()] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
            assert not live.wait_for(lambda: live.get("Paris"), 0.01)
            with pytest.raises(ValueError, match=r"\(city\)"):
                live.get("a", "b")
        assert live.wait(10)


def test_a_live_answer_of_asyncio() -> None:
    async def work(url: str) -> None:
        async with tureen.connect_async(url) as client:
            async with await client.query("h").follow(key=["city"]) as live:
                assert await live.wait_for(lambda: len(live) == 6 and live.position == "7", 10)
                assert live.get("city 1") == {"city": "city 1", "price": 1.0}
                assert not await live.wait_for(lambda: live.get("Paris"), 0.01)
            with pytest.raises(UnknownQuery):
                await (await client.query("h").follow()).wait_for(lambda: False, 10)

    steady = torn(10_000, rest=True, course=Course(COURSE.rows, COURSE.steps))
    with FeedServer(torn(300), steady, whole(GONE)) as server:
        asyncio.run(work(server.url))


def test_why_there_is_no_live_answer() -> None:
    with FeedServer(whole()) as server, tureen.connect(server.url) as client:
        query = client.query("h")
        with pytest.raises(UnknownColumn, match="town"):
            query.follow(key=["town"])
        with pytest.raises(LimitExceeded), query.follow(rows_max=3) as live:
            live.wait_for(lambda: False, 10)
        server.answers = [torn(1, rest=True)]
        with pytest.raises(BrokerUnavailable, match="in time"):
            query.follow(timeout=0.05)
        feed = COURSE.feed(None).replace(b'"operator": "changes"', b'"operator": "rstream"')
        server.answers = [lambda _: iter([feed])]
        with pytest.raises(NotSupported, match="RSTREAM"):
            query.follow()
    with tureen.connect("http://127.0.0.1:1") as nobody, pytest.raises(BrokerUnavailable):
        nobody.query("h").follow()


def test_equal_rows_of_one_key_are_all_there() -> None:
    twice = Course(
        [("Rom", 0.5), ("Rom", 0.5), ("Rom", 2.0)], [[(-1, 1, "Rom", 0.5)]], 9, end={"reason": "unregistered"}
    )
    with FeedServer(whole(twice)) as server, tureen.connect(server.url) as client:
        live = client.query("h").follow(key=["city"])
        with pytest.raises(UnknownQuery):
            live.wait_for(lambda: False, 10)
        assert [row["price"] for row in live.of("Rom")] == [0.5, 2.0]
        with pytest.raises(ValueError, match="2 rows"):
            live.get("Rom")


def test_wrong_options() -> None:
    with tureen.connect("http://127.0.0.1:1") as client:
        for wrong in ({"patience": -1.0}, {"patience": float("nan")}, {"silence": 0.0}, {"silence": 1e9}):
            with pytest.raises(ValueError, match="patience"):
                client.changes("h", **wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="patient"):
            client.changes("h", patient=True)  # type: ignore[call-arg]
