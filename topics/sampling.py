"""What the newest records of a topic have to do with the columns that a stream declares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from engine.model.paths import value_at
from engine.model.record_format import METADATA
from engine.model.source import Stream
from topics.event_times import years_as_seconds
from topics.formats.table import texts_of
from topics.keyed import decode_messages
from topics.members import members_of

SHOWN_MAX = 20
REASONS_MAX = 10
_NOWHERE = object()
_VALUES = re.compile(r'"(?:[^"\\]|\\.)*?(?:"|\.\.\.)|(?<!\w)[-+]?\d[\w.:+-]*')
"""What differs between reasons that are one: the values of records."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why so many records give no row; reason: as it is of the first of them."""

    reason: str
    records: int


def grouped(reasons: Iterable[str]) -> list[Reason]:
    """The most frequent reasons, those that differ in values alone as one.

    >>> grouped(['expected BIGINT, got "x"', "not JSON", 'expected BIGINT, got "yz"'])
    [Reason(reason='expected BIGINT, got "x"', records=2), Reason(reason='not JSON', records=1)]
    """
    first: dict[str, str] = {}
    counts = Counter[str]()
    for reason in reasons:
        form = _VALUES.sub("?", reason)
        first.setdefault(form, reason)
        counts[form] += 1
    return [Reason(first[form], count) for form, count in counts.most_common(REASONS_MAX)]


@dataclass(frozen=True, slots=True)
class Sample:
    """What was found in some records of a topic.

    records: how many were looked at. unreadable: how many of those give no row. reasons: why, the most
    frequent first. columns_without_member: columns that none of the records has, where their PATH leads if
    they have one. members_without_column: the most frequent members that are no column, and in no PATH.
    like_seconds: how many rows have an event timestamp that may be seconds, taken for ms.
    """

    records: int
    unreadable: int
    reasons: tuple[Reason, ...]
    columns_without_member: tuple[str, ...]
    members_without_column: tuple[str, ...]
    like_seconds: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample(stream: Stream, messages: Sequence[Any]) -> Sample:
    """Compare records, as they were read from the stream's topic, with its columns. O(bytes)."""
    messages = list(messages)
    values = [one.value() for one in messages]
    decoded = decode_messages(
        stream,
        messages,
        values,
        [one.partition() for one in messages],
        [one.offset() for one in messages],
        [one.timestamp()[1] for one in messages],
    )
    aside = frozenset(stream.keyed)
    columns = tuple(
        field.name
        for field in stream.schema
        if field.path is None and field.name not in aside and field.name not in METADATA
    )
    paths = {field.name: field.path for field in stream.schema if field.path is not None}
    heads = {step for path in paths.values() for step in path[:1]}
    known = members_of(columns, aside)
    missing, others, objects = {*columns, *paths}, Counter[str](), 0
    for value in texts_of(stream, values).values:
        try:
            members = orjson.loads(value or b"")
        except ValueError:
            continue
        if not isinstance(members, dict):
            continue
        objects += 1
        for name in missing & paths.keys():
            if value_at(paths[name], members, _NOWHERE) is not _NOWHERE:
                missing.discard(name)
        for member in members:
            column = member if member in columns else known.column_of(member)
            if column is not None:
                missing.discard(column)
            elif member not in aside and member not in heads:
                others[member] += 1
    return Sample(
        len(messages),
        len(decoded.bad),
        tuple(grouped(one.reason for one in decoded.bad)),
        tuple(field.name for field in stream.schema if field.name in missing) if objects else (),
        tuple(name for name, _ in others.most_common(SHOWN_MAX)),
        int(years_as_seconds(decoded.batch.timestamp).sum()) if stream.event_time else 0,
    )
