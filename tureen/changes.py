"""Events of following a query: first its answer, then the rows that are added and removed.

    for event in query.changes():
        match event:
            case SnapshotEvent():  # the whole answer: first, and when resuming is impossible
                shown = event.dicts()
            case ChangesEvent():  # rows added and removed together
                for change in event:
                    print(change.weight, change.at, change.row)
            case ProgressEvent():  # nothing changed up to this instant
                print(event.now_ms)
            case AwayEvent():  # no broker answers at the moment; following continues by itself
                print(event.error)
            case EndEvent():  # nothing more comes
                print(event.reason)

Every event carries the change position after it, at which following resumes: a program that stores
``event.position`` together with its result misses nothing and sees nothing twice, whatever happens to
connections and brokers. Rows are tuples in the order of the columns, with values as in
:mod:`tureen.columns`.

Folding all changes into the snapshot before them gives the answer at that position (:mod:`tureen.folding`),
for queries that give all their changes (``operator`` is ``changes``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tureen.approximation import Approximation
from tureen.catching_up import CatchingUp
from tureen.columns import Column, Row, arrow_table, json_row
from tureen.errors import TureenError

if TYPE_CHECKING:
    import pyarrow as pa

Operator = Literal["changes", "istream", "dstream", "rstream"]
"""What of its changes a query tells: all of them, rows that came, rows that went, or the whole answer at each
instant at which a row came or went."""

EndReason = Literal["caught_up", "unregistered"]
"""All there was has been told (``live=False``); the query is gone, or rests."""

WEIGHT_COLUMN = "change_weight"
AT_COLUMN = "change_at"


class Change(NamedTuple):
    """A row that came (weight 1) or went (weight -1), and the instant of it in ms since 1970."""

    weight: int
    at_ms: int
    row: Row

    @property
    def at(self) -> datetime:
        """The instant, in UTC."""
        from tureen.snapshot import instant_of

        return instant_of(self.at_ms)


@dataclass(frozen=True, slots=True)
class SnapshotEvent:
    """The whole answer as of ``position``.

    reset: changes were missed before it, so that what was folded until now is void. complete_from_ms: from
    when it is complete, where older rows are no longer retained; else None. approximation: what of it is not
    exact; empty: it is exact. catching_up, errors, condition_errors: as of a Snapshot; what sources bring
    that catch up comes as changes.
    """

    position: str
    now_ms: int | None
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    operator: Operator = "changes"
    reset: bool = False
    complete_from_ms: int | None = None
    approximation: tuple[Approximation, ...] = ()
    catching_up: tuple[CatchingUp, ...] = ()
    errors: int = 0
    condition_errors: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def dicts(self) -> list[dict[str, Any]]:
        """One dict a row."""
        return _dicts(self.columns, self.rows)

    def to_arrow(self) -> pa.Table:
        """The rows as Arrow, of the columns' types. O(rows)."""
        return arrow_table(self.columns, self.rows)

    def as_dict(self) -> dict[str, Any]:
        """As it travels in JSON."""
        return {
            "type": "snapshot",
            "position": self.position,
            "now_ms": self.now_ms,
            "operator": self.operator,
            "columns": _columns(self.columns),
            "rows": [json_row(row) for row in self.rows],
            "complete_from_ms": self.complete_from_ms,
            "approximation": _tags(self.approximation),
            "catching_up": [asdict(one) for one in self.catching_up],
            "errors": self.errors,
            "condition_errors": self.condition_errors,
            "reset": self.reset,
        }


@dataclass(frozen=True, slots=True)
class ChangesEvent:
    """Changes that became known at once, in the order of their instants, at one instant those that went
    first.

    >>> event = ChangesEvent("p", 7, (Column("city", "STRING"),), (Change(-1, 6, ("Bern",)), Change(1, 6, ("Zug",))))
    >>> [change.weight for change in event], event.came(), event.went()
    ([-1, 1], [{'city': 'Zug'}], [{'city': 'Bern'}])
    """  # noqa: E501

    position: str
    now_ms: int | None
    columns: tuple[Column, ...]
    changes: tuple[Change, ...]
    operator: Operator = "changes"
    approximation: tuple[Approximation, ...] = ()

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def came(self) -> list[dict[str, Any]]:
        """Rows that came, one dict each; one that went again at a later instant is among them."""
        return _dicts(self.columns, [change.row for change in self.changes if change.weight > 0])

    def went(self) -> list[dict[str, Any]]:
        """Rows that went."""
        return _dicts(self.columns, [change.row for change in self.changes if change.weight < 0])

    def to_arrow(self) -> pa.Table:
        """The rows as Arrow, behind the columns ``change_weight`` (int8) and ``change_at`` (timestamp).
        O(rows)."""
        import pyarrow as pa

        table = arrow_table(self.columns, [change.row for change in self.changes])
        at = pa.array([change.at_ms for change in self.changes], pa.int64()).cast(pa.timestamp("ms"))
        weights = pa.array([change.weight for change in self.changes], pa.int8())
        return table.add_column(0, AT_COLUMN, at).add_column(0, WEIGHT_COLUMN, weights)

    def as_dict(self) -> dict[str, Any]:
        """As it travels in JSON, and the columns."""
        return {
            "type": "changes",
            "position": self.position,
            "now_ms": self.now_ms,
            "columns": _columns(self.columns),
            "approximation": _tags(self.approximation),
            "changes": [[one.weight, one.at_ms, json_row(one.row)] for one in self.changes],
        }


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Nothing changed up to this position and instant."""

    position: str
    now_ms: int | None
    approximation: tuple[Approximation, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "type": "progress",
            "position": self.position,
            "now_ms": self.now_ms,
            "approximation": _tags(self.approximation),
        }


@dataclass(frozen=True, slots=True)
class AwayEvent:
    """A lost connection could not be made again at once; it is tried again, until the patience is over.

    Told once for each time away; any other event says that it is over. position: that of the last event.
    """

    position: str | None
    error: TureenError

    def as_dict(self) -> dict[str, Any]:
        return {"type": "away", "position": self.position, "error": self.error.as_dict()}


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The last event. A connection that merely breaks is none: it is made again."""

    position: str | None
    reason: EndReason

    def as_dict(self) -> dict[str, Any]:
        return {"type": "end", "position": self.position, "reason": self.reason}


Event = SnapshotEvent | ChangesEvent | ProgressEvent | AwayEvent | EndEvent


def _dicts(columns: Sequence[Column], rows: Sequence[Row]) -> list[dict[str, Any]]:
    names = [column.name for column in columns]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _tags(tags: Sequence[Approximation]) -> list[dict[str, Any]]:
    return [dict(tag.facts) for tag in tags]


def _columns(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"name": column.name, "type": column.type} for column in columns]
