"""Who may edit an entity: the API of a worker without shards, called from this machine and from another one.

A broker that others can reach has a token, and who gives it is the operator; so callers that are neither are
made here, by their address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from broker.base import settings
from broker.base.entries import QueryEntry
from broker.feeds.hub import Hub
from broker.http.answers import Snapshots
from broker.http.carried import Carried
from broker.http.options import CHANGEABLE
from broker.http.public import public_api
from broker.memory.budget import Budget
from broker.memory.levels import Memory
from broker.node.node import Node
from broker.node.shard_setup import shard_setup
from broker.observe.entities import Entities
from broker.observe.metrics import Metrics
from broker.observe.observer import Observer
from broker.runtime.engines import Engines, limits
from broker.runtime.in_flight import InFlight, Patience
from broker.runtime.liveness import Liveness
from broker.runtime.publisher import Publisher
from broker.runtime.reader_compilation import ReaderCompilation
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
    known = {"bootstrap.servers": kafka}
    liveness, hub = Liveness(None), Hub(1_000, 1.0, lambda: None)
    memory = Memory(Budget(1 << 40, 1 << 40, "this machine", True), liveness)
    setup = shard_setup(loaded, known, Engines(limits(loaded)), memory, hub, lambda _: None)
    node = Node(setup, liveness)
    node.life.reconciled = True
    node.directory.queries[NAME] = QueryEntry("SELECT * FROM gone", "ERROR", ERROR)
    metrics = Metrics(InFlight(Patience(1, 1, 1.0, 1.0, 1)))
    publisher, snapshots = Publisher(known, 1_000_000, 1_000), Snapshots(loaded, node, metrics)
    observer = Observer(node, metrics, Entities(node, CHANGEABLE))
    carried = Carried.made(loaded, node, publisher, ReaderCompilation())
    yield public_api(loaded, node, carried, snapshots, metrics, observer)
    snapshots.close()
    publisher.close()


def called(api: FastAPI, address: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """(status, code)."""

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=api, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, json=body)

    reply = asyncio.run(call())
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
    assert called(api, address, "PATCH", f"/entities/{entity}", values) == answer


def test_plans_are_applied_by_owners_alone(api: FastAPI) -> None:
    body = {"plan": {"version": 1, "sql": "SELECT * FROM gone"}}
    assert called(api, "10.0.0.9", "PUT", f"/plans/{NAME}", body) == (404, "handle_needed")
    assert called(api, "10.0.0.9", "PUT", f"/plans/{HANDLE}", body) == (400, "unknown_source")


def test_everybody_who_may_call_reads(api: FastAPI) -> None:
    assert called(api, "10.0.0.9", "GET", "/entities") == (200, "None")
    assert called(api, "10.0.0.9", "GET", f"/entities/query/{NAME}") == (200, "None")
