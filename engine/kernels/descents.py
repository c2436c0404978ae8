"""From the tops of pyramids down to the cells of zones.

A forest, as arrays of nodes. ``slot``: where a node's cells are; ``shift``: bucket b of a zone is bucket
b >> shift of the node, 0 for zones; ``child``: int64[nodes, 2], its nodes below, -1 where there is none;
``zone``: the place of the zone, -1 for upper nodes and for zones that are not wanted. ``roots``: oldest
first; the zones below each and from one to the next ascend.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import borrowing
from engine.kernels.sketches import estimate_at
from engine.kernels.strings import Int32Array, Int64Array

STACK = 64
"""More than a path down a pyramid has nodes beside it: twice the height of one."""


class Forest(NamedTuple):
    """See above. slot, shift, zone: int64[nodes]; child: int64[nodes, 2]; roots: int64[roots]."""

    slot: Int64Array
    shift: Int64Array
    child: Int64Array
    zone: Int64Array
    roots: Int64Array


class CandidateRoom(NamedTuple):
    """Candidates, with room for one for each value and each zone whose cell has rows."""

    key: Int32Array
    zone: Int32Array
    bucket: Int32Array
    estimate: Int32Array


class DescentRoom(NamedTuple):
    """Room for one value. counts: int64[t]; stack: int64[STACK]."""

    counts: Int64Array
    stack: Int64Array


@borrowing
def descend(
    counters: Int32Array,
    rows: Int32Array,
    places: Int32Array,
    bucket: Int32Array,
    share: Int32Array,
    forest: Forest,
    out: CandidateRoom,
    scratch: DescentRoom,
) -> int:
    """Write, for each value, each wanted zone with rows in its cell, with the estimate there; how many.

    A node is looked into where its estimate is at least 0.5, and a node without rows not at all. Below one
    that is not looked into the estimate is 0. By value, then zone. counters: int32[slots, buckets, size];
    rows: int32[slots, buckets + 1]; places: int32[n, t]; bucket, share: int32[n].
    """
    stack = scratch.stack
    without = rows.shape[1] - 1
    at = 0
    for i in range(bucket.shape[0]):
        if bucket[i] == without:
            continue
        for root in forest.roots:
            stack[0] = root << 1
            depth = 1
            while depth:
                depth -= 1
                node, is_pruned = stack[depth] >> 1, stack[depth] & 1
                slot = forest.slot[node]
                cell = np.int64(bucket[i]) >> forest.shift[node]
                most = int(rows[slot, cell])
                if most == 0:
                    continue
                is_zone = forest.child[node, 0] < 0
                if is_zone and forest.zone[node] < 0:
                    continue
                about = 0
                if not is_pruned:
                    of_value = int(share[i]) if is_zone else 1
                    about = estimate_at(counters[slot, cell], places[i], of_value, most, scratch.counts)
                if is_zone:
                    out.key[at] = i
                    out.zone[at] = forest.zone[node]
                    out.bucket[at] = bucket[i]
                    out.estimate[at] = about
                    at += 1
                    continue
                below = np.int64(1) if about == 0 else np.int64(0)
                if forest.child[node, 1] >= 0:
                    stack[depth] = forest.child[node, 1] << 1 | below
                    depth += 1
                stack[depth] = forest.child[node, 0] << 1 | below
                depth += 1
    return at
