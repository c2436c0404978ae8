"""Pages that a browser shows for other sites read nothing here and write nothing."""

from __future__ import annotations

import re

import httpx
import pytest

from broker.base import settings
from broker.http.callers import Callers
from tests.broker.conftest import stream_sql
from tests.broker.running import JSON, Broker
from tureen.errors import SettingsError


def refusal_of(
    method: str = "GET",
    path: str = "/status",
    *,
    version: str = "1.1",
    names: tuple[str, ...] = (),
    **headers: str,
) -> str | None:
    """The code that a request is refused with by a broker on all addresses, reached at 10.1.2.3."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "path": path, "http_version": version, "headers": given,
        "server": ("10.1.2.3", 8080),
    }  # fmt: skip
    refused = Callers("0.0.0.0", names).refusal(scope, dict(given))
    return None if refused is None else refused.code


@pytest.mark.parametrize(
    "host",
    [
        "localhost:8080",
        "LOCALHOST",
        "127.0.0.1:1",
        "[::1]:8080",
        "10.1.2.3:9",
        "broker.lan.:80",
        "localhost.",
    ],
)
def test_known_hosts_pass(host: str) -> None:
    assert refusal_of(host=host, names=("Broker.LAN",)) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "10.1.2.4", "localhost.evil.example", "localhost:80:80", "[::1", "",
     "user@localhost", "127.0.0.1.nip.io", "lo\xa0calhost"],
)  # fmt: skip
def test_other_hosts_are_refused(host: str) -> None:
    assert refusal_of(host=host, names=("broker.lan",)) == "unknown_host"


def test_a_request_names_one_host() -> None:
    assert refusal_of() == "bad_request"
    assert refusal_of(version="1.0") is None  # no browser sends that
    assert refusal_of(version="1.0", host="evil.example") == "unknown_host"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://localhost:8080"}, None),
        ({"origin": "https://LOCALHOST:8080"}, None),
        ({"origin": "http://localhost:3000"}, "foreign_origin"),
        ({"origin": "http://localhost"}, "foreign_origin"),
        ({"origin": "null"}, "foreign_origin"),
        ({"origin": "https://evil.example"}, "foreign_origin"),
        ({"origin": "file://localhost:8080"}, "foreign_origin"),
        ({"origin": "http://[localhost:8080"}, "foreign_origin"),
        ({"sec-fetch-site": "same-origin"}, None),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, None),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, None),  # a link to us
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, "foreign_origin"),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, "foreign_origin"),
    ],
)
def test_pages_of_other_origins_are_refused(headers: dict[str, str], code: str | None) -> None:
    assert refusal_of(host="localhost:8080", **headers) == code


def test_a_form_that_follows_to_us_is_refused() -> None:
    sent = {"host": "localhost:8080", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert refusal_of("POST", "/queries", **sent) == "foreign_origin"


FORMS = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""]


@pytest.mark.parametrize("path", ["/queries", "/sources", "/statements", "/match"])
@pytest.mark.parametrize("given", FORMS)
def test_only_json_is_written(shared: Broker, path: str, given: str) -> None:
    reply = shared.http.post(
        path, content=b'{"sql": "SELECT 1"}', headers={"Content-Type": given} if given else {}
    )
    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_media_type")
    assert "application/json" in reply.json()["hint"]


def test_lines_of_json_are_taken_where_they_are_documented(shared: Broker) -> None:
    lines = {"Content-Type": "application/x-ndjson; charset=utf-8"}
    assert shared.http.post("/queries", content=b"\n", headers=lines).status_code == 200
    for path in ("/sources", "/statements"):
        assert shared.http.post(path, content=b"{}\n", headers=lines).status_code == 415
    reply = shared.http.post(
        "/sources", content=b"{}", headers={"Content-Type": "Application/JSON; charset=utf-8"}
    )
    assert reply.json()["code"] == "bad_request"


def test_a_rebound_name_and_a_foreign_page_change_nothing(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id FROM {name}"
    for headers, status, code in (
        ({"Host": f"evil.example:{shared.port}"}, 421, "unknown_host"),
        ({"Origin": "https://evil.example"}, 403, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
    ):
        for refused in (
            shared.http.get("/sources", headers=headers),
            shared.http.get("/readycheck", headers=headers),
            shared.http.post("/queries", json={"sql": sql}, headers=headers),
            shared.http.delete(f"/sources/{name}", headers=headers),
        ):
            assert (refused.status_code, refused.json()["code"]) == (status, code)
            assert set(refused.json()) == {"code", "message", "line", "column", "hint"}
            assert refused.json()["hint"]
    assert shared.source(name)["queries"] == 0
    own = shared.http.post("/queries", json={"sql": sql}, headers={"Origin": shared.url} | JSON)
    assert own.status_code == 201


def test_the_page_of_the_api_loads_nothing_from_elsewhere(shared: Broker) -> None:
    page = shared.http.get("/docs")
    assert page.status_code == 200
    policy = page.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) == 4
    for path in loaded:
        if path == "data:,":
            continue
        asset = shared.http.get(f"/{path}")
        assert asset.status_code == 200, path
        assert asset.headers["Content-Type"].startswith(("text/javascript", "text/css"))
        assert asset.headers["X-Content-Type-Options"] == "nosniff"
    assert "<script>" not in page.text
    assert shared.http.get("/redoc").status_code == 404
    assert shared.http.get("/openapi.json").json()["info"]["title"] == "Tureen"


def test_every_answer_says_how_it_may_be_used(shared: Broker) -> None:
    for path in ("/status", "/queries/nobody/snapshot", "/queries/nobody/changes", "/nowhere"):
        headers = shared.http.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin", path


def test_hosts_are_names_without_ports() -> None:
    assert settings.load(http_hosts="a.example, b").host_names == ["a.example", "b"]
    for wrong in ("a.example:8080", "http://a.example", "*"):
        with pytest.raises(SettingsError, match="http_hosts"):
            settings.load(http_hosts=wrong)


def test_names_of_loopback_reach_it(shared: Broker) -> None:
    for address in (f"http://localhost:{shared.port}", f"http://127.0.0.1:{shared.port}"):
        assert httpx.get(f"{address}/healthcheck", trust_env=False).status_code == 200
