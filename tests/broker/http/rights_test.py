"""Which requests each token allows, without a broker."""

from __future__ import annotations

import pytest

from broker.base import settings
from broker.http.rights import Tokens

FULL = "a-token-of-more-than-16-characters"
READ = "another-token-that-only-reads"


def refusal_of(given: str | None, method: str = "GET", path: str = "/queries", **tokens: str) -> str | None:
    """The code that a request with the header Authorization, or without, is refused with."""
    headers = {} if given is None else {b"authorization": given.encode()}
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers.items())}
    refused = Tokens(settings.load(**tokens)).refusal(scope, headers)
    return None if refused is None else refused.code


@pytest.mark.parametrize(
    ("given", "method", "path", "code"),
    [
        (None, "GET", "/queries", "unauthorized"),
        (None, "GET", "/", None),
        (None, "GET", "/page/app.js", None),
        (None, "GET", "/pages", "unauthorized"),
        (None, "GET", "/readycheck", None),
        (f"Bearer {FULL}", "DELETE", "/queries/h", None),
        (f"Bearer {READ}", "GET", "/queries", None),
        (f"Bearer {READ}", "HEAD", "/queries", None),
        (f"Bearer {READ}", "POST", "/match", None),
        (f"Bearer {READ}", "POST", "/statements/check", None),
        (f"Bearer {READ}", "POST", "/match/more", "not_allowed"),
        (f"Bearer {READ}", "POST", "/queries", "not_allowed"),
        (f"Bearer {READ}", "DELETE", "/match", "not_allowed"),
        (f"Bearer {READ}", "PATCH", "/entities/shard/0", "not_allowed"),
        (f"Bearer {READ}x", "GET", "/queries", "unauthorized"),
        (f"bearer {READ}", "GET", "/queries", "unauthorized"),
        (READ, "GET", "/queries", "unauthorized"),
    ],
    ids=str,
)
def test_a_token_allows_what_it_is_for(given: str | None, method: str, path: str, code: str | None) -> None:
    assert refusal_of(given, method, path, http_token=FULL, http_read_token=READ) == code


def test_without_a_full_token_the_read_token_limits_who_gives_it() -> None:
    assert refusal_of(None, "POST", "/queries", http_read_token=READ) is None
    assert refusal_of(f"Bearer {READ}", "POST", "/queries", http_read_token=READ) == "not_allowed"
    assert refusal_of(f"Bearer {READ}", http_read_token=READ) is None
    assert refusal_of("Bearer mistyped", http_read_token=READ) == "unauthorized"


def test_a_header_is_ignored_where_no_token_is_set() -> None:
    assert refusal_of("Bearer anything", "POST") is None
