"""Pyramids as arrays of nodes, for the kernel that goes down them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from engine.kernels.descents import Forest
from engine.model.batch import BoolArray, Int64Array
from engine.summaries.pyramid import Pyramid
from engine.summaries.zones import Zones


class Trees(NamedTuple):
    """All nodes of the pyramids of a summary; fits until a zone comes, ends or goes.

    slot, shift: int64[nodes]; child: int64[nodes, 2], -1: none; roots: int64[roots], oldest first. zones: the
    nodes of zones, ascending as the zones are; layout: int64[nodes].
    """

    slot: Int64Array
    shift: Int64Array
    child: Int64Array
    roots: Int64Array
    zones: Int64Array
    layout: Int64Array

    @classmethod
    def of(cls, pyramids: Sequence[Pyramid]) -> Self:
        """pyramids: the first granularity in front. O(zones)."""
        nodes: list[tuple[int, int, int]] = []
        child: list[list[int]] = []
        roots: list[int] = []
        zones: list[int] = []
        for pyramid in reversed(pyramids):
            below: dict[tuple[int, int], int] = {}
            alone = list[int]()
            for zone in pyramid.zones:
                zones.append(len(nodes))
                if zone.is_indexed:
                    below[zone.layout, zone.number] = len(nodes)
                else:
                    alone.append(len(nodes))
                nodes.append((zone.slot, 0, zone.layout))
                child.append([-1, -1])
            for shift, level in enumerate(pyramid.levels, 1):
                here: dict[tuple[int, int], int] = {}
                for (layout, number), node in level.items():
                    pair = ((layout, 2 * number), (layout, 2 * number + 1))
                    under = [below[each] for each in pair if each in below]
                    here[layout, number] = len(nodes)
                    nodes.append((node.slot, shift, layout))
                    child.append([under[0], under[1] if len(under) > 1 else -1])
                below = here
            roots += [*below.values(), *alone]
        columns = np.array(nodes, np.int64).reshape(-1, 3)
        return cls(
            columns[:, 0].copy(),
            columns[:, 1].copy(),
            np.array(child, np.int64).reshape(-1, 2),
            np.array(roots, np.int64),
            np.array(zones, np.int64),
            columns[:, 2].copy(),
        )


def forest_of(trees: Trees, layout: int, zones: Zones, wanted: BoolArray) -> tuple[Forest, Int64Array]:
    """What of the trees is of one layout, with the places of the wanted zones, and the slots of these.

    zones: those with rows; wanted: bool[zones]. O(nodes).
    """
    place = np.full(len(trees.slot), -1, np.int64)
    chosen = np.flatnonzero(wanted & (zones.layout == layout))
    slots = zones.slot[chosen]
    place_of = np.full(int(max(trees.slot.max(initial=0), zones.slot.max(initial=0))) + 1, -1, np.int64)
    place_of[slots] = chosen
    place[trees.zones] = place_of[trees.slot[trees.zones]]
    roots = trees.roots[trees.layout[trees.roots] == layout]
    return Forest(trees.slot, trees.shift, trees.child, place, roots), slots
