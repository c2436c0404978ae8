"""Answers over a period, by HTTP, by the clients and in their SQL, against the answers at its instants."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen import Period
from tureen.cli import main
from tureen.errors import InstantOutOfRange, NotSupported, SyntaxRefused, ValueRefused

BASE_MS = 1_700_000_000_000
END_MS = 20_000
QUERIES = {
    "selection": "SELECT id, v FROM {0} [RANGE 2 SECONDS] WHERE v > 0",
    "groups": "SELECT id % 3 AS k, MAX(v) AS valid_from, COUNT(*) AS n FROM {0} [RANGE 3 SECONDS] GROUP BY k",
    "best": "SELECT id, v FROM {0} [RANGE 5 SECONDS] ORDER BY v DESC NULLS LAST, id LIMIT 3",
    "pairs": "SELECT x.id, y.v FROM {0} [RANGE 1 SECOND] AS x JOIN {0} [RANGE 2 SECONDS] AS y ON x.id = y.id",
}


@pytest.fixture
def stream(shared: Broker, name: str) -> str:
    """Rows of which many are the same, some in the same millisecond."""
    chance = random.Random(23)
    shared.create(stream_sql(name, columns="id BIGINT, v DOUBLE, ts TIMESTAMP"))
    rows: list[dict[str, Any]] = [
        {"id": chance.randrange(8), "v": chance.choice([0.5, None, 1.5]), "ts": BASE_MS + ms}
        for ms in range(0, END_MS, 50)
        for _ in range(chance.choice([1, 2]))
    ]
    shared.send(name, [*rows, {"id": 9, "ts": BASE_MS + 60_000}])
    return name


def registered(shared: Broker, sql: str) -> str:
    handle = shared.register(sql)
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 59_999, what="the rows are there")
    return handle


def valid_at(table: pa.Table, at_ms: int) -> Counter[str]:
    begins, ends = (table.column(place).cast(pa.int64()).to_pylist() for place in (-2, -1))
    rows = table.select(range(table.num_columns - 2)).to_pylist()
    there = zip(rows, begins, ends, strict=True)
    return Counter(repr(row) for row, begin, end in there if begin <= at_ms < end)


@pytest.mark.parametrize("kind", QUERIES)
def test_rows_that_are_valid_at_an_instant_are_the_answer_there(
    shared: Broker, stream: str, kind: str
) -> None:
    handle = registered(shared, QUERIES[kind].format(stream))
    with tureen.connect(shared.url) as client:
        found = client.snapshot(handle, Period(BASE_MS + 1_990, BASE_MS + 12_345))
        assert found.now_ms == BASE_MS + 12_344
        assert found.complete
        assert found.change_position is None
        name = "valid_from_" if kind == "groups" else "valid_from"
        assert found.table.column_names[-2:] == [name, "valid_to"]
        for ms in (1_990, 2_000, 2_049, 2_050, 3_999, 4_000, 4_001, 12_344):
            then = client.snapshot(handle, BASE_MS + ms).table.to_pylist()
            assert valid_at(found.table, BASE_MS + ms) == Counter(map(repr, then)), ms
        everything = client.snapshot(handle, Period(BASE_MS))
        assert everything.now_ms == BASE_MS + 59_999
        assert valid_at(everything.table, BASE_MS + 59_999) == Counter(
            map(repr, client.snapshot(handle).table.to_pylist())
        )


def test_formats_and_limits(shared: Broker, stream: str) -> None:
    handle = registered(shared, f"SELECT id FROM {stream} [RANGE 1 SECOND]")
    period: dict[str, str | int] = {"from": BASE_MS + 1_000, "to": "2023-11-14T22:13:25Z"}
    path = f"/queries/{handle}/snapshot"
    told = shared.http.get(path, params=period).json()
    assert [one["type"] for one in told["columns"]] == ["BIGINT", "TIMESTAMP", "TIMESTAMP"]
    assert told["rows"][0][1:] == ["2023-11-14T22:13:21.000Z", "2023-11-14T22:13:21.001Z"]
    assert told["now_ms"] == BASE_MS + 4_999
    few = shared.http.get(path, params=period | {"limit": 2}).json()
    assert (few["rows"], few["rows_total"]) == (told["rows"][:2], len(told["rows"]))
    lines = shared.http.get(path, params=period | {"format": "csv"}).text.splitlines()
    assert lines[0] == "id,valid_from,valid_to"
    assert len(lines) == 1 + len(told["rows"])


def test_clients_ask_in_sql_and_asynchronously(shared: Broker, stream: str) -> None:
    sql = f"SELECT id, v FROM {stream} [RANGE 1 SECOND] WHERE v > 1"
    handle = registered(shared, sql)

    async def asked() -> pa.Table:
        async with tureen.connect_async(shared.url) as client:
            over = await client.query(handle).snapshot(Period(BASE_MS + 1_000, BASE_MS + 3_000))
            ended = f"{sql} FOR SYSTEM_TIME BETWEEN {BASE_MS + 1_000} AND '2023-11-14 22:13:22.999';"
            assert (await client.ask(ended)).table == over.table
            return over.table

    with tureen.connect(shared.url) as client:
        expected = client.query(handle).snapshot(Period("2023-11-14T22:13:21Z", BASE_MS + 3_000)).table
        ended = f"{sql} FOR SYSTEM_TIME FROM TIMESTAMP '2023-11-14 22:13:21' TO {BASE_MS + 3_000}"
        assert client.ask(ended).table == expected
        template = ended.replace("v > 1", "v > ?")
        assert client.ask(template=template, parameters=[1.0]).table == expected
        assert client.ask(f"{sql} FOR SYSTEM_TIME FROM {BASE_MS} TO NOW").now_ms == BASE_MS + 59_999
        for wrong in ("FROM 5 TO 4", "FROM 5 AND 6", "FROM NOW TO 6", "FROM 'x' TO 6"):
            with pytest.raises(SyntaxRefused):
                client.ask(f"{sql} FOR SYSTEM_TIME {wrong}")
        with pytest.raises(NotSupported) as refused:
            client.register(ended)
        assert "asked once" in (refused.value.hint or "")
        with pytest.raises(ValueRefused, match="ends after it begins"):
            Period(5, 5)
        with pytest.raises(InstantOutOfRange):
            client.snapshot(handle, Period(BASE_MS + 60_000))
    assert asyncio.run(asked()) == expected


def test_the_commands(shared: Broker, stream: str) -> None:
    sql = f"SELECT id FROM {stream} [RANGE 1 SECOND]"
    handle = registered(shared, sql)
    runner, url = CliRunner(), ["--url", shared.url]
    period = ["--from", str(BASE_MS + 1_000), "--to", "2023-11-14T22:13:22"]
    told = runner.invoke(main, ["snapshot", handle, *period, "--format", "csv", *url])
    assert told.exit_code == 0, told.output
    assert told.output.startswith("id,valid_from,valid_to\n")
    ended = f"{sql} FOR SYSTEM_TIME FROM {BASE_MS + 1_000} TO {BASE_MS + 2_000}"
    again = runner.invoke(main, ["sql", ended, "--format", "csv", *url])
    assert again.stdout == told.stdout
    for wrong in (["--to", "5"], ["--from", "5", "--at", "6"]):
        assert runner.invoke(main, ["snapshot", handle, *wrong, *url]).exit_code == 2


def test_what_a_period_refuses(shared: Broker, stream: str) -> None:
    handle = registered(shared, f"SELECT id FROM {stream}")
    for period, code in (
        ({"to": BASE_MS}, "bad_request"),
        ({"from": BASE_MS, "at": BASE_MS}, "bad_request"),
        ({"from": "tomorrow"}, "bad_request"),
        ({"from": BASE_MS + 2, "to": BASE_MS + 2}, "bad_request"),
        ({"from": BASE_MS + 60_000}, "instant_out_of_range"),
        ({"from": BASE_MS, "to": BASE_MS + 60_001}, "instant_out_of_range"),
        ({"from": BASE_MS // 1_000}, "instant_out_of_range"),
    ):
        reply = shared.http.get(f"/queries/{handle}/snapshot", params=period)
        assert (reply.status_code, reply.json()["code"]) == (400, code), period
    assert (
        shared.http.get(
            f"/queries/{handle}/snapshot", params={"from": BASE_MS, "to": BASE_MS + 60_000}
        ).json()["now_ms"]
        == BASE_MS + 59_999
    )
