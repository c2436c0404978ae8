"""Which queries some rows of a source concern that are not in it: those whose answers they would be in, or
might be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from engine.model.source import SourceName
from engine.standing.query import StandingQuery


def touched_by(
    standing: Iterable[StandingQuery], source: SourceName, satisfied: Collection[int]
) -> Iterator[str]:
    """Ids of those queries over the source that have a scan of it without a predicate, or with one that a row
    satisfies, or whose matches are not kept. satisfied: slots of the source's predicates. O(queries), and
    O(its size) for a meaning.
    """
    takes_all: dict[int, bool] = {}
    for one in standing:
        if any(of == source and slot in satisfied for of, (slot, _) in one.places()):
            yield one.query_id
            continue
        if not one.slots:
            yield one.query_id
            continue
        takes = takes_all.get(id(one.meaning))
        if takes is None:
            scans = [scan for scan in one.query.scans() if scan.source == source]
            takes = takes_all[id(one.meaning)] = any(scan.predicate is None for scan in scans)
        if takes:
            yield one.query_id
