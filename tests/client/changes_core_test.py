"""Following a query: what is told, whatever breaks, driven step by step without a connection."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.feeds import ADDRESS, COLUMNS, Course, in_chunks, reply
from tureen.changes import AwayEvent, EndEvent, Event, ProgressEvent, SnapshotEvent
from tureen.changes_resume import PAUSE_MAX_S, Open, Read, Wishes, following
from tureen.errors import (
    BrokerUnavailable,
    LimitExceeded,
    MustRefetch,
    PositionRefused,
    TureenError,
    UnknownQuery,
)
from tureen.exchange import Pause
from tureen.folding import Fold

Served = Callable[[Open], Iterator[bytes | httpx.HTTPError] | httpx.Response | httpx.HTTPError]
"""A broker: what it answers a connection with. Bytes that run out are the end of the stream."""


class Followed:
    """Carries following out against a broker of the test's making."""

    def __init__(self, serve: Served, wishes: Wishes | None = None, stop: Callable[[], bool] = lambda: False):
        self.opened: list[Open] = []
        self.paused: list[float] = []
        self.events: list[Event] = []
        self.clock_s = 0.0
        body: Iterator[bytes | httpx.HTTPError] = iter(())
        doing = following("h?x", wishes or Wishes(), ADDRESS, lambda: self.clock_s, lambda: 0.5)
        try:
            step = next(doing)
            while not stop():
                given: Any = None
                if isinstance(step, Open):
                    self.opened.append(step)
                    given = serve(step)
                    if not isinstance(given, httpx.Response | httpx.HTTPError):
                        body, given = given, httpx.Response(200)
                elif isinstance(step, Read):
                    given = next(body, b"")
                elif isinstance(step, Pause):
                    self.paused.append(step.seconds)
                    self.clock_s += step.seconds
                else:
                    self.events.append(step)
                    if isinstance(step, EndEvent):
                        self.ended = step
                step = doing.throw(given) if isinstance(given, httpx.HTTPError) else doing.send(given)
        except StopIteration:
            return

    def told(self) -> list[Event]:
        """Without what only says how it went."""
        return [one for one in self.events if not isinstance(one, AwayEvent | EndEvent)]

    def folded(self) -> Fold:
        fold = Fold()
        for event in self.events:
            fold.apply(event)
        return fold


CITIES = st.sampled_from(["Bern", "Zürich", "Genève\n", ""])
PRICES = st.sampled_from([0.0, -0.0, 1.5, float("inf")])


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """Changes that take away only what is there."""
    rows = draw(st.lists(st.tuples(CITIES, PRICES), max_size=4))
    there = list(rows)
    steps = []
    for number in range(draw(st.integers(0, 4))):
        step = []
        for _ in range(draw(st.integers(0, 3))):
            if there and draw(st.booleans()):
                row = there.pop(draw(st.integers(0, len(there) - 1)))
                step.append((-1, number, *row))
            else:
                there.append(draw(st.tuples(CITIES, PRICES)))
                step.append((1, number, *there[-1]))
        steps.append(step)
    return Course(rows, steps, draw(st.integers(1, 3)), end={"reason": "unregistered"})


def cut_feed(course: Course, faults: list[tuple[int, str]], chunk: int) -> Served:
    """Connection after connection is cut behind so many bytes, in its way; the last one is whole."""
    left = list(faults)

    def serve(step: Open) -> Any:
        data = course.feed(step.params.get("since"))  # type: ignore[arg-type]
        if not left:
            return iter(in_chunks(data, range(chunk, len(data), chunk)))
        at, way = left.pop(0)
        if way == "refused":
            return httpx.ConnectError("refused")
        if way == "starting":
            return reply(503, {"code": "broker_unavailable", "message": "not ready"})
        begun = data[: at % (len(data) + 1)]
        parts: list[bytes | httpx.HTTPError] = list(in_chunks(begun, range(chunk, len(begun), chunk)))
        if way == "torn":
            parts.append(httpx.ReadError("cut"))
        elif way == "silent":
            parts.append(httpx.ReadTimeout("nothing came"))
        return iter(parts)

    return serve


FAULTS = st.lists(
    st.tuples(st.integers(0, 2_000), st.sampled_from(["closed", "torn", "silent", "refused", "starting"])),
    max_size=3,
)


