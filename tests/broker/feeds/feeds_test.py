"""Change feeds of a running broker: what they tell, how they go on, how they end, who is refused."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.following import Feed, events, folded, once, row, told
from tests.broker.running import Broker, broker, lives
from tests.kafka import wait_until
from tureen.protocol import new_handle

BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT, v DOUBLE, s STRING, ts TIMESTAMP"


@pytest.fixture(scope="module")
def tight(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that remembers little, allows few feeds, and waits for nobody."""
    settings = {
        "FEEDS_MAX": 20,
        "FEEDS_MEMORY_BYTES": 65_536,
        "FEEDS_LINGER_MS": 300,
        "FEED_PROGRESS_MS": 200,
        "FEED_WRITE_TIMEOUT_MS": 700,
    }
    directory: Path = tmp_path_factory.mktemp("tight")
    with broker(kafka, directory / "data", f"t{new_handle()[:12]}", **settings) as one:
        yield one


@pytest.fixture
def stream(shared: Broker, name: str) -> str:
    shared.create(stream_sql(name, columns=COLUMNS))
    return name


def rows(first: int, count: int, step_ms: int = 100, **more: Any) -> list[dict[str, Any]]:
    """Numbered, with v over five values; the last is above NOW until others come."""
    return [
        {"id": i, "v": i % 5 / 2, "s": f"é{i % 3}", "ts": BASE_MS + i * step_ms} | more
        for i in range(first, first + count)
    ]


def now_after(last: int, step_ms: int = 100) -> int:
    """NOW when the row of this number is the latest."""
    return BASE_MS + last * step_ms - 1


def metric(one: Broker, name: str) -> float:
    lines = one.http.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def await_now(one: Broker, handle: str, now_ms: int) -> dict[str, Any]:
    """The snapshot, once the query has come so far."""
    wait_until(lambda: (one.snapshot(handle)["now_ms"] or 0) >= now_ms, what=f"NOW {now_ms}")
    return one.snapshot(handle)


# --- what they tell -------------------------------------------------------------------------------

QUERIES = {
    "window": "SELECT id, v, s FROM {0} [RANGE 1 SECONDS] WHERE v <> 1",
    "groups": "SELECT v, COUNT(*) AS n, MAX(id) AS last FROM {0} [RANGE 2 SECONDS] GROUP BY v",
    "rows": "SELECT v, s FROM {0} [ROWS 7]",
    "self": "SELECT a.id, b.id AS other FROM {0} [RANGE 500 MILLISECONDS] AS a "
    "JOIN {0} [RANGE 1 SECONDS] AS b ON a.v = b.v AND a.s = b.s",
}


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_folded_they_are_the_answer_at_every_position(shared: Broker, stream: str, sql: str) -> None:
    handle = shared.register(sql.format(stream))
    shared.send(stream, rows(0, 10))
    await_now(shared, handle, now_after(9))
    with Feed(shared, handle) as feed:
        lines = [feed.line() or {}]
        assert lines[0]["type"] == "snapshot"
        assert lines[0]["operator"] == "changes"
        for first in range(10, 60, 10):
            shared.send(stream, rows(first, 10))
            lines += feed.until(now_after(first + 9))
    assert [column["name"] for column in lines[0]["columns"]] == [
        column["name"] for column in shared.snapshot(handle)["columns"]
    ]
    places = 0
    for line, answer in folded(lines):
        there = shared.snapshot(handle, at=line["now_ms"])["rows"]
        assert answer == Counter(row(values) for values in there), line
        places += 1
    assert places >= 3
    at = [at_ms for _, at_ms, _ in told(lines)]
    assert at == sorted(at)
    assert at[0] > lines[0]["now_ms"]


def test_they_go_on_exactly_from_every_position(shared: Broker, stream: str) -> None:
    handle = shared.register(QUERIES["window"].format(stream))
    before = shared.snapshot(handle)
    assert (before["change_position"].split("-")[2], before["now_ms"]) == ("n", None)
    taken = [before["change_position"]]
    with Feed(shared, handle) as feed:
        lines = [feed.line() or {}]
        for first in range(0, 50, 10):
            shared.send(stream, rows(first, 10))
            lines += feed.until(now_after(first + 9))
            reply = shared.http.get(f"/queries/{handle}/snapshot", params={"format": "csv"})
            taken.append(reply.headers["Tureen-Change-Position"])
    everything = told(lines)
    assert len(everything) > 60
    assert told(once(shared, handle, taken[0])) == everything
    for line, answer in folded(lines):
        done = told(lines[: lines.index(line) + 1])
        after = once(shared, handle, line["position"])
        assert told(after) == everything[len(done) :]
        for _, _, values in told(after):
            assert values[1] != 1
        for weight, _, values in told(after):
            answer[row(values)] += weight
        assert +answer == Counter(row(values) for values in shared.rows(handle))
    for position in taken:
        assert position in {line.get("position") for line in lines} or told(once(shared, handle, position))


