"""The API of a worker without shards, called in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from fastapi import FastAPI

from broker.base.entries import QueryEntry
from broker.base.settings import Settings
from broker.feeds.hub import Hub
from broker.http.answers import Snapshots
from broker.http.carried import Carried
from broker.http.options import CHANGEABLE
from broker.http.public import public_api
from broker.memory.budget import Budget
from broker.memory.held import HeldMemory
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


@contextlib.contextmanager
def api_without_shards(
    loaded: Settings, kafka: str, readers: ReaderCompilation, queries: Mapping[str, QueryEntry]
) -> Iterator[FastAPI]:
    """queries: that are known; none stands."""
    known = {"bootstrap.servers": kafka}
    liveness, hub = Liveness(None), Hub(1_000, 1.0, lambda: None)
    memory = Memory(Budget(1 << 40, 1 << 40, "this machine", True), liveness, HeldMemory())
    setup = shard_setup(loaded, known, Engines(limits(loaded)), memory, hub, lambda _: None)
    node = Node(setup, liveness)
    node.life.reconciled = True
    for name, entry in queries.items():
        node.directory.queries[name] = entry
    metrics = Metrics(InFlight(Patience(1, 1, 1.0, 1.0, 1)))
    publisher, snapshots = Publisher(known, 1_000_000, 1_000), Snapshots(loaded, node, metrics)
    observer = Observer(node, metrics, Entities(node, CHANGEABLE))
    carried = Carried.made(loaded, node, publisher, readers)
    yield public_api(loaded, node, carried, snapshots, metrics, observer)
    snapshots.close()
    publisher.close()


def called(api: FastAPI, address: str, method: str, path: str, body: Any = None) -> httpx.Response:
    """What is answered to a caller at an address."""

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=api, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, json=body)

    return asyncio.run(call())
