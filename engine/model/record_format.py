"""How the records of a topic are written: what CREATE STREAM and CREATE TABLE say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

FormatName = Literal["json", "avro", "json-schema", "protobuf", "debezium", "csv", "raw"]
KeyFormat = Literal["json", "avro", "json-schema", "protobuf"]

FRAMED: tuple[FormatName, ...] = ("avro", "json-schema", "protobuf", "debezium")
"""Formats whose values may name a schema."""
METADATA = ("_key", "_partition", "_offset", "_timestamp", "_headers")
"""Names of columns that tell of a record and are no part of its value."""
DELIMITER = ","


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """What a statement says.

    value: the format of values. delimiter: between the fields of CSV, one character of ASCII. schema: of
    values that name none, the one they are written with; of those that do, the one they are read by. message:
    which of the schema's messages they are; None: it has one. framed: values of a format with schemas begin
    with byte 0 and the id of theirs. changelog: of Debezium, each event
    is a row. key: the format of keys; None: JSON, or what the values' format has.
    """

    value: FormatName = "json"
    delimiter: str = DELIMITER
    schema: str | None = None
    message: str | None = None
    framed: bool = True
    changelog: bool = False
    key: KeyFormat | None = None

    @property
    def is_framed(self) -> bool:
        """Whether values may name schemas of a registry."""
        return self.framed and self.value in FRAMED

    @property
    def has_framed_keys(self) -> bool:
        """Whether keys may name schemas of a registry."""
        return self.key in FRAMED if self.key is not None else self.value == "debezium"

    def as_dict(self) -> dict[str, Any]:
        """What is not as usual, as JSON values."""
        usual = asdict(USUAL)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> RecordFormat:
        """The inverse of :meth:`as_dict`. Raises TypeError."""
        return cls(**facts)


USUAL = RecordFormat()
