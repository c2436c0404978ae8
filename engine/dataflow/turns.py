"""The turns of a transition: so short that few pairs of a row and a query move in each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval
from engine.dataflow.graph_nodes import Leaf
from engine.dataflow.operators.entries import EntriesNode
from engine.dataflow.operators.scan import ScanNode
from engine.model.batch import Int64Array
from engine.model.defects import refusal_of

TURN_PAIRS = 1 << 20
"""A turn has about so many pairs of a row and a query at most, unless one instant alone has more."""

Moved = tuple[int, Int64Array]
"""How many rows a leaf gives, and the instants at which they enter or leave."""


def moving_of(leaves: Collection[Leaf], context: EvaluationContext) -> dict[Leaf, Moved]:
    """The leaves that give something on a transition, or cannot tell."""
    found: dict[Leaf, Moved] = {}
    for leaf in leaves:
        try:
            windows_move = isinstance(leaf, EntriesNode) and leaf.moves(context)
            temporal = leaf.moved(context)
        except Exception as error:  # noqa: BLE001  (its queries are told)
            leaf.refused = refusal_of(error)
            found[leaf] = 0, np.empty(0, np.int64)
        else:
            if len(temporal) or windows_move:
                found[leaf] = len(temporal), np.concatenate([temporal.valid_from, temporal.valid_to])
    return found


def pairs_of(moving: Mapping[Leaf, Moved], context: EvaluationContext) -> int:
    """About how many pairs of a row and a column move on a transition."""
    pairs = sum(moved * leaf.columns.count for leaf, (moved, _) in moving.items())
    if pairs > TURN_PAIRS:
        pairs = 0
        for leaf, (moved, _) in moving.items():
            if isinstance(leaf, ScanNode) and leaf.columns.count > 1 and leaf.refused is None:
                pairs += int(moved * leaf.columns_a_row(context))
            else:
                pairs += moved * leaf.columns.count
    return pairs


def turns_of(whole: Interval, instants: Sequence[Int64Array], pairs: int) -> Iterator[Interval]:
    """A transition in turns. instants: those at which rows of leaves enter or leave. pairs: at most so many
    pairs of a row and a column move.
    """
    turns = -(-pairs // TURN_PAIRS)
    if turns <= 1:
        yield whole
        return
    inside = np.sort(np.concatenate([each[whole.among(each)] for each in instants]))
    ends = np.unique(inside[:: max(1, len(inside) // turns)][1:])
    since = whole.since
    for end in [*ends.tolist(), whole.until]:
        if end > since:
            yield Interval(since, end)
            since = end
