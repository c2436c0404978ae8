"""The key columns of a table, guessed from the message keys of sampled records.

The forms are those of :mod:`topics.keyed`: an object by its members, an array as ``key_1``, ``key_2``, ... ,
a single value as the member that is always equal to it, else as ``key``. What is guessed reads every key of
the sample. Cost: O(bytes).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import STRING
from topics.careful import BadRecord, Pairs, bounded_pairs_of
from topics.codec import DEPTH_MAX
from topics.inferred_columns import (
    InferredColumn,
    Observed,
    Sampled,
    column_name,
    infer,
    named_alike,
    observe,
)
from topics.keyed import decode_keyed
from topics.members import folded


def keys_of(
    records: Sequence[Sampled], columns: Sequence[InferredColumn], admits: Callable[[str], bool]
) -> list[InferredColumn]:
    """Columns that read every key; none: there are no such. columns: of the values. admits: whether SQL takes
    a name for a column.
    """
    keys = [record.key for record in records if record.key is not None]
    if not keys or len(keys) < len(records):
        return []
    for guess in _guesses(keys, records, columns):
        if guess and all(admits(one.name) for one in guess) and _reads(guess, keys):
            return guess
    return []


def _guesses(
    keys: Sequence[bytes], records: Sequence[Sampled], columns: Sequence[InferredColumn]
) -> Iterator[list[InferredColumn]]:
    """The likeliest first."""
    members = [_members(key) for key in keys]
    if None not in members:
        told = [(one, record.at_ms) for one, record in zip(members, records, strict=True) if one is not None]
        seen = observe(told)
        alike = named_alike(seen)
        yield _whole(
            [(member, column_name(member, alike[folded(member)]), one) for member, one in seen.items()],
            len(keys),
        )
        return
    taken = {one.name for one in columns}
    values = [_value(key) for key in keys]
    if all(isinstance(value, list) for value in values):
        width = min(map(len, values))
        yield _whole(
            [
                (
                    f"key_{place}",
                    _free(f"key_{place}", taken),
                    _seen([one[place - 1] for one in values], records),
                )
                for place in range(1, width + 1)
            ],
            len(keys),
        )
        return
    same = _same(values, records, columns)
    name = _free("key", taken) if same is None else same.name
    member = "key" if same is None else same.member
    seen_values = _seen(values, records)
    yield _whole([(member, name, seen_values)], len(keys))
    texts = _seen([str(value) if isinstance(value, str) else json.dumps(value) for value in values], records)
    examples = tuple(dict.fromkeys(json.dumps(text[:80], ensure_ascii=False) for text, _ in texts.values))[:3]
    yield [InferredColumn(name, member, STRING, len(keys), examples)]


def _whole(found: Sequence[tuple[str, str, Observed]], count: int) -> list[InferredColumn]:
    """Columns for (member, name, values) where each has a value in every key, else none."""
    made = [infer(member, name, seen) for member, name, seen in found]
    columns = [
        one
        for one in made
        if isinstance(one, InferredColumn) and one.values == count and not one.type.is_nested
    ]
    return columns if len(columns) == len(made) else []


def _members(key: bytes) -> Pairs | None:
    if not key.lstrip().startswith(b"{"):
        return None
    try:
        return bounded_pairs_of(key, DEPTH_MAX)
    except BadRecord:
        return None


def _value(key: bytes) -> Any:
    """JSON, but for objects; what is none is text."""
    try:
        ((_, value),) = bounded_pairs_of(b'{"key":' + key + b"}", DEPTH_MAX)
    except (BadRecord, ValueError):
        return key.decode("utf-8", "replace")
    return value


def _same(
    values: Sequence[Any], records: Sequence[Sampled], columns: Sequence[InferredColumn]
) -> InferredColumn | None:
    """The column whose member is equal to the key in every record that has a value."""
    left = {one.member: one for one in columns}
    for value, record in zip(values, records, strict=True):
        if record.value is None or not left:
            continue
        try:
            given = dict(bounded_pairs_of(record.value, DEPTH_MAX))
        except BadRecord:
            continue
        left = {
            member: one
            for member, one in left.items()
            if member in given and _text(given[member]) == _text(value)
        }
    return next(iter(left.values()), None) if any(one.value is not None for one in records) else None


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value)


def _seen(values: Sequence[Any], records: Sequence[Sampled]) -> Observed:
    return Observed(
        [(value, record.at_ms) for value, record in zip(values, records, strict=True) if value is not None]
    )


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _reads(columns: Sequence[InferredColumn], keys: Sequence[bytes]) -> bool:
    """Whether a table with these key columns reads every key. O(bytes)."""
    schema = Schema(tuple(Field(one.name, one.type, nullable=False) for one in columns))
    names = tuple(one.name for one in columns)
    table = Stream(SourceName("t"), schema, "t", key=names)
    places = range(len(keys))
    decoded = decode_keyed(table, keys, [None] * len(keys), [0] * len(keys), [*places], [0] * len(keys))
    return not decoded.bad
