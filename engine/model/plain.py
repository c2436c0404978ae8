"""Streams, summaries, registrations as JSON values and back: what the journal and the store write of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from engine.model.constraint import constraint_as_dict, constraint_from_dict
from engine.model.paths import parse_path, path_text
from engine.model.record_format import USUAL, RecordFormat
from engine.model.source import Field, Schema, Stream
from engine.model.step import Parameters, Registration
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import Kind, Logical, Type


def stream_as_dict(stream: Stream) -> dict[str, Any]:
    """Everything that a stream declares, as JSON values; ``key`` and ``retroactive`` only of a table,
    ``past_max_ms``, ``format`` and ``from_key`` only where they are declared.
    """
    facts: dict[str, Any] = {
        "name": stream.name,
        "topic": stream.topic,
        "fields": [
            [
                *(f.name, type_as_json(f.type), f.type.precision, f.type.scale, f.nullable),
                *([] if f.path is None else [path_text(f.path)]),
            ]
            for f in stream.schema
        ],
        "timestamp_column": stream.timestamp_column,
        "lateness_ms": stream.lateness_ms,
        "idle_timeout_ms": stream.idle_timeout_ms,
        "idle_advances": stream.idle_advances,
        "retain_ms": stream.retain_ms,
        "future_max_ms": stream.future_max_ms,
        **({} if stream.past_max_ms is None else {"past_max_ms": stream.past_max_ms}),
        "constraints": [constraint_as_dict(one) for one in stream.constraints],
    }
    if stream.format != USUAL:
        facts["format"] = stream.format.as_dict()
    if any(one.from_key for one in stream.schema):
        facts["from_key"] = list(stream.keyed)
    if stream.is_table:
        facts |= {"key": list(stream.key), "retroactive": stream.retroactive}
    return facts


def stream_from_dict(facts: Mapping[str, Any]) -> Stream:
    """The inverse of :func:`stream_as_dict`. Raises KeyError, TypeError, ValueError.

    Constraints that are lists are those of earlier records, which promised nothing.
    """
    given = dict(facts)
    fields = given.pop("fields")
    constraints = given.pop("constraints")
    key = tuple(given.pop("key", ()))
    keyed = frozenset(given.pop("from_key", ()))
    written = RecordFormat.from_dict(given.pop("format", {}))
    return Stream(
        schema=Schema(
            tuple(
                Field(
                    name,
                    type_from_json(kind, p, s),
                    nullable,
                    parse_path(path[0]) if path else None,
                    name in keyed,
                )
                for name, kind, p, s, nullable, *path in fields
            )
        ),
        constraints=tuple(constraint_from_dict(one) for one in constraints if isinstance(one, dict)),
        key=key,
        format=written,
        **given,
    )


def type_as_json(type_: Type) -> Any:
    """The kind of a type; of one with a logical type an object that says all of it."""
    if type_.logical is None:
        return type_.kind.value
    facts: dict[str, Any] = {"logical": type_.logical.value}
    if type_.element is not None:
        facts["element"] = _whole(type_.element)
    if type_.members:
        facts["members"] = [[name, *_whole(member)] for name, member in type_.members]
    return facts


def _whole(type_: Type) -> list[Any]:
    return [type_as_json(type_), type_.precision, type_.scale]


def type_from_json(kind: Any, precision: int, scale: int) -> Type:
    """The inverse of :func:`type_as_json`. Raises KeyError, TypeError, ValueError."""
    if not isinstance(kind, Mapping):
        return Type(Kind(kind), precision, scale)
    return Type(
        Kind.STRING,
        logical=Logical(kind["logical"]),
        element=type_from_json(*kind["element"]) if "element" in kind else None,
        members=tuple((name, type_from_json(*member)) for name, *member in kind.get("members", ())),
    )


def summary_as_dict(definition: SummaryDefinition) -> dict[str, Any]:
    """Everything that a summary declares, as JSON values."""
    return asdict(definition)


def summary_from_dict(facts: Mapping[str, Any]) -> SummaryDefinition:
    """The inverse of :func:`summary_as_dict`. Raises KeyError, TypeError."""
    given = dict(facts)
    return SummaryDefinition(settings=SummarySettings(**given.pop("settings")), **given)


def registration_as_dict(registration: Registration) -> dict[str, Any]:
    """Everything that was published, as JSON values; ``weight`` and ``parameters`` only where given."""
    facts: dict[str, Any] = {
        "query_id": registration.query_id,
        "sql": registration.sql,
        "options": dict(registration.options),
    }
    if registration.weight is not None:
        facts["weight"] = registration.weight
    if registration.parameters is not None:
        facts["parameters"] = registration.parameters
    return facts


def registration_from_dict(facts: Mapping[str, Any]) -> Registration:
    """The inverse of :func:`registration_as_dict`. Raises KeyError, TypeError.

    Earlier records have a ``tolerance``, which nothing ever read.
    """
    return compact(**{name: value for name, value in facts.items() if name != "tolerance"})


def compact(
    query_id: str,
    sql: str,
    weight: float | None = None,
    options: Mapping[str, str] | None = None,
    parameters: Any = None,
) -> Registration:
    """A registration that shares what many have in common: its options, and the text of a template.

    parameters: a list or an object of JSON values.
    """
    held: Parameters | None = None
    if parameters is not None:
        held = dict(parameters) if isinstance(parameters, Mapping) else tuple(parameters)
        sql = sys.intern(sql)
    shared = _shared(tuple(sorted(options.items()))) if options else _NONE
    return Registration(query_id, sql, weight, shared, held)


_NONE: Mapping[str, str] = {}


@lru_cache(maxsize=256)
def _shared(options: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(options)
