"""Options of queries with a preference over HTTP: set, changed while the query runs, refused elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tureen.errors import OptionRefused


def refusal(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json()["code"]


def test_options_of_preferences_are_set_changed_and_refused(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.create(f"CREATE SUMMARY {name}_ids ON {name} (id) WITH GRANULARITY 1 SECOND AND COLLAPSE(2, 3)")
    plain_sql = f"SELECT v FROM {name}"
    sql = f"{plain_sql} WITH PREFERENCE SUMMARY.Estimate.Count(id) FADE FACTOR 0.5"
    plain, handle = shared.register(plain_sql), shared.register(sql)

    def patch(changes: dict[str, Any], to: str = handle) -> Any:
        return shared.http.patch(f"/queries/{to}", json=changes)

    for changes in ({"fade": 0.25, "priority": "density"}, {"fade": 1}, {"fade": None, "priority": None}):
        assert patch(changes).status_code == 200
    for changes in ({"fade": 0}, {"fade": 1.5}, {"priority": "high"}, {"max_fn": 0.1}):
        assert refusal(patch(changes)) == (400, "option_refused")
    assert refusal(patch({"fade": "0.5"})) == (400, "bad_request")
    assert refusal(patch({"fade": 0.5}, to=plain)) == (400, "option_refused")
    for options in ({"priority": "density"}, {"fade": 0.5}):
        body = {"sql": plain_sql, "options": options}
        assert refusal(shared.http.post("/queries", json=body)) == (400, "option_refused")
    with tureen.connect(str(shared.http.base_url)) as client:
        assert client.change(handle, fade=0.75, priority="count").state == "RUNNING"
        with pytest.raises(OptionRefused, match="fade is an option of queries with a preference"):
            client.change(plain, fade=0.75)
