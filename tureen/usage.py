"""Who uses the broker's time and memory: two lists of entities, and the difference between them.

Entities tell what they used since they came; what they use *now* is what was added in an interval. Shares are
of all that was added, so that those of queries, with what nobody reads, are the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Sort = Literal["cpu", "rows", "memory", "queue", "behind", "id"]
SORTS: tuple[Sort, ...] = ("cpu", "rows", "memory", "queue", "behind", "id")


@dataclass(frozen=True, slots=True)
class Use:
    """What one entity used in an interval.

    cpu_share: share of the time that all entities used in it. cores: cores that were busy with it.
    rows_in_per_s, rows_out_per_s: None where the entity has no such count. behind_ms: how far NOW is behind
    the newest record that was read. queries: how many queries share it; None where it is a query.
    """

    id: str
    kind: str
    cpu_share: float
    cores: float
    rows_in_per_s: float | None
    rows_out_per_s: float | None
    memory_bytes: int
    queued_rows: int
    behind_ms: int | None
    queries: int | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Uses:
    """What all entities used in an interval. unread_share: share of the time that went into what no query
    reads.
    """

    seconds: float
    cores: float
    memory_bytes: int
    unread_share: float
    found: tuple[Use, ...]

    def of_kind(self, kind: str | None) -> tuple[Use, ...]:
        """The uses of entities of a kind; None: of all entities but queries, which queries share."""
        return tuple(one for one in self.found if (one.kind == kind if kind else one.kind != "query"))


def uses(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], seconds: float) -> Uses:
    """What was used between two lists of all entities, taken so many seconds apart.

    One that came meanwhile began at nothing.

    >>> one = {"id": "query/a", "kind": "query", "statistics": {"cpu_ns": 0, "memory_bytes": 9}}
    >>> two = one | {"statistics": {"cpu_ns": 500_000_000, "memory_bytes": 9}}
    >>> three = {"id": "0/engine", "kind": "engine", "statistics": {"cpu_ns": 500_000_000, "memory_bytes": 1}}
    >>> told = uses([one], [two, three | {"statistics": three["statistics"] | {"queries": 1}}], 1.0)
    >>> [(use.id, use.cpu_share) for use in told.found], told.cores
    ([('query/a', 1.0), ('0/engine', 1.0)], 0.5)
    """
    was = {one["id"]: one["statistics"] for one in before}
    nothing: Mapping[str, Any] = {}
    added = {
        one["id"]: max(0.0, one["statistics"]["cpu_ns"] - was.get(one["id"], nothing).get("cpu_ns", 0))
        for one in now
    }
    queries = [one for one in now if one["kind"] == "query"]
    unread = [one for one in now if one["kind"] != "query" and not one["statistics"].get("queries")]
    unread_ns = sum(added[one["id"]] for one in unread)
    total_ns = unread_ns + sum(added[one["id"]] for one in queries)

    def per_s(one: Mapping[str, Any], name: str) -> float | None:
        value = one["statistics"].get(name)
        if value is None:
            return None
        return float(max(0, value - was.get(one["id"], nothing).get(name, 0)) / seconds)

    found = tuple(
        Use(
            one["id"],
            one["kind"],
            added[one["id"]] / total_ns if total_ns else 0.0,
            added[one["id"]] / (1e9 * seconds),
            per_s(one, "rows_in"),
            per_s(one, "rows_out"),
            int(one["statistics"]["memory_bytes"]),
            int(one["statistics"].get("queued_rows") or 0),
            one["statistics"].get("behind_ms"),
            one["statistics"].get("queries"),
        )
        for one in now
    )
    memory = sum(int(one["statistics"]["memory_bytes"]) for one in (*queries, *unread))
    return Uses(
        seconds,
        total_ns / (1e9 * seconds),
        memory,
        unread_ns / total_ns if total_ns else 0.0,
        found,
    )


def ordered(found: Sequence[Use], sort: Sort) -> list[Use]:
    """The largest first; ids from a to z."""
    keys: dict[Sort, Callable[[Use], float]] = {
        "cpu": lambda one: -one.cores,
        "rows": lambda one: -((one.rows_in_per_s or 0.0) + (one.rows_out_per_s or 0.0)),
        "memory": lambda one: -one.memory_bytes,
        "queue": lambda one: -one.queued_rows,
        "behind": lambda one: -(one.behind_ms or 0),
        "id": lambda one: 0,
    }
    return sorted(found, key=lambda one: (keys[sort](one), one.id))