def test_an_answer_that_nothing_leaves_tells_what_came(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream} WHERE v = 1")
    with Feed(shared, handle) as feed:
        first = feed.line() or {}
        assert (first["operator"], first["rows"], first["now_ms"]) == ("istream", [], None)
        shared.send(stream, rows(0, 11))
        assert told(feed.until(now_after(10))) == [[1, BASE_MS + 200, [2]], [1, BASE_MS + 700, [7]]]


def test_a_large_answer_comes_in_several_lines(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream}")
    shared.send(stream, rows(0, 2_502, 1))
    await_now(shared, handle, now_after(2_501, 1))
    with Feed(shared, handle, live="false") as feed:
        *lines, end = feed.lines()
    assert [len(line["rows"]) for line in lines] == [1_000, 1_000, 501]
    assert [line["more"] for line in lines] == [True, True, False]
    assert ["position" in line for line in lines] == [False, False, True]
    assert ["columns" in line for line in lines] == [True, False, False]
    assert [values for line in lines for values in line["rows"]] == [[i] for i in range(2_501)]
    assert end["position"] == lines[-1]["position"]


def test_server_sent_events_say_the_same(shared: Broker, stream: str) -> None:
    handle = shared.register(QUERIES["window"].format(stream))
    shared.send(stream, rows(0, 10))
    since = await_now(shared, handle, now_after(9))["change_position"]
    shared.send(stream, rows(10, 10))
    await_now(shared, handle, now_after(19))
    path = f"/queries/{handle}/changes"
    for ask in (
        {"params": {"live": "false", "format": "sse", "since": since}},
        {"params": {"live": "false", "since": since}, "headers": {"Accept": "text/event-stream"}},
        {
            "params": {"live": "false", "since": "where the page began"},  # event sources keep their address
            "headers": {"Accept": "text/event-stream", "Last-Event-ID": since},
        },
    ):
        reply = shared.http.get(path, **ask)  # type: ignore[arg-type]
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert (reply.headers["cache-control"], reply.headers["x-accel-buffering"]) == ("no-store", "no")
        retry, *found = events(reply.text)
        assert retry == {"retry": "1000"}
        lines = [json.loads(event["data"]) for event in found]
        assert [event["event"] for event in found] == [line["type"] for line in lines]
        assert [event["id"] for event in found] == [line["position"] for line in lines]
        assert lines[0]["type"] == "progress"
        assert lines[-1]["reason"] == "caught_up"
        assert lines[1:-1] == once(shared, handle, since)


def test_polls(shared: Broker, stream: str) -> None:
    handle = shared.register(QUERIES["window"].format(stream))
    shared.send(stream, rows(0, 10))
    await_now(shared, handle, now_after(9))
    path = f"/queries/{handle}/changes"

    def poll(**parameters: Any) -> dict[str, Any]:
        reply = shared.http.get(path, params={"live": "poll", **parameters})
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
        found: dict[str, Any] = reply.json()
        return found

    whole = poll()
    assert (whole["type"], whole["end"], whole["operator"]) == ("snapshot", None, "changes")
    assert whole["rows"] == shared.rows(handle)
    quiet = poll(since=whole["position"], wait_ms=1)
    assert (quiet["type"], quiet["changes"], quiet["end"]) == ("changes", [], None)
    assert quiet["columns"] == whole["columns"]

    found: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: found.append(poll(since=quiet["position"])))
    waiting.start()
    wait_until(lambda: metric(shared, "tureen_feeds_open") >= 1)
    shared.send(stream, rows(10, 10))
    waiting.join()
    await_now(shared, handle, now_after(19))
    rest = poll(since=found[0]["position"], wait_ms=0)
    assert found[0]["changes"]
    assert found[0]["changes"] + rest["changes"] == told(once(shared, handle, whole["position"]))


# --- how they end ---------------------------------------------------------------------------------


