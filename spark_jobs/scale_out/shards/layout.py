"""How rows are spread over shards.

    shards 0 .. S-1    the *parts*: each has the rows whose key is its own, and every table that has no key
    shard S            the *whole shard*: all rows of streams without a key or to be kept whole, all tables

A layout is that of a checkpoint for good: with another one the state of a shard would be about other rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model.source import Stream
from tureen.errors import NotSupported, SettingsError

SHARDS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Layout:
    """shards: S; 0: there are none, no whole shard either, and nothing but selections is answered. keys: the
    column that decides about a row, by stream or table. whole: those of them that the whole shard has, too.

    Raises SettingsError.
    """

    shards: int
    keys: Mapping[str, str] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= self.shards <= SHARDS_MAX:
            raise SettingsError(f"shards = {self.shards} is not within 0 to {SHARDS_MAX:,}")

    @property
    def whole_shard(self) -> int:
        """The number of the shard that cuts nothing."""
        return self.shards

    @property
    def every(self) -> range:
        """The numbers of all, the whole one too."""
        return range(self.shards + 1 if self.shards else 0)

    def parts_have(self, stream: Stream) -> bool:
        """Whether its rows go to the parts: by key, or all of them to each."""
        return stream.name in self.keys or stream.is_table

    def whole_shard_has(self, stream: Stream) -> bool:
        """Whether all of its rows go to the whole shard."""
        return stream.name not in self.keys or stream.name in self.whole

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"shards": self.shards, "keys": dict(self.keys), "whole": sorted(self.whole)}


def check_key(stream: Stream, layout: Layout) -> None:
    """Refuse a key that the stream does not have. Raises NotSupported."""
    column = layout.keys.get(stream.name)
    if column is None:
        return
    if stream.schema.index(column) is None:
        names = ", ".join(one.name for one in stream.schema)
        raise NotSupported(
            f"{stream.kind} {stream.name} has no column {column!r} to be cut by",
            hint=f"its columns are: {names}",
        )
    if stream.is_table and column not in stream.key:
        raise NotSupported(
            f"table {stream.name} cannot be cut by {column!r}: shards could share the versions of a row",
            hint=f"take a column of its primary key ({', '.join(stream.key)}), or none: then every shard has "
            "the table whole",
        )
