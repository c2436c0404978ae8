"""Promises that a stream keeps, by which plans hold less (S. Babu, U. Srivastava, J. Widom, "Exploiting
k-Constraints to Reduce Memory Overhead in Continuous Queries over Data Streams", TODS 2004; STREAM).

``k`` counts rows of a stream in the order in which they enter, (timestamp, partition, offset) as NOW reaches
them, so that batches do not matter; k = 0 is strict. Rows that break a promise do not enter and do not count.
What is older than RETAIN is not known any more: two rows further apart than that break nothing together.

A row with NULL in one of the columns promises nothing by that constraint; it counts as one of the other rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.model.source import SourceName


@dataclass(frozen=True, slots=True)
class Ordered:
    """Every row at least ``within_rows + 1`` rows after a row s has column >= s's. NaN is above all."""

    column: str
    within_rows: int = 0


@dataclass(frozen=True, slots=True)
class Clustered:
    """A promise: between two rows with the same values of these columns come at most ``within_rows`` with
    others.
    """

    columns: tuple[str, ...]
    within_rows: int = 0


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows have the same values of these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManyOne:
    """A row's columns are those of at most one row of another stream, whose columns are ``Unique``.

    columns and target_columns pair off, in the order in which they were written.
    """

    columns: tuple[str, ...]
    target: SourceName
    target_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class References:
    """As :class:`ManyOne`, and the one row is there or comes soon: at an instant that is not after the row's,
    or among the next ``within_rows`` rows of the target, or at most ``within_ms`` later. Exactly one of the
    two is given.
    """

    columns: tuple[str, ...]
    target: SourceName
    target_columns: tuple[str, ...]
    within_rows: int | None = 0
    within_ms: int | None = None


Constraint = Ordered | Clustered | Unique | ManyOne | References


def columns_of(constraint: Constraint) -> tuple[str, ...]:
    """The columns of the stream itself."""
    return (constraint.column,) if isinstance(constraint, Ordered) else constraint.columns


def target_of(constraint: Constraint) -> SourceName | None:
    """The other stream that it speaks of, if any."""
    return constraint.target if isinstance(constraint, ManyOne | References) else None


def referred_to(constraints: Iterable[Constraint]) -> list[SourceName]:
    """The streams whose rows decide whether references are kept, each once."""
    return list(dict.fromkeys(one.target for one in constraints if isinstance(one, References)))


def promise_of(constraint: Constraint) -> str:
    """As CREATE STREAM has it, without k."""
    columns = f"({', '.join(map(_name, columns_of(constraint)))})"
    words = _KINDS[type(constraint)].upper().replace("_", " ")
    if isinstance(constraint, ManyOne | References):
        target_columns = ", ".join(map(_name, constraint.target_columns))
        return f"{words} {columns} TO {_name(constraint.target)} ({target_columns})"
    return f"{words} {columns}"


def text_of(constraint: Constraint) -> str:
    """As CREATE STREAM has it, for people to read."""
    within = ""
    if isinstance(constraint, References) and constraint.within_ms is not None:
        within = f" WITHIN {constraint.within_ms} MILLISECONDS"
    elif isinstance(constraint, Ordered | Clustered | References):
        within = f" WITHIN {constraint.within_rows} ROWS"
    return f"CONSTRAINT {promise_of(constraint)}{within}"


def _name(name: str) -> str:
    plain = name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def constraint_as_dict(constraint: Constraint) -> dict[str, Any]:
    """As JSON has it: ``kind``, ``columns``, ``target`` and its columns, ``within_rows`` or ``within_ms``."""
    facts: dict[str, Any] = {"kind": _KINDS[type(constraint)], "columns": list(columns_of(constraint))}
    if isinstance(constraint, ManyOne | References):
        facts |= {"target": constraint.target, "target_columns": list(constraint.target_columns)}
    if isinstance(constraint, References) and constraint.within_ms is not None:
        facts["within_ms"] = constraint.within_ms
    elif isinstance(constraint, Ordered | Clustered | References):
        facts["within_rows"] = constraint.within_rows
    return facts


def constraint_from_dict(facts: dict[str, Any]) -> Constraint:
    """The inverse of :func:`constraint_as_dict`. Raises KeyError, TypeError, ValueError."""
    columns = tuple(facts["columns"])
    match facts["kind"]:
        case "ordered":
            (column,) = columns
            return Ordered(column, facts["within_rows"])
        case "clustered":
            return Clustered(columns, facts["within_rows"])
        case "unique":
            return Unique(columns)
        case "many_one":
            return ManyOne(columns, facts["target"], tuple(facts["target_columns"]))
        case "references":
            to = facts["target"], tuple(facts["target_columns"])
            return References(columns, *to, facts.get("within_rows"), facts.get("within_ms"))
        case kind:
            raise ValueError(f"no constraint is {kind!r}")


_KINDS: dict[type[Constraint], str] = {
    Ordered: "ordered",
    Clustered: "clustered",
    Unique: "unique",
    ManyOne: "many_one",
    References: "references",
}