def test_while_a_query_is_paused_they_are_silent_and_then_tell_what_differs(
    shared: Broker, stream: str
) -> None:
    handle = shared.register(QUERIES["groups"].format(stream))
    shared.send(stream, rows(0, 10))
    await_now(shared, handle, now_after(9))
    with Feed(shared, handle) as feed:
        lines = [feed.line() or {}]
        shared.http.patch(f"/queries/{handle}", json={"paused": True})
        for live in ("true", "false", "poll"):
            refused = shared.http.get(f"/queries/{handle}/changes", params={"live": live})
            assert (refused.status_code, refused.json()["code"]) == (409, "query_paused")
        shared.send(stream, rows(10, 10))
        wait_until(lambda: shared.source(stream)["rows"] >= 19)
        assert not once(shared, handle, str(lines[0]["position"]))
        shared.http.patch(f"/queries/{handle}", json={"paused": False})
        while not told(lines[1:]):
            lines.append(feed.line() or {})
    answer = Counter(row(values) for values in shared.rows(handle))
    *_, (_, found) = folded(lines)
    assert found == answer
    again = once(shared, handle, str(lines[0]["position"]))
    *_, (_, found) = folded([lines[0], *again])
    assert found == answer


def test_removal_and_replacement_end_them(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream}")
    with Feed(shared, handle) as feed:
        first = feed.line() or {}
        shared.publish(handle, {"sql": f"SELECT v FROM {stream}"})
        assert feed.lines()[-1]["reason"] == "must_refetch"
    wait_until(lambda: shared.snapshot(handle)["columns"][0]["name"] == "v")
    gone = shared.http.get(f"/queries/{handle}/changes", params={"since": first["position"]})
    assert (gone.status_code, gone.json()["code"]) == (410, "must_refetch")
    wait_until(lambda: metric(shared, "tureen_feeds_open") == 0, what="those that ended are gone")
    assert gone.headers["cache-control"] == "no-store"
    with Feed(shared, handle) as feed:
        assert (feed.line() or {})["columns"] == [{"name": "v", "type": "DOUBLE"}]
        poll = threading.Thread(target=lambda: polled.append(shared.http.get(path, params=asked).json()))
        polled: list[dict[str, Any]] = []
        path = f"/queries/{handle}/changes"
        asked = {"live": "poll", "since": shared.snapshot(handle)["change_position"]}
        poll.start()
        wait_until(lambda: metric(shared, "tureen_feeds_open") == 2, what="both wait")
        shared.http.delete(f"/queries/{handle}")
        assert feed.lines()[-1]["reason"] == "unregistered"
        poll.join()
    assert polled[0]["end"]["reason"] == "unregistered"
    assert shared.http.get(path).status_code == 404


def test_one_that_is_left_is_noticed(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream}")
    wait_until(lambda: metric(shared, "tureen_feeds_open") == 0, what="those of other tests are gone")
    with Feed(shared, handle) as feed:
        feed.line()
        assert metric(shared, "tureen_feeds_open") == 1
    wait_until(lambda: metric(shared, "tureen_feeds_open") == 0)


# --- who is refused -------------------------------------------------------------------------------


def test_refusals(shared: Broker, stream: str, name: str) -> None:
    handle, other = (shared.register(f"SELECT {column} FROM {stream}") for column in ("id", "v"))
    position = shared.snapshot(handle)["change_position"]
    epoch, sequence, rest = position.split("-", 2)
    path = f"/queries/{handle}/changes"
    for parameters, code in (
        ({"since": "yesterday"}, "position_refused"),
        ({"since": ""}, "position_refused"),
        ({"since": shared.snapshot(other)["change_position"]}, "position_refused"),
        ({"since": f"{epoch}-{int(sequence) + 1_000_000}-{rest}"}, "must_refetch"),
        ({"since": f"{int(epoch) + 1}-{sequence}-{rest}"}, "must_refetch"),
        ({"since": f"{epoch}-{sequence}-{rest}", "live": "maybe"}, "bad_request"),
        ({"format": "arrow"}, "bad_request"),
        ({"live": "poll", "wait_ms": "-1"}, "bad_request"),
        ({"live": "poll", "wait_ms": "60001"}, "bad_request"),
        ({"sinse": "1-3"}, "bad_request"),
    ):
        for live in ({}, {"live": "poll"}):
            reply = shared.http.get(path, params={**live, **parameters})
            status = 410 if code == "must_refetch" else 400
            assert (reply.status_code, reply.json()["code"]) == (status, code), parameters
    unknown = shared.http.get(f"/queries/{new_handle()}/changes")
    assert unknown.status_code == 404
    assert unknown.json() == shared.http.get(f"/queries/{new_handle()}/snapshot").json()
    for method in ("POST", "DELETE", "PUT"):
        assert shared.http.request(method, path).status_code == 405
    waiting = shared.http.post("/queries", json={"sql": "SELECT id FROM nowhere_yet"}).json()["handle"]
    shared.publish(handle_of_error := new_handle(), {"sql": f"SELECT nothing FROM {stream}"})
    wait_until(lambda: shared.state(handle_of_error) == "ERROR")
    for one, state in ((waiting, "PENDING"), (handle_of_error, "ERROR")):
        reply = shared.http.get(f"/queries/{one}/changes")
        assert reply.status_code == 409
        assert reply.json() == shared.http.get(f"/queries/{one}/snapshot").json()
        assert state in reply.json()["message"]
    assert handle not in shared.log.read_text()