@given(courses(), FAULTS, st.integers(1, 400))
def test_every_change_is_told_once_wherever_connections_are_cut(
    course: Course, faults: list[tuple[int, str]], chunk: int
) -> None:
    followed = Followed(cut_feed(course, faults, chunk))

    # Behind a reconnection the broker says where it is: progress to a position that is known.
    told: list[Event] = []
    for event in followed.told():
        if not (isinstance(event, ProgressEvent) and told and told[-1].position == event.position):
            told.append(event)
    assert told == course.events()
    assert followed.ended == EndEvent(str(len(course.steps)), "unregistered")
    fold = followed.folded()
    assert Counter(map(repr, fold.rows())) == Counter(map(repr, course.answer(len(course.steps))))
    assert fold.to_arrow().num_rows == len(fold)


@given(courses(), st.integers(0, 4))
def test_a_position_that_was_kept_is_gone_on_from(course: Course, kept: int) -> None:
    kept = min(kept, len(course.steps))
    followed = Followed(cut_feed(course, [], 7), Wishes(since=str(kept)))
    assert followed.opened[0].params["since"] == str(kept)
    assert followed.told()[1:] == course.events(since=kept)


@given(courses(), st.lists(st.booleans(), max_size=4))
def test_long_polls_tell_the_same(course: Course, faults: list[bool]) -> None:
    left = list(faults)

    def serve(step: Open) -> Any:
        assert step.params["live"] == "poll"
        assert step.read_s > int(step.params["wait_ms"]) / 1_000
        if left and left.pop():
            return iter([course.poll(step.params.get("since"))[:9], httpx.RemoteProtocolError("cut")])  # type: ignore[arg-type]
        return iter([course.poll(step.params.get("since"))])  # type: ignore[arg-type]

    followed = Followed(serve, Wishes(poll=True))
    assert [one for one in followed.told() if not isinstance(one, ProgressEvent)] == [
        one for one in course.events() if not isinstance(one, ProgressEvent)
    ]
    assert followed.ended.reason == "unregistered"


def three_steps(**facts: Any) -> Course:
    steps = [[(1, 1, "Bern", 1.0)], [(1, 2, "Zug", 2.0)], [(-1, 3, "Bern", 1.0)]]
    return Course([("Rom", 0.5)], steps, end={"reason": "caught_up"}, **facts)  # type: ignore[arg-type]


def forgetful(course: Course) -> Served:
    def serve(step: Open) -> Any:
        since = step.params.get("since")
        if since is not None and int(since) < course.kept_from:
            return reply(410, {"code": "must_refetch", "message": "gone"})
        return iter([course.feed(since)])  # type: ignore[arg-type]

    return serve


def test_where_changes_were_missed_the_answer_comes_anew() -> None:
    course = three_steps(kept_from=2)
    followed = Followed(forgetful(course), Wishes(since="1", live=False))
    (snapshot,) = followed.told()
    assert isinstance(snapshot, SnapshotEvent)
    assert (snapshot.reset, snapshot.position) == (True, "3")
    assert set(snapshot.rows) == {("Rom", 0.5), ("Zug", 2.0)}
    assert followed.ended == EndEvent("3", "caught_up")
    with pytest.raises(MustRefetch):
        Followed(forgetful(course), Wishes(since="1", refetch=False))


def test_a_feed_that_fell_behind_begins_anew() -> None:
    course = three_steps()
    bodies = [
        course.feed(None).splitlines(keepends=True)[0]
        + b'{"type": "end", "reason": "must_refetch", "position": "0"}\n',
        course.feed(None),
    ]
    followed = Followed(lambda _: iter([bodies.pop(0)]))
    first, second = (one for one in followed.told() if isinstance(one, SnapshotEvent))
    assert (first.reset, second.reset) == (False, True)
    assert "since" not in followed.opened[1].params
    assert not followed.paused
    bare = b'{"type": "end", "reason": "must_refetch", "position": "0"}\n'
    with pytest.raises(MustRefetch):  # without a position there is nothing to begin anew
        Followed(lambda _: iter([bare]))


def test_a_broker_that_stops_is_no_end_and_one_that_stays_away_is_told_once() -> None:
    course = three_steps()
    stopping = b"".join(course.feed(None).splitlines(keepends=True)[:2])
    stopping += b'{"type": "end", "reason": "stopping", "position": "1"}\n'
    replies: list[Any] = [iter([stopping]), *[httpx.ConnectError("refused")] * 12, reply(503)]
    followed = Followed(lambda step: replies.pop(0) if replies else iter([course.feed(step.params["since"])]))  # type: ignore[arg-type]
    assert [one.position for one in followed.events] == ["0", "1", "1", "1", "2", "3", "3"]
    (away,) = (one for one in followed.events if isinstance(one, AwayEvent))
    assert isinstance(away.error, BrokerUnavailable)
    assert followed.opened[-1].params["since"] == "1"
    assert followed.paused == sorted(followed.paused)
    assert followed.paused[-1] == 0.75 * PAUSE_MAX_S


