"""Tureen's client: publish a standing query, go away, come back for its answer by handle.

    >>> import tureen
    >>> tureen.query_id("demo")
    'fklvc3bvjnuijdg33d2uuitkbj'

Names are imported when they are first used, so that ``import tureen`` costs nothing: the errors and the
handles come without httpx, pyarrow or a Kafka client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from tureen.answers import Listing, Matches
    from tureen.async_client import AsyncClient, AsyncQuery, connect_async
    from tureen.builder import Select, stream
    from tureen.changes import AwayEvent, Change, ChangesEvent, EndEvent, ProgressEvent, SnapshotEvent
    from tureen.client import Client, Query, connect
    from tureen.display import display_live
    from tureen.errors import TureenError
    from tureen.facts import QueryStatus, Source
    from tureen.live import LiveAnswer
    from tureen.period import Period
    from tureen.protocol import new_handle, query_id
    from tureen.snapshot import Snapshot
    from tureen.texts import Template
    from tureen.udf import function

_HOMES = {
    "AsyncClient": "tureen.async_client",
    "AsyncQuery": "tureen.async_client",
    "AwayEvent": "tureen.changes",
    "Change": "tureen.changes",
    "ChangesEvent": "tureen.changes",
    "Client": "tureen.client",
    "EndEvent": "tureen.changes",
    "Listing": "tureen.answers",
    "LiveAnswer": "tureen.live",
    "Matches": "tureen.answers",
    "Period": "tureen.period",
    "ProgressEvent": "tureen.changes",
    "Query": "tureen.client",
    "QueryStatus": "tureen.facts",
    "Select": "tureen.builder",
    "Snapshot": "tureen.snapshot",
    "SnapshotEvent": "tureen.changes",
    "Source": "tureen.facts",
    "Template": "tureen.texts",
    "TureenError": "tureen.errors",
    "connect": "tureen.client",
    "connect_async": "tureen.async_client",
    "display_live": "tureen.display",
    "function": "tureen.udf",
    "new_handle": "tureen.protocol",
    "query_id": "tureen.protocol",
    "stream": "tureen.builder",
}

__all__ = [
    "AsyncClient",
    "AsyncQuery",
    "AwayEvent",
    "Change",
    "ChangesEvent",
    "Client",
    "EndEvent",
    "Listing",
    "LiveAnswer",
    "Matches",
    "Period",
    "ProgressEvent",
    "Query",
    "QueryStatus",
    "Select",
    "Snapshot",
    "SnapshotEvent",
    "Source",
    "Template",
    "TureenError",
    "connect",
    "connect_async",
    "display_live",
    "function",
    "new_handle",
    "query_id",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("tureen")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tureen' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
