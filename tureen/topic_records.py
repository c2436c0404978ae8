"""Records of a service's topics, as its clients read and write them."""

from __future__ import annotations

import json
import re
from typing import Any

from confluent_kafka import Message

from tureen.errors import SyntaxRefused
from tureen.facts import QueryStatus
from tureen.protocol import SUMMARY_KEY

_STREAM_NAME = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:STREAM|TABLE|VIEW|(SUMMARY))\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?:\"((?:[^\"]|\"\")+)\"|([A-Za-z_]\w*))",
    re.IGNORECASE,
)


def source_key(sql: str) -> tuple[str, str]:
    """The key of the record of a text that creates a stream, table, view or summary, and the name in the
    text; the broker reads the rest. Raises SyntaxRefused.

    >>> source_key("CREATE STREAM IF NOT EXISTS Trades (price DOUBLE)")
    ('trades', 'trades')
    >>> source_key("create summary prices on trades (price) with granularity 1 hour and collapse(2, 2)")
    ('summary:prices', 'prices')
    """
    found = _STREAM_NAME.match(sql)
    if found is None:
        raise SyntaxRefused(
            "this does not create a stream, a table, a view or a summary",
            line=1,
            column=1,
            hint="write CREATE STREAM name (column TYPE, ...), or CREATE VIEW name AS SELECT ...",
        )
    name = found[2].replace('""', '"') if found[2] is not None else found[3].lower()
    return (name if found[1] is None else SUMMARY_KEY + name), name


def take_status(message: Message, wanted: set[str], into: dict[str, QueryStatus]) -> None:
    """Note what a record of ``.status`` tells of a query that is wanted; one that is gone is left out."""
    key = key_of(message)
    if key not in wanted:
        return
    value = message.value()
    if value is None:
        into.pop(key, None)
    else:
        into[key] = status_of(key, value)


def key_of(message: Message) -> str:
    """The key as text."""
    return (message.key() or b"").decode("utf-8", "replace")


def status_of(key: str, value: bytes) -> QueryStatus:
    """The status of a query, by a record of ``.status``. Raises ValueError."""
    return QueryStatus.of({"query_id": key, **json.loads(value)})


def registration_of(registration: bytes | None) -> dict[str, Any]:
    """Text, parameters, name and options in a record of ``.queries``, which anybody may have written;
    ``sql`` is None where it has no text.
    """
    try:
        said = json.loads(registration or b"")
        facts = {**(said.get("options") or {}), "sql": str(said.get("sql") or said["template"])}
        for name in ("parameters", "name"):
            if said.get(name) is not None:
                facts[name] = said[name]
        return facts
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return {"sql": None}


def headers_of(message: Message) -> dict[str, str]:
    """The headers as text, by their names in lower case."""
    pairs: list[tuple[str, bytes | None]] = list(message.headers() or [])  # type: ignore[arg-type]
    return {name.lower(): (value or b"").decode("utf-8", "replace") for name, value in pairs}
