"""Texts that use fewer resources: proposed over HTTP and by the command, approved by an alteration."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tureen.cli import main

BASE_MS = 1_700_000_000_000


def test_proposal_is_listed_shown_and_approved(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id, v FROM {name} [RANGE 1 HOUR] WHERE v > 2"
    handle = shared.register(sql)
    shared.send(name, [{"id": i, "v": i / 2, "ts": BASE_MS + 60_000 * i} for i in range(60)])
    shared.await_rows(handle, 54)
    reply = shared.http.get(f"/queries/{handle}/proposals")
    assert reply.status_code == 200, reply.text
    shorter = next(one for one in reply.json()["proposals"] if one["rule"] == "window reduction")
    assert shorter["sql"] == sql.replace("1 HOUR", "30 MINUTES")
    assert shorter["expected"]["fn"] == 0.5
    assert shorter["rows_after"] < shorter["rows"]

    runner = CliRunner()
    shown = runner.invoke(main, ["explain", handle, "--proposals", "--url", shared.url])
    assert shown.exit_code == 0, shown.output
    assert "window reduction" in shown.output
    assert shorter["sql"] in shown.output
    text = runner.invoke(main, ["explain", sql, "--proposals", "--json", "--url", shared.url])
    assert text.exit_code == 0, text.output
    found = json.loads(text.output)["proposals"]
    assert [one["sql"] for one in found] == [one["sql"] for one in reply.json()["proposals"]]

    changed = shared.http.patch(f"/queries/{handle}", json={"sql": shorter["sql"]})
    assert changed.status_code == 200, changed.text
    shared.await_rows(handle, 30)
    assert shared.http.get("/queries/nobody-knows-this-handle/proposals").status_code == 404
