"""The wire format of a schema registry: a zero byte, the schema's id in four bytes, then the data.

Records of one schema are read together. A record that names no schema, or one that is of another kind or
cannot be read, is refused with its id and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from topics.formats.schemas import Schemas, schemas
from topics.formats.texts import Format, Texts
from topics.formats.unreadable import UnreadableSchema
from topics.registry import HEAD_BYTES, Registered, SchemaKind

READERS_MAX = 1_000
"""Schemas whose readers are kept, of one topic."""
NO_HEAD = (
    "does not begin with byte 0 and a schema id, as the wire format of a schema registry does; "
    "framed = false reads records without them"
)

Reader = Callable[[Registered], Format]
"""Makes what reads the records of a schema, heads and all. Raises UnreadableSchema."""


def ids_of(values: Sequence[bytes | None]) -> npt.NDArray[np.int64]:
    """int64[n]: the id that each record names, -1 where it names none. O(records)."""
    heads = b"".join(
        one[:HEAD_BYTES] if one is not None and len(one) >= HEAD_BYTES else b"\1\0\0\0\0" for one in values
    )
    table = np.frombuffer(heads, np.uint8).reshape(-1, HEAD_BYTES).astype(np.int64)
    found = table[:, 1] << 24 | table[:, 2] << 16 | table[:, 3] << 8 | table[:, 4]
    return np.where(table[:, 0] == 0, found, -1)


@dataclass(slots=True)
class WireFormat:
    """readers: by kind of schema."""

    readers: Mapping[SchemaKind, Reader]
    _made: dict[int, Format | str] = field(default_factory=dict)
    _made_of: Schemas | None = None

    def texts(self, values: Sequence[bytes]) -> Texts:
        """Raises RegistryUnavailable."""
        ids = ids_of(values)
        different = np.unique(ids).tolist()
        readers = {one: NO_HEAD if one < 0 else self._reader_of(one) for one in different}
        unknown = frozenset(one for one in different if readers[one] == _unknown(one))
        if len(different) == 1 and not unknown:
            return _read(different[0], readers[different[0]], values)
        found: list[bytes | None] = [None] * len(values)
        bad: dict[int, str] = {}
        for one in different:
            places = np.flatnonzero(ids == one).tolist()
            told = _read(one, readers[one], [values[place] for place in places])
            for place, text in zip(places, told.values, strict=True):
                found[place] = text
            bad |= {places[place]: reason for place, reason in told.bad.items()}
        return Texts(found, bad, unknown)

    def _reader_of(self, schema_id: int) -> Format | str:
        """What reads the records of a schema, or why nothing does."""
        known = schemas()
        if self._made_of is not known:
            self._made, self._made_of = {}, known
        made = self._made.get(schema_id)
        if made is None:
            registered = known.get(schema_id)
            if registered is None:
                return _unknown(schema_id)
            made = self._make(schema_id, registered)
            if len(self._made) >= READERS_MAX:
                del self._made[next(iter(self._made))]
            self._made[schema_id] = made
        return made

    def _make(self, schema_id: int, registered: Registered) -> Format | str:
        if registered.kind not in self.readers:
            read = " or ".join(map(str.lower, self.readers))
            return f"schema {schema_id}: it is of kind {registered.kind.lower()}, and {read} is read"
        try:
            return self.readers[registered.kind](registered)
        except UnreadableSchema as refused:
            return f"schema {schema_id}: {refused}"


def _read(schema_id: int, reader: Format | str, values: Sequence[bytes]) -> Texts:
    """Records of one schema. reader: or why there is none."""
    if isinstance(reader, str):
        return Texts([None] * len(values), dict.fromkeys(range(len(values)), reader))
    told = reader.texts(values)
    return Texts(told.values, {at: f"schema {schema_id}: {why}" for at, why in told.bad.items()})


def _unknown(schema_id: int) -> str:
    return f"schema {schema_id}: the schema registry does not know it"


class Headless:
    """JSON behind the head of a schema that is not looked at."""

    def texts(self, values: Sequence[bytes]) -> Texts:
        return Texts([value[HEAD_BYTES:] for value in values])
