"""Avro records as JSON, by the schema that wrote them.

null, boolean, int, long, string, enum, array, map and record are what they are in JSON; float and double
numbers, NaN, Infinity and -Infinity in quotes; bytes and fixed base64; decimal a string of its digits; date a
string; timestamps ms since 1970, what is below is cut; uuid a string. Other logical types, as time-millis and
duration, are what they stand on.
"""

from __future__ import annotations

from collections.abc import Sequence

from topics.formats.avro_program import Program, Wanted, compile_schema
from topics.formats.avro_reader import REASONS, frames, read_avro
from topics.formats.avro_schema import AvroType, parse_schema
from topics.formats.output import ByteArray, Int64Array, Output, transcoded
from topics.formats.texts import Texts
from topics.formats.unreadable import UnreadableSchema

_DOUBLE_BYTES = 4
"""A float, which is the smallest that becomes a DOUBLE."""


class AvroReader:
    """Reads records of one writer's schema."""

    def __init__(
        self,
        writer: str,
        references: Sequence[str] = (),
        reader: str | None = None,
        wanted: Wanted = lambda _: True,
        skipped: int = 0,
    ) -> None:
        """writer, reader: schemas. references: schemas that name types of the writer's. skipped: bytes before
        each value. Raises UnreadableSchema.
        """
        read_as = None if reader is None else parse_schema(reader)
        try:
            self._program = compile_schema(parse_schema(writer, references), read_as, wanted, _as_json)
        except RecursionError:
            raise UnreadableSchema("it is nested too deeply") from None
        self._skipped = skipped

    def texts(self, values: Sequence[bytes]) -> Texts:
        """Each value has at least ``skipped`` bytes."""
        return _texts(self._program, values, self._skipped)


def _texts(program: Program, values: Sequence[bytes], skipped: int) -> Texts:
    open_values = frames()

    def run(data: ByteArray, ends: Int64Array, first: int, out: Output, verdicts: ByteArray) -> int:
        return read_avro(data, ends, (first, skipped), program, open_values, out, verdicts)

    found, verdicts = transcoded(values, run, _DOUBLE_BYTES)
    return Texts(found, {place: REASONS[verdicts[place]] for place in verdicts.nonzero()[0].tolist()})


def _as_json(type_: AvroType, value: bytes) -> bytes:
    """The JSON of one value; a default of a reader's schema. Raises ValueError."""
    told = _texts(compile_schema(type_, None, lambda _: True, _as_json), [value], 0)
    if told.bad:
        raise ValueError(told.bad[0])
    assert told.values[0] is not None
    return told.values[0]
