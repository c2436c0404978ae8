"""The page's files as they are served: types, policy, what is kept and what is compressed."""

from __future__ import annotations

import gzip
import re

import httpx
import pytest

from broker.http.page_files import PageFiles
from tests.broker.running import Broker

HTML = {"Accept": "text/html,application/xhtml+xml"}


def test_the_page_forbids_all_that_is_not_its_own(service: Broker) -> None:
    reply = service.http.get("/", headers=HTML)
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    policy = dict(part.split(" ", 1) for part in reply.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in str(policy)
    nonce = re.search(r'<meta name="nonce" content="([^"]{16,})">', reply.text)
    assert nonce is not None
    assert f"'nonce-{nonce[1]}'" in policy["style-src"]
    assert nonce[1] not in service.http.get("/", headers=HTML).text, "each load has another one"
    assert "{{" not in reply.text
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", reply.text)


def test_all_that_the_page_loads_is_there(service: Broker) -> None:
    loaded = re.findall(r'(?:src|href)="(page/[^"]+)"', service.http.get("/", headers=HTML).text)
    assert {"page/app.js", "page/style.css", "page/vendor/core.js"} <= set(loaded)
    kinds = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for path in loaded:
        reply = service.http.get(f"/{path}")
        assert reply.status_code == 200, path
        assert reply.headers["Content-Type"] == kinds[path.rsplit(".", 1)[1]]
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_browser_that_has_a_file_is_told_so(service: Broker, encoding: str) -> None:
    headers = {"Accept-Encoding": encoding}
    with service.http.stream("GET", "/page/vendor/core.js", headers=headers) as first:
        raw = b"".join(first.iter_raw())
    assert first.headers.get("Content-Encoding", "identity") == encoding
    assert first.headers["Vary"] == "Accept-Encoding"
    if encoding == "gzip":
        plain = service.http.get("/page/vendor/core.js", headers={"Accept-Encoding": "identity"})
        assert gzip.decompress(raw) == plain.content
        assert len(raw) < len(plain.content) / 2
        assert first.headers["ETag"] != plain.headers["ETag"]
    again = service.http.get(
        "/page/vendor/core.js", headers=headers | {"If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["../serving.py", "..%2fserving.py", "%2e%2e/serving.py", "/etc/passwd", "index.html", "lib", "lib/", "",
     "app.js%00.txt", "nowhere.js"],
)  # fmt: skip
def test_no_path_leads_elsewhere(service: Broker, path: str) -> None:
    reply = httpx.get(f"{service.url}/page/{path}", trust_env=False)
    assert reply.status_code == 404, path
    assert reply.json()["code"] == "not_found"


def test_head_has_no_body_and_other_methods_are_refused(service: Broker) -> None:
    for path in ("/", "/page/app.js"):
        head = service.http.head(path, headers=HTML)
        assert (head.status_code, head.content) == (200, b"")
        assert service.http.post(path, json={}).status_code == 405


def test_programs_are_told_where_things_are(service: Broker) -> None:
    told = service.http.get("/", headers={"Accept": "*/*"})
    assert told.headers["Content-Type"].startswith("text/plain")
    assert f"{service.url}/docs" in told.text
    known = service.http.get("/", headers={"Accept": "application/json"}).json()
    assert service.http.get(known["api"]).json()["info"]["version"] == known["version"]
    assert known["page"] == f"{service.url}/"


def test_without_tokens_this_machine_is_the_operator(service: Broker) -> None:
    assert service.http.get("/me").json() == {"operator": True, "read_only": False, "because": None}


def test_nonces_do_not_repeat() -> None:
    files = PageFiles()
    pages = [bytes(files.index().body) for _ in range(3)]
    assert len(set(pages)) == 3
    assert len({len(page) for page in pages}) == 1
