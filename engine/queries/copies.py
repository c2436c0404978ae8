"""How many rows have a value, where a stage compares or groups values: told by a look at rows of the sources.

That tells whether a value is missed when rows are: of DISTINCT, GROUP BY, IN, INTERSECT ALL and EXCEPT ALL. A
look is taken when it is asked for; other stages cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from engine.dataflow.cost.flows import compared_copies, joined_inputs, of_query, own_values
from engine.dataflow.cost.statistics import Statistics
from engine.language.query import Query
from engine.model.source import SourceName
from engine.overload.precision.of_query import Copies, CopiesOf
from engine.queries.statistics import statistics_of
from engine.sources.source import Source


def copies_in(sources: Mapping[SourceName, Source]) -> CopiesOf:
    """By rows that these hold at present."""
    tables = [name for name, source in sources.items() if source.stream.is_table]
    made: list[Statistics] = []

    def known() -> Statistics:
        if not made:
            made.append(statistics_of(sources))
        return made[0]

    return copies_by(known, tables)


def copies_by(known: Callable[[], Statistics], tables: Container[SourceName]) -> CopiesOf:
    """By what is known of rows, once it is asked for. tables: which sources are."""

    def copies_of(query: Query, place: int) -> Copies | None:
        stage = query.stages[place]
        if stage.right_input is None and not stage.groups:
            return None
        below = of_query(replace(query, stages=query.stages[:place]), tables, known())
        if stage.right_input is None:
            values = max(1.0, own_values(stage, below, None, known()))
            inputs = joined_inputs(query, place, tables, known())
            return Copies(below.rows / values, values=values, inputs=inputs)
        right = of_query(stage.right_input, tables, known())
        return Copies(*compared_copies(stage, below, right, known()))

    return copies_of
