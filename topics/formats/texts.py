"""Records as JSON texts: what every format makes of them, and :mod:`topics.codec` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Texts:
    """One text for each record that was given, and the places of those that have none, with the reason.

    values: JSON in UTF-8, checked by who reads it; None: the record deletes its key. What stands at a place
    in ``bad`` means nothing. unknown: ids of schemas that records named and the registry did not know.
    """

    values: list[bytes | None]
    bad: dict[int, str] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()


class Format(Protocol):
    """A format of one topic's records."""

    def texts(self, values: Sequence[bytes]) -> Texts:
        """The texts of records, none larger than a record may be. Never raises for data; RegistryUnavailable
        where they name schemas.
        """
        ...


@dataclass(frozen=True, slots=True)
class Refusing:
    """Reads nothing. reason: why."""

    reason: str

    def texts(self, values: Sequence[bytes]) -> Texts:
        return Texts([None] * len(values), dict.fromkeys(range(len(values)), self.reason))
