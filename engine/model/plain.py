"""A stream's definition as JSON values and back: what the journal and the store write of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model.source import Constraint, Field, Schema, Stream
from engine.model.types import Kind, Type


def stream_as_dict(stream: Stream) -> dict[str, Any]:
    """Everything that a stream declares, as JSON values."""
    return {
        "name": stream.name,
        "topic": stream.topic,
        "fields": [
            [f.name, f.type.kind.value, f.type.precision, f.type.scale, f.nullable] for f in stream.schema
        ],
        "timestamp_column": stream.timestamp_column,
        "lateness_ms": stream.lateness_ms,
        "idle_timeout_ms": stream.idle_timeout_ms,
        "idle_advances": stream.idle_advances,
        "retain_ms": stream.retain_ms,
        "future_max_ms": stream.future_max_ms,
        "constraints": [[c.kind, list(c.columns), c.detail] for c in stream.constraints],
    }


def stream_from_dict(facts: Mapping[str, Any]) -> Stream:
    """The inverse of :func:`stream_as_dict`. Raises KeyError, TypeError, ValueError."""
    given = dict(facts)
    fields = given.pop("fields")
    constraints = given.pop("constraints")
    return Stream(
        schema=Schema(
            tuple(Field(n, Type(Kind(kind), p, s), nullable) for n, kind, p, s, nullable in fields)
        ),
        constraints=tuple(Constraint(kind, tuple(columns), detail) for kind, columns, detail in constraints),
        **given,
    )
