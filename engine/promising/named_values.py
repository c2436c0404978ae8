"""Which values of the summarised attribute members name, and which buckets they have to look into.

A bucket holds other values in zones of another layout (:mod:`engine.summaries.layouts`), so buckets are
counted layout by layout: bucket b of layout l, of the B that there are and one for rows without a value, has
the place l (B + 1) + b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels.selections import Constants
from engine.model.batch import BoolArray, Column
from engine.promising.conditions import AttributeCondition, column_of, ends_of
from engine.promising.selection_members import SelectionMembers
from engine.stems.regions import Key
from engine.summaries.layouts import Layout
from engine.summaries.summary import Summary
from engine.summaries.summary_type import ValueKeys


@dataclass(frozen=True, slots=True)
class NamedValues:
    """The values of the attribute that members name."""

    # Each value once.
    values: Column
    keys: ValueKeys
    # By the place of their buckets.
    constants: Constants
    # bool[members]: which members name values, and nothing but values.
    naming: BoolArray
    # bool[members, layouts, buckets + 1]: where rows may be that a member takes; the last bucket is of rows
    # without a value.
    wanted: BoolArray

    @classmethod
    def of(cls, members: SelectionMembers, summary: Summary) -> NamedValues:
        """O(layouts * values)."""
        places: dict[Key, int] = {}
        member: list[int] = []
        key: list[int] = []
        naming = np.zeros(members.size, np.bool_)
        for number, condition in sorted(members.conditions.items()):
            if condition.points is not None:
                naming[number] = True
                for point in condition.points:
                    member.append(number)
                    key.append(places.setdefault(point, len(places)))
        values = column_of(list(places), members.type)
        keys = summary.keys(values)
        layouts, width = summary.layouts, members.buckets + 1
        of, whose = np.array(key, np.int32), np.array(member, np.int32)
        bucket = np.concatenate(
            [
                number * width + layout.bucket_of(keys.hash, keys.position)[of]
                for number, layout in enumerate(layouts)
            ]
        )
        of, whose = np.tile(of, len(layouts)), np.tile(whose, len(layouts))
        order = np.argsort(bucket, kind="stable")
        starts = np.searchsorted(bucket[order], np.arange(len(layouts) * width + 1)).astype(np.int32)
        wanted = np.zeros((members.size, len(layouts), width), np.bool_)
        wanted.reshape(members.size, -1)[whose, bucket] = True
        for number, condition in members.conditions.items():
            if condition.points is None:
                for place, layout in enumerate(layouts):
                    wanted[number, place, :-1] = _reached(condition, layout, members, summary)
            wanted[number, :, -1] = condition.unvalued
        return cls(values, keys, Constants(starts, whose[order], of[order]), naming, wanted)


def _reached(
    condition: AttributeCondition, layout: Layout, members: SelectionMembers, summary: Summary
) -> BoolArray:
    """bool[buckets]: where a layout has values of ranges."""
    if layout.cuts is None:
        return np.ones(members.buckets, np.bool_)
    reached = np.zeros(members.buckets, np.bool_)
    for low, high in ends_of(condition.region, members.type):
        bounds = [0, members.buckets - 1]
        for place, end in enumerate((low, high)):
            if end is not None:
                keys = summary.keys(column_of([end], members.type))
                bounds[place] = int(layout.bucket_of(keys.hash, keys.position)[0])
        reached[bounds[0] : bounds[1] + 1] = True
    return reached
