"""The demo: its data and queries by themselves, and all of it on a few rows."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

import tureen
from broker.demo import screen
from broker.demo.audience import Progress, same
from broker.demo.board import BOARD
from broker.demo.bursts import Bursts
from broker.demo.dashboards import FOLLOWED
from broker.demo.flights import Replayed, load, planes
from broker.demo.queries import count_of_all, headlines, standing
from broker.demo.replay import Replay
from engine.language.parameters import written
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.broker.running import READY_S, broker, read_all
from tests.kafka import wait_until
from topics.admin import Admin
from tureen.snapshot import Snapshot
from tureen.texts import Template


@pytest.fixture(scope="module")
def streams() -> tuple[Replayed, Replayed]:
    return load()


def test_the_whole_year_in_event_time_order(streams: tuple[Replayed, Replayed]) -> None:
    flights, weather = streams
    assert (flights.table.num_rows, weather.table.num_rows) == (336_776, 26_115)
    for stream in streams:
        assert (np.diff(stream.ts_ms) >= 0).all()
        assert (
            pc.equal(pc.cast(stream.table.column(0), pa.int64()), pa.array(stream.ts_ms))
            .to_pylist()
            .count(False)
            == 0
        )
    assert flights.table["dep_delay"].null_count == 8_255  # cancelled
    assert set(flights.partition.tolist()) == {0, 1, 2}


def test_records_are_the_rows_as_json(streams: tuple[Replayed, Replayed]) -> None:
    for stream in streams:
        first = json.loads(stream.records(0, 1)[0])
        row = stream.table.slice(0, 1).to_pylist()[0]
        time, *_ = row
        assert first.pop(time) == stream.ts_ms[0]
        del row[time]
        assert first == row


def test_the_first_rows_end_both_streams_at_one_instant() -> None:
    flights, weather = load(1_000)
    assert len(flights.ts_ms) == 1_000
    assert 0 < len(weather.ts_ms) < 1_000
    assert weather.ts_ms[-1] <= flights.ts_ms[-1]


def test_there_is_a_query_for_each_aircraft_and_all_are_accepted(streams: tuple[Replayed, Replayed]) -> None:
    flights, weather = streams
    queries = standing(flights, count_of_all(flights))
    assert len(queries) == count_of_all(flights) == len({one.sql for one in queries})
    assert sum(one.kind == "aircraft" for one in queries) == 4_043
    catalogue = {one.name: parse(one.sql, {}, Limits()).stream for one in (flights, weather)}  # type: ignore[union-attr]
    for query in queries[:400]:
        parse(query.sql, catalogue, Limits())
    assert len(standing(flights, 6_000)) == len({one.sql for one in standing(flights, 6_000)}) == 6_000
    assert standing(flights, 7)[:6] == headlines()


def test_the_plain_computation_is_what_the_query_says(streams: tuple[Replayed, Replayed]) -> None:
    flights, _ = streams
    query = next(one for one in standing(flights, 300) if one.title == "JFK > 60 min")
    now_ms = int(flights.ts_ms[200_000])
    rows = [
        row
        for row, ts in zip(flights.table.to_pylist(), flights.ts_ms.tolist(), strict=True)
        if now_ms - 86_400_000 <= ts <= now_ms and row["origin"] == "JFK" and (row["dep_delay"] or 0) > 60
    ]
    expected = query.expected({"flights": flights}, now_ms)
    assert expected.to_pylist() == [{name: row[name] for name in query.columns} for row in rows]
    assert expected.num_rows > 0
    assert same(expected, expected)
    assert not same(expected.slice(1), expected)
    assert not same(expected.take(list(range(expected.num_rows))[::-1]), expected)


def test_a_watch_list_is_a_template_that_means_its_text(streams: tuple[Replayed, Replayed]) -> None:
    flights, _ = streams
    few = [one for one in standing(flights, 300) if one.kind != "aircraft"]
    assert all(one.asked == one.sql for one in few)
    lists = standing(flights, 6_000)[-3_000:]
    assert {one.kind for one in lists} == {"aircraft"}
    for one in lists:
        assert isinstance(one.asked, Template)
        values = [value for _, _, value in one.conditions]
        assert one.asked.parameters == values
        assert written(one.asked.sql, tuple(values)).split() == one.sql.split()


def test_a_row_satisfies_what_selects_it(streams: tuple[Replayed, Replayed]) -> None:
    flights, weather = load(300)
    for stream in (flights, weather):
        end = int(stream.ts_ms[-1])
        for query in standing(streams[0], 150):
            if query.stream != stream.name or query.days == 1 or query.count:
                continue  # all the rows are in the windows of the others
            rows = [row for row in stream.table.to_pylist() if query.holds(row)]
            assert query.expected({stream.name: stream}, end).to_pylist() == [
                {name: row[name] for name in query.columns} for row in rows
            ]


@pytest.mark.parametrize("size", [(80, 24), (100, 40), (200, 60)])
def test_every_panel_has_its_turn_and_fits_the_terminal(
    streams: tuple[Replayed, Replayed], size: tuple[int, int]
) -> None:
    width, height = size
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    now_ms = int(streams[0].ts_ms[200_000])
    data = {one.name: one for one in (*streams, planes())}
    tiles = [one for one in BOARD if one.drawn]
    panels = [
        screen.tile(one, Snapshot(one.expected(data, instant), "1-1", instant))
        for instant in (now_ms, 0)
        for one in tiles
    ]
    replay = Replay(streams, "127.0.0.1:1", 6.0)
    drawn = []
    for page in range(len(panels)):
        view = screen.live(console, replay, Progress(), 0, panels, page * screen.PAGE_S, "http://[::1]:8080/")
        lines = console.render_lines(view)
        assert len(lines) < height
        drawn.append("\n".join("".join(part.text for part in line) for line in lines))
    for one in tiles:
        assert any(one.title[: width // 3] in page for page in drawn)


def test_a_paced_replay_keeps_rows_of_an_instant_together(streams: tuple[Replayed, Replayed]) -> None:
    replay = Replay(streams, "127.0.0.1:1", None)
    places = [0, 0]
    sent = 0
    while sent < replay.total:
        until = replay._due(places, paced_s=0.0)
        ends = [int(np.searchsorted(one.ts_ms, until, side="right")) for one in streams]
        assert sum(ends) > sent
        places, sent = ends, sum(ends)
    assert until >= replay.end_ms


def demo(tmp_path: Path, *args: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUREEN_")}
    return subprocess.Popen(
        [sys.executable, "-m", "tureen", "demo", "--headless", *args],
        env=environment | {"TUREEN_DATA_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(400)
def test_headless_on_a_few_rows_all_answers_equal(tmp_path: Path) -> None:
    run = demo(
        tmp_path, "--rows", "5000", "--queries", "400", "--followed", "300", "--speed", "max", "--json"
    )
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    facts = json.loads(out)
    assert facts["ok"]
    assert (facts["flights"], facts["queries"], facts["wrong"]) == (5_000, 701 + len(BOARD), 0)
    assert facts["followed"] == 300
    assert facts["deltas"] > 1_000
    assert (facts["late"], facts["refused"]) == (0, 0)
    assert facts["checked"] == facts["queries"]
    assert facts["matched"] > 0
    assert facts["checked_rows"] > 1_000
    assert facts["away_rows"] > 0
    assert 0 < facts["promising_approximate"] <= facts["promising_seen"]
    assert facts["promising_rows"] == 0 < facts["promising_whole_rows"]


@pytest.mark.timeout(400)
def test_a_burst_is_measured_and_told(tmp_path: Path) -> None:
    run = demo(
        tmp_path,
        *("--rows", "12000", "--queries", "200", "--followed", "100", "--speed", "0.5", "--burst", "--json"),
    )
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    facts = json.loads(out)
    assert facts["ok"]
    assert facts["bursts"] >= 1
    assert facts["burst_cores"] > 0
    shares = [one["cpu_share"] for one in facts["burst_paid"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0
    assert all("SELECT" in one["query"] for one in facts["burst_paid"])


def test_the_switch_of_bursts_is_off_until_somebody_uses_it(
    kafka: str, tmp_path: Path, service_id: str
) -> None:
    flights, weather = load(2_000)
    with broker(kafka, tmp_path / "data", service_id) as one, tureen.connect(one.url) as client:
        client.create(flights.sql)
        bursts = Bursts(client, Replay([flights, weather], kafka, 2.0), by_itself=False)
        bursts.begin()
        bursts.tick()
        assert (bursts.is_on, bursts.count) == (False, 0)
        assert bursts.switch_id is not None
        states = one.status_topic()[bursts.switch_id]
        assert [told and told["state"] for told in states] == ["PAUSED"]
        bursts.switch()
        assert bursts.is_on
        bursts.end()
        assert not bursts.is_on


def test_a_burst_is_the_same_data_sooner() -> None:
    flights, weather = load(2_000)
    plain, fast = (Replay([flights, weather], "127.0.0.1:1", 2.0) for _ in range(2))
    fast.factor = 8.0
    assert fast._due([0, 0], 8 * 0.25) - fast.begin_ms == 8 * (plain._due([0, 0], 0.25) - plain.begin_ms)


@pytest.mark.slow
def test_interrupted_it_stops_everything_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    log = tmp_path / "demo" / "broker.log"

    def ready(run: subprocess.Popen[str]) -> bool:
        assert run.poll() is None, run.communicate()[1]
        return log.exists() and "Ready" in log.read_text()

    run = demo(tmp_path, "--speed", "1")
    wait_until(lambda: ready(run), READY_S, "the broker is ready")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=300)
    assert run.returncode == 130, err
    assert "Traceback" not in err
    # One that was killed leaves its services behind; the next one clears them away.
    run = demo(tmp_path, "--speed", "1")
    wait_until(lambda: ready(run), READY_S, "the broker is ready")
    run.kill()
    run.communicate(timeout=300)
    again = demo(tmp_path, "--rows", "2000", "--queries", "50", "--followed", "20", "--speed", "max")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert f"all {50 + 20 + 1 + len(BOARD)} answers" in out, out  # one is promising
    assert "all equal" in out


def test_the_number_of_queries_is_told_as_it_is() -> None:
    """In the README, and by ``make``."""
    flights, _ = load()
    count = count_of_all(flights) + len(BOARD) + FOLLOWED
    assert 14_000 < count < 15_000
    root = Path(__file__).parents[2]
    for name in ("README.md", "Makefile"):
        (line,) = [
            one for one in (root / name).read_text().splitlines() if "a year of" in one and "demo" in one
        ]
        assert "over fourteen thousand" in line, name


def test_rows_go_on_later_than_the_last(streams: tuple[Replayed, Replayed], kafka: str) -> None:
    """The rows come again as if the next days followed, and no instant goes back."""
    flights, _ = streams
    few = flights.head(300)
    topic = f"flights-{uuid.uuid4().hex[:10]}"
    admin = Admin({"bootstrap.servers": kafka})
    admin.ensure_source_topic(topic, 3)
    again = Replay([replace(few, name=topic)], kafka, None)
    again.start()
    wait_until(lambda: again.done)
    again.go_on(5.0)
    wait_until(lambda: again.error or again.sent[topic] >= 900, what="two more rounds")
    again.stop()
    assert again.error is None
    found = [one for one in read_all(kafka, admin, topic) if one.partition() == 0]
    sent = [json.loads(one.value())["departs"] for one in found]
    assert sent == sorted(sent)
    days = (int(few.ts_ms[-1]) - int(few.ts_ms[0])) // 86_400_000 + 1
    assert sent[-1] - int(few.ts_ms[0]) >= 2 * days * 86_400_000
