"""GROUPING SETS, ROLLUP and CUBE: UNION ALL of one grouping a set.

``SELECT a, b, SUM(x) FROM s GROUP BY GROUPING SETS ((a, b), (a))`` means

    SELECT a, b, SUM(x) FROM s GROUP BY a, b  UNION ALL  SELECT a, NULL, SUM(x) FROM s GROUP BY a

and what stands behind GROUP BY is about the rows of all sets together. A set without keys has one row, even
of no rows. Cost: that of so many queries; they share the rows that WHERE selects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.algebra.project.stage import Output, Project
from engine.algebra.set_operation.stage import SetOperation
from engine.language.bind.group_windows import expanded, in_windows, window_call
from engine.language.bind.grouping import Grouping, KeySet
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scope import Scope
from engine.windows.assignment import Assignment
from tureen.errors import NotSupported


@dataclass(slots=True)
class GroupItems:
    """The items of a GROUP BY. items: as they are meant. sets: places of items; None: one set of all.
    assignments: the windows of each set, where GROUP BY has some.
    """

    items: Sequence[exp.Expr]
    sets: Sequence[KeySet] | None
    assignments: Sequence[Assignment | None] = ()

    def window(self, scope: Scope) -> exp.Expr | None:
        """The one window among them. Raises NotSupported for one that is not in every set."""
        window = window_call(self.items, scope)
        if window is not None and self.sets is not None:
            place = next(at for at, item in enumerate(self.items) if item is window)
            if any(place not in one for one in self.sets):
                name = window.args["name"]
                raise scope.place(window).refuse(
                    NotSupported,
                    f"rows of all grouping sets are in the windows of {name}",
                    hint=f"write it beside them: GROUP BY {name}(...), ROLLUP (a, b)",
                )
        return window

    def in_windows(self, window: exp.Expr, relation: BoundRelation, scope: Scope) -> BoundRelation:
        """The relation with its rows put into windows; those of the first set."""
        found = [
            in_windows(window, [item for item in items if item is not window], relation, scope)
            for items in self._in_sets()
        ]
        self.assignments = [one.scan.assignment for one in found]
        return found[0]

    def _in_sets(self) -> list[list[exp.Expr]]:
        if self.sets is None:
            return [[*self.items]]
        return [[self.items[place] for place in one] for one in self.sets]

    def keys(self, scope: Scope) -> tuple[list[exp.Expr], Sequence[KeySet] | None]:
        """The keys, windows as their two columns, and the sets of these; they need :meth:`in_windows`."""
        places: list[KeySet] = []
        keys: list[exp.Expr] = []
        for item in self.items:
            parts = expanded([item], scope)
            places.append(tuple(range(len(keys), len(keys) + len(parts))))
            keys += parts
        if self.sets is None:
            return keys, None
        return keys, [tuple(key for place in one for key in places[place]) for one in self.sets]

    def grouped(
        self, relation: BoundRelation, grouping: Grouping, names: Sequence[str], sql: str
    ) -> BoundRelation:
        """The groups of a relation, their columns of these names."""
        if grouping.sets is None:
            return relation.then(grouping.stage(names))
        found: BoundRelation | None = None
        for at, present in enumerate(grouping.sets):
            rows = relation if found is None else replace(relation, preference=None)
            if self.assignments:
                rows = replace(rows, scan=replace(rows.scan, assignment=self.assignments[at]))
            groups = rows.then(
                grouping.stage_of(names, present), Project(grouping.columns_of(names, present))
            )
            groups = replace(groups, columns=_columns(groups))
            found = groups if found is None else _united(found, groups, sql)
        assert found is not None
        return found


def _columns(relation: BoundRelation) -> tuple[Output, ...]:
    return tuple(Output(column.name, column) for column in relation.given())


def _united(left: BoundRelation, right: BoundRelation, sql: str) -> BoundRelation:
    return left.combined(SetOperation("union", right.query(sql), True), right)
