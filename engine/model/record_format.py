"""How the records of a topic are written: what CREATE STREAM and CREATE TABLE say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

FormatName = Literal["json", "csv", "raw"]

DELIMITER = ","


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """value: the format of values. delimiter: between the fields of CSV, one character of ASCII."""

    value: FormatName = "json"
    delimiter: str = DELIMITER

    def as_dict(self) -> dict[str, Any]:
        """What is not as usual, as JSON values."""
        usual = asdict(USUAL)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> RecordFormat:
        """The inverse of :meth:`as_dict`. Raises TypeError."""
        return cls(**facts)


USUAL = RecordFormat()