def test_the_description_of_the_api_has_them(shared: Broker) -> None:
    paths = shared.http.get("/openapi.json").json()["paths"]
    told_of = paths["/queries/{handle}/changes"]["get"]
    assert {one["name"] for one in told_of["parameters"]} >= {"handle", "since", "live", "wait_ms", "format"}
    assert "/queries/{handle}/snapshot" in paths


def test_the_number_of_feeds_is_limited(tight: Broker, name: str) -> None:
    tight.create(stream_sql(name))
    handle = tight.register(f"SELECT id FROM {name}")
    feeds = [Feed(tight, handle).begin() for _ in range(20)]
    try:
        refused = tight.http.get(f"/queries/{handle}/changes")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_feeds")
        assert refused.headers["retry-after"] == "1"
        assert tight.http.get(f"/queries/{handle}/snapshot").status_code == 200
    finally:
        for feed in feeds:
            feed.close()
    wait_until(lambda: metric(tight, "tureen_feeds_open") == 0)
    with Feed(tight, handle) as feed:
        feed.line()
    wait_until(lambda: metric(tight, "tureen_feeds_followed") == 0, what="nobody follows it any more")


# --- readers of every kind ------------------------------------------------------------------------


def test_quiet_ones_hear_that_the_broker_lives(tight: Broker, name: str) -> None:
    tight.create(stream_sql(name))
    handle = tight.register(f"SELECT id FROM {name}")
    with Feed(tight, handle) as feed:
        first = feed.line() or {}
        found = [feed.line() or {} for _ in range(3)]
    assert [line["type"] for line in found] == ["progress"] * 3
    assert {line["now_ms"] for line in found} == {first["now_ms"]}


def test_a_reader_that_stands_still_is_cut_off_and_holds_nobody_back(tight: Broker, name: str) -> None:
    tight.create(stream_sql(name, columns=COLUMNS))
    handle = tight.register(f"SELECT id, s FROM {name} [RANGE 1 SECONDS]")
    cut = metric(tight, "tureen_feeds_cut_total")
    with Feed(tight, handle, receive_bytes=4_096) as stuck, Feed(tight, handle) as other:
        stuck.begin()
        assert (other.line() or {})["type"] == "snapshot"
        came = 0
        for first in range(0, 6_000, 1_000):
            tight.send(name, rows(first, 1_000, 10, s="x" * 400))
            lines = other.until(now_after(first + 999, 10))
            came += sum(weight == 1 for weight, _, _ in told(lines))
        assert came == 5_999
        wait_until(lambda: metric(tight, "tureen_feeds_cut_total") == cut + 1)
        with pytest.raises((EOFError, ConnectionResetError)):
            stuck.lines()
        assert "feed_cut" in {event["event"] for event in tight.events()}
        assert not [event for event in tight.events() if event["level"] == "error"]
        assert metric(tight, "tureen_feeds_memory_bytes") < 1_500_000  # the last step, of 5 MB in all


