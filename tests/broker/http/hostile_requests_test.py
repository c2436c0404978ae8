"""Values that nobody expects, at every address that the broker describes: refused, and never a defect."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import JSON, Broker
from tests.kafka import wait_until

HOSTILE = (
    *("", "\0", "a\0b", "a/b", "..", "__proto__", "<img src=x>", "\u202eabc", "😀", "x" * 5_000, "a\r\nb"),
    *("-1", "9223372036854775807", "9223372036854775808", str(10**30), "NaN", "-Infinity", "1.5", "true"),
    *("0001-01-01T00:00:00+23:59", "99999999999999999", "٣", "%2F"),
)
BODIES = (
    *(b"", b"{", b"[]", b"null", b"\xff", b'{"sql": "\\ud800"}', b"[" * 5_000, b'{"bytes": 1e400}'),
    *(
        b'{"sql": "SELECT \\u0000"}',
        b'{"topic": "\\u0000"}',
        b'{"topic": "a/b"}',
        b'{"plan": {"operators": [null]}}',
    ),
    b'{"from": {"entity": "__proto__", "attribute": "x"}, "to": null, "bytes": 18446744073709551615}',
)
EACH = 6
"""Requests to each address; which values they have differs from address to address, not from run to run."""


def operations(description: dict[str, Any]) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Method, path and parameters of all but those that end what others use."""
    return [
        (method, path, told.get("parameters", []))
        for path, methods in description["paths"].items()
        for method, told in methods.items()
        if method != "delete" and path != "/retry"
    ]


def test_no_parameter_and_no_body_is_a_defect(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    chosen = random.Random(19)
    known = {"handle": handle, "query": handle, "name": name, "source": name, "entity": f"query/{handle}"}
    with httpx.Client(base_url=shared.url, timeout=30.0) as http:
        for method, path, parameters in operations(http.get("/openapi.json").json()):
            for _ in range(EACH):
                query, place = {}, path
                for one in parameters:
                    which = one["name"]
                    value = known.get(which, "1") if chosen.random() < 0.5 else chosen.choice(HOSTILE)
                    if one["in"] == "path":
                        place = place.replace(f"{{{which}}}", quote(value, safe=""))
                    elif one.get("required") or chosen.random() < 0.5:
                        query[which] = value
                body = {} if method == "get" else {"content": chosen.choice(BODIES), "headers": JSON}
                with http.stream(method, place, params=query, **body) as reply:  # type: ignore[arg-type]
                    told = b"" if path.endswith(("/events", "/changes")) else reply.read()
                assert reply.status_code < 500 or reply.status_code == 503, (method, place, query, body, told)
    assert not [one for one in shared.events() if one["event"] == "request_failed"]


@pytest.mark.parametrize("offset", ["2147483648", str(2**64)])
def test_pages_have_a_last_place(shared: Broker, offset: str) -> None:
    for path in ("/sources", "/queries", "/shapes"):
        reply = shared.http.get(path, params={"search": "a", "offset": offset})
        assert (reply.status_code, reply.json()["code"]) == (400, "bad_request")


def test_a_name_with_a_slash_is_read_looked_into_and_dropped(shared: Broker, name: str) -> None:
    odd = f"{name}/<b>%2F 😀"
    shared.create(
        f"CREATE STREAM \"{odd}\" (id BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts', topic = '{name}')"
    )
    shared.send(name, [{"id": 1, "ts": 1_700_000_000_000}])
    wait_until(lambda: shared.source(odd)["records"] == 1, what="it is read")
    place = f"/sources/{quote(odd, safe='')}"
    assert shared.http.get(place).json()["name"] == odd
    records = shared.http.get(f"{place}/records").json()
    assert (records["source"], len(records["records"])) == (odd, 1)
    beaten = shared.http.post(f"{place}/heartbeat", json={"partition": None, "ms": 1_700_000_000_001})
    assert beaten.status_code == 200, beaten.text
    assert shared.http.delete(place).status_code == 200
    assert odd not in shared.sources()
