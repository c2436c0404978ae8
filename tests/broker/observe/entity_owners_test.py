"""Who may edit an entity: the API of a worker without shards, called from this machine and from another one.

A broker that others can reach has a token, and who gives it is the operator; so callers that are neither are
made here, by their address.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from broker.base import settings
from broker.base.entries import QueryEntry
from broker.runtime.reader_compilation import ReaderCompilation
from tests.broker.apis import api_without_shards, called
from tureen.protocol import new_handle, query_id

HANDLE = new_handle()
NAME = query_id(HANDLE)
NAMES = {"HANDLE": HANDLE, "NAME": NAME, "UNKNOWN": new_handle()}
"""What the words in the paths of cases stand for, so that cases have the same names in each process."""
ERROR = {"code": "unknown_source", "message": "there is no stream named 'gone'"}


@pytest.fixture
def api(kafka: str, tmp_path: Path) -> Iterator[FastAPI]:
    """One query is known, which does not stand."""
    loaded = settings.load(data_dir=tmp_path)
    entry = QueryEntry("SELECT * FROM gone", "ERROR", ERROR)
    with api_without_shards(loaded, kafka, ReaderCompilation(), {NAME: entry}) as made:
        yield made


def told(api: FastAPI, address: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """(status, code)."""
    reply = called(api, address, method, path, body)
    return reply.status_code, str(reply.json().get("code"))


@pytest.mark.parametrize(
    ("address", "path", "values", "answer"),
    [
        ("10.0.0.9", "0/query-stem/s", {"policy": "fixed"}, (403, "not_allowed")),
        ("10.0.0.9", "state-buffers", {"state_partitions": 3}, (403, "not_allowed")),
        ("127.0.0.1", "0/query-stem/s", {"policy": "fixed"}, (404, "unknown_entity")),
        ("10.0.0.9", "query/NAME", {"weight": 2}, (404, "handle_needed")),
        ("10.0.0.9", "query/HANDLE", {"weight": 2}, (409, "query_not_running")),
        ("127.0.0.1", "query/NAME", {"weight": 2}, (409, "query_not_running")),
        ("10.0.0.9", "query/UNKNOWN", {"weight": 2}, (404, "unknown_query")),
        ("10.0.0.9", "query/HANDLE", {"weight": 2, "if_version": 1}, (409, "edit_conflict")),
    ],
)
def test_edits_by_who_calls(
    api: FastAPI, address: str, path: str, values: dict[str, Any], answer: tuple[int, str]
) -> None:
    kind, _, name = path.partition("/")
    entity = f"{kind}/{NAMES.get(name, name)}" if name else kind
    assert told(api, address, "PATCH", f"/entities/{entity}", values) == answer


def test_plans_are_applied_by_owners_alone(api: FastAPI) -> None:
    body = {"plan": {"version": 1, "sql": "SELECT * FROM gone"}}
    assert told(api, "10.0.0.9", "PUT", f"/plans/{NAME}", body) == (404, "handle_needed")
    assert told(api, "10.0.0.9", "PUT", f"/plans/{HANDLE}", body) == (400, "unknown_source")


def test_everybody_who_may_call_reads(api: FastAPI) -> None:
    assert told(api, "10.0.0.9", "GET", "/entities") == (200, "None")
    assert told(api, "10.0.0.9", "GET", f"/entities/query/{NAME}") == (200, "None")
