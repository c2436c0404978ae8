"""Queries looked at and changed while they stand, from the client and the command line."""

from __future__ import annotations

import json

import pytest

import tureen
from tests.client.cli import tureen_
from tests.client.conftest import Broker
from tests.kafka import wait_until
from tureen.errors import NotSupported, OptionRefused, QueryPaused, SyntaxRefused, UnknownQuery


def test_pause_resume_and_maintenance(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades} WHERE price > 7", options={"weight": 2})

    assert query.pause().state == "PAUSED"
    with pytest.raises(QueryPaused):
        query.snapshot()
    assert query.resume().state == "RUNNING"
    for mode in ("eager", "none", "lazy"):
        assert query.set_maintenance(mode).facts["maintenance"] == mode
        assert [row["price"] for row in query.snapshot()] == [8.0, 9.0]
    listed = next(one for one in client.queries() if one.query_id == query.query_id)
    assert (listed.facts["maintenance"], listed.facts["weight"]) == ("lazy", 2)
    with pytest.raises(OptionRefused):
        query.set_maintenance("busy")
    for strategy in ("nt", "direct", "upa", "auto"):
        assert query.set_strategy(strategy, structure="indexed").facts["strategy"] == strategy
    with pytest.raises(OptionRefused):
        query.set_strategy("fast")
    with pytest.raises(OptionRefused):
        query.set_strategy("upa", partitions=65_537)
    with pytest.raises(UnknownQuery):
        client.query(tureen.new_handle()).pause()


def test_statements_give_tables(client: tureen.Client, trades: str) -> None:
    described = client.execute(f"DESCRIBE {trades}")
    assert described.columns == ("column", "type", "nullable")
    assert next(iter(described)) == {"column": "symbol", "type": "STRING", "nullable": False}
    assert len(described) == 3
    assert trades in [row["name"] for row in client.execute("SHOW STREAMS")]
    view = f"v_{tureen.new_handle()[:8]}"
    assert client.create(f"CREATE VIEW {view} AS SELECT price FROM {trades} WHERE price > 8").name == view
    assert client.register(f"SELECT * FROM {view}").snapshot().rows() == [{"price": 9.0}]
    with pytest.raises(NotSupported, match="is registered as a query"):
        client.execute(f"SELECT price FROM {trades}")
    with pytest.raises(SyntaxRefused):
        client.execute("SHOW NOTHING")


def test_a_plan(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades} WHERE price > 7")
    plan = query.plan(analyze=True)
    assert plan["query_id"] == query.query_id
    assert plan["steps"][0]["actual_rows"] == 2
    assert client.execute(f"EXPLAIN SELECT price FROM {trades}").facts["plan"]["query_id"] is None


def test_matches(broker: Broker, client: tureen.Client, trades: str) -> None:
    cheap = client.register(f"SELECT price FROM {trades} WHERE price < 2").query_id
    bern = client.register(f"SELECT price FROM {trades} WHERE symbol = 'bern'").query_id
    record = {"symbol": "bern", "price": 1.5, "at": 2_000_000}

    both, one, none = client.match(trades, [record, json.dumps(record | {"price": 3}), b'{"price":\n1}'])
    assert {cheap, bern} <= set(both.query_ids)
    assert both.total == len(both.query_ids)
    assert (bern in one.query_ids, cheap in one.query_ids) == (True, False)
    assert isinstance(none.error, tureen.TureenError)
    assert client.match(trades, [record], limit=0)[0].total == both.total
    assert client.match(trades, []) == []
    for alone in (record, json.dumps(record), json.dumps(record).encode()):
        assert client.match(trades, alone) == [both]

    told = tureen_("match", trades, json.dumps(record), broker=broker)
    assert told.exit_code == 0, told.output
    assert {cheap, bern} <= set(told.stdout.split())
    assert f"record 1: {both.total} queries" in told.stderr
    lines = json.dumps(record) + "\n\n" + '{"symbol": 7}'
    told = tureen_("match", trades, "--json", "--limit", "1000", broker=broker, stdin=lines)
    assert told.exit_code == 1
    first, second = map(json.loads, told.stdout.splitlines())
    assert set(first["queries"]) == set(both.query_ids)
    assert second["error"]["code"] == "bad_record"
    missing = tureen_("match", "nowhere", json.dumps(record), broker=broker)
    assert (missing.exit_code, "nowhere" in missing.stderr) == (1, True)


def test_the_command_line(broker: Broker, trades: str) -> None:
    handle = tureen_("register", f"SELECT price FROM {trades} WHERE price > 7", broker=broker).stdout.strip()
    name = tureen.query_id(handle)

    paused = tureen_("pause", handle, broker=broker)
    assert (paused.exit_code, paused.stderr) == (0, f"query {name} is PAUSED\n")
    refused = tureen_("snapshot", handle, "--json", broker=broker)
    assert json.loads(refused.stdout)["error"]["code"] == "query_paused"
    shown = tureen_("queries", "--extended", "--state", "PAUSED", "--limit", "100000", broker=broker)
    assert "mode" in shown.stdout
    assert name in shown.stdout
    resumed = tureen_("resume", handle, "--json", broker=broker)
    assert json.loads(resumed.stdout)["state"] == "RUNNING"
    assert handle not in resumed.stdout

    plan = tureen_("explain", handle, "--analyze", broker=broker)
    assert plan.exit_code == 0, plan.output
    assert f"query {name} over {trades}" in plan.stdout
    assert "└ scan" in plan.stdout
    told = tureen_("explain", f"SELECT price FROM {trades}", "--json", broker=broker)
    assert [step["operator"] for step in json.loads(told.stdout)["steps"]][1:] == ["project"]
    bad = tureen_("explain", f"SELECT prize FROM {trades}", broker=broker)
    assert bad.exit_code == 1
    assert "did you mean price?" in bad.stderr

    shown = tureen_("sql", f"DESCRIBE {trades}", broker=broker)
    assert (shown.exit_code, "NULL" in shown.stdout) == (0, False), shown.output
    assert "TIMESTAMP" in shown.stdout
    told = tureen_("sql", "--json", "SHOW QUERIES; SHOW STREAMS", broker=broker)
    first, second = map(json.loads, told.stdout.splitlines())
    assert name in [row[0] for row in first["rows"]]
    assert "name" in second["columns"]
    gone = tureen_("sql", f"TERMINATE '{handle}'", broker=broker)
    assert gone.stderr == f"query {name} is gone\n"
    wait_until(lambda: tureen_("pause", handle, broker=broker).exit_code == 1, what="it is gone")
