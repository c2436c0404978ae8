"""What the newest records of a topic have to do with the columns that a stream declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from engine.model.source import Stream
from topics.keyed import decode_messages
from topics.members import members_of

SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """What was found in some records of a topic.

    records: how many were looked at. unreadable: how many of those give no row. reason: why the first of
    these gives none. columns_without_member: columns that none of the records has. members_without_column:
    the most frequent members that are no column.
    """

    records: int
    unreadable: int
    reason: str | None
    columns_without_member: tuple[str, ...]
    members_without_column: tuple[str, ...]

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
    aside = frozenset(stream.key)
    columns = tuple(field.name for field in stream.schema if field.name not in aside)
    known = members_of(columns, aside)
    missing, others, objects = set(columns), Counter[str](), 0
    for value in values:
        try:
            members = orjson.loads(value or b"")
        except ValueError:
            continue
        if not isinstance(members, dict):
            continue
        objects += 1
        for member in members:
            column = member if member in columns else known.column_of(member)
            if column is not None:
                missing.discard(column)
            elif member not in aside:
                others[member] += 1
    return Sample(
        len(messages),
        len(decoded.bad),
        decoded.bad[0].reason if decoded.bad else None,
        tuple(name for name in columns if name in missing) if objects else (),
        tuple(name for name, _ in others.most_common(SHOWN_MAX)),
    )
