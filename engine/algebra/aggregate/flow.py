"""What GROUP BY gives where rows are missing: COUNT, SUM and AVG are told from those that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from engine.algebra.aggregate.stage import Aggregate
from engine.dataflow.cost.flows import JoinedInput
from engine.model.source import SourceName, Stream
from engine.overload.precision.aggregated import Aggregated, InputChance
from engine.overload.precision.freedom import Above
from engine.overload.precision.of_query import StageInputs, gives_all_rows, is_told
from engine.overload.precision.shape import JoinLoss


def above_left(stage: Aggregate, above: Above, streams: Mapping[SourceName, Stream]) -> Above:
    told = all(map(is_told, stage.calls))
    return replace(above, counted=above.counted or above.grouped or not told, grouped=True)


def loss(stage: Aggregate, inputs: StageInputs) -> Aggregated:
    told = [call.function for call in stage.calls if is_told(call)]
    sums, keyed, known = any(one != "AVG" for one in told), bool(stage.keys), inputs.copies
    groups = inputs.left_copies if keyed else ()
    each = 1.0 / max(inputs.rows_of_group if keyed else inputs.rows, 1.0)
    mean_spread = each if "AVG" in told else 0.0
    if known is not None and known.inputs:
        # Pairs of the same row come and go with it, and besides by chance: those of values at random do.
        pair = 1.0 / max(known.left, 1.0)
        chances = tuple(_chances(inputs, known.inputs))
        return Aggregated(inputs.below, pair, groups, inputs.scaled, sums, mean_spread, pair, chances)
    of_values = each if "SUM" in told else 0.0
    # Rows of a stream come evenly; some of them do so by chance.
    come_evenly = not keyed and gives_all_rows(inputs.query, inputs.place)
    scatter = of_values + (0.0 if come_evenly else each)
    return Aggregated(inputs.below, each + of_values, groups, inputs.scaled, sums, mean_spread, scatter)


def _chances(inputs: StageInputs, joined: Sequence[JoinedInput]) -> Iterator[InputChance]:
    """How much each input of the joins below scatters."""
    below = inputs.query.stages[: inputs.place]
    joins = [stage.pairs for stage in below if stage.pairs is not None]
    # Conditions besides the keys take pairs by chance, and so of an input more of one row than of another.
    whole = all(join.condition is None for join in joins)
    nodes = [inputs.steps[0], *(step.right for step in inputs.steps if isinstance(step, JoinLoss))]
    even = [whole and gives_all_rows(inputs.query, 0)]
    even += [whole and gives_all_rows(join.inner, len(join.inner.stages)) for join in joins]
    for node, comes_evenly, one in zip(nodes, even, joined, strict=True):
        each = 1.0 / max(one.rows, 1.0)
        own = one.unevenness + one.summed
        by_chance = own + (0.0 if comes_evenly and not one.grouped else 1.0)
        yield InputChance(node, each * (1.0 + own), each * by_chance)
