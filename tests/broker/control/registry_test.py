"""What the registry says again at a start, also of entries that an earlier version took."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from broker.control.registry import Entry, said_again
from topics.json_object import JSON_LEVELS_MAX

ENVELOPES = 3
"""Levels around a command that is handed to the worker."""


def nested(depth: int) -> Any:
    """A list in lists."""
    return orjson.loads(b"[" * depth + b"]" * depth)


def entry(**said: Any) -> Entry:
    found: Entry = {"sql": "SELECT a FROM s", "parameters": None, "options": {}, "state": "RUNNING"}
    return found | {"error": None, "approximation": [], "refused": None} | said


@pytest.mark.parametrize("depth", [JSON_LEVELS_MAX + 1, 251])
@pytest.mark.parametrize("where", ["options", "parameters"])
def test_what_is_nested_too_deep_is_refused(where: str, depth: int) -> None:
    kept = entry(**{where: {"mine": nested(depth)}})
    command = said_again("q", kept)
    assert (command["kind"], command["error"]["code"]) == ("refuse", "malformed_record")
    assert command["sql"] == kept["sql"]
    for _ in range(2):  # also as the registry keeps it from then on
        said: Any = said_again("q", kept)
        for _ in range(ENVELOPES):
            said = [said]
        assert orjson.loads(orjson.dumps(said))
        kept = orjson.loads(orjson.dumps(kept))


def test_what_may_be_nested_is_said_as_it_is() -> None:
    options = {"mine": nested(JSON_LEVELS_MAX - 2)}
    command = said_again("q", entry(options=options))
    assert (command["kind"], command["options"]) == ("register", options)