def test_one_that_was_away_for_long_goes_on_or_is_told(tight: Broker, name: str) -> None:
    """Beyond what is remembered, changes are worked out again where only streams are read."""
    tight.create(stream_sql(name, columns=COLUMNS))
    tight.create(
        f"CREATE TABLE t{name} (id BIGINT PRIMARY KEY, ts TIMESTAMP) "
        f"WITH (timestamp = 'ts', topic = 't{name}', idle_timeout = '1 hour')"
    )
    of_stream = tight.register(f"SELECT id, s FROM {name} [RANGE 5 SECONDS]")
    of_both = tight.register(
        f"SELECT a.id FROM {name} [RANGE 5 SECONDS] AS a LEFT JOIN t{name} AS t ON a.id = t.id"
    )
    tight.send(name, rows(0, 10, 10))
    positions = {}
    for handle in (of_stream, of_both):
        await_now(tight, handle, now_after(9, 10))
        positions[handle] = tight.snapshot(handle)["change_position"]
    kept, lines = {}, {}
    for handle in (of_stream, of_both):
        kept[handle] = Feed(tight, handle, since=positions[handle]).begin()
        lines[handle] = [kept[handle].line() or {}]
    for first in range(10, 1_610, 200):
        tight.send(name, rows(first, 200, 10))
        for handle, feed in kept.items():
            lines[handle] += feed.until(now_after(first + 199, 10))
    for feed in kept.values():
        feed.close()
    assert told(once(tight, of_stream, positions[of_stream])) == told(lines[of_stream])
    assert len(told(lines[of_both])) > 2_000
    for live in ("true", "false", "poll"):
        gone = tight.http.get(
            f"/queries/{of_both}/changes", params={"since": positions[of_both], "live": live}
        )
        assert (gone.status_code, gone.json()["code"]) == (410, "must_refetch")
    assert metric(tight, "tureen_feeds_must_refetch_total") >= 3


@pytest.mark.parametrize("emits", ["", " EMIT CHANGES WITH (format = 'diff')"])
def test_those_that_begin_while_rows_come_see_each_once(shared: Broker, stream: str, emits: str) -> None:
    handle = shared.register(QUERIES["window"].format(stream) + emits)
    feeds = []
    for first in range(0, 300, 10):
        shared.send(stream, rows(first, 10))
        if first % 30 == 0:
            feeds.append(Feed(shared, handle))
    for feed in feeds:
        with feed:
            lines = feed.until(now_after(299))
        *_, (last, answer) = folded(lines)
        there = shared.snapshot(handle, at=last["now_ms"])["rows"]
        assert answer == Counter(row(values) for values in there)


def test_many_at_once(shared: Broker, stream: str) -> None:
    sql = f"SELECT id FROM {stream} [RANGE 10 SECONDS] WHERE id % 50 = "
    reply = shared.http.post(
        "/queries",
        content="\n".join(json.dumps({"sql": f"{sql}{i}"}) for i in range(50)),
        headers={"Content-Type": "application/x-ndjson"},
    )
    handles = [json.loads(line)["handle"] for line in reply.text.splitlines()]
    feeds = [Feed(shared, handles[i % 50]) for i in range(200)]
    try:
        for feed in feeds:
            assert (feed.line() or {})["rows"] == []
        assert metric(shared, "tureen_feeds_followed") >= 50
        shared.send(stream, rows(0, 50, 1))
        shared.send(stream, rows(50, 1, 1))
        for i, feed in enumerate(feeds):
            assert feed.event()["changes"] == [[1, BASE_MS + i % 50, [i % 50]]]
    finally:
        for feed in feeds:
            feed.close()


# --- the broker comes and goes --------------------------------------------------------------------


def test_they_go_on_after_a_stop_and_after_a_kill(tight: Broker, name: str) -> None:
    """A stop ends them; a kill cuts them, which nobody takes for the end."""
    tight.create(stream_sql(name, columns=COLUMNS))
    handle = tight.register(QUERIES["window"].format(name))
    tight.send(name, rows(0, 10))
    await_now(tight, handle, now_after(9))
    with Feed(tight, handle) as feed:
        lines = [feed.line() or {}]
        worker = tight.children()["broker.worker"]
        worker.terminate()  # it is started again
        *between, end = feed.lines()
    assert (end["reason"], told(between)) == ("stopping", [])
    tight.send(name, rows(10, 10))
    wait_until(lambda: not lives(worker))
    tight.await_ready()
    with Feed(tight, handle, since=end["position"]) as feed:
        assert (feed.line() or {})["position"] == end["position"]
        lines += feed.until(now_after(19))
        worker = tight.children()["broker.worker"]
        worker.kill()
        with pytest.raises((EOFError, ConnectionResetError)):
            feed.lines()
    tight.send(name, rows(20, 10))
    wait_until(lambda: not lives(worker))
    tight.await_ready()
    await_now(tight, handle, now_after(29))
    lines += once(tight, handle, lines[-1]["position"])
    assert sum(weight == 1 for weight, _, _ in told(lines)) == sum(i % 5 != 2 for i in range(9, 29))
    for line, answer in folded(lines):
        there = tight.snapshot(handle, at=line["now_ms"])["rows"]
        assert answer == Counter(row(values) for values in there)