def test_patience_ends() -> None:
    course = three_steps()
    replies: list[Any] = [iter([course.feed(None).splitlines(keepends=True)[0]])]

    def serve(_: Open) -> Any:
        return replies.pop(0) if replies else httpx.ConnectError("refused")

    with pytest.raises(BrokerUnavailable, match="refused"):
        Followed(serve, Wishes(patience_s=60.0))
    replies.append(iter([course.feed(None).splitlines(keepends=True)[0]]))
    with pytest.raises(BrokerUnavailable, match="ended the connection"):
        Followed(serve, Wishes(patience_s=0.0))


def test_a_broker_that_was_never_there_is_told_soon() -> None:
    opened: list[Open] = []
    with pytest.raises(BrokerUnavailable):
        Followed(lambda step: opened.append(step) or httpx.ConnectError("refused"))
    assert 1 < len(opened) < 6


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "unknown_query", UnknownQuery),
        (400, "position_refused", PositionRefused),
        (429, "limit_exceeded", LimitExceeded),
        (500, None, BrokerUnavailable),
    ],
)
def test_a_refusal_is_the_error_that_it_names(status: int, code: str | None, kind: type[TureenError]) -> None:
    with pytest.raises(kind):
        Followed(lambda _: reply(status, {"code": code, "message": "no"} if code else None))


def test_too_many_feeds_at_a_reconnection_are_waited_for() -> None:
    course = three_steps()
    replies: list[Any] = [
        iter([course.feed(None).splitlines(keepends=True)[0]]),
        reply(429, {"code": "limit_exceeded", "message": "feeds_max"}),
    ]
    followed = Followed(lambda step: replies.pop(0) if replies else iter([course.feed(step.params["since"])]))  # type: ignore[arg-type]
    assert followed.ended.reason == "caught_up"


def test_what_failed_raises_its_error() -> None:
    line = b'{"type": "end", "reason": "failed", "error": {"code": "limit_exceeded", "message": "x"}}\n'
    with pytest.raises(LimitExceeded):
        Followed(lambda _: iter([line]))


@pytest.mark.parametrize(
    "line",
    [
        b"<html>\n",
        b"[1]\n",
        b'{"position": "1"}\n',
        b'{"type": "progress"}\n',
        b'{"type": "snapshot", "position": "1", "rows": []}\n',
        b'{"type": "snapshot", "position": "1", "columns": [{"name": "a", "type": "DATE"}], "rows": [["x"]]}',
        b'{"type": "snapshot", "position": "1", "columns": [{"name": "a", "type": "X"}], "rows": [[1, 2]]}',
        b'{"type": "snapshot", "more": true, "rows": []}\n{"type": "progress", "position": "1"}\n',
    ],
)
def test_what_no_broker_says_is_refused(line: bytes) -> None:
    with pytest.raises(BrokerUnavailable):
        Followed(lambda _: iter([line, b"\n"]))


def test_kinds_of_lines_that_are_not_known_are_passed_over() -> None:
    course = three_steps()
    followed = Followed(lambda _: iter([b'{"type": "weather", "position": "9"}\n', course.feed(None)]))
    assert followed.told() == course.events()


def test_tags_are_those_of_each_message() -> None:
    tag = {"kind": "sample", "where": "trips", "origin": "declared", "amount": 10.0, "unit": "percent"}
    messages = three_steps().messages(None)
    exact = Followed(lambda _: iter([lines(messages)])).told()
    first = next(place for place, one in enumerate(messages) if one["type"] == "changes")
    messages[0]["approximation"] = [tag]
    for message in messages[first:]:
        message["approximation"] = [tag | {"amount": 5.0}]
    told = Followed(lambda _: iter([lines(messages)])).told()
    assert len(told) == len(exact)
    amounts = [[tag.amount for tag in event.approximation] for event in told]  # type: ignore[union-attr]
    assert amounts == [[10.0], *[[5.0]] * (len(told) - 1)]
    assert told[0].as_dict()["approximation"] == [tag]
    assert not any(event.approximation for event in exact)  # type: ignore[union-attr]


def lines(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_the_columns_of_a_feed_that_begins_at_a_position_are_known() -> None:
    followed = Followed(cut_feed(three_steps(), [], 50), Wishes(since="2"))
    assert followed.told()[-1].columns == COLUMNS  # type: ignore[union-attr]
