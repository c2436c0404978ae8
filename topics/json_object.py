"""JSON objects that are written again: bodies of requests, and records of the control topics.

What is read here is written again inside of others: in the registry, in commands, in answers. The reader of
JSON takes about 1,024 levels and the writer 254, so an object may have :data:`JSON_LEVELS_MAX`, which leaves
room for all that is put around it. Numbers and texts that are read can be written.

Cost: a pass over the bytes, besides reading them; over the members only where there are more brackets.
"""

from __future__ import annotations

from typing import Any

import orjson

from tureen.errors import TureenError

JSON_LEVELS_MAX = 64
"""Objects and lists inside of each other, the outermost included."""
TOO_DEEP = f"is nested too deep: it may have {JSON_LEVELS_MAX} levels of objects and lists"


def json_object(
    text: bytes, what: str, refusal: type[TureenError], hint: str | None = None
) -> dict[str, Any]:
    """The members of an object. what: how errors name the text.

    Raises ``refusal``: it is no JSON, no object, or nested deeper than JSON_LEVELS_MAX.
    """
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError as refused:
        raise refusal(
            f"{what} is not JSON: {refused.msg}", hint=hint, line=refused.lineno, column=refused.colno
        ) from None
    if not isinstance(fields, dict):
        raise refusal(f"{what} is not a JSON object", hint=hint)
    if text.count(b"{") + text.count(b"[") > JSON_LEVELS_MAX and is_too_deep(fields):
        raise refusal(f"{what} {TOO_DEEP}")
    return fields


def is_too_deep(fields: dict[str, Any]) -> bool:
    """Whether lists and objects stand in each other deeper than JSON_LEVELS_MAX, ``fields`` included.

    >>> is_too_deep({"a": [[1], {"b": [2]}]})
    False
    """
    level: list[Any] = [fields]
    for _ in range(JSON_LEVELS_MAX):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
