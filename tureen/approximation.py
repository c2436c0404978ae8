"""What of an answer is not exact, as the broker tells it with each answer, feed message and status.

An answer without tags is exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Approximation:
    """One tag. One field for each that an answer has of it.

    kind: ``sample`` (some rows were left out by their hash), ``window`` (a window was shorter than asked),
    ``synopsis`` (a compressed state answered), ``shed`` (rows were dropped under load), ``constraint`` (rows
    broke a promise of their source), ``preference`` (there was no time yet for all rows that are due). where:
    the source or the operator. origin: ``declared`` by the text,
    ``static`` at registration, ``dynamic`` while it ran. amount: what was given, in ``unit`` (percent, ms,
    bytes, rows); asked: what exactness takes. since: the position from which on it holds; None: from the
    beginning. fp, fn: expected shares of wrong rows and of missing ones; error: half the 95 % interval of an
    aggregate, relative to its value; None: not known. contiguous: rows next to each other are missing, so
    that the rest is no fair sample. rows_missing, rows_due, intervals: of rows dropped under load, how many
    of how many, and the first and last instants (ms since 1970) of the runs they lie in. fn_changes: as fn,
    of the rows that come; rank_error: of an approximate quantile, by how large a share of values it is off.
    unscaled: columns of aggregates over a sample that are not estimates of
    those over all rows: they are what they are over the sample. entries_left, entries_cut, units_short: of a
    preference, the entries of its promising set that are left to visit, those that never will be, and the
    stored rows that are still to be visited; None of other kinds. visited: columns of an answer of one row
    that hold estimates for rows not visited yet, with what they are over the visited rows alone.
    """

    kind: str
    where: str
    origin: str
    amount: float
    unit: str
    asked: float | None = None
    since: str | None = None
    fp: float | None = None
    fn: float | None = None
    error: float | None = None
    contiguous: bool = False
    unscaled: tuple[str, ...] = ()
    entries_left: int | None = None
    entries_cut: int | None = None
    units_short: int | None = None
    visited: Mapping[str, float | None] = field(default_factory=dict)
    fn_changes: float | None = None
    rank_error: float | None = None
    rows_missing: int | None = None
    rows_due: int | None = None
    intervals: tuple[tuple[int, int], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The whole message, so that what a newer broker adds is not lost."""

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Approximation:
        expected = message.get("expected") or {}
        return cls(
            kind=str(message.get("kind", "")),
            where=str(message.get("where", "")),
            origin=str(message.get("origin", "")),
            amount=float(message.get("amount") or 0.0),
            unit=str(message.get("unit", "")),
            asked=message.get("asked"),
            since=message.get("since"),
            fp=expected.get("fp"),
            fn=expected.get("fn"),
            error=expected.get("error"),
            fn_changes=expected.get("fn_changes"),
            rank_error=expected.get("rank_error"),
            rows_missing=message.get("rows_missing"),
            rows_due=message.get("rows_due"),
            intervals=tuple((int(one[0]), int(one[1])) for one in message.get("intervals") or ()),
            contiguous=bool(message.get("contiguous", False)),
            unscaled=tuple(map(str, message.get("unscaled") or ())),
            entries_left=message.get("entries_left"),
            entries_cut=message.get("entries_cut"),
            units_short=message.get("units_short"),
            visited=dict(message.get("visited") or {}),
            facts=dict(message),
        )

    def __str__(self) -> str:
        """One line.

        >>> print(Approximation("sample", "trips", "declared", 10.0, "percent", fn=0.9))
        sample of trips: 10 percent (declared; about 90% of rows missing)
        """
        amount = f"{self.amount:,.6g} {self.unit}".rstrip()
        if self.asked is not None:
            amount += f" of {self.asked:,.6g}"
        notes = [self.origin]
        if self.fn:
            notes.append(f"about {self.fn:.1%} of rows missing")
        if self.fp:
            notes.append(f"about {self.fp:.1%} of rows wrong")
        if self.error is not None:
            notes.append(f"±{self.error:.1%} of the value")
        if self.fn_changes is not None:
            notes.append(f"about {self.fn_changes:.1%} of changes missing")
        if self.rank_error is not None:
            notes.append(f"±{self.rank_error:.1%} of the ranks")
        if self.rows_missing is not None and self.rows_due is not None:
            notes.append(f"{self.rows_missing:,} of {self.rows_due:,} rows")
        if self.contiguous:
            notes.append("rows next to each other are missing")
        if self.unscaled:
            notes.append(f"of the sample alone: {', '.join(self.unscaled)}")
        if self.entries_left:
            notes.append(f"{self.entries_left:,} entries left")
        if self.entries_cut:
            notes.append(f"{self.entries_cut:,} entries cut")
        return f"{self.kind} of {self.where}: {amount} ({'; '.join(notes)})".replace(".0%", "%")


def approximations_of(told: Any) -> tuple[Approximation, ...]:
    """The tags of a message's member; what is no tag is passed over."""
    if not isinstance(told, Iterable) or isinstance(told, str | bytes | Mapping):
        return ()
    return tuple(Approximation.of(one) for one in told if isinstance(one, Mapping) and "kind" in one)


def approximations_from(text: str | bytes | None) -> tuple[Approximation, ...]:
    """The tags of a header, or of the metadata of an Arrow schema.

    >>> approximations_from('[]'), approximations_from(None)
    ((), ())
    """
    if not text:
        return ()
    try:
        return approximations_of(json.loads(text))
    except ValueError:
        return ()
