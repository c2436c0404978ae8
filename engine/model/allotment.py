"""What a query is given of what its text asks for, where that is less: shorter windows, lower sampling rates.

An allotment changes an answer, so it comes by a journalled step (:class:`engine.model.step.Allocate`). Rows
are kept by the hash of where they come from, as SAMPLE keeps them, and windows are cut by time: so a replay
gives the same answers, however rows were cut into steps. The registration stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from engine.model.approximation import NOT_KNOWN, Expected


@dataclass(frozen=True, slots=True)
class ScanAllotment:
    """What one scan is given. window_ms: the length of its window; percent: how much of the stream it
    samples, in percent of the rows. None: what the text asks for.
    """

    window_ms: int | None = None
    percent: Decimal | None = None

    def __bool__(self) -> bool:
        return self.window_ms is not None or self.percent is not None


@dataclass(frozen=True, slots=True)
class Allotment:
    """What a query is given. scans: in the order of ``Query.scans()``. origin: ``static`` at registration,
    ``dynamic`` while it runs. by_hand: somebody set it, so that the broker leaves it as it is. expected: the
    precision that its answer is expected to have.
    """

    scans: tuple[ScanAllotment, ...]
    origin: Literal["static", "dynamic"] = "dynamic"
    by_hand: bool = False
    expected: Expected = NOT_KNOWN

    def __bool__(self) -> bool:
        """Whether anything is given less."""
        return any(self.scans)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values; what is as the text asks for is left out."""
        scans = [
            ({} if one.window_ms is None else {"window_ms": one.window_ms})
            | ({} if one.percent is None else {"percent": str(one.percent)})
            for one in self.scans
        ]
        return (
            {"scans": scans, "origin": self.origin}
            | ({"by_hand": True} if self.by_hand else {})
            | ({"expected": told} if (told := self.expected.as_dict()) else {})
        )

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Allotment:
        """The inverse. Raises KeyError, TypeError, ArithmeticError."""
        scans = tuple(
            ScanAllotment(one.get("window_ms"), None if (p := one.get("percent")) is None else Decimal(p))
            for one in facts["scans"]
        )
        return cls(scans, facts["origin"], facts.get("by_hand", False), Expected(**facts.get("expected", {})))


NOTHING_LESS = Allotment(())
"""All that the text asks for."""
