"""Which queries some rows of a source concern that are not in it: those whose answers they would be in, or
might be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from engine.model.source import SourceName
from engine.standing.query import StandingQuery
from engine.windows.clauses import UNBOUNDED


def relying(standing: Iterable[StandingQuery], source: SourceName) -> Iterator[StandingQuery]:
    """Those queries over the source that may let go of something since a constraint says that its values do
    not come again: joins, and groups and distinct rows over all of it. O(queries), and O(its size) for a
    meaning.
    """
    known: dict[int, bool] = {}
    for one in standing:
        relies = known.get(id(one.template))
        if relies is None:
            query = one.query
            scans = [scan for scan in query.scans() if scan.source == source]
            groups = any(
                stage.groups and (stage.aggregate is None or stage.aggregate.keys) for stage in query.stages
            )
            is_whole = any(scan.window == UNBOUNDED and scan.assignment is None for scan in scans)
            relies = known[id(one.template)] = len(list(query.scans())) > 1 or (groups and is_whole)
        if relies:
            yield one


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
        takes = takes_all.get(id(one.template))
        if takes is None:
            scans = [scan for scan in one.query.scans() if scan.source == source]
            takes = takes_all[id(one.template)] = any(scan.predicate is None for scan in scans)
        if takes:
            yield one.query_id
