"""Which values of the summarised attribute members name, and which buckets they have to look into.

A bucket holds other values in zones of another layout (:mod:`engine.summaries.layouts`), so buckets are
counted layout by layout: bucket b of layout l, of the B that there are and one for rows without a value, has
the place l (B + 1) + b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.domains.regions import Key
from engine.kernels.selections import Constants
from engine.model.batch import BoolArray, Column
from engine.promising.conditions import AttributeCondition, column_of, ends_of
from engine.promising.selection_members import LAYOUTS, SelectionMembers
from engine.summaries.layouts import Layout
from engine.summaries.summary import Summary
from engine.summaries.summary_type import ValueKeys

Float64Array = npt.NDArray[np.float64]
Range = tuple[float, float]


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
    # float64[members, LAYOUTS * (buckets + 1)]: of ranges, which share of each bucket they cover, as far as
    # cut points tell, by place; NaN where they tell nothing.
    covered: Float64Array
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
        keys = summary.bucketing.keys(values)
        layouts, width = summary.bucketing.layouts, members.buckets + 1
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
        covered = np.full((members.size, LAYOUTS, width), np.nan)
        wanted.reshape(members.size, -1)[whose, bucket] = True
        for number, condition in members.conditions.items():
            if condition.points is None:
                ranges = _ranges(condition, members, summary)
                for place, layout in enumerate(layouts):
                    wanted[number, place, :-1] = _reached(ranges, layout, members.buckets)
                    covered[number, place, :-1] = _covered(ranges, layout, members.buckets)
            wanted[number, :, -1] = condition.unvalued
        return cls(
            values,
            keys,
            Constants(starts, whose[order], of[order]),
            naming,
            covered.reshape(members.size, -1),
            wanted,
        )


def _ranges(condition: AttributeCondition, members: SelectionMembers, summary: Summary) -> list[Range]:
    """The positions of the ends of each interval of a condition, infinite where it has none."""
    found = []
    for low, high in ends_of(condition.region, members.type):
        ends = [-np.inf, np.inf]
        for place, end in enumerate((low, high)):
            if end is not None:
                position = summary.bucketing.keys(column_of([end], members.type)).position
                ends[place] = float(position[0]) if len(position) else ends[place]
        found.append((ends[0], ends[1]))
    return found


def _reached(ranges: Sequence[Range], layout: Layout, buckets: int) -> BoolArray:
    """bool[buckets]: where a layout has values of ranges."""
    if layout.cuts is None:
        return np.ones(buckets, np.bool_)
    reached = np.zeros(buckets, np.bool_)
    for low, high in ranges:
        first, last = layout.cuts.searchsorted([low, high], side="right").tolist()
        reached[first : last + 1] = True
    return reached


def _covered(ranges: Sequence[Range], layout: Layout, buckets: int) -> Float64Array:
    """float64[buckets]: which share of each bucket of a layout ranges cover; NaN where that is not known."""
    covered = np.full(buckets, np.nan)
    cuts = layout.cuts
    if cuts is None or not len(cuts):
        return covered
    begins, ends = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    covered[:] = 0.0
    for low, high in ranges:
        with np.errstate(invalid="ignore"):
            inside = np.minimum(high, ends) - np.maximum(low, begins)
            share = np.maximum(inside, 0.0) / (ends - begins)
        covered += np.where((low <= begins) & (high >= ends), 1.0, share)
    whole = np.isfinite(begins) & np.isfinite(ends) & (begins < ends)
    partly = ~whole & (covered > 0.0) & (covered < 1.0)
    covered[partly | np.isnan(covered) | (~whole & (covered == 0.0))] = np.nan
    least: Float64Array = np.minimum(covered, 1.0)
    return least
