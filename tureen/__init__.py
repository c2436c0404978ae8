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
    from tureen.client import Client, Query, Template, connect
    from tureen.errors import TureenError
    from tureen.facts import QueryStatus, Source
    from tureen.protocol import new_handle, query_id
    from tureen.snapshot import Snapshot
    from tureen.udf import function

_HOMES = {
    "Client": "tureen.client",
    "Listing": "tureen.answers",
    "Matches": "tureen.answers",
    "Query": "tureen.client",
    "QueryStatus": "tureen.facts",
    "Snapshot": "tureen.snapshot",
    "Source": "tureen.facts",
    "Template": "tureen.client",
    "TureenError": "tureen.errors",
    "connect": "tureen.client",
    "function": "tureen.udf",
    "new_handle": "tureen.protocol",
    "query_id": "tureen.protocol",
}

__all__ = [
    "Client",
    "Listing",
    "Matches",
    "Query",
    "QueryStatus",
    "Snapshot",
    "Source",
    "Template",
    "TureenError",
    "connect",
    "function",
    "new_handle",
    "query_id",
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
