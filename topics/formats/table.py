"""The table of formats: what reads the records of a stream or a table, by the format that it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from engine.model.record_format import FormatName, RecordFormat
from engine.model.source import Field, Stream
from engine.model.types import Logical
from topics.codec import RECORD_BYTES_MAX
from topics.formats.csv import Csv
from topics.formats.raw import Raw
from topics.formats.texts import Format, Texts

Fields = tuple[Field, ...]
"""The columns that values hold: all but those of the key."""


def _raw(_: RecordFormat, fields: Fields) -> Format:
    (column,) = fields
    return Raw(column.name, is_text=column.type.logical is not Logical.BYTES)


_FORMATS: Mapping[FormatName, Callable[[RecordFormat, Fields], Format]] = {
    "csv": lambda written, fields: Csv(fields, written.delimiter),
    "raw": _raw,
}
"""What makes each format. JSON needs none: its records are texts."""


@lru_cache(maxsize=256)
def _format_of(written: RecordFormat, fields: Fields) -> Format:
    return _FORMATS[written.value](written, fields)


def texts_of(stream: Stream, values: Sequence[bytes | None]) -> Texts:
    """The values of records as JSON. None stays None."""
    if stream.format.value == "json":
        return Texts(list(values))
    fields = tuple(field for field in stream.schema if field.name not in stream.key)
    return _some(_format_of(stream.format, fields), values)


def _some(format_: Format, values: Sequence[bytes | None]) -> Texts:
    """The texts of those values that are there and not too large."""
    found: list[bytes | None] = [None] * len(values)
    bad: dict[int, str] = {}
    given: list[tuple[int, bytes]] = []
    for place, value in enumerate(values):
        if value is None:
            continue
        if len(value) > RECORD_BYTES_MAX:
            bad[place] = f"{len(value):,} bytes are more than the {RECORD_BYTES_MAX:,} allowed"
        else:
            given.append((place, value))
    made = format_.texts([value for _, value in given])
    for (place, _), text in zip(given, made.values, strict=True):
        found[place] = text
    bad |= {given[place][0]: reason for place, reason in made.bad.items()}
    return Texts(found, bad)
